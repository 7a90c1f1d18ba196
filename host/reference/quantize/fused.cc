// SPDX-License-Identifier: MIT
// The formulas of docs/numerics.md, "Fused with quantization", in integers.
#include "host/reference/quantize/fused.h"

#include "host/base/formats.h"
#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/reference/activation.h"
#include "host/reference/pack/tokens.h"
#include "host/reference/quantize/quantize.h"
#include "host/reference/quantize/quantize_ue8m0.h"
#include "host/reference/quantize/tensor_scale.h"
#include "host/reference/quantize/typed_row.h"
#include "host/reference/scale_layout.h"

namespace nvfp4 {

namespace {

constexpr F32 kOne{0x3F800000};
constexpr int kColumns = 256;
constexpr int kMostOfBlock = 32;  // elements that share a scale

// 1 / sqrt(mean of squares + epsilon). Block b of 16 elements adds to column b % 256, element by
// element. Then pairs of neighbouring columns are added, then pairs of these sums, and so on.
F32 norm_factor(const TypedRow& h, int64_t k, float epsilon) {
  F32 columns[kColumns] = {};
  for (int64_t i = 0; i < k; ++i) {
    F32& column = columns[i / kScaleBlock % kColumns];
    column = fma(h.at(i), h.at(i), column);
  }
  for (int apart = 1; apart < kColumns; apart *= 2) {
    for (int i = 0; i < kColumns; i += 2 * apart) columns[i] = columns[i] + columns[i + apart];
  }
  const F32 mean = columns[0] / f32_from_integer(static_cast<int32_t>(k));
  return kOne / square_root(mean + F32{f32_bits(epsilon)});
}

struct Operands {
  TypedRow x, y, weight;
  bool residual;
};

float tensor_scale_of(const nvfp4_fused_quantize_desc& d, int64_t row) {
  if (d.tensor_scale_mode == NVFP4_TENSOR_SCALE_VALUE) return d.tensor_scale;
  return d.tensor_scale_device[d.tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX ? row : 0];
}

void pack_block(const nvfp4_fused_quantize_desc& d, int64_t row, int64_t first, const F32* z,
                float t) {
  float values[kScaleBlock];
  uint8_t codes[kScaleBlock / 2], scale;
  for (int i = 0; i < kScaleBlock; ++i) values[i] = f32_from_bits(z[i].bits);
  quantize_block(values, t, NVFP4_SCALE_RULE_DEFAULT, codes, &scale);
  PackedTokens(d.codes, d.rows, d.k).set_block(row, first, codes, scale);
}

void quantize_row(const nvfp4_fused_quantize_desc& d, int64_t row, const Operands& o) {
  const bool norm = d.operation == NVFP4_FUSED_RMS_NORM;
  if (o.residual) {
    for (int64_t i = 0; i < d.k; ++i) o.y.set(i, o.x.at(i) + o.y.at(i));
  }
  const TypedRow& h = o.residual ? o.y : o.x;
  const F32 factor = norm ? norm_factor(h, d.k, d.epsilon) : kOne;
  const auto value_at = [&](int64_t at) {
    return norm ? h.at(at) * factor * o.weight.at(at)
                : activate(NVFP4_ACTIVATION_SILU, o.x.at(at)) * o.y.at(at);
  };
  if (d.tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX) {
    LargestFinite largest;
    for (int64_t i = 0; i < d.k; ++i) largest.add(value_at(i));
    d.tensor_scale_device[row] = f32_from_bits(largest.tensor_scale().bits);
  }
  const float t = tensor_scale_of(d, row);
  const OperandFormat& format = *find_operand_format(d.format);
  const int64_t blocks = d.k / format.block;
  for (int64_t block = 0; block < blocks; ++block) {
    F32 z[kMostOfBlock];
    for (int64_t i = 0; i < format.block; ++i) z[i] = value_at(block * format.block + i);
    if (d.packing != NVFP4_PACKING_NONE) {
      pack_block(d, row, block * kScaleBlock, z, t);
      continue;
    }
    uint8_t* const codes =
        static_cast<uint8_t*>(d.codes) + (row * d.codes_ld + block * format.block) / 2;
    uint8_t* const scale =
        static_cast<uint8_t*>(d.scales) + scale_offset(d.scale_layout, row, block, blocks);
    if (format.scale == ScaleType::ue8m0) {
      quantize_ue8m0(z, static_cast<int>(format.block), d.scale_rule, codes, scale);
      continue;
    }
    float values[kScaleBlock];
    for (int i = 0; i < kScaleBlock; ++i) values[i] = f32_from_bits(z[i].bits);
    quantize_block(values, t, NVFP4_SCALE_RULE_DEFAULT, codes, scale);
  }
}

}  // namespace

void fused_quantize(const nvfp4_fused_quantize_desc& d) {
  const bool packed = d.packing != NVFP4_PACKING_NONE;
  if (packed) PackedTokens(d.codes, d.rows, d.k).clear();
  for (int64_t row = 0; row < d.rows; ++row) {
    quantize_row(
        d, row,
        {TypedRow(d.x, d.x_ld, row, d.type), TypedRow(d.y, d.y_ld, row, d.type),
         TypedRow(d.weight, 0, 0, d.type), d.operation == NVFP4_FUSED_RMS_NORM && d.y != nullptr});
  }
  if (packed) return;
  clear_scale_padding(static_cast<uint8_t*>(d.scales), d.scale_layout, d.rows,
                      d.k / find_operand_format(d.format)->block);
}

}  // namespace nvfp4
