// SPDX-License-Identifier: MIT
// Name resolution and binding.
#include "tools/emulator/ptx/lower.h"

#include "tools/emulator/ptx/opcode_table.h"

namespace emu::ptx {
namespace {

const Symbol* part(std::string_view vector, std::string_view field, const Scopes& scopes) {
  constexpr std::string_view positions = "xyzw", colours = "rgba";
  if (const size_t colour = colours.find(field); field.size() == 1 && colour < colours.size())
    field = positions.substr(colour, 1);
  return scopes.find(std::string(vector) + "." + std::string(field));
}

// v.x is a register; v alone is {v.x, v.y} where an operand stands, and nowhere else.
void resolve_vector(ParsedOperand& op, const Scopes& scopes, bool whole) {
  if (!op.field.empty()) {
    const Symbol* const found = part(op.name, op.field, scopes);
    if (!found) return;  // the operand's rules say that it has no such field
    op.symbol = found;
    op.field = {};
    return;
  }
  if (!whole || op.kind != ParsedOperand::Kind::name || op.offset || op.negated)
    throw PtxError(op.pos, "'" + std::string(op.name) + "' is a vector of registers");
  op.kind = ParsedOperand::Kind::vector;
  for (uint32_t i = 0; i < op.symbol->lanes; ++i) {
    ParsedOperand e;
    e.name = op.name;
    e.symbol = part(op.name, std::string_view("xyzw").substr(i, 1), scopes);
    e.pos = op.pos;
    op.elements.push_back(e);
  }
}

// array[3]
void resolve_index(ParsedOperand& op) {
  if (!op.symbol || !op.symbol->element_bytes)
    throw PtxError(op.pos, "'" + std::string(op.name) + "' is no array");
  op.offset = int64_t(uint64_t(op.index) * op.symbol->element_bytes);
}

void resolve(ParsedOperand& op, const Scopes& scopes, bool whole = true) {
  for (ParsedOperand& e : op.elements) resolve(e, scopes, false);
  if (op.name.empty()) return;
  op.symbol = scopes.find(op.name);
  if (op.indexed) resolve_index(op);
  if (op.symbol && op.symbol->lanes > 1) resolve_vector(op, scopes, whole);
}

// ld.param and st.param of a call's variables are accesses to local memory.
void resolve_call_variables(ParsedInstr& in, std::vector<Symbol>& moved) {
  moved.reserve(in.ops.size());
  for (ParsedOperand& op : in.ops) {
    if (!op.symbol || !op.symbol->call_bytes) continue;
    const bool load = in.words[0].text == "ld", store = in.words[0].text == "st";
    if (!(load || store) || in.words.size() < 3 || in.words[1].text != "param" ||
        op.kind != ParsedOperand::Kind::address)
      throw PtxError(op.pos, "'" + std::string(op.name) +
                                 "' is a parameter of a call: only ld.param and st.param reach it");
    if (store && op.symbol->read_only)
      throw PtxError(op.pos, "a function cannot write to its parameter");
    if (op.offset < 0 || op.offset >= int64_t(op.symbol->call_bytes))
      throw PtxError(op.pos, "'" + std::string(op.name) + "' ends before this");
    moved.push_back(*op.symbol);
    moved.back().space = Space::local;
    op.symbol = &moved.back();
    in.words[1].text = "local";
  }
}

}  // namespace

void set_guard(const ParsedInstr& in, const Scopes& scopes, Instr& out) {
  if (in.guard.empty()) return;
  const Symbol* s = scopes.find(in.guard);
  if (!s || s->kind != Symbol::Kind::reg || s->type != Type::pred)
    throw PtxError(in.pos, "guard '" + std::string(in.guard) + "' is no predicate register");
  out.guard = s->index;
  out.guard_negated = in.guard_negated;
}

void lower(ParsedInstr& in, Scopes& scopes, const Target& target, const Binder* binders,
           Function& function) {
  for (ParsedOperand& op : in.ops) resolve(op, scopes);
  std::vector<Symbol> moved;
  resolve_call_variables(in, moved);
  Instr out;
  set_guard(in, scopes, out);
  const Opcode& opcode = match(in, target, out).opcode;
  if (std::string_view(opcode.text) == "bra")
    scopes.branch({in.ops[0].name, uint32_t(function.code.size()), in.ops[0].pos});
  std::string why;
  out.exec = binders[opcode.index](out, why);
  if (!out.exec)
    throw PtxError(in.pos, "not supported: '" + std::string(in.text.substr(0, 200)) + "': " + why);
  function.code.push_back(std::move(out));
}

void check_cta_group(const Function& function) {
  const Instr* one = nullptr;
  const Instr* two = nullptr;
  for (const Instr& in : function.code) {
    if (std::string_view(in.opcode).substr(0, 8) != "tcgen05.") continue;
    if (in.has(Mod::cta_group_1)) one = &in;
    if (in.has(Mod::cta_group_2)) two = &in;
  }
  if (one && two)
    throw PtxError(two->pos,
                   "tcgen05 instructions with .cta_group::2 here and .cta_group::1 in line " +
                       std::to_string(one->pos.line) + " of one function");
}

}  // namespace emu::ptx
