// SPDX-License-Identifier: MIT
#include "host/reference/reference_epilogue.h"

#include <cstring>

#include "host/reference/activation.h"

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
    : g_(g), scale_(scalar(g, g.alpha, g.alpha_device)), beta_{0}, adds_c_(false) {
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

void ReferenceEpilogue::store(const Place& at, F32 acc) const {
  F32 x = scaled(at, acc);
  if (adds_c_) {
    const int64_t index = index_of(g_.cd_order, at, g_.c_ld, g_.c_batch_stride);
    x = fma(beta_, load(g_.c, g_.c_type, index), x);
  }
  if (g_.bias_type != NVFP4_TYPE_NONE) {
    const bool per_row = g_.bias_axis == NVFP4_BIAS_AXIS_ROW;
    x = x + load(g_.bias, g_.bias_type, per_row ? at.row : at.column);
  }
  x = activate(g_.activation, x);
  store_rounded(g_.d, g_.d_type, index_of(g_.cd_order, at, g_.d_ld, g_.d_batch_stride), x);
}

}  // namespace nvfp4
