// SPDX-License-Identifier: MIT
// The rows of operand_format.def.
#pragma once

#include <cstdint>

#include "nvfp4_gemm.h"

namespace nvfp4 {

enum class ScaleType { ue4m3, ue8m0 };

struct OperandFormat {
  int32_t format;  // an NVFP4_OPERAND_FORMAT
  int32_t d_type;  // the NVFP4_TYPE of a D in that format
  int64_t block;   // elements of K per scale; K is a multiple of it
  ScaleType scale;
};

constexpr OperandFormat kOperandFormats[] = {
#define OPERAND_FORMAT(format, d_type, block, scale) {format, d_type, block, ScaleType::scale},
#include "host/base/operand_format.def"
#undef OPERAND_FORMAT
};

// NULL if there is no such format.
constexpr const OperandFormat* find_operand_format(int32_t format) {
  for (const OperandFormat& row : kOperandFormats) {
    if (row.format == format) return &row;
  }
  return nullptr;
}

// NULL if such a D has no scales.
constexpr const OperandFormat* format_of_d(int32_t d_type) {
  for (const OperandFormat& row : kOperandFormats) {
    if (row.d_type == d_type) return &row;
  }
  return nullptr;
}

constexpr int64_t most_in_block() {
  int64_t most = 0;
  for (const OperandFormat& row : kOperandFormats) most = row.block > most ? row.block : most;
  return most;
}

}  // namespace nvfp4
