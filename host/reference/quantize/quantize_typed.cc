// SPDX-License-Identifier: MIT
#include "host/reference/quantize/quantize_typed.h"

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/reference/pack/tokens.h"
#include "host/reference/quantize/quantize.h"
#include "host/reference/quantize/quantize_ue8m0.h"
#include "host/reference/quantize/tensor_scale.h"
#include "host/reference/quantize/typed_row.h"
#include "host/reference/scale_layout.h"

namespace nvfp4 {

namespace {

using Desc = nvfp4_quantize_desc;

constexpr int kLargestBlock = 32;

// Makes the tensor scales before the first row is quantized; those of rows are made row by row.
void make_tensor_scales(const Desc& q) {
  const auto make = [&](int64_t first, int64_t end, float* to) {
    LargestFinite largest;
    for (int64_t row = first; row < end; ++row) {
      const TypedRow x(q.x, q.x_ld, row, q.x_type);
      for (int64_t i = 0; i < q.k; ++i) largest.add(x.at(i));
    }
    *to = f32_from_bits(largest.tensor_scale().bits);
  };
  if (q.tensor_scale_mode == NVFP4_TENSOR_SCALE_AMAX) make(0, q.rows, q.tensor_scale_device);
  if (q.tensor_scale_mode != NVFP4_TENSOR_SCALE_ROW_AMAX) return;
  for (int64_t row = 0; row < q.rows; ++row) make(row, row + 1, q.tensor_scale_device + row);
}

float tensor_scale_of(const Desc& q, int64_t row) {
  switch (q.tensor_scale_mode) {
    case NVFP4_TENSOR_SCALE_VALUE: return q.tensor_scale;
    case NVFP4_TENSOR_SCALE_DEVICE:
    case NVFP4_TENSOR_SCALE_AMAX: return *q.tensor_scale_device;
    case NVFP4_TENSOR_SCALE_FROM_ROW_AMAX: {
      const F32 amax{f32_bits(q.tensor_scale_device[row])};
      return f32_from_bits(tensor_scale_of_amax(amax).bits);
    }
    default: return q.tensor_scale_device[row];
  }
}

// Calls function(row's number, row, first element, codes, scale) for each block of elements that
// share a scale.
template <typename Function>
void for_each_block(const Desc& q, Function function) {
  const int64_t size = find_operand_format(q.format)->block, blocks = q.k / size;
  for (int64_t row = 0; row < q.rows; ++row) {
    const TypedRow x(q.x, q.x_ld, row, q.x_type);
    for (int64_t block = 0; block < blocks; ++block) {
      function(row, x, block * size,
               static_cast<uint8_t*>(q.codes) + (row * q.codes_ld + block * size) / 2,
               static_cast<uint8_t*>(q.scales) + scale_offset(q.scale_layout, row, block, blocks));
    }
  }
}

// The same for packed tokens, whose blocks are unpacked in between.
template <typename Function>
void for_each_token_block(const Desc& q, Function function) {
  for (int64_t row = 0; row < q.rows; ++row) {
    const TypedRow x(q.x, q.x_ld, row, q.x_type);
    for (int64_t first = 0; first < q.k; first += kScaleBlock) function(row, x, first);
  }
}

void quantize_tokens(const Desc& q) {
  make_tensor_scales(q);
  const PackedTokens packed(q.codes, q.rows, q.k);
  packed.clear();
  for_each_token_block(q, [&](int64_t row, const TypedRow& x, int64_t first) {
    float values[kScaleBlock];
    uint8_t codes[kScaleBlock / 2], scale;
    for (int i = 0; i < kScaleBlock; ++i) values[i] = f32_from_bits(x.at(first + i).bits);
    quantize_block(values, tensor_scale_of(q, row), q.scale_rule, codes, &scale);
    packed.set_block(row, first, codes, scale);
  });
}

void dequantize_tokens(const Desc& q) {
  const PackedTokens packed(q.codes, q.rows, q.k);
  for_each_token_block(q, [&](int64_t row, const TypedRow& x, int64_t first) {
    const F32 t{f32_bits(tensor_scale_of(q, row))};
    for (int64_t i = first; i < first + kScaleBlock; ++i) x.set(i, packed.value(row, i) * t);
  });
}

void quantize_nvfp4(const Desc& q) {
  make_tensor_scales(q);
  for_each_block(
      q, [&](int64_t row, const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
        const float t = tensor_scale_of(q, row);
        float values[kScaleBlock];
        for (int i = 0; i < kScaleBlock; ++i) values[i] = f32_from_bits(x.at(first + i).bits);
        quantize_block(values, t, q.scale_rule, codes, scale);
      });
}

void dequantize_nvfp4(const Desc& q) {
  for_each_block(
      q, [&](int64_t row, const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
        const float t = tensor_scale_of(q, row);
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
  for_each_block(q, [&](int64_t, const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
    F32 values[kLargestBlock];
    for (int i = 0; i < count; ++i) values[i] = x.at(first + i);
    quantize_ue8m0(values, count, q.scale_rule, codes, scale);
  });
}

void dequantize_with_ue8m0(const Desc& q, int count) {
  for_each_block(q, [&](int64_t, const TypedRow& x, int64_t first, uint8_t* codes, uint8_t* scale) {
    F32 values[kLargestBlock];
    dequantize_ue8m0(codes, count, *scale, values);
    for (int i = 0; i < count; ++i) x.set(first + i, values[i]);
  });
}

}  // namespace

void quantize_typed(const Desc& q) {
  if (q.packing != NVFP4_PACKING_NONE) return quantize_tokens(q);
  const OperandFormat& format = *find_operand_format(q.format);
  if (format.scale == ScaleType::ue4m3) {
    quantize_nvfp4(q);
  } else {
    quantize_with_ue8m0(q, static_cast<int>(format.block));
  }
  clear_scale_padding(static_cast<uint8_t*>(q.scales), q.scale_layout, q.rows, q.k / format.block);
}

void dequantize_typed(const Desc& q) {
  if (q.packing != NVFP4_PACKING_NONE) return dequantize_tokens(q);
  const OperandFormat& format = *find_operand_format(q.format);
  if (format.scale == ScaleType::ue4m3) return dequantize_nvfp4(q);
  dequantize_with_ue8m0(q, static_cast<int>(format.block));
}

}  // namespace nvfp4
