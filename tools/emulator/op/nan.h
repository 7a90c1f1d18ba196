// SPDX-License-Identifier: MIT
// Which NaN an f64 instruction gives: the first NaN among its operands, made quiet, or
// 0xFFF8000000000000 if no operand is a NaN. All other formats have one NaN. Measured (H200, random
// programs).
#pragma once

#include <initializer_list>

#include "tools/emulator/arithmetic/softfloat.h"

namespace emu::ops {

constexpr uint64_t f64_quiet = 1ull << 51, f64_invalid = 0xFFF8000000000000;

constexpr bool is_nan_f64(uint64_t code) {
  return (code & ~soft::f64.sign_bit()) > soft::f64.infinity();
}

// `result`, or if that is a NaN of f64 the one that hardware gives.
inline uint64_t with_payload(uint64_t result, const soft::Format& f,
                             std::initializer_list<uint64_t> operands) {
  if (f.exponent_bits != soft::f64.exponent_bits || !is_nan_f64(result)) return result;
  for (const uint64_t operand : operands)
    if (is_nan_f64(operand)) return operand | f64_quiet;
  return f64_invalid;
}

}  // namespace emu::ops
