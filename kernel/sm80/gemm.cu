// SPDX-License-Identifier: MIT
// NVFP4 weights times fp16 or bf16 tokens by mma.sync, for few tokens, on compute capability 8.0
// and later; outside 9.0 also weights with UE8M0 scales times bf16 tokens. README.md has the
// drawing and the arithmetic.
//
// CONTRACT
//   D[l][m][n] = epilogue( sum_k  A[l][m][k]  B[l][n][k] sb[l][n][k/16] ), by common/epilogue.h;
//   of MXFP4 sb[l][n][k/32]. In a grouped product each row m has its group l, and a second sum if
//   the product is gated (common/gate.h).
//   A CTA computes 64 columns n (weights, B) x 8 or 16 rows m (tokens, A) of one batch l, for one
//   of `split` K partitions in k-blocks of 128. If the k-blocks do not divide evenly, the first
//   partitions have one more. In the image for 9.0 the partitions of a tile form a cluster. In the
//   image for 8.0 and later their sums meet in the workspace, and nvfp4_add_sm80_* adds them; with
//   one partition it is not launched. A CTA of a grouped product computes tile after tile. Each
//   has all of K, and 32 columns if it is gated. K is a multiple of 16, of MXFP4 of 32, and at
//   least that.
//   Nothing outside the described elements influences D.
//
// ORDER OF SUMS
//   Warp w of a CTA takes the k-blocks w, w + kWarps, .. of its partition, each as 8 MMAs of 16
//   products and the accumulator. Then warps are added first to last, then partitions first to
//   last. The bits depend only on the sizes, `split` and the number of warps. Both images give the
//   same bits, and those of a token do not depend on the other tokens.
#include "kernel/common/some_entries.h"
#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm80/cta.cuh"
#include "kernel/sm80/decode.cuh"
#include "kernel/sm80/load.cuh"
#include "kernel/sm80/multiply.cuh"
#include "kernel/sm80/packed.cuh"
#include "kernel/sm80/params.h"
#include "kernel/sm80/sums.cuh"
#include "kernel/sm80/tile.h"

namespace nvfp4 {

// The weights in the order of a checkpoint. Packed ones have a struct of their own (packed.cuh).
template <typename Tile, typename Operand>
struct Sm80PlainWay {
  using Source = Sm80Source<Tile, Operand>;
  using Lane = Sm80Lane<Tile>;
  using Powers = Sm80Powers;

