// SPDX-License-Identifier: MIT
// Heads of functions, and whether a call fits one.
#include "tools/emulator/ptx/calls.h"

#include "tools/emulator/ptx/operands.h"

namespace emu::ptx {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name.substr(0, 200)) + "'"; }

std::vector<VariableDeclaration> parse_list(Cursor& in, bool is_prototype) {
  std::vector<VariableDeclaration> out;
  in.expect('(');
  if (in.accept(')')) return out;
  do {
    if (in.accept_dot("reg")) {
      out.push_back(parse_register_parameter(in));
    } else {
      if (!in.accept_dot("param")) in.fail("'.param' expected");
      out.push_back(parse_parameter(in));
    }
    if (out.back().name == "_" && !is_prototype)
      throw PtxError(out.back().pos, "a function's parameter has a name");
  } while (in.accept(','));
  in.expect(')');
  return out;
}

bool same(const std::vector<VariableDeclaration>& a, const std::vector<VariableDeclaration>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes != b[i].bytes || a[i].align != b[i].align ||
        a[i].is_register != b[i].is_register || (a[i].is_register && a[i].scalar != b[i].scalar))
      return false;
  return true;
}

// A register, a constant or, for a result that is not needed, `_` where the parameter is no array.
bool fits_scalar(const ParsedOperand& p, Type formal, bool is_result) {
  if (p.sink()) return is_result;
  if (p.negated || p.offset || !p.field.empty()) return false;
  switch (p.kind) {
    case ParsedOperand::Kind::name:
      return p.symbol && p.symbol->kind == Symbol::Kind::reg && p.symbol->lanes == 1 &&
             compatible(p.symbol->type, formal, false);
    case ParsedOperand::Kind::vector:
    case ParsedOperand::Kind::address: return false;
    default: return !is_result;
  }
}

void fit_list(const std::vector<ParsedOperand>& operands,
              const std::vector<VariableDeclaration>& formal, const ParsedCall& call,
              bool is_result) {
  const std::string what = is_result ? " results" : " parameters";
  if (operands.size() != formal.size())
    throw PtxError(call.pos, quoted(call.name) + " has " + std::to_string(formal.size()) + what +
                                 ", the call " + std::to_string(operands.size()));
  for (size_t i = 0; i < formal.size(); ++i) {
    const ParsedOperand& p = operands[i];
    if (!is_call_variable(p)) {
      if (formal[i].scalar != Type::none && fits_scalar(p, formal[i].scalar, is_result)) continue;
      throw PtxError(p.pos, "a .param variable" +
                                (formal[i].scalar == Type::none
                                     ? std::string()
                                     : ", or a register or constant of type ." +
                                           std::string(text_of(formal[i].scalar)) + ",") +
                                " expected for a parameter of " + quoted(call.name));
    }
    if (p.symbol->call_bytes != formal[i].bytes || p.symbol->call_align != formal[i].align)
      throw PtxError(p.pos, quoted(p.name) + " and the parameter of " + quoted(call.name) +
                                " differ in size or alignment");
  }
}

}  // namespace

bool is_call_variable(const ParsedOperand& p) {
  return p.kind == ParsedOperand::Kind::name && p.symbol && p.symbol->call_bytes && !p.offset &&
         !p.negated && p.field.empty();
}

FunctionHead parse_head(Cursor& in, bool is_prototype) {
  FunctionHead head;
  if (in.peek().is('(')) head.results = parse_list(in, is_prototype);
  if (head.results.size() > 1) in.fail("a function has at most one result");
  head.pos = in.pos();
  head.name = in.expect_word("a function's name");
  if (!is_prototype) check_name(head.name, head.pos);
  if (in.peek().is('(')) head.parameters = parse_list(in, is_prototype);
  return head;
}

// The name is the first word outside parentheses; a body, not a semicolon, makes it a definition.
Functions::Functions(const std::vector<Token>& tokens) : graph_(tokens) {
  Cursor in(tokens);
  for (int depth = 0; !in.at_end();) {
    const Token& t = in.next();
    depth += t.is('{') - t.is('}');
    if (!depth && t.dot("entry")) numbers_.emplace(in.peek().text, 0);
    if (depth || !t.dot("func")) continue;
    const Cursor head = in;
    std::string_view name;
    for (int parentheses = 0; !in.at_end() && !in.peek().is('{') && !in.peek().is(';'); in.next()) {
      parentheses += in.peek().is('(') - in.peek().is(')');
      if (!parentheses && name.empty() && in.peek().kind == Token::Kind::word)
        name = in.peek().text;
    }
    if (!in.peek().is('{')) continue;
    definitions_.emplace(name, head);
    numbers_.emplace(name, 0);
  }
  uint32_t next = 0;
  for (auto& [name, number] : numbers_) number = next++;
}

const FunctionHead* Functions::declared(std::string_view name) const {
  const auto found = declared_.find(name);
  return found == declared_.end() ? nullptr : &found->second;
}

void Functions::declare(const FunctionHead& head) {
  const auto [known, fresh] = declared_.emplace(head.name, head);
  if (fresh) return;
  const FunctionHead& before = known->second;
  if (!same(before.results, head.results) || !same(before.parameters, head.parameters))
    throw PtxError(head.pos, quoted(head.name) + " has other parameters in line " +
                                 std::to_string(before.pos.line));
}

void Functions::define(const FunctionHead& head) {
  declare(head);
  if (!defined_.emplace(head.name, head.pos).second)
    throw PtxError(head.pos, "function " + quoted(head.name) + " is defined twice");
}

FunctionHead Functions::check(const ParsedCall& call, bool expanded) const {
  FunctionHead head;
  const auto found = declared_.find(call.name);
  if (found != declared_.end()) {
    head = found->second;
  } else if (const Cursor* at = expanded ? definition(call.name) : nullptr) {
    Cursor in = *at;
    head = parse_head(in);
  } else {
    throw PtxError(call.pos, "no function " + quoted(call.name) + " is declared above");
  }
  fit(call, head);
  return head;
}

void Functions::fit(const ParsedCall& call, const FunctionHead& head) {
  fit_list(call.results, head.results, call, true);
  fit_list(call.arguments, head.parameters, call, false);
}

const Cursor* Functions::definition(std::string_view name) const {
  const auto found = definitions_.find(name);
  return found == definitions_.end() ? nullptr : &found->second;
}

}  // namespace emu::ptx
