// SPDX-License-Identifier: MIT
#include "host/reference/reference_epilogue.h"

#include <cstring>

#include "host/problem/fields.h"
#include "host/reference/activation.h"
#include "host/reference/quantize/quantize.h"
#include "host/reference/quantize/quantize_ue8m0.h"

namespace nvfp4 {

namespace {

const Format& format_of(int32_t type) {
  return type == NVFP4_TYPE_F16 ? kF16 : type == NVFP4_TYPE_BF16 ? kBF16 : kF32;
}

F32 load_f32(const float* value) {
  F32 x;
  memcpy(&x.bits, value, sizeof x.bits);
  return x;
}

F32 load(const void* array, int32_t type, int64_t index) {
  if (type == NVFP4_TYPE_F32) {
    return {widen(kF32, load_f32(static_cast<const float*>(array) + index).bits)};
  }
  return {widen(format_of(type), static_cast<const uint16_t*>(array)[index])};
}

void store_rounded(void* array, int32_t type, int64_t index, F32 x) {
  const uint32_t code = convert(format_of(type), x.bits);
  if (type == NVFP4_TYPE_F32) {
    memcpy(static_cast<float*>(array) + index, &code, sizeof code);
  } else {
    static_cast<uint16_t*>(array)[index] = static_cast<uint16_t>(code);
  }
}

int64_t index_of(int32_t order, const Place& at, int64_t ld, int64_t batch_stride) {
  const bool by_row = order == NVFP4_CD_ORDER_ROW_MAJOR;
  const int64_t in_batch = by_row ? at.row * ld + at.column : at.column * ld + at.row;
  return at.batch * batch_stride + in_batch;
}

F32 scalar(const nvfp4_gemm_desc& g, float value, const float* pointer) {
  return load_f32(g.scalar_mode == NVFP4_SCALARS_DEVICE ? pointer : &value);
}

}  // namespace

ReferenceEpilogue::ReferenceEpilogue(const nvfp4_gemm_desc& g)
    : g_(g),
      b_(weights(g.alpha, g.alpha_device, g.b_tensor_scale, g.bias)),
      b2_{},
      beta_{0},
      adds_c_(false),
      d_format_(format_of_d(g.d_type)) {
  if (is_gated(g)) b2_ = weights(g.alpha2, g.alpha2_device, g.b2_tensor_scale, g.bias2);
  if (g.c_type == NVFP4_TYPE_NONE) return;
  beta_ = scalar(g, g.beta, g.beta_device);
  adds_c_ = absolute(beta_).bits != 0;
}

ReferenceEpilogue::Weights ReferenceEpilogue::weights(float alpha, const float* alpha_device,
                                                      const float* tensor_scale,
                                                      const void* bias) const {
  F32 scale = scalar(g_, alpha, alpha_device);
  if (g_.a_tensor_scale != nullptr && g_.a_tensor_scale_rows == 0) {
    scale = scale * load_f32(g_.a_tensor_scale);
  }
  return {scale, tensor_scale, bias};
}

F32 ReferenceEpilogue::scaled(const Place& at, const Weights& weights, F32 acc) const {
  F32 scale = weights.scale;
  if (g_.a_tensor_scale_rows != 0) {
    scale = scale * load_f32(g_.a_tensor_scale + at.batch * g_.m + at.row);
  }
  if (weights.tensor_scale == nullptr) return scale * acc;
  const int64_t columns = g_.b_tensor_scale_columns;
  const int64_t factor = columns == 0 ? 0 : at.column / columns;
  return scale * load_f32(weights.tensor_scale + factor) * acc;
}

F32 ReferenceEpilogue::biased(const Place& at, const Weights& weights, F32 x) const {
  if (g_.bias_type == NVFP4_TYPE_NONE) return x;
  const bool per_row = g_.bias_axis == NVFP4_BIAS_AXIS_ROW;
  return x + load(weights.bias, g_.bias_type, per_row ? at.row : at.column);
}

F32 ReferenceEpilogue::value(const Place& at, F32 acc, F32 acc2) const {
  F32 x = scaled(at, b_, acc);
  if (adds_c_) {
    const int64_t index = index_of(g_.cd_order, at, g_.c_ld, g_.c_batch_stride);
    x = fma(beta_, load(g_.c, g_.c_type, index), x);
  }
  x = biased(at, b_, x);
  if (is_gated(g_)) return gated(x, biased(at, b2_, scaled(at, b2_, acc2)));
  return activate(g_.activation, x);
}

// A gate_limit, gate_alpha or gate_beta of 0 takes no part. NaN is not clamped.
F32 ReferenceEpilogue::gated(F32 x, F32 y) const {
  const F32 limit = load_f32(&g_.gate_limit), alpha = load_f32(&g_.gate_alpha);
  const F32 beta = load_f32(&g_.gate_beta);
  const auto is_beyond = [&](F32 z) { return absolute(z).bits > limit.bits && !z.is_nan(); };
  if (absolute(limit).bits != 0) {
    if (x.is_positive() && is_beyond(x)) x = limit;
    if (is_beyond(y)) y = y.is_negative() ? -limit : limit;
  }
  const bool plain = absolute(alpha).bits == 0;
  x = plain ? activate(g_.activation, x) : activate(g_.activation, x, alpha);
  return x * (absolute(beta).bits == 0 ? y : y + beta);
}

// Header, "Where the scale of (row, k) is stored", for the columns of D.
uint8_t* ReferenceEpilogue::scale_of_d(const Place& at) const {
  const int64_t scales = g_.n / d_format_->block, s = at.column / d_format_->block;
  uint8_t* const first =
      static_cast<uint8_t*>(g_.d_scales) + at.batch * g_.d_scales_batch_stride_bytes;
  if (g_.d_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR) return first + at.row * scales + s;
  const int64_t tile = (at.row / 128) * ((scales + 3) / 4) + s / 4;
  return first + tile * 512 + (at.row % 32) * 16 + ((at.row % 128) / 32) * 4 + s % 4;
}

void ReferenceEpilogue::quantize(const Place& last) const {
  const int count = static_cast<int>(d_format_->block);
  const F32(&block)[kMostInBlock] = block_[last.row % 32];
  const int64_t element = last.batch * g_.d_batch_stride + last.row * g_.d_ld + last.column;
  uint8_t* const codes = static_cast<uint8_t*>(g_.d) + (element + 1 - count) / 2;
  if (d_format_->scale == ScaleType::ue8m0) {
    return quantize_ue8m0(block, count, g_.d_scale_rule, codes, scale_of_d(last));
  }
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = f32_from_bits(block[i].bits);
  quantize_block(values, g_.d_tensor_scale == nullptr ? 1.0f : *g_.d_tensor_scale,
                 NVFP4_SCALE_RULE_DEFAULT, codes, scale_of_d(last));
}

// NaN counts as larger than every number. A stored value with its sign bit set counts as the
// smallest.
void ReferenceEpilogue::take_amax(const Place& at, F32 x) const {
  const auto bits = static_cast<int32_t>(x.is_nan() ? kNan.bits : absolute(x).bits);
  const auto take = [&](float* largest) {
    int32_t before;
    memcpy(&before, largest, sizeof before);
    if (bits > before) memcpy(largest, &bits, sizeof bits);
  };
  if (g_.d_amax != nullptr) take(g_.d_amax);
  if (g_.d_row_amax != nullptr) take(g_.d_row_amax + at.batch * g_.m + at.row);
}

void ReferenceEpilogue::store(const Place& at, F32 acc, F32 acc2) const {
  const F32 x = value(at, acc, acc2);
  take_amax(at, x);
  if (d_format_ == nullptr) {
    const int64_t index = index_of(g_.cd_order, at, g_.d_ld, g_.d_batch_stride);
    return store_rounded(g_.d, g_.d_type, index, x);
  }
  const int64_t in_block = at.column % d_format_->block;
  block_[at.row % 32][in_block] = x;
  if (in_block + 1 == d_format_->block) quantize(at);
}

}  // namespace nvfp4
