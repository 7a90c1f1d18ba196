// SPDX-License-Identifier: MIT
// A row of a matrix of fp16, bf16 or fp32 in host memory, read and written as fp32 values.
#pragma once

#include "host/base/f32.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

class TypedRow {
 public:
  TypedRow(const void* matrix, int64_t ld, int64_t row, int32_t type)
      : wide_(type == NVFP4_TYPE_F32),
        format_(type == NVFP4_TYPE_F16 ? kF16 : kBF16),
        first_(const_cast<uint8_t*>(static_cast<const uint8_t*>(matrix)) +
               row * ld * (wide_ ? 4 : 2)) {}

  F32 at(int64_t i) const {
    if (wide_) return {reinterpret_cast<const uint32_t*>(first_)[i]};
    return {widen(format_, reinterpret_cast<const uint16_t*>(first_)[i])};
  }
  // Stores the value rounded to the type, and returns it.
  F32 set(int64_t i, F32 value) const {
    if (wide_) {
      reinterpret_cast<uint32_t*>(first_)[i] = value.bits;
      return value;
    }
    const uint32_t code = convert(format_, value.bits);
    reinterpret_cast<uint16_t*>(first_)[i] = static_cast<uint16_t>(code);
    return {widen(format_, code)};
  }

 private:
  bool wide_;
  Format format_;
  uint8_t* first_;
};

}  // namespace nvfp4
