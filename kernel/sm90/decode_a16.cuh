// SPDX-License-Identifier: MIT
// Decodes weights to the type of 16-bit tokens, in the natural order of K: element times scale,
// exact, in units of 2^-7. Each type is a struct with the same functions.
//
// An E2M1 code s.ee.m placed as sign, low exponent bits and high mantissa bit is its value times
// 2^-14 in fp16 and 2^-126 in bf16, where the smallest ones are subnormal. The scale carries the
// rest, 2^7 or 2^119: 448 * 2^119 is in bf16's largest binade. Element * scale * 2^-7 has at most 6
// significant bits, is at most 21 and a multiple of 2^-17, so it is exact in both
// (test/gemm/a16.cc, all 16 x 127 pairs).
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/wgmma.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/tile.h"

namespace nvfp4 {

// Places the two codes of a byte (bits 0 to 7, nothing above) in the low and the high half of a
// word. One multiplication by two powers of two places both: the multiples of the byte do not
// overlap, and multiplications run beside the ALU, which the rest of decoding fills.
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
  // 9.0 has no conversion from e4m3 to bf16. A conversion through fp32 keeps NaN.
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

// UE8M0 scales: 2^(byte - 127), 0xFF is NaN. They restore a code's 2^-126 except for 2^-2, which
// every byte leaves room for: element * scale * 2^-2 is at most 1.5 * 2^127 and a multiple of
// 2^-130, so it is exact in bf16 (test/gemm/formats.cc).
struct Ue8m0Operand : A16Operand<Sm90TokenType::bf16> {
  static constexpr bool kUe8m0 = true;

  // The exponent field is the byte, except for 0, a subnormal, and 255, which must not be infinity.
  // These are the upper bits of such bytes: folded at the middle they are both 0.
  static __device__ uint32_t odd_bytes(uint32_t scales) {
    const uint32_t folded = scales ^ (scales >> 7 & 0x01010101) * 0xFF;
    return (0x80808080 - folded) & 0x80808080;
  }
  template <uint32_t kHalf>
  static __device__ uint32_t scale_pair(uint32_t scales) {
    return __byte_perm(odd_bytes(scales), scales, kHalf == 0 ? 0x5140 : 0x7362) >> 1;
  }
  static constexpr uint32_t k2To124 = 0x7D807D80;
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    return ptx::mul_rn_bf16x2_by_half<kHalf>(ptx::mul_rn_bf16x2_by_half<0>(codes, k2To124), scales);
  }
};

// The same in an entry for MXFP4 only, where a word has four scales of a row. Two of them, bytes 0
// and 2 or bytes 1 and 3, become the halves of a pair.
struct Mxfp4Operand : Ue8m0Operand {
  // Multiplies placed codes by one half of a pair. If the pair is that of any_pair(), the codes
  // have been multiplied by k2To124.
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t pair) {
    return ptx::mul_rn_bf16x2_by_half<kHalf>(codes, pair);
  }

  // For bytes below 128: the scale times 2^124, one product with a placed code.
  template <uint32_t kOdd>
  static __device__ uint32_t near_pair(uint32_t scales) {
    const uint32_t exponents = scales + 0x7C7C7C7C;  // a byte each: at most 251
    return (kOdd ? exponents >> 1 : exponents << 7) & 0x7F807F80;
  }
  // For any bytes: the scale, as scale_pair() has it.
  template <uint32_t kOdd>
  static __device__ uint32_t any_pair(uint32_t scales) {
    const uint32_t odd = odd_bytes(scales);
    return ((kOdd ? scales >> 1 : scales << 7) & 0x7F807F80) |
           ((kOdd ? odd >> 9 : odd >> 1) & 0x00400040);
  }
};

// 32 elements of both rows as the A operands of two steps.
template <typename Operand, uint32_t kPiece, typename Codes>
__device__ void decode_a16_piece(const Codes& codes, const uint32_t (&scales)[2],
                                 uint32_t (&first)[4], uint32_t (&second)[4]) {
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t s = Operand::template scale_pair<kPiece>(scales[r]);
    const auto pair = [&](uint32_t word) { return Operand::place(codes.byte(kPiece, r, word)); };
    first[r] = Operand::template times<0>(pair(0), s);
    first[r + 2] = Operand::template times<0>(pair(1), s);
    second[r] = Operand::template times<1>(pair(2), s);
    second[r + 2] = Operand::template times<1>(pair(3), s);
  }
}

// A part in MXFP4, 64 elements of both rows, as the A operands of four steps. Scales of weights are
// rarely above 1. Only a warp that has such a scale takes the branch; the code without it saves a
// multiplication per word.
template <uint32_t kBlockStep, typename Codes>
__device__ void decode_mxfp4_step(const Codes& codes, const uint32_t (&scales)[2], bool near,
                                  uint32_t (&a)[4][4]) {
  using Operand = Mxfp4Operand;
  uint32_t pairs[2][2];  // [32 elements][row]
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    pairs[0][r] = Operand::near_pair<0>(scales[r]);
    pairs[1][r] = Operand::near_pair<1>(scales[r]);
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      a[i / 2][i % 2 * 2 + r] = Operand::place(codes.byte(i / 4, r, i % 4));
    }
  }
  if (!near) {
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      pairs[0][r] = Operand::any_pair<0>(scales[r]);
      pairs[1][r] = Operand::any_pair<1>(scales[r]);
    }
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
      a[i / 4][i % 4] = ptx::mul_rn_bf16x2_by_half<0>(a[i / 4][i % 4], Operand::k2To124);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < 16; ++i) {
    a[i / 4][i % 4] = Operand::times<kBlockStep % 2>(a[i / 4][i % 4], pairs[i / 8][i % 2]);
  }
}

}  // namespace nvfp4
