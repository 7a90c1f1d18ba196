// SPDX-License-Identifier: MIT
// The header's rules for UE8M0 scales: a scale is 2^(byte - 127), 0xFF is NaN, and there is no
// zero. Division by such a scale is exact, so an element's code is rounded once.
#include "host/reference/quantize/quantize_ue8m0.h"

#include <algorithm>

#include "nvfp4_gemm.h"

namespace nvfp4 {

namespace {

constexpr int kBias = 127;
constexpr int kLargestExponentOfE2M1 = 2;
constexpr uint8_t kLargestScale = 254, kNanScale = 255;

// The scale of a block whose largest magnitude is amax, which must not be NaN.
uint8_t scale_of(F32 amax, int32_t rule) {
  const Unpacked u = unpack(amax.bits);
  if (u.is_infinite) return kLargestScale;
  if (u.significand == 0) return 0;
  const int place = 31 - __builtin_clz(u.significand);
  int exponent = u.exponent + place - kLargestExponentOfE2M1;
  // Above 1.5 units in the last place; doubled, since 1 has no half.
  const bool above = 2 * u.significand > (3u << place);
  if (rule != NVFP4_SCALE_RULE_FLOOR && above) ++exponent;
  return static_cast<uint8_t>(std::max(exponent + kBias, 0));
}

uint32_t element_code(F32 x, uint8_t scale) {
  const Unpacked u = unpack(x.bits);
  const uint32_t magnitude = u.is_infinite
                                 ? kE2M1.overflow_code
                                 : round_to(kE2M1, u.significand, u.exponent - (scale - kBias));
  return magnitude | u.sign << 3;
}

}  // namespace

void quantize_ue8m0(const F32* x, int count, int32_t rule, uint8_t* codes, uint8_t* scale) {
  uint32_t amax = 0;
  for (int i = 0; i < count; ++i) amax = std::max(amax, absolute(x[i]).bits);
  const bool nan = F32{amax}.is_nan();
  *scale = nan ? kNanScale : scale_of({amax}, rule);
  for (int i = 0; i < count / 2; ++i) {
    const bool zeros = nan || amax == 0;
    const uint32_t low = zeros ? 0 : element_code(x[2 * i], *scale);
    const uint32_t high = zeros ? 0 : element_code(x[2 * i + 1], *scale);
    codes[i] = static_cast<uint8_t>(low | high << 4);
  }
}

void dequantize_ue8m0(const uint8_t* codes, int count, uint8_t scale, F32* x) {
  for (int i = 0; i < count; ++i) {
    const uint32_t code = codes[i / 2] >> (i % 2 * 4) & 0xF;
    const auto doubled = static_cast<uint64_t>(e2m1_doubled(code & 7));
    x[i] = {round_to(kF32, doubled, scale - kBias - 1) | (code & 8) << 28};
    if (scale == kNanScale) x[i] = kNan;
  }
}

}  // namespace nvfp4
