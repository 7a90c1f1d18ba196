// SPDX-License-Identifier: MIT
// opcodes.def as a table, and the search of the row that admits an instruction.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/emulator/ptx/notation.h"
#include "tools/emulator/ptx/syntax.h"
#include "tools/emulator/ptx/target.h"

namespace emu::ptx {

struct Form {
  Since since;
  const char* text;  // the row
  Pattern modifiers;
  ModSet named;  // by the pattern
  std::vector<Slot> slots;
};

struct Opcode {
  const char* text = "";
  size_t index = 0;  // in the table, and in that of the binders
  std::vector<Form> forms;
};

class OpcodeTable {
 public:
  static const OpcodeTable& get();
  // The opcode whose text is the longest start of the instruction's words; `used` of them.
  const Opcode* find(const std::vector<Token>& words, size_t* used) const;
  const std::vector<Opcode>& opcodes() const { return opcodes_; }

 private:
  OpcodeTable();
  void add_form(Since since, const char* text);
  std::vector<Opcode> opcodes_;
  std::unordered_map<std::string_view, size_t> by_text_;
};

struct Match {
  const Opcode& opcode;
  const Form& form;
};

// Fills opcode, modifiers, types and operands of `out` from the first form that admits `in`, whose
// names are resolved. Labels are left to the caller (a `bra` has no operand afterwards). Throws
// PtxError.
Match match(const ParsedInstr& in, const Target& target, Instr& out);

}  // namespace emu::ptx
