// SPDX-License-Identifier: MIT
// Weights to the type of tokens that are not quantized, in their natural order of K: element times
// scale, exact, in units of 2^-7. Each type is a struct of the same functions.
//
// An E2M1 code s.ee.m placed as sign, low exponent bits and high mantissa bit is its value times
// 2^-14 in fp16 and 2^-126 in bf16, where the smallest ones are subnormal. The scale carries the
// rest, 2^7 or 2^119: 448 * 2^119 is bf16's largest binade. Element * scale * 2^-7 has at most 6
// significant bits, is at most 21 and a multiple of 2^-17: exact in both (test/gemm/a16.cc, all 16
// x 127 pairs).
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/wgmma.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/tile.h"

namespace nvfp4 {

// Two codes of a byte, in bits 0 to 7 and nothing above, as the low and the high half of a word. A
// product by two powers of two puts both in place: its multiples of the byte do not overlap, and a
// multiplication runs beside the ALU, which the rest of decoding fills.
//
//   31 30   28 27    25 24        16 15 14    12 11     9 8         0
//  | s|   0   |  eem   |     0     | s|    0    |  eem   |    0     |   fp16; bf16: 3 bits lower
template <uint32_t kFactor, uint32_t kMask>
__device__ inline uint32_t place_pair(uint32_t byte) {
  constexpr uint32_t kSigns = 1u << 12 | 1u << 24;
  return (byte * kFactor & kMask) | (byte * kSigns & 0x80008000);
}

template <Sm90TokenType kType>
struct A16Operand;

template <>
struct A16Operand<Sm90TokenType::f16> {
  static constexpr bool kUe8m0 = false;
  static __device__ uint32_t place(uint32_t byte) {
    return place_pair<1u << 9 | 1u << 21, 0x0E000E00>(byte);
  }
  template <uint32_t kHalf>
  static __device__ uint32_t scale_pair(uint32_t scales) {
    return decode_scale_pair<kHalf>(scales);
  }
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    return ptx::mul_rn_f16x2_by_half<kHalf>(codes, scales);
  }
  template <uint32_t kSums>
  static __device__ void multiply(float (&sums)[kSums], const uint32_t (&a)[4], uint64_t b,
                                  bool accumulate) {
    ptx::wgmma(sums, a, b, accumulate);
  }
};

template <>
struct A16Operand<Sm90TokenType::bf16> {
  static constexpr bool kUe8m0 = false;
  static __device__ uint32_t place(uint32_t byte) {
    return place_pair<1u << 6 | 1u << 18, 0x01C001C0>(byte);
  }
  // No conversion of 9.0 goes from e4m3 to bf16; by way of fp32 a NaN stays one.
  template <uint32_t kHalf>
  static __device__ uint32_t scale_pair(uint32_t scales) {
    constexpr float k2To119 = 6.64613997892457936e35f;
    const float2 pair = ptx::cvt_f32_f16_pair(ptx::cvt_rn_f16x2_e4m3x2<kHalf>(scales & 0x7F7F7F7F));
    return ptx::cvt_rn_bf16x2_f32(__fmul_rn(pair.y, k2To119), __fmul_rn(pair.x, k2To119));
  }
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    return ptx::mul_rn_bf16x2_by_half<kHalf>(codes, scales);
  }
  template <uint32_t kSums>
  static __device__ void multiply(float (&sums)[kSums], const uint32_t (&a)[4], uint64_t b,
                                  bool accumulate) {
    ptx::wgmma_bf16(sums, a, b, accumulate);
  }
};

// UE8M0 scales, 2^(byte - 127), 0xFF being NaN. A code's 2^-126 comes back but for 2^-2, which
// every byte leaves room for: element * scale * 2^-2 is at most 1.5 * 2^127 and a multiple of
// 2^-130, exact in bf16 (test/gemm/ue8m0.cc).
struct Ue8m0Operand : A16Operand<Sm90TokenType::bf16> {
  static constexpr bool kUe8m0 = true;

  // The exponent field is the byte, but for 0, a subnormal, and 255, which must not be an infinity.
  // `odd` has the upper bit of those bytes: folded at the middle they are both 0.
  template <uint32_t kHalf>
  static __device__ uint32_t scale_pair(uint32_t scales) {
    const uint32_t folded = scales ^ (scales >> 7 & 0x01010101) * 0xFF;
    const uint32_t odd = (0x80808080 - folded) & 0x80808080;
    return __byte_perm(odd, scales, kHalf == 0 ? 0x5140 : 0x7362) >> 1;
  }
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    constexpr uint32_t k2To124 = 0x7D807D80;
    return ptx::mul_rn_bf16x2_by_half<kHalf>(ptx::mul_rn_bf16x2_by_half<0>(codes, k2To124), scales);
  }
};

}  // namespace nvfp4
