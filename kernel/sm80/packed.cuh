// SPDX-License-Identifier: MIT
// Packed weights (docs/packing.md) beside 16-bit tokens, in the image for 9.0. A k-block is two
// units, which lie together. A lane's 16 bytes of a slab are the A operands of four MMAs, in the
// natural order of K, so tokens come to their fragments by ldmatrix. Scales are 0 beyond K, and a
// NaN among them reaches its row by the products, so nothing has to look for it.
#pragma once

#include <cstdint>

#include "kernel/common/packed.cuh"
#include "kernel/ptx/async_copy.cuh"
#include "kernel/ptx/ldmatrix.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm80/cta.cuh"
#include "kernel/sm80/decode.cuh"
#include "kernel/sm80/load.cuh"
#include "kernel/sm80/multiply.cuh"

namespace nvfp4 {

constexpr uint32_t kPackedUnits = kSm80BlockK / kPackedK;              // of a k-block
constexpr uint32_t kPackedSteps = kPackedK / 16;                       // MMAs along K in a unit
constexpr uint32_t kPackedPieces = kPackedUnitBytes / 16;              // copied by a lane each
constexpr uint32_t kPackedCopies = kPackedUnits * kPackedPieces / 32;  // of a lane
static_assert(kPackedCopies * 32 == kPackedUnits * kPackedPieces && kPackedUnits == 2);

template <Sm80Type kType>
struct Sm80PackedOperand;
template <>
struct Sm80PackedOperand<Sm80Type::f16> : PackedF16, Sm80Operand<Sm80Type::f16> {
  using PackedF16::place, PackedF16::scale_pair;
};
template <>
struct Sm80PackedOperand<Sm80Type::bf16> : PackedBf16, Sm80Operand<Sm80Type::bf16> {
  using PackedBf16::place, PackedBf16::scale_pair;
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    return ptx::mul_rn_bf16x2_by_half<kHalf>(codes, scales);
  }
};

// As Sm80Source.
template <typename Tile>
struct Sm80PackedSource {
  static constexpr uint32_t kTokenLanes = kSm80TokenRowBytes / 16;

  const uint8_t *units, *tokens;  // those of the warp's next k-block
  uint32_t block;

  __device__ Sm80PackedSource(const Sm80Cta<Tile>& cta, uint32_t warp, uint32_t lane)
      : block(cta.first_block + warp) {
    const Sm80Params& p = cta.p;
    const uint64_t unit =
        static_cast<uint64_t>(cta.at.n / kPackedRows) * units_of_k(p) + block * kPackedUnits;
    units = p.weights + cta.at.batch * p.weight_batch_bytes + unit * kPackedUnitBytes + lane * 16;
    tokens = p.tokens + cta.at.batch * p.token_batch_bytes +
             static_cast<int64_t>(cta.at.m + lane / kTokenLanes) * p.token_row_bytes +
             block * kSm80TokenRowBytes + lane % kTokenLanes * 16;
  }
  static __device__ uint32_t units_of_k(const Sm80Params& p) {
    return (p.k + kPackedK - 1) / kPackedK;
  }
  static __device__ uint32_t swizzle(uint32_t, uint32_t row) {
    return sm80_packed_token_swizzle(row);
  }
  __device__ void advance(const Sm80Params&) {
    block += Tile::kWarps;
    units += Tile::kWarps * kPackedUnits * kPackedUnitBytes;
    tokens += Tile::kWarps * kSm80TokenRowBytes;
  }
};

// If K has no second unit in the k-block, zeros take its place.
template <typename Tile>
__device__ void load_units_80(const Sm80Cta<Tile>& cta, const Sm80PackedSource<Tile>& source,
                              uint32_t stage, uint32_t lane) {
  const uint32_t to = stage + lane * 16;
  if ((source.block + 1) * kPackedUnits <= source.units_of_k(cta.p)) {
#pragma unroll
    for (uint32_t i = 0; i < kPackedCopies; ++i) {
      ptx::cp_async_16(to + i * 512, source.units + i * 512);
    }
    return;
  }
#pragma unroll 1
  for (uint32_t i = 0; i < kPackedCopies; ++i) {
    const bool there = i * 32 + lane < kPackedPieces;
    ptx::cp_async_16_of(to + i * 512, there ? source.units + i * 512 : cta.p.weights,
                        there ? 16 : 0);
  }
}

// Addresses that a lane reads in stage 0 of its ring.
template <typename Tile>
struct Sm80PackedLane {
  uint32_t codes, scales;
  // For each 8 tokens: the row of a matrix whose address this lane gives, piece lane / 8 of the
  // first 64 bytes, and a mask for other offsets, 0 if the token does not exist.
  uint32_t tokens[Tile::kTokens / 8], token_mask[Tile::kTokens / 8];

