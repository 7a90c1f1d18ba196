// SPDX-License-Identifier: MIT
// Calls between a function's braces: the expansion.
#include "tools/emulator/ptx/body.h"
#include "tools/emulator/ptx/lower.h"

namespace emu::ptx {
namespace {

// Limits for hostile text: a chain of functions that each call the next one twice doubles with
// every link.
constexpr uint32_t most_calls = 1 << 16;
constexpr size_t deepest_call = 64;
constexpr std::string_view behind_call = " after the call";  // no text can name this label

// What CUDA C++ calls and the driver brings along, with the bytes of its result and parameters.
struct SystemFunction {
  const char* name;
  uint32_t result;
  std::vector<uint32_t> parameters;
};
const SystemFunction system_functions[] = {{"vprintf", 4, {8, 8}},
                                           {"__assertfail", 0, {8, 8, 4, 8, 8}},
                                           {"malloc", 8, {8}},
                                           {"free", 0, {8}}};

// A result may be left out.
bool fits(const SystemFunction& f, const ParsedCall& call) {
  bool same = f.parameters.size() == call.arguments.size() &&
              (call.results.empty() || call.results[0].symbol->call_bytes == f.result);
  for (size_t i = 0; same && i < f.parameters.size(); ++i)
    same = call.arguments[i].symbol->call_bytes == f.parameters[i];
  return same;
}

void resolve(std::vector<ParsedOperand>& operands, const Scopes& scopes) {
  for (ParsedOperand& p : operands)
    if (!p.name.empty()) p.symbol = scopes.find(p.name);
}

}  // namespace

void BodyParser::call_variables() {
  for (const VariableDeclaration& v : parse_variables(in_)) {
    if (v.open || !v.init.empty() || !v.bytes)
      throw PtxError(v.pos, "a parameter has a size and no value");
    declare_call_variable(v, false);
  }
}

void BodyParser::declare_call_variable(const VariableDeclaration& v, bool read_only) {
  scopes_.declare(v.name,
                  {Symbol::Kind::variable, Type::none, Space::param, place_local(v),
                   uint32_t(v.bytes), v.align, read_only, frame()},
                  v.pos);
}

void BodyParser::declare_head(const FunctionHead& head) {
  for (const VariableDeclaration& v : head.results)
    v.is_register ? declare_register(v) : declare_call_variable(v, false);
  for (const VariableDeclaration& v : head.parameters)
    v.is_register ? declare_register(v) : declare_call_variable(v, true);
}

void BodyParser::call(const ParsedInstr& guard) {
  ParsedCall call = parse_call(in_);
  const Symbol* target = scopes_.find(call.name);
  if (target && target->kind == Symbol::Kind::function) target = nullptr;
  resolve(call.results, scopes_);
  resolve(call.arguments, scopes_);
  const FunctionHead head = check_call(call, target);
  scopes_.push();
  const std::vector<Fetched> results = hand_over(guard, head, call);
  make_call(guard, call, target);
  for (const Fetched& r : results) move("ld", guard, r.variable, r.value, r.type);
  scopes_.pop([](uint32_t, uint32_t) {});
}

void BodyParser::make_call(const ParsedInstr& guard, const ParsedCall& call, const Symbol* target) {
  if (target || expansion_.functions.graph().is_routine(call.name)) {
    if (function_.is_entry) call_routine(guard, call, target);
    return;
  }
  const Cursor* definition = expansion_.functions.definition(call.name);
  if (!definition) return call_system(guard, call);
  if (!function_.is_entry) return;
  scopes_.push();
  if (!guard.guard.empty()) {
    ParsedInstr around = guard;
    around.pos = call.pos;
    around.guard_negated = !guard.guard_negated;
    branch(around, behind_call);
  }
  expand(call, *definition);
  scopes_.label(behind_call, uint32_t(function_.code.size()), call.pos);
  scopes_.pop([this](uint32_t from, uint32_t to) { function_.code[from].target = to; });
}

// A parameter is not copied: the function's name for it becomes an alias, since a function cannot
// write to its parameters.
void BodyParser::expand(const ParsedCall& call, Cursor at) {
  if (++expansion_.calls > most_calls || expansion_.callers.size() == deepest_call)
    throw PtxError(call.pos, "more than 65536 calls in one kernel, or nested deeper than 64");
  scopes_.push();
  const FunctionHead head = parse_head(at);
  const auto rename = [&](const VariableDeclaration& v, const ParsedOperand& p, bool read_only) {
    Symbol symbol = *p.symbol;
    symbol.read_only = read_only && !v.is_register;
    scopes_.declare(v.is_register ? hidden(v.name) : v.name, symbol, v.pos);
    if (v.is_register) declare_register(v);
  };
  for (size_t i = 0; i < head.results.size(); ++i) rename(head.results[i], call.results[i], false);
  for (size_t i = 0; i < head.parameters.size(); ++i)
    rename(head.parameters[i], call.arguments[i], true);
  while (!at.accept('{')) at.next();
  const size_t outer = scopes_.enter_function();
  expansion_.callers.push_back(call.name);
  scopes_.show_functions(true);
  load_parameters(head);
  BodyParser(at, scopes_, target_, binders_, shared_, function_, expansion_).parse_callee();
  store_results(head);
  expansion_.callers.pop_back();
  scopes_.show_functions(!expansion_.callers.empty());
  scopes_.leave_function(outer);
  scopes_.pop([](uint32_t, uint32_t) {});
}

// A function without a text.
void BodyParser::call_system(const ParsedInstr& guard, const ParsedCall& call) {
  for (const SystemFunction& f : system_functions) {
    if (f.name != call.name) continue;
    if (!fits(f, call))
      throw PtxError(call.pos, "'" + std::string(f.name) +
                                   "' is a function of the driver, and has other parameters");
    auto site = std::make_shared<CallSite>();
    site->results = arguments_of(call.results);
    site->arguments = arguments_of(call.arguments);
    Instr in;
    set_guard(guard, scopes_, in);
    in.opcode = f.name;
    in.call = std::move(site);
    return inner(Inner::system, in, call.pos);
  }
  throw PtxError(call.pos, "function '" + std::string(call.name) +
                               "' is declared and not defined: modules are not linked");
}

void BodyParser::branch(const ParsedInstr& from, std::string_view label) {
  ParsedInstr bra = from;
  bra.words.resize(1);
  bra.words[0].kind = Token::Kind::word;
  bra.words[0].text = "bra";
  bra.ops.assign(1, {});
  bra.ops[0].name = label;
  bra.ops[0].pos = from.pos;
  append(bra);
}

}  // namespace emu::ptx
