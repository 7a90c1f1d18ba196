// SPDX-License-Identifier: MIT
#include "host/reference/reference_epilogue.h"

#include <cstring>

#include "host/reference/activation.h"
#include "host/reference/quantize.h"
#include "host/reference/quantize_ue8m0.h"

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
      scale_(scalar(g, g.alpha, g.alpha_device)),
      beta_{0},
      adds_c_(false),
      d_format_(format_of_d(g.d_type)) {
  if (g.a_tensor_scale != nullptr && g.a_tensor_scale_rows == 0) {
    scale_ = scale_ * load_f32(g.a_tensor_scale);
  }
  if (g.c_type == NVFP4_TYPE_NONE) return;
  beta_ = scalar(g, g.beta, g.beta_device);
  adds_c_ = absolute(beta_).bits != 0;
}

F32 ReferenceEpilogue::scaled(const Place& at, F32 acc) const {
  F32 scale = scale_;
  if (g_.a_tensor_scale_rows != 0) {
    scale = scale * load_f32(g_.a_tensor_scale + at.batch * g_.m + at.row);
  }
  if (g_.b_tensor_scale == nullptr) return scale * acc;
  const int64_t columns = g_.b_tensor_scale_columns;
  const int64_t factor = columns == 0 ? 0 : at.column / columns;
  return scale * load_f32(g_.b_tensor_scale + factor) * acc;
}

F32 ReferenceEpilogue::value(const Place& at, F32 acc) const {
  F32 x = scaled(at, acc);
  if (adds_c_) {
    const int64_t index = index_of(g_.cd_order, at, g_.c_ld, g_.c_batch_stride);
    x = fma(beta_, load(g_.c, g_.c_type, index), x);
  }
  if (g_.bias_type != NVFP4_TYPE_NONE) {
    const bool per_row = g_.bias_axis == NVFP4_BIAS_AXIS_ROW;
    x = x + load(g_.bias, g_.bias_type, per_row ? at.row : at.column);
  }
  return activate(g_.activation, x);
}

// Header, "Where the scale of (row, k) lies", of D's columns.
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
  const F32(&block)[32] = block_[last.row % 32];
  const int64_t element = last.batch * g_.d_batch_stride + last.row * g_.d_ld + last.column;
  uint8_t* const codes = static_cast<uint8_t*>(g_.d) + (element + 1 - count) / 2;
  if (d_format_->scale == ScaleType::ue8m0) {
    return quantize_ue8m0(block, count, g_.d_scale_rule, codes, scale_of_d(last));
  }
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = f32_from_bits(block[i].bits);
  quantize_block(values, g_.d_tensor_scale == nullptr ? 1.0f : *g_.d_tensor_scale, codes,
                 scale_of_d(last));
}

void ReferenceEpilogue::store(const Place& at, F32 acc) const {
  const F32 x = value(at, acc);
  if (d_format_ == nullptr) {
    const int64_t index = index_of(g_.cd_order, at, g_.d_ld, g_.d_batch_stride);
    return store_rounded(g_.d, g_.d_type, index, x);
  }
  const int64_t in_block = at.column % d_format_->block;
  block_[at.row % 32][in_block] = x;
  if (in_block + 1 == d_format_->block) quantize(at);
}

}  // namespace nvfp4
