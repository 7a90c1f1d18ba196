// SPDX-License-Identifier: MIT
// Constant expressions (PTX ISA 4.5 and 4.6): integers of 64 bits, signed or not, and doubles.
#pragma once

#include "tools/emulator/ptx/cursor.h"

namespace emu::ptx {

struct Constant {
  enum class Kind : uint8_t { signed_integer, unsigned_integer, real32, real64 };
  Kind kind = Kind::signed_integer;
  uint64_t bits = 0;

  bool is_integer() const { return kind <= Kind::unsigned_integer; }
};

// Whether a constant expression begins at the cursor.
bool starts_constant(const Cursor& in);
// Reads it as far as it goes: up to a comma, a semicolon or a bracket. Throws PtxError.
Constant parse_constant(Cursor& in);

}  // namespace emu::ptx