  __device__ Sm80PackedLane(const Sm80Cta<Tile>& cta, uint32_t ring, uint32_t lane, uint32_t) {
    codes = ring + lane * 16;
    scales = ring + kPackedCodeBytes + lane / 4 * 8;
    const uint32_t swizzled = (lane / 8 ^ sm80_packed_token_swizzle(lane % 8)) * 16;
#pragma unroll
    for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
      const uint32_t row = 8 * u + lane % 8;
      const bool there = row < cta.tokens;
      tokens[u] =
          swizzled + (there ? ring + kSm80CodeBytes + kSm80ScaleBytes + row * kSm80TokenRowBytes
                            : cta.zeros());
      token_mask[u] = there ? 0xFFFFFFFF : 0;
    }
  }
};

// The B operands of a unit: b0 and b1 of each step.
template <typename Tile>
__device__ void packed_token_fragments(const Sm80PackedLane<Tile>& at, uint32_t stage,
                                       uint32_t unit,
                                       uint32_t (&b)[Tile::kTokens / 8][kPackedSteps * 2]) {
#pragma unroll
  for (uint32_t u = 0; u < Tile::kTokens / 8; ++u) {
    const uint32_t from = at.tokens[u] + (stage + unit * 128 & at.token_mask[u]);
#pragma unroll
    for (uint32_t two = 0; two < kPackedSteps; two += 2) {
      uint32_t four[4];
      ptx::ldmatrix_x4(from ^ two * 32, four);
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) b[u][two * 2 + i] = four[i];
    }
  }
}

// Two steps of a slab, of which the scales are the even and the odd bytes of a word.
template <typename Operand, uint32_t kTwo, uint32_t kBlocks>
__device__ void multiply_packed_pair(uint32_t even, uint32_t odd, uint32_t scales,
                                     const PackedPowers& by,
                                     const uint32_t (&b)[kBlocks][kPackedSteps * 2],
                                     float (&sums)[kBlocks][4]) {
  const uint32_t words[2] = {even, odd};
  const uint32_t pairs[2] = {Operand::template scale_pair<0>(scales, by),
                             Operand::template scale_pair<1>(scales, by)};
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) {
    uint32_t a[4];
    Operand::place(words[i], by, a);
#pragma unroll
    for (uint32_t j = 0; j < 4; j += 2) {
      a[j] = Operand::template times<0>(a[j], pairs[i]);
      a[j + 1] = Operand::template times<1>(a[j + 1], pairs[i]);
    }
#pragma unroll
    for (uint32_t u = 0; u < kBlocks; ++u) {
      Operand::multiply(sums[u], a, b[u][(kTwo + i) * 2], b[u][(kTwo + i) * 2 + 1]);
    }
  }
}

// As multiply_block().
template <typename Tile, typename Operand>
__device__ void multiply_packed_block(const Sm80PackedLane<Tile>& at, const PackedPowers& by,
                                      uint32_t stage, Sm80Sums<Tile>& sums) {
#pragma unroll
  for (uint32_t unit = 0; unit < kPackedUnits; ++unit) {
    uint32_t b[Tile::kTokens / 8][kPackedSteps * 2];
    packed_token_fragments(at, stage, unit, b);
    const uint32_t from = stage + unit * kPackedUnitBytes;
#pragma unroll
    for (uint32_t t = 0; t < kPackedSlabs; ++t) {
      const uint4 codes = ptx::ld_shared_v4_b32(at.codes + from + t * kPackedSlabBytes);
      const uint2 scales = ptx::ld_shared_v2_b32(at.scales + from + t * 64);
      multiply_packed_pair<Operand, 0>(codes.x, codes.y, scales.x, by, b, sums.of[t]);
      multiply_packed_pair<Operand, 2>(codes.z, codes.w, scales.y, by, b, sums.of[t]);
    }
  }
}

// What multiply_80() needs of packed weights.
template <typename Tile, typename PackedOperand>
struct Sm80PackedWay {
  using Source = Sm80PackedSource<Tile>;
  using Lane = Sm80PackedLane<Tile>;
  struct Powers : PackedPowers {
    __device__ Powers() : PackedPowers(gridDim.y) {}  // 1, as in Sm80Powers
  };

  static __device__ uint32_t log2_of_scale(const Sm80Params&) { return 4; }
  static __device__ void multiply(const Lane& at, const Powers& by, uint32_t stage, uint32_t,
                                  uint32_t, Sm80Sums<Tile>& sums) {
    multiply_packed_block<Tile, PackedOperand>(at, by, stage, sums);
  }
  static __device__ void load(const Sm80Cta<Tile>& cta, const Source& source, uint32_t stage,
                              uint32_t lane) {
    load_units_80(cta, source, stage, lane);
  }
};

}  // namespace nvfp4
