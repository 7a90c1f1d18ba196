// SPDX-License-Identifier: MIT
// The packings of weights: units of rows x elements of K, codes and scales together.
#pragma once

#include <cstdint>

#include "host/base/operand_format.h"
#include "host/base/size.h"

namespace nvfp4 {

struct Packing {
  int32_t packing;  // an NVFP4_PACKING
  int64_t rows, k;  // of a unit
  constexpr int64_t elements() const { return rows * k; }
  constexpr int64_t unit_bytes(const OperandFormat& format) const {
    return elements() / 2 + elements() / format.block;
  }
  // Bytes of a batch stride of that many elements, a multiple of elements(). It is below 2^41.
  constexpr int64_t stride_bytes(int64_t stride, int32_t format) const {
    return stride / elements() * unit_bytes(*find_operand_format(format));
  }
};

constexpr Packing kPackings[] = {{NVFP4_PACKING_SM90_1, 64, 64}};

// NULL if there is no such packing.
constexpr const Packing* find_packing(int32_t packing) {
  for (const Packing& row : kPackings) {
    if (row.packing == packing) return &row;
  }
  return nullptr;
}

// Bytes of a packed [rows, k] matrix. False for what nvfp4_packed_bytes() has no answer to.
inline bool packed_bytes(int64_t rows, int64_t k, int32_t packing, int32_t format, int64_t* bytes) {
  const Packing* const of = find_packing(packing);
  const OperandFormat* const row = find_operand_format(format);
  if (of == nullptr || row == nullptr || rows < 0 || k < 0 || k % row->block != 0) return false;
  int64_t units;
  return multiply(ceil_div(rows, of->rows), ceil_div(k, of->k), &units) &&
         multiply(units, of->unit_bytes(*row), bytes);
}

}  // namespace nvfp4
