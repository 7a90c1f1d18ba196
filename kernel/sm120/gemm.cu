// SPDX-License-Identifier: MIT
// NVFP4 GEMM for compute capability 12.x: FP4 tensor cores by mma.sync with block scales. README.md
// has the drawing and the arithmetic.
//
// CONTRACT
//   D[l][m][n] = epilogue( sum_k  A[l][m][k] sa[l][m][k/16]  B[l][n][k] sb[l][n][k/16] ), by
//   common/epilogue.h.
//   A CTA computes kWeights columns n (weights, B) x kTokens rows m (tokens, A) of one batch l, for
//   one of `split` K partitions in units of 256. If the units do not divide evenly, the first
//   partitions have one more. The partitions' sums meet in the workspace, and nvfp4_add_sm120 adds
//   them; with one partition it is not launched. K is a multiple of 16 and at least 16. Nothing
//   outside the described elements influences D.
//
// ORDER OF SUMS
//   An MMA adds 64 products and the accumulator. The MMAs of a partition follow each other in the
//   order of K, in every tile alike; then partitions are added first to last. The bits depend only
//   on the sizes and on `split`, and those of a token do not depend on the other tokens.
//
// ROLES
//   the last warp fills the ring (load.cuh); the others multiply (multiply.cuh), then store D or
//   partial sums (sums.cuh)
#include "kernel/common/some_entries.h"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm120/cta.cuh"
#include "kernel/sm120/load.cuh"
#include "kernel/sm120/multiply.cuh"
#include "kernel/sm120/params.h"
#include "kernel/sm120/sums.cuh"
#include "kernel/sm120/tile.h"

namespace nvfp4 {

constexpr uint32_t kConsumerBarrier = 1;  // 0 is the barrier of all threads

template <typename Tile>
__device__ void consume(const Sm120Cta<Tile>& cta, uint32_t warp, uint32_t lane) {
  Sm120Sums<Tile> sums = {};
  multiply_all(cta, warp, lane, sums);
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumers>();  // the ring is drained
  put_sums(cta, sums, warp, lane);
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumers>();
  // An earlier grid may read D or the workspace; an empty partition has waited for no token.
  ptx::griddepcontrol_wait();
  const SumRows rows = rows_of_thread(cta);
  if (cta.p.split > 1) {
    store_partition(cta, rows);
  } else {
    store_d(cta.p, rows);
  }
}

template <typename Tile>
__device__ void gemm_sm120(const Sm120Params& p) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Sm120Cta<Tile> cta(p, ptx::shared_address(shared));
  if (threadIdx.x == Tile::kConsumers) {
    ptx::prefetch_tensormap(&p.weights);
    ptx::prefetch_tensormap(&p.tokens);
    init_barriers(cta);
  }
  __syncthreads();
  if (warp == Tile::kWarps) {
    run_producer(cta, lane);
  } else {
    consume(cta, warp, lane);
  }
}

}  // namespace nvfp4

#define ENTRY(label, operation)                                                                  \
  NVFP4_ENTRY(sm120, label, operation,                                                           \
              __launch_bounds__(nvfp4::Sm120_##operation<nvfp4::Sm120Tile_##label>::kThreads,    \
                                nvfp4::Sm120_##operation<nvfp4::Sm120Tile_##label>::kCtasPerSm), \
              nvfp4::Sm120Params,                                                                \
              nvfp4::gemm_sm120<nvfp4::Sm120_##operation<nvfp4::Sm120Tile_##label>>(params))
#include "kernel/sm120/entries.def"

extern "C" __global__ void __launch_bounds__(nvfp4::kSm120AddThreads)
    nvfp4_add_sm120(const __grid_constant__ nvfp4::Sm120Params params) {
  __shared__ float4 sums[nvfp4::kSm120AddThreads];
  nvfp4::ptx::griddepcontrol_wait();  // the partitions have been stored
  nvfp4::ptx::griddepcontrol_launch_dependents();
  nvfp4::add_partitions(params, nvfp4::ptx::shared_address(sums + threadIdx.x));
}
