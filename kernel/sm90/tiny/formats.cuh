// SPDX-License-Identifier: MIT
// What a tiny tile on Hopper does by the format of its operands: the bytes of tokens, and the
// scales with which sums of blocks of 16 are added.
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/decode_a16.cuh"

namespace nvfp4 {

// NVFP4. A sum of a block is in units of 2^-28. Both scales are multiplied in fp16, exactly: a
// token's is in units of 4 (decode_factor).
struct TinyNvfp4 {
  static constexpr bool kUe8m0 = false;

  static __device__ void place_tokens(uint32_t codes, uint32_t (&bytes)[2]) {
    place_bytes(codes, bytes);
  }
  static __device__ uint32_t token_factor(uint32_t scale) { return decode_factor(scale); }
  // Which two bytes of a word of scales weight_factors() takes.
  static constexpr uint32_t kScales01 = 0x4410, kScales23 = 0x4432;
  static constexpr uint32_t kScales02 = 0x4420, kScales13 = 0x4431;
  static __device__ uint32_t weight_factors(uint32_t scales, uint32_t selector) {
    return decode_scale_pair_as_is(__byte_perm(scales, 0, selector));
  }
  // sum += the sums of a block of each of two chunks, times both scales.
  static __device__ float add(float sum, float first, float second, uint32_t weights,
                              uint32_t tokens) {
    const float2 factor = ptx::cvt_f32_f16_pair(ptx::mul_rn_f16x2(weights, tokens));
    return __fmaf_rn(second, factor.y, __fmaf_rn(first, factor.x, sum));
  }
};

// UE8M0 scales, per 32 elements or per 16. fp32 does not hold the product of two of them. But it
// holds the sum of a block times one of them, for any scale: tokens are in units of 2^-5, so a sum
// is in units of 2^-9, a multiple of 2^-11 up to 576 * 2^-9. Factors are bf16, the upper half of
// fp32.
struct TinyUe8m0 {
  static constexpr bool kUe8m0 = true;

  // The codes' values times 2^5 as e5m2, looked up by the three bits without the sign.
  static __device__ void place_tokens(uint32_t codes, uint32_t (&bytes)[2]) {
    constexpr uint32_t kBelow2 = 0x52504C00, kFrom2 = 0x5A585654;
    const uint32_t low = __byte_perm(kBelow2, kFrom2, codes & 0x7777);
    const uint32_t high = __byte_perm(kBelow2, kFrom2, codes >> 16 & 0x7777);
    bytes[0] = __byte_perm(low, high, 0x6420) | (codes << 4 & 0x80808080);
    bytes[1] = __byte_perm(low, high, 0x7531) | (codes & 0x80808080);
  }
  static __device__ uint32_t token_factor(uint32_t scale) {
    return weight_factors(scale, kScales01) & 0xFFFF;
  }
  static constexpr uint32_t kScales01 = 0x5140, kScales23 = 0x7362;
  static constexpr uint32_t kScales02 = 0x6240, kScales13 = 0x7351;
  static __device__ uint32_t weight_factors(uint32_t scales, uint32_t selector) {
    return __byte_perm(Ue8m0Operand::odd_bytes(scales), scales, selector) >> 1;
  }
  static __device__ float add(float sum, float first, float second, uint32_t weights,
                              uint32_t tokens) {
    sum = __fmaf_rn(__fmul_rn(first, low(tokens)), low(weights), sum);
    return __fmaf_rn(__fmul_rn(second, high(tokens)), high(weights), sum);
  }

 private:
  static __device__ float low(uint32_t pair) { return __uint_as_float(pair << 16); }
  static __device__ float high(uint32_t pair) { return __uint_as_float(pair & 0xFFFF0000); }
};

}  // namespace nvfp4
