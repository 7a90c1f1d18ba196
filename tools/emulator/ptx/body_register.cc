// SPDX-License-Identifier: MIT
// Parameters of calls that are registers (PTX ISA 7.1). The caller stores them to variables of the
// call, which the text does not name, and loads its results from there; so does the callee.
#include "tools/emulator/ptx/body.h"
#include "tools/emulator/ptx/notation.h"

namespace emu::ptx {
namespace {

// The type with which ld and st move it: 8 and 16 bits go as .b8 and .b16.
Type in_memory(Type t) {
  switch (bits_of(t)) {
    case 8: return Type::b8;
    case 16: return Type::b16;
    default: return t;
  }
}

ParsedOperand named(std::string_view name, SourcePos pos) {
  ParsedOperand op;
  op.name = name;
  op.pos = pos;
  return op;
}

}  // namespace

void BodyParser::declare_register(const VariableDeclaration& v) {
  declare_register(v.name, {v.scalar, 1, {}}, v.pos);
}

// The name begins with a blank, so no name of the text is equal to it.
std::string_view BodyParser::hidden(std::string_view name) {
  return scopes_.keep(" " + std::string(name));
}

std::string_view BodyParser::declare_hidden(std::string_view name,
                                            const VariableDeclaration& formal) {
  VariableDeclaration v = formal;
  v.name = hidden(name);
  declare_call_variable(v, false);
  return v.name;
}

void BodyParser::move(const char* opcode, const ParsedInstr& guard, const ParsedOperand& variable,
                      const ParsedOperand& value, Type type) {
  ParsedInstr in = guard;
  in.pos = value.pos;
  in.text = value.name;
  const std::string_view words[] = {opcode, "param", text_of(in_memory(type))};
  for (const std::string_view text : words) {
    Token& t = in.words.emplace_back();
    t.kind = in.words.size() == 1 ? Token::Kind::word : Token::Kind::dotted;
    t.text = text;
    t.pos = in.pos;
  }
  ParsedOperand address = variable;
  address.kind = ParsedOperand::Kind::address;
  const bool loads = std::string_view(opcode) == "ld";
  in.ops = {loads ? value : address, loads ? address : value};
  append(in);
}

// Replaces operands that are not variables by variables. Returns what has to be loaded after the
// call.
std::vector<BodyParser::Fetched> BodyParser::hand_over(const ParsedInstr& guard,
                                                       const FunctionHead& head, ParsedCall& call) {
  std::vector<Fetched> fetched;
  const auto variable = [&](const char* kind, size_t i, const VariableDeclaration& formal,
                            SourcePos pos) {
    const std::string name = kind + std::to_string(i);
    ParsedOperand op = named(declare_hidden(name, formal), pos);
    op.symbol = scopes_.find(op.name);
    return op;
  };
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (is_call_variable(call.results[i])) continue;
    const ParsedOperand value = call.results[i];
    call.results[i] = variable("result ", i, head.results[i], value.pos);
    if (!value.sink()) fetched.push_back({call.results[i], value, head.results[i].scalar});
  }
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (is_call_variable(call.arguments[i])) continue;
    const ParsedOperand value = call.arguments[i];
    call.arguments[i] = variable("argument ", i, head.parameters[i], value.pos);
    move("st", guard, call.arguments[i], value, head.parameters[i].scalar);
  }
  return fetched;
}

void BodyParser::load_parameters(const FunctionHead& head) {
  for (const VariableDeclaration& v : head.parameters)
    if (v.is_register) move("ld", {}, named(hidden(v.name), v.pos), named(v.name, v.pos), v.scalar);
}

void BodyParser::store_results(const FunctionHead& head) {
  for (const VariableDeclaration& v : head.results)
    if (v.is_register) move("st", {}, named(hidden(v.name), v.pos), named(v.name, v.pos), v.scalar);
}

}  // namespace emu::ptx
