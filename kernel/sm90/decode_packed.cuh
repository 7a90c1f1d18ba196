// SPDX-License-Identifier: MIT
// Decodes a word of packed weights (docs/packing.md) to the A operand of a wgmma of 16-bit tokens:
// element times scale, exact, the numbers that decode_a16.cuh has.
#pragma once

#include <cstdint>

#include "kernel/common/packed.cuh"
#include "kernel/sm90/decode_a16.cuh"

namespace nvfp4 {

template <Sm90TokenType kType>
struct PackedOperand;
template <>
struct PackedOperand<Sm90TokenType::f16> : A16Operand<Sm90TokenType::f16>, PackedF16 {
  using PackedF16::place, PackedF16::scale_pair;
};
template <>
struct PackedOperand<Sm90TokenType::bf16> : A16Operand<Sm90TokenType::bf16>, PackedBf16 {
  using PackedBf16::place, PackedBf16::scale_pair;
};

// UE8M0 scales beside bf16 tokens: the bytes themselves.
struct PackedUe8m0Operand : PackedOperand<Sm90TokenType::bf16> {
  template <uint32_t kOdd>
  static __device__ uint32_t scale_pair(uint32_t w, const PackedPowers&) {
    return Mxfp4Operand::any_pair<kOdd>(w);
  }
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t pair) {
    return Ue8m0Operand::times<kHalf>(codes, pair);
  }
};

// Two steps of 16, of which the scales are the even and the odd bytes of a word.
template <typename Operand>
__device__ void decode_packed_pair(uint32_t even, uint32_t odd, uint32_t scales,
                                   const PackedPowers& by, uint32_t (&first)[4],
                                   uint32_t (&second)[4]) {
  const uint32_t pairs[2] = {Operand::template scale_pair<0>(scales, by),
                             Operand::template scale_pair<1>(scales, by)};
  Operand::place(even, by, first);
  Operand::place(odd, by, second);
#pragma unroll
  for (uint32_t j = 0; j < 4; j += 2) {
    first[j] = Operand::template times<0>(first[j], pairs[0]);
    first[j + 1] = Operand::template times<1>(first[j + 1], pairs[0]);
    second[j] = Operand::template times<0>(second[j], pairs[1]);
    second[j + 1] = Operand::template times<1>(second[j + 1], pairs[1]);
  }
}

template <typename Operand>
__device__ void decode_packed_unit(const uint4& codes, const uint2& scales, const PackedPowers& by,
                                   uint32_t (&a)[4][4]) {
  decode_packed_pair<Operand>(codes.x, codes.y, scales.x, by, a[0], a[1]);
  decode_packed_pair<Operand>(codes.z, codes.w, scales.y, by, a[2], a[3]);
}

// A unit in MXFP4 as decode_mxfp4_step has it: only a warp that has a scale above 1 multiplies
// twice. The word has the scales of the first 32 elements in its even bytes.
__device__ inline void decode_packed_mxfp4(const uint4& codes, uint32_t scales, bool near,
                                           const PackedPowers& by, uint32_t (&a)[4][4]) {
  using Operand = Mxfp4Operand;
#pragma unroll
  for (uint32_t s = 0; s < 4; ++s) {
    PackedOperand<Sm90TokenType::bf16>::place(word(codes, s), by, a[s]);
  }
  uint32_t pairs[2] = {Operand::near_pair<0>(scales), Operand::near_pair<1>(scales)};
  if (!near) {
    pairs[0] = Operand::any_pair<0>(scales);
    pairs[1] = Operand::any_pair<1>(scales);
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
      a[i / 4][i % 4] = ptx::mul_rn_bf16x2_by_half<0>(a[i / 4][i % 4], Operand::k2To124);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < 16; i += 2) {
    a[i / 4][i % 4] = Operand::times<0>(a[i / 4][i % 4], pairs[i / 8]);
    a[i / 4][i % 4 + 1] = Operand::times<1>(a[i / 4][i % 4 + 1], pairs[i / 8]);
  }
}

}  // namespace nvfp4
