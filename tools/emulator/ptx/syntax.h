// SPDX-License-Identifier: MIT
// An instruction as written, before names, types and modifiers are understood.
#pragma once

#include <string_view>
#include <vector>

#include "tools/emulator/ptx/cursor.h"
#include "tools/emulator/ptx/symbols.h"

namespace emu::ptx {

struct ParsedOperand {
  enum class Kind : uint8_t { name, integer, real32, real64, vector, address };
  Kind kind = Kind::name;
  bool negated = false;    // !p
  bool piped = false;      // stands after the | of d|p
  std::string_view name;   // name; the base of an address (empty: an absolute one)
  std::string_view field;  // x of %tid.x and v.x
  uint64_t bits = 0;       // integer, real32, real64
  int64_t offset = 0;      // name+4, [name+4]
  bool indexed = false;    // name[4]
  int64_t index = 0;
  std::vector<ParsedOperand> elements;  // of a vector; coordinates of [map, {c0, c1}]
  const Symbol* symbol = nullptr;       // what the name is; nullptr: no register and no variable
  SourcePos pos;

  bool sink() const { return kind == Kind::name && name == "_"; }
};

struct ParsedInstr {
  std::vector<Token> words;  // add .rn .f32
  std::vector<ParsedOperand> ops;
  std::string_view guard;  // @p; empty = none
  bool guard_negated = false;
  std::string_view text;  // from opcode to semicolon
  SourcePos pos;
};

// call{.uni} (results), name, (arguments), prototype, as written.
struct ParsedCall {
  SourcePos pos;
  std::string_view name, prototype;
  std::string_view text;
  std::vector<ParsedOperand> results, arguments;
};
// From `call` to the semicolon.
ParsedCall parse_call(Cursor& in);

// Reads `opcode.mods operands ;`, the semicolon included.
void parse_instruction(Cursor& in, ParsedInstr& out);

}  // namespace emu::ptx
