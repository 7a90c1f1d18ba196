// SPDX-License-Identifier: MIT
#include "host/reference/quantize_typed.h"

#include <algorithm>

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/reference/quantize.h"
#include "host/reference/quantize_ue8m0.h"
#include "host/reference/scale_layout.h"
#include "host/reference/typed_row.h"

namespace nvfp4 {

namespace {

using Desc = nvfp4_quantize_desc;

constexpr int kLargestBlock = 32;
constexpr F32 kOne{0x3F800000};
constexpr F32 kLargestProduct{0x45280000};  // 2688 = 6 * 448

// amax / 2688 over the finite elements, or 1 where that is 0.
F32 scale_of_amax(const Desc& q) {
  uint32_t amax = 0;
  for (int64_t row = 0; row < q.rows; ++row) {
    const TypedRow x(q.x, q.x_ld, row, q.x_type);
    for (int64_t i = 0; i < q.k; ++i) {
      const uint32_t magnitude = absolute(x.at(i)).bits;
      if (magnitude < kF32.overflow_code) amax = std::max(amax, magnitude);
    }
  }
  const F32 t = F32{amax} / kLargestProduct;
  return t.is_positive() ? t : kOne;
}

float tensor_scale_of(const Desc& q) {
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_VALUE) return q.tensor_scale;
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_AMAX) {
    *q.tensor_scale_device = f32_from_bits(scale_of_amax(q).bits);
  }
  return *q.tensor_scale_device;
}

// Calls function(row, first element, codes, scale) for each block of elements that share a scale.
template <typename Function>
void for_each_block(const Desc& q, Function function) {
  const int64_t size = find_operand_format(q.format)->block, blocks = q.k / size;
  for (int64_t row = 0; row < q.rows; ++row) {
    const TypedRow x(q.x, q.x_ld, row, q.x_type);
    for (int64_t block = 0; block < blocks; ++block) {
      function(x, block * size,
               static_cast<uint8_t*>(q.codes) + (row * q.codes_ld + block * size) / 2,
               static_cast<uint8_t*>(q.scales) + scale_offset(q.scale_layout, row, block, blocks));
    }
  }
}

void quantize_nvfp4(const Desc& q) {
  const float t = tensor_scale_of(q);
  for_each_block(q, [t](const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
    float values[kScaleBlock];
    for (int i = 0; i < kScaleBlock; ++i) values[i] = f32_from_bits(x.at(first + i).bits);
    quantize_block(values, t, codes, scale);
  });
}

void dequantize_nvfp4(const Desc& q) {
  const float t = tensor_scale_of(q);
  for_each_block(q, [t](const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
    float values[kScaleBlock];
    dequantize(codes, kScaleBlock, scale, NVFP4_SCALE_LAYOUT_LINEAR, 1, kScaleBlock, t, values,
               kScaleBlock);
    for (int i = 0; i < kScaleBlock; ++i) {
      const F32 value{f32_bits(values[i])};
      x.set(first + i, value.is_nan() ? kNan : value);
    }
  });
}

void quantize_with_ue8m0(const Desc& q, int count) {
  for_each_block(q, [&](const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
    F32 values[kLargestBlock];
    for (int i = 0; i < count; ++i) values[i] = x.at(first + i);
    quantize_ue8m0(values, count, q.scale_rule, codes, scale);
  });
}

void dequantize_with_ue8m0(const Desc& q, int count) {
  for_each_block(q, [&](const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
    F32 values[kLargestBlock];
    dequantize_ue8m0(codes, count, *scale, values);
    for (int i = 0; i < count; ++i) x.set(first + i, values[i]);
  });
}

}  // namespace

void quantize_typed(const Desc& q) {
  const OperandFormat& format = *find_operand_format(q.format);
  if (format.scale == ScaleType::ue4m3) {
    quantize_nvfp4(q);
  } else {
    quantize_with_ue8m0(q, static_cast<int>(format.block));
  }
  clear_scale_padding(static_cast<uint8_t*>(q.scales), q.scale_layout, q.rows, q.k / format.block);
}

void dequantize_typed(const Desc& q) {
  const OperandFormat& format = *find_operand_format(q.format);
  if (format.scale == ScaleType::ue4m3) return dequantize_nvfp4(q);
  dequantize_with_ue8m0(q, static_cast<int>(format.block));
}

}  // namespace nvfp4
