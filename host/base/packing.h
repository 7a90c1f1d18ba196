// SPDX-License-Identifier: MIT
// The packings: units of rows x elements of K. Those of weights hold codes and scales together;
// that of tokens holds elements times their scales, in fp16.
#pragma once

#include <cstdint>

#include "host/base/operand_format.h"
#include "host/base/size.h"

namespace nvfp4 {

struct Packing {
  int32_t packing;          // an NVFP4_PACKING
  int64_t rows;             // of a unit
  int64_t fixed_k, scales;  // of a row of a unit: elements, or, if these are 0, scales
  bool of_tokens;           // in NVFP4
  constexpr int64_t k(const OperandFormat& format) const {
    return fixed_k != 0 ? fixed_k : scales * format.block;
  }
  constexpr int64_t elements(const OperandFormat& format) const { return rows * k(format); }
  constexpr int64_t unit_bytes(const OperandFormat& format) const {
    const int64_t count = elements(format);
    return of_tokens ? 2 * count : count / 2 + count / format.block;
  }
  // Bytes of a batch stride of that many elements, a multiple of elements(). It is below 2^41.
  constexpr int64_t stride_bytes(int64_t stride, int32_t format) const {
    const OperandFormat& of = *find_operand_format(format);
    return stride / elements(of) * unit_bytes(of);
  }
};

constexpr Packing kPackings[] = {{NVFP4_PACKING_SM90_1, 64, 64, 0, false},
                                 {NVFP4_PACKING_SM100_1, 128, 0, 4, false},
                                 {NVFP4_PACKING_SM90_TOKENS_1, 1, 256, 0, true}};

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
  if (of->of_tokens && format != NVFP4_OPERAND_FORMAT_NVFP4) return false;
  int64_t units;
  return multiply(ceil_div(rows, of->rows), ceil_div(k, of->k(*row)), &units) &&
         multiply(units, of->unit_bytes(*row), bytes);
}

}  // namespace nvfp4