  static __device__ void multiply(const Lane& at, const Powers& by, uint32_t stage,
                                  uint32_t elements, uint32_t lane, Sm80Sums<Tile>& sums) {
    multiply_block<Tile, Operand>(at, by, stage, elements, lane, sums);
  }
  static __device__ uint32_t log2_of_scale(const Sm80Params& p) {
    return nvfp4::log2_of_scale<Operand>(p);
  }
  static __device__ void load(const Sm80Cta<Tile>& cta, const Source& source, uint32_t stage,
                              uint32_t lane) {
    load_weights_80(cta, source, stage, lane);
  }
};

// An iteration multiplies a k-block and loads the one that takes its stage; the first kStages
// iterations only load. An iteration commits a group of copies even if it is empty, so that every
// wait counts alike. Weights that no earlier grid writes are loaded before that grid has ended.
template <typename Tile, typename Way>
__device__ void multiply_80(const Sm80Cta<Tile>& cta, uint32_t ring, uint32_t warp, uint32_t lane,
                            Sm80Sums<Tile>& sums) {
  const typename Way::Lane at(cta, ring, lane, Way::log2_of_scale(cta.p));
  const typename Way::Powers by;
  typename Way::Source source(cta, warp, lane);
  const bool early = cta.p.weights_are_static != 0;
  const int32_t blocks = static_cast<int32_t>(cta.blocks);
  constexpr int32_t kAhead = Tile::kStages * Tile::kWarps;
  const int32_t first = static_cast<int32_t>(warp) - kAhead;
  uint32_t stage = 0;  // offset of the stage in the ring, in bytes
#pragma unroll 1
  for (int32_t i = first; i < blocks; i += Tile::kWarps) {
    if (i >= 0) {
      ptx::cp_async_wait_group<Tile::kStages - 1>();
      __syncwarp();  // the copies of the other lanes have arrived, too
      const uint32_t begin = (cta.first_block + i) * kSm80BlockK;
      Way::multiply(at, by, stage, cta.p.k - begin, lane, sums);
      __syncwarp();  // all lanes have read the stage
    }
    const bool more = i + kAhead < blocks;
    if (i == first && !early) ptx::griddepcontrol_wait();
    if (more) Way::load(cta, source, ring + stage, lane);
    if (i == first && early) ptx::griddepcontrol_wait();
    if (more) load_tokens_80(cta, source, ring + stage, lane);
    source.advance(cta.p);
    ptx::cp_async_commit_group();
    stage += cta.stage_bytes;
    if (stage == Tile::kStages * cta.stage_bytes) stage = 0;
  }
}

// Called after the warps have written their sums to the first warp's ring.
template <typename Tile>
__device__ void finish_80(const Sm80Cta<Tile>& cta) {
  const Sm80ThreadSums<Tile> its;
  uint32_t sums = cta.ring(0);
  if (cta.p.split == 1) {
    add_warps(cta, its, 0);
  } else if constexpr (kSm80Clusters) {
    push_partition(cta, its);
    if (cta.rank != 0) return;
    add_cluster(cta, its);
    sums = cta.partitions(0);
  } else {
    return store_partition(cta, its);
  }
  store_d_80(cta.p, cta.at, sums, its);
}

// The same for a tile of a grouped product.
template <typename Tile>
__device__ void finish_grouped_80(const Sm80Cta<Tile>& cta) {
  const Sm80GroupedParams& grouped = grouped_params(cta.p);
  const Sm80ThreadSums<Tile> its(grouped.columns);
  add_warps(cta, its, 0);
  if (grouped.columns == kSm80Weights) return store_d_80(cta.p, cta.at, cta.ring(0), its);
  add_warps(cta, its, kSm80HalfSumBytes);
  store_gated_80(cta, its);
}

// Multiplies all k-blocks of the CTA. Each warp writes its sums to its ring.
template <typename Variant>
__device__ void sum_tile(const Sm80Cta<typename Variant::Tile>& cta, uint32_t ring, uint32_t warp,
                         uint32_t lane) {
  using Tile = typename Variant::Tile;
  constexpr Sm80Type kType = Variant::kType;
  Sm80Sums<Tile> sums = {};
  if constexpr (Variant::kPacked) {
    multiply_80<Tile, Sm80PackedWay<Tile, Sm80PackedOperand<kType>>>(cta, ring, warp, lane, sums);
  } else {
    bool ue8m0 = false;
    if constexpr (kSm80TakesUe8m0 && Tile::kUe8m0Weights && kType == Sm80Type::bf16) {
      ue8m0 = cta.p.log2_of_ue8m0 != 0;
      if (ue8m0) multiply_80<Tile, Sm80PlainWay<Tile, Sm80Ue8m0>>(cta, ring, warp, lane, sums);
    }
    if (!ue8m0) {
      multiply_80<Tile, Sm80PlainWay<Tile, Sm80Operand<kType>>>(cta, ring, warp, lane, sums);
    }
    apply_nan_rows(sums);
  }
  put_sums_80(sums, ring, lane);
}

template <typename Variant>
__device__ void single_sm80(const Sm80Params& p) {
  using Tile = typename Variant::Tile;
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Sm80Cta<Tile> cta(p, ptx::shared_address(shared));
  // A shuffle, because otherwise the compiler computes the address again for every copy.
  const uint32_t ring = __shfl_sync(0xFFFFFFFF, cta.ring(warp), 0);
  if constexpr (kSm80Clusters) {
    if (p.split > 1) start_cluster(cta);
  }
  if (threadIdx.x < kSm80ZeroBytes / 4) ptx::st_shared_b32(cta.zeros() + threadIdx.x * 4, 0);
  ptx::griddepcontrol_launch_dependents();
  __syncthreads();  // the zeros have been written
  sum_tile<Variant>(cta, ring, warp, lane);
  __syncthreads();
  finish_80(cta);
}

// Each warp has waited for earlier grids, which may write the groups' rows, before it looks for its
// first tile. The barrier before a tile's loads: the zeros have been written, and the sums of the
// tile before have been read.
template <typename Variant>
__device__ void grouped_sm80(const Sm80Params& p) {
  using Tile = typename Variant::Tile;
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t smem = ptx::shared_address(shared);
  if (threadIdx.x < kSm80ZeroBytes / 4) ptx::st_shared_b32(smem + threadIdx.x * 4, 0);
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  Sm80Walk<Tile> walk;
  Sm80Place place;
#pragma unroll 1
  while (walk.next(p, &place)) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const Sm80Cta<Tile> cta(p, smem, place);
    const uint32_t ring = __shfl_sync(0xFFFFFFFF, cta.ring(warp), 0);  // as above
    __syncthreads();
    sum_tile<Variant>(cta, ring, warp, lane);
    __syncthreads();
    finish_grouped_80(cta);
  }
}

