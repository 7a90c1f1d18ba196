// SPDX-License-Identifier: MIT
// The rows of operand_format.def.
#pragma once

#include <cstdint>

#include "nvfp4_gemm.h"

namespace nvfp4 {

enum class ScaleType { ue4m3, ue8m0 };

struct OperandFormat {
  int32_t format;  // an NVFP4_OPERAND_FORMAT
  int64_t block;   // elements of K that share a scale; K is a multiple of it
  ScaleType scale;
};

constexpr OperandFormat kOperandFormats[] = {
#define OPERAND_FORMAT(format, block, scale) {format, block, ScaleType::scale},
#include "host/base/operand_format.def"
#undef OPERAND_FORMAT
};

// NULL for what is no format.
constexpr const OperandFormat* find_operand_format(int32_t format) {
  for (const OperandFormat& row : kOperandFormats) {
    if (row.format == format) return &row;
  }
  return nullptr;
}

}  // namespace nvfp4
