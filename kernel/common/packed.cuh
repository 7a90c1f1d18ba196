// SPDX-License-Identifier: MIT
// Decodes a word of packed weights (docs/packing.md) to the A operand of m64n*k16 or m16n8k16 of
// 16-bit tokens.
//
//   bits of a half   15 14 13 12 | 11 10 9 | 8 7 6 | 5 4 3 | 2 1 0
//                    s2 s3 s0 s1 |   m3    |  m2   |  m1   |  m0       of a[0] to a[3]
//
// Each operand is where its 3-bit magnitudes and its signs meet after one shift, so that a word
// takes ten or eleven operations. Left shifts are multiplications, which run beside the ALU.
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/select.cuh"

namespace nvfp4 {

// Numbers that ptxas does not know to be constants: it would shift by powers of two, and an
// operation takes only one constant.
struct PackedPowers {
  uint32_t x2, x8, x16, k2To97;  // the last of both halves, in bf16
  // `one` is 1.
  __device__ explicit PackedPowers(uint32_t one)
      : x2(one * 2), x8(one * 8), x16(one * 16), k2To97(one * 0x70007000) {}
};

// place(): codes as sign, low exponent bits and high mantissa bit, their value times 2^-14 in fp16
// and 2^-126 in bf16. scale_pair(): the UE4M3 scales of rows g (low half) and g + 8, times 2^7 or
// 2^119, from the even or the odd bytes of a word. A NaN stays one.
struct PackedF16 {
  static __device__ void place(uint32_t w, const PackedPowers& by, uint32_t (&a)[4]) {
    constexpr uint32_t kPlace = 0x8E008E00;
    const uint32_t v = ptx::lop3_select(0x90009000, w, w * by.x8);
    a[0] = (w & 0x20072007) * (1u << 9 | 1u << 2) & kPlace;
    a[1] = v * by.x8 & kPlace;
    a[2] = v & kPlace;
    a[3] = (w & 0x0E000E00) | (w * by.x2 & 0x80008000);
  }
  // A byte is bits 14 to 7 of that number.
  template <uint32_t kOdd>
  static __device__ uint32_t scale_pair(uint32_t w, const PackedPowers&) {
    return (kOdd ? w >> 1 : w << 7) & 0x7F807F80;
  }
};

struct PackedBf16 {
  static __device__ void place(uint32_t w, const PackedPowers& by, uint32_t (&a)[4]) {
    constexpr uint32_t kPlace = 0x81C081C0;
    a[0] = (w & 0x20072007) * (1u << 6 | 1u << 2) & kPlace;
    a[1] = w * by.x8 & kPlace;
    a[2] = w & kPlace;
    a[3] = (w >> 3 & 0x01C001C0) | (w * by.x2 & 0x80008000);
  }
  // A byte under three more bits of exponent is that number plus 2^97. The number is 0 or at least
  // 2^110 with 4 significant bits, so taking 2^97 away is exact.
  template <uint32_t kOdd>
  static __device__ uint32_t scale_pair(uint32_t w, const PackedPowers& by) {
    constexpr uint32_t kMinus2To97 = 0xF000F000;
    const uint32_t above = ((kOdd ? w >> 4 : w * by.x16) & 0x0FF00FF0) | by.k2To97;
    return ptx::add_rn_bf16x2(above, kMinus2To97);
  }
};

}  // namespace nvfp4