template <typename Variant>
__device__ void gemm_sm80(const Sm80Params& p) {
  if constexpr (Variant::kGrouped) return grouped_sm80<Variant>(p);
  return single_sm80<Variant>(p);
}

template <typename Variant>
using Sm80ParamsOf = typename Sm80Argument<Variant::kGrouped>::Params;

#if __CUDA_ARCH__ < 900
// Adds the K partitions of a tile in the workspace and stores its D.
template <typename Tile>
__device__ void add_sm80(const Sm80Params& p) {
  __shared__ __align__(16) uint8_t sums[Tile::kTokens * kSm80SumRowBytes];
  const uint32_t tile = blockIdx.x;
  const Sm80Place at = sm80_place<Tile>(p, tile);
  const Sm80ThreadSums<Tile> its;
  const uint32_t to = ptx::shared_address(sums);
  const uint32_t tokens = min(p.m - at.m, Tile::kTokens);
  for (uint32_t t = its.token; t < tokens; t += its.step) {
    float4 sum = *partition_at<Tile>(p, tile, 0, t, its.n);
    for (uint32_t rank = 1; rank < p.split; ++rank) {
      sum = add_80(sum, *partition_at<Tile>(p, tile, rank, t, its.n));
    }
    ptx::st_shared_v4_f32(to + its.place(t), sum);
  }
  store_d_80(p, at, to, its);
}
#endif

}  // namespace nvfp4

#define ENTRY(label, operation)                                                                \
  NVFP4_ENTRY(sm80, label, operation,                                                          \
              __launch_bounds__(nvfp4::Sm80_##operation<nvfp4::Sm80Tile_##label>::kThreads,    \
                                nvfp4::Sm80_##operation<nvfp4::Sm80Tile_##label>::kCtasPerSm), \
              nvfp4::Sm80ParamsOf<nvfp4::Sm80_##operation<nvfp4::Sm80Tile_##label>>,           \
              nvfp4::gemm_sm80<nvfp4::Sm80_##operation<nvfp4::Sm80Tile_##label>>(gemm_of(params)))
#include "kernel/sm80/entries.def"

// The entries of the images without clusters.
#if __CUDA_ARCH__ < 900
#define SM80_ADD(tokens)                                                             \
  extern "C" __global__ void __launch_bounds__(nvfp4::kSm80AddThreads)               \
      nvfp4_add_sm80_64x##tokens(const __grid_constant__ nvfp4::Sm80Params params) { \
    nvfp4::add_sm80<nvfp4::Sm80Tile<tokens, nvfp4::kSm80AddThreads / 32>>(params);   \
  }
SM80_ADD(8)
SM80_ADD(16)
#undef SM80_ADD
#endif
