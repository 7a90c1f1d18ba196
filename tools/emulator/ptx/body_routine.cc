// SPDX-License-Identifier: MIT
// Calls between a function's braces: those that jump, and the routines that they lead to.
#include "tools/emulator/ptx/body.h"
#include "tools/emulator/ptx/lower.h"
#include "tools/emulator/ptx/opcode_table.h"

namespace emu::ptx {
namespace {

constexpr uint32_t frame_align = 16;

}  // namespace

std::vector<CallSite::Argument> arguments_of(const std::vector<ParsedOperand>& operands) {
  std::vector<CallSite::Argument> all;
  for (const ParsedOperand& p : operands) {
    CallSite::Argument a{{}, p.symbol->call_bytes, p.symbol->call_align};
    a.at.kind = Operand::Kind::address;
    a.at.space = Space::local;
    a.at.imm = p.symbol->index;
    a.at.reg = p.symbol->frame;
    a.at.base_is_symbol = a.at.reg == no_register;
    all.push_back(a);
  }
  return all;
}

// L: .callprototype (results) _ (parameters);
void BodyParser::prototype(std::string_view name) {
  in_.next();
  const SourcePos pos = in_.pos();
  const FunctionHead head = parse_head(in_, true);
  in_.accept_dot("noreturn");
  in_.expect(';');
  if (!prototypes_.emplace(name, head).second)
    throw PtxError(pos, "prototype '" + std::string(name) + "' stands twice in one function");
}

FunctionHead BodyParser::check_call(const ParsedCall& call, const Symbol* target) const {
  const std::string name = "'" + std::string(call.name) + "'";
  if (!target) {
    if (!call.prototype.empty()) throw PtxError(call.pos, name + " is called by its own name");
    return expansion_.functions.check(call, is_callee_ || expansion_.routine);
  }
  if (target->kind != Symbol::Kind::reg || class_of(target->type) == 'f' ||
      bits_of(target->type) != 64 || target->lanes > 1)
    throw PtxError(call.pos, name + " is no register of 64 bits with a function's address");
  const auto found = prototypes_.find(call.prototype);
  if (found == prototypes_.end())
    throw PtxError(call.pos, "the call through " + name + " names no .callprototype above it");
  Functions::fit(call, found->second);
  return found->second;
}

uint32_t BodyParser::want(std::string_view name) {
  std::vector<std::string_view>& all = expansion_.wanted;
  for (uint32_t i = 0; i < all.size(); ++i)
    if (all[i] == name) return i;
  all.push_back(name);
  return uint32_t(all.size() - 1);
}

void BodyParser::call_routine(const ParsedInstr& guard, const ParsedCall& call,
                              const Symbol* target) {
  auto site = std::make_shared<CallSite>();
  site->results = arguments_of(call.results);
  site->arguments = arguments_of(call.arguments);
  Instr in;
  set_guard(guard, scopes_, in);
  if (target) {
    Operand& to = in.ops.emplace_back();
    to.kind = Operand::Kind::reg;
    to.reg = target->index;
    to.declared = target->type;
    for (const auto& [name, number] : expansion_.functions.numbers())
      if (expansion_.functions.graph().is_taken(name)) want(name);
  } else {
    site->routine = want(call.name);
  }
  in.opcode = "call";
  in.call = std::move(site);
  inner(Inner::call, in, call.pos);
  // Where the lanes meet again; a label after the call is another place.
  Instr landing;
  landing.opcode = "call";
  inner(Inner::landing, landing, call.pos);
}

void BodyParser::inner(Inner what, Instr& in, SourcePos pos) {
  std::string why;
  in.pos = pos;
  in.cuda = cuda_;
  in.exec = binders_[OpcodeTable::get().opcodes().size() + size_t(what)](in, why);
  function_.code.push_back(std::move(in));
}

// A routine may call others, which then join the list.
void BodyParser::routines() {
  for (size_t i = 0; i < expansion_.wanted.size(); ++i) {
    if (function_.frame == no_register) {
      function_.frame = function_.register_slots++;
      function_.register_names.push_back("the frame of a function");
    }
    routine(i);
  }
}

void BodyParser::routine(size_t number) {
  const std::string_view name = expansion_.wanted[number];
  Routine made;
  made.name = name;
  made.address =
      first_function_address + function_spacing * expansion_.functions.numbers().at(name);
  made.start = uint32_t(function_.code.size());
  made.first_slot = function_.register_slots;
  expansion_.routine = &made;
  Cursor at = *expansion_.functions.definition(name);
  scopes_.push();
  const FunctionHead head = parse_head(at);
  const size_t outer = scopes_.enter_function();
  scopes_.show_functions(true);
  const auto declare = [&](const std::vector<VariableDeclaration>& list, bool read_only,
                           std::vector<Routine::Parameter>& out) {
    for (const VariableDeclaration& v : list) {
      std::string_view where = v.name;
      if (v.is_register)
        where = declare_hidden(v.name, v), declare_register(v);
      else
        declare_call_variable(v, read_only);
      out.push_back({scopes_.find(where)->index, uint32_t(v.bytes), v.align});
    }
  };
  declare(head.results, false, made.results);
  declare(head.parameters, true, made.parameters);
  const SourcePos pos = head.pos;
  while (!at.accept('{')) at.next();
  expansion_.callers.push_back(name);
  load_parameters(head);
  BodyParser(at, scopes_, target_, binders_, shared_, function_, expansion_).parse_callee();
  store_results(head);
  expansion_.callers.pop_back();
  scopes_.show_functions(false);
  scopes_.leave_function(outer);
  scopes_.pop([](uint32_t, uint32_t) {});
  Instr leave;
  leave.opcode = "ret";
  inner(Inner::leave, leave, pos);
  expansion_.routine = nullptr;
  made.end_slot = function_.register_slots;
  made.frame_bytes = (made.frame_bytes + frame_align - 1) / frame_align * frame_align;
  function_.routines.push_back(std::move(made));
}

}  // namespace emu::ptx
