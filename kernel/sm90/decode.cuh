// SPDX-License-Identifier: MIT
// NVFP4 to fp16: element times scale, exact, in units of 2^-7.
//
// An E2M1 code s.ee.m placed in an fp16 as sign, low exponent bits and high mantissa bit is its
// value times 2^-14, a half being subnormal there. The scale cannot carry 2^14 (448 * 2^14 is
// infinity), so it carries 2^7: element * scale * 2^-7 has at most 6 significant bits, is at most
// 21 and a multiple of 2^-17. All 16 x 127 pairs are exact (test/gemm/sm90.cc).
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"

namespace nvfp4 {

// The factor that undoes the scaling of both operands.
constexpr float kSumScale = 16384.0f;
constexpr float kBlockSumScale = 16384.0f * 16384.0f * 4.0f;  // tiny tiles
constexpr float kUe8m0BlockSumScale = 512.0f;                 // with UE8M0 scales
constexpr float kWeightScale = 128.0f;                        // for 16-bit tokens
constexpr float kUe8m0WeightScale = 4.0f;                     // and UE8M0 weight scales

__device__ inline uint32_t word(const uint4& v, uint32_t j) {
  return j == 0 ? v.x : j == 1 ? v.y : j == 2 ? v.z : v.w;
}

// place_codes spreads eight codes. Nibble n is element n, and elements (n, n + 4) are h[n], n = 0
// .. 3. `odd` and `even` hold the high byte of an fp16 for nibbles 1 3 5 7 and 0 2 4 6.
//
// The same bytes are e5m2, a code's value times 2^-14: bytes[0] has the even nibbles, [1] the odd
// ones.
__device__ inline void place_bytes(uint32_t codes, uint32_t (&bytes)[2]) {
  bytes[0] = (codes << 4 & 0x80808080) | (codes << 1 & 0x0E0E0E0E);
  bytes[1] = (codes & 0x80808080) | (codes >> 3 & 0x0E0E0E0E);
}

// With shifts and masks: 9 operations of the ALU, which issues one warp instruction in two clocks.
struct Shifts {};

__device__ inline void place_codes(uint32_t codes, Shifts, uint32_t (&h)[4]) {
  const uint32_t odd = (codes & 0x80808080) | (codes >> 3 & 0x0E0E0E0E);
  const uint32_t even = (codes << 4 & 0x80808080) | (codes << 1 & 0x0E0E0E0E);
  h[0] = __byte_perm(even, 0, 0x2404);
  h[1] = __byte_perm(odd, 0, 0x2404);
  h[2] = even & 0xFF00FF00;
  h[3] = odd & 0xFF00FF00;
}

// With multiplications in place of some shifts, which run beside the ALU. ptxas must not know the
// factors, otherwise it uses shifts and masks again.
struct Multipliers {
  uint32_t x2, x16, x256, minus;
};

// `one` is 1 but must not be a compile-time constant.
__device__ inline Multipliers make_multipliers(uint32_t one) {
  return {one * 2, one * 16, one * 256, 0 - one};
}

__device__ inline void place_codes(uint32_t codes, const Multipliers& by, uint32_t (&h)[4]) {
  const uint32_t odd = (codes & 0x80808080) | (codes >> 3 & 0x0E0E0E0E);
  const uint32_t even = (codes * by.x16 & 0x80808080) | (codes * by.x2 & 0x0E0E0E0E);
  const uint32_t low = even & 0x00FF00FF;
  h[0] = low * by.x256;
  h[1] = __byte_perm(odd, 0, 0x2404);
  h[2] = low * by.minus + even;
  h[3] = odd & 0xFF00FF00;
}

// Two UE4M3 scales of a word (its low or high 16 bits), times 2^7. Bit 7 of a scale is ignored.
template <uint32_t kHalf = 0>
__device__ inline uint32_t decode_scale_pair(uint32_t scales) {
  constexpr uint32_t k128 = 0x58005800;
  return ptx::mul_rn_f16x2(ptx::cvt_rn_f16x2_e4m3x2<kHalf>(scales & 0x7F7F7F7F), k128);
}

// The same without the factor, also exact.
__device__ inline uint32_t decode_scale_pair_as_is(uint32_t scales) {
  return ptx::cvt_rn_f16x2_e4m3x2<0>(scales & 0x7F7F);
}

// One scale in units of 4. Multiplied by another scale it is at most 448 * 448 / 4, and a multiple
// of 2^-20.
__device__ inline uint32_t decode_factor(uint32_t scale) {
  constexpr uint32_t kQuarter = 0x34003400;
  return ptx::mul_rn_f16x2(decode_scale_pair_as_is(scale), kQuarter);
}

// `which` selects one of two scales and is a constant.
template <typename Way>
__device__ inline void decode_codes(uint32_t codes, uint32_t scales, uint32_t which, const Way& way,
                                    uint32_t (&h)[4]) {
  place_codes(codes, way, h);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    h[i] = which == 0 ? ptx::mul_rn_f16x2_by_half<0>(h[i], scales)
                      : ptx::mul_rn_f16x2_by_half<1>(h[i], scales);
  }
}

}  // namespace nvfp4
