// SPDX-License-Identifier: MIT
// NVFP4 to fp16: element times scale, exact, in units of 2^-7.
//
// An E2M1 code s.ee.m placed in an fp16 as sign, low exponent bits and high mantissa bit is its
// value times 2^-14, a half being subnormal there. The scale cannot carry 2^14 (448 * 2^14 is
// infinity), so it carries 2^7: element * scale * 2^-7 has at most 6 significant bits, is at most
// 21 and a multiple of 2^-17. All 16 x 127 pairs are exact (test/gemm/sm90.cc).
#pragma once

#include <cstdint>

#include "ptx_f16.cuh"

namespace nvfp4 {

// What both operands were divided by: the sums' factor.
constexpr float kSumScale = 16384.0f;

// Eight codes, nibble n being element n, as elements (n, n + 4) of h[n] for n = 0 .. 3.
__device__ inline void place_codes(uint32_t codes, uint32_t (&h)[4]) {
  // The high byte of an fp16 each: 2 and 6 of the odd nibbles land in bytes 1 and 3, and so on.
  const uint32_t odd = (codes & 0x80808080) | (codes >> 3 & 0x0E0E0E0E);
  const uint32_t even = (codes << 4 & 0x80808080) | (codes << 1 & 0x0E0E0E0E);
  h[0] = __byte_perm(even, 0, 0x2404);
  h[1] = __byte_perm(odd, 0, 0x2404);
  h[2] = even & 0xFF00FF00;
  h[3] = odd & 0xFF00FF00;
}

// Two UE4M3 scales, the low 16 bits, times 2^7, each twice in its word. Bit 7 is not part of one.
__device__ inline void decode_scale_pair(uint32_t scales, uint32_t (&twice)[2]) {
  constexpr uint32_t k128 = 0x58005800;
  const uint32_t two = ptx::mul_rn_f16x2(ptx::cvt_rn_f16x2_e4m3x2(scales & 0x7F7F), k128);
  twice[0] = __byte_perm(two, 0, 0x1010);
  twice[1] = __byte_perm(two, 0, 0x3232);
}

__device__ inline void decode_codes(uint32_t codes, uint32_t scale_twice, uint32_t (&h)[4]) {
  place_codes(codes, h);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) h[i] = ptx::mul_rn_f16x2(h[i], scale_twice);
}

}  // namespace nvfp4
