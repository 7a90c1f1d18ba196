// SPDX-License-Identifier: MIT
// Declarations: .reg lists and ranges, variables with array bounds and initialisers.
#pragma once

#include <string>
#include <vector>

#include "tools/emulator/ptx/cursor.h"
#include "tools/emulator/ptx/module.h"

namespace emu::ptx {

// `.b32` at the cursor. Throws where no type stands.
Type parse_type(Cursor& in);

struct RegisterName {
  std::string_view name;
  SourcePos pos;
  bool is_range = false;  // %r<4>
  uint32_t count = 0;
};
struct RegisterDeclaration {
  Type type = Type::none;
  uint32_t lanes = 1;  // of .v2 and .v4
  std::vector<RegisterName> names;
};
// After `.reg`, the semicolon included.
RegisterDeclaration parse_registers(Cursor& in);

// Address of a variable or a function, among initial values.
struct InitialAddress {
  uint64_t at;  // in the bytes
  std::string_view name;
  int64_t offset;
  bool is_generic;
  SourcePos pos;
};
struct VariableDeclaration {
  std::string_view name;
  SourcePos pos;
  uint32_t align = 1;
  uint64_t bytes = 0;
  Type scalar = Type::none;    // of neither an array nor a vector
  uint32_t element_bytes = 0;  // of an array: an index counts scalars, as ptxas does with vectors
  bool is_register = false;    // a parameter after .reg
  bool open = false;           // name[]
  std::vector<uint8_t> init;
  std::vector<InitialAddress> addresses;
};
// After `.shared`, `.global` ..., the semicolon included.
std::vector<VariableDeclaration> parse_variables(Cursor& in);

// One parameter, after `.param`, up to the comma or parenthesis; one of a device function after
// `.reg`.
VariableDeclaration parse_parameter(Cursor& in);
VariableDeclaration parse_register_parameter(Cursor& in);

}  // namespace emu::ptx
