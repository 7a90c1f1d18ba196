// SPDX-License-Identifier: MIT
// Decodes weights to fp16 or bf16 with instructions of compute capability 8.0: element times scale,
// exact, in units of 2^-7, or of 2^-2 under UE8M0 scales. Each type is a struct with the same
// functions.
//
// An E2M1 code s.ee.m placed as sign, low exponent bits and high mantissa bit is its value times
// 2^-14 in fp16 and 2^-126 in bf16, where the smallest ones are subnormal. A UE4M3 byte shifted to
// the mantissa and the low exponent bits is its scale times 2^-8 or 2^-120, so that multiplying it
// by 2^15 or twice by powers of two leaves the scale times 2^7 or 2^119. The NaN 0x7F becomes 480
// in this way, so multiply.cuh looks for it separately.
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/mma.cuh"
#include "kernel/sm80/tile.h"

namespace nvfp4 {

// Powers of two hidden from ptxas, so that left shifts become multiplications, which run on the FMA
// pipe. Shifts by constants would keep the ALU busy. The grid has one row (gridDim.y is 1).
struct Sm80Powers {
  uint32_t x2, x4, x16, x64, x256, x4096;

  __device__ Sm80Powers() {
    const uint32_t one = gridDim.y;
    x2 = one * 2, x4 = one * 4, x16 = one * 16, x64 = one * 64, x256 = one * 256,
    x4096 = one * 4096;
  }
};

// Eight codes of a word, element n in nibble n, as the pairs (n, n + 4), n = 0 .. 3, and two scales
// of a word's low or high half.
template <Sm80Type kType>
struct Sm80Operand;

template <>
struct Sm80Operand<Sm80Type::f16> {
  static constexpr bool kUe8m0 = false;
  // The high byte of an fp16 has all of a code, so bytes are placed first: 1 3 5 7 and 0 2 4 6.
  static __device__ void place(uint32_t codes, const Sm80Powers& by, uint32_t (&pairs)[4]) {
    const uint32_t odd = (codes & 0x80808080) | (codes >> 3 & 0x0E0E0E0E);
    const uint32_t even = (codes * by.x16 & 0x80808080) | (codes * by.x2 & 0x0E0E0E0E);
    pairs[0] = __byte_perm(even, 0, 0x2404);
    pairs[1] = __byte_perm(odd, 0, 0x2404);
    pairs[2] = even & 0xFF00FF00;
    pairs[3] = odd & 0xFF00FF00;
  }
  // Two bytes in bits 0 to 6 and 16 to 22.
  static __device__ uint32_t scale_pair(uint32_t bytes) {
    constexpr uint32_t k2To15 = 0x78007800;
    return ptx::mul_rn_f16x2(bytes << 7, k2To15);
  }
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    return ptx::mul_rn_f16x2_by_half<kHalf>(codes, scales);
  }
  static __device__ void multiply(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                  uint32_t b1) {
    ptx::mma_m16n8k16_f16(sums, a, b0, b1);
  }
};

template <>
struct Sm80Operand<Sm80Type::bf16> {
  static constexpr bool kUe8m0 = false;
  // A code is in both bytes of a bf16. Only left shifts may be multiplications, so there is one
  // right shift.
  static __device__ void place(uint32_t codes, const Sm80Powers& by, uint32_t (&pairs)[4]) {
    constexpr uint32_t kSigns = 0x80008000, kRest = 0x01C001C0;
    const uint32_t low = codes >> 6;
    pairs[0] = (codes * by.x4096 & kSigns) | (codes * by.x64 & kRest);
    pairs[1] = (codes * by.x256 & kSigns) | (codes * by.x4 & kRest);
    pairs[2] = (codes * by.x16 & kSigns) | (low * by.x16 & kRest);
    pairs[3] = (codes & kSigns) | (low & kRest);
  }
  static __device__ uint32_t scale_pair(uint32_t bytes) {
    constexpr uint32_t k2To127 = 0x7F007F00, k2To112 = 0x77807780;
    return ptx::fma_rn_bf16x2_product(ptx::fma_rn_bf16x2_product(bytes << 4, k2To127), k2To112);
  }
  template <uint32_t kHalf>
  static __device__ uint32_t times(uint32_t codes, uint32_t scales) {
    return ptx::fma_rn_bf16x2_product(codes, __byte_perm(scales, 0, kHalf ? 0x3232 : 0x1010));
  }
  static __device__ void multiply(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                  uint32_t b1) {
    ptx::mma_m16n8k16_bf16(sums, a, b0, b1);
  }
};

// UE8M0 scales: 2^(byte - 127), 0xFF is NaN. A placed code gets its 2^126 back except for 2^-2,
// which every byte leaves room for: element * scale * 2^-2 is at most 1.5 * 2^127 and a multiple of
// 2^-130, so it is exact in bf16. The rest is as beside UE4M3 scales.
struct Sm80Ue8m0 : Sm80Operand<Sm80Type::bf16> {
  static constexpr bool kUe8m0 = true;

  static __device__ void place(uint32_t codes, const Sm80Powers& by, uint32_t (&pairs)[4]) {
    constexpr uint32_t k2To124 = 0x7D807D80;
    Sm80Operand<Sm80Type::bf16>::place(codes, by, pairs);
#pragma unroll
    for (uint32_t& pair : pairs) pair = ptx::fma_rn_bf16x2_product(pair, k2To124);
  }
  // Two bytes in bits 0 to 7 and 16 to 23. The exponent field is the byte. The highest bit of the
  // fraction makes a subnormal of 0, and a NaN of 255, which were an infinity else.
  static __device__ uint32_t scale_pair(uint32_t bytes) {
    const uint32_t odd = ((bytes + 0x00010001) | (0x01000100 - bytes)) & 0x01000100;
    return bytes << 7 | odd >> 2;
  }
};

// What a sum is multiplied by, since weights are divided by it.
constexpr float kSm80Ue4m3Unit = 128.0f, kSm80Ue8m0Unit = 4.0f;

}  // namespace nvfp4
