// SPDX-License-Identifier: MIT
// NVFP4 quantization as the header states it: s = e4m3(amax / 6 / t), code = e2m1(x / (s * t)).
// Everything is fp32 and rounded to nearest even, with divisions instead of reciprocals. The rule
// 4OVER6 takes the better of the scales for 6 and for 4.
#include "host/reference/quantize/quantize.h"

#include <cfenv>
#include <cmath>
#include <cstring>

#include "host/base/formats.h"
#include "host/base/size.h"
#include "host/reference/scale_layout.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

namespace {

constexpr float kLargestElement = 6.0f, kSecondLargest = 4.0f;

// Division and multiplication use the FPU. A caller with another rounding mode, or that flushes
// subnormals, must not change codes. Callees are not inlined, so nothing moves across the switch.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    fegetenv(&saved_);
    fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  fenv_t saved_;
};

float e4m3_value(uint8_t code) { return static_cast<float>(ue4m3_units(code)) * 0x1p-9f; }  // exact

// NaN if an element is NaN.
float largest_magnitude(const float* x) {
  float amax = 0.0f;
  for (int i = 0; i < kScaleBlock; ++i) {
    if (std::isnan(x[i])) return x[i];
    const float magnitude = std::fabs(x[i]);
    if (magnitude > amax) amax = magnitude;
  }
  return amax;
}

// The code of the scale under which the largest magnitude becomes `element`: NaN for a block with a
// NaN, which e2m1 could not represent.
uint8_t block_scale(float amax, float element, float tensor_scale) {
  if (std::isnan(amax)) return kScaleNan;
  return static_cast<uint8_t>(convert(kE4M3, f32_bits(amax / element / tensor_scale)));
}

uint32_t element_code(float x, float step) {
  // In a block with an infinity the step may be infinite too, and inf / inf has no code.
  if (std::isinf(x)) return x > 0 ? 0x7 : 0xF;
  return convert(kE2M1, f32_bits(x / step));
}

void quantize_under(uint8_t scale, const float* x, float tensor_scale, uint8_t* codes) {
  if (scale == 0 || scale == kScaleNan) {
    for (int i = 0; i < kScaleBlock / 2; ++i) codes[i] = 0;
    return;
  }
  const float step = e4m3_value(scale) * tensor_scale;
  for (int i = 0; i < kScaleBlock / 2; ++i) {
    const uint32_t low = element_code(x[2 * i], step), high = element_code(x[2 * i + 1], step);
    codes[i] = static_cast<uint8_t>(low | high << 4);
  }
}

void dequantize_block(const uint8_t* codes, uint8_t scale, float tensor_scale, float* x) {
  const float value = is_nan_scale(scale) ? NAN : e4m3_value(scale);
  for (int i = 0; i < kScaleBlock; ++i) {
    const uint32_t code = codes[i / 2] >> (i % 2 * 4) & 0xF;
    // Exact: at most 8 significant bits. -0 keeps its sign.
    const float magnitude = static_cast<float>(e2m1_doubled(code & 7)) * 0.5f * value;
    x[i] = ((code & 8) != 0 ? -magnitude : magnitude) * tensor_scale;
  }
}

float squared_error(const float* x, const uint8_t* codes, uint8_t scale, float tensor_scale) {
  float values[kScaleBlock], sum = 0.0f;
  dequantize_block(codes, scale, tensor_scale, values);
  for (int i = 0; i < kScaleBlock; ++i) sum += (values[i] - x[i]) * (values[i] - x[i]);
  return sum;
}

void quantize_sixteen(const float* x, float tensor_scale, int32_t rule, uint8_t* codes,
                      uint8_t* scale) {
  const float amax = largest_magnitude(x);
  *scale = block_scale(amax, kLargestElement, tensor_scale);
  quantize_under(*scale, x, tensor_scale, codes);
  if (rule != NVFP4_SCALE_RULE_4OVER6) return;
  const uint8_t other = block_scale(amax, kSecondLargest, tensor_scale);
  if (other == *scale) return;
  uint8_t others[kScaleBlock / 2];
  quantize_under(other, x, tensor_scale, others);
  if (squared_error(x, others, other, tensor_scale) <
      squared_error(x, codes, *scale, tensor_scale)) {
    memcpy(codes, others, sizeof others);
    *scale = other;
  }
}

__attribute__((noinline)) void quantize_rows(const float* x, int64_t x_ld, int64_t rows, int64_t k,
                                             float tensor_scale, uint8_t* codes, int64_t codes_ld,
                                             uint8_t* scales, int32_t layout) {
  const int64_t blocks = k / kScaleBlock;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t ks = 0; ks < blocks; ++ks) {
      quantize_sixteen(x + row * x_ld + ks * kScaleBlock, tensor_scale, NVFP4_SCALE_RULE_DEFAULT,
                       codes + (row * codes_ld + ks * kScaleBlock) / 2,
                       scales + scale_offset(layout, row, ks, blocks));
    }
  }
}

__attribute__((noinline)) void dequantize_rows(const uint8_t* codes, int64_t codes_ld,
                                               const uint8_t* scales, int32_t layout, int64_t rows,
                                               int64_t k, float tensor_scale, float* x,
                                               int64_t x_ld) {
  const int64_t blocks = k / kScaleBlock;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t ks = 0; ks < blocks; ++ks) {
      dequantize_block(codes + (row * codes_ld + ks * kScaleBlock) / 2,
                       scales[scale_offset(layout, row, ks, blocks)], tensor_scale,
                       x + row * x_ld + ks * kScaleBlock);
    }
  }
}

__attribute__((noinline)) void quantize_alone(const float* x, float tensor_scale, int32_t rule,
                                              uint8_t* codes, uint8_t* scale) {
  quantize_sixteen(x, tensor_scale, rule, codes, scale);
}

}  // namespace

void quantize_block(const float* x, float tensor_scale, int32_t rule, uint8_t* codes,
                    uint8_t* scale) {
  const DefaultFloatEnvironment environment;
  quantize_alone(x, tensor_scale, rule, codes, scale);
}

void quantize(const float* x, int64_t x_ld, int64_t rows, int64_t k, float tensor_scale,
              uint8_t* codes, int64_t codes_ld, uint8_t* scales, int32_t scale_layout) {
  const DefaultFloatEnvironment environment;
  quantize_rows(x, x_ld, rows, k, tensor_scale, codes, codes_ld, scales, scale_layout);
  clear_scale_padding(scales, scale_layout, rows, k / kScaleBlock);
}

void dequantize(const uint8_t* codes, int64_t codes_ld, const uint8_t* scales, int32_t scale_layout,
                int64_t rows, int64_t k, float tensor_scale, float* x, int64_t x_ld) {
  const DefaultFloatEnvironment environment;
  dequantize_rows(codes, codes_ld, scales, scale_layout, rows, k, tensor_scale, x, x_ld);
}

}  // namespace nvfp4
