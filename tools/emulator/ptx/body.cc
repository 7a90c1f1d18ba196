// SPDX-License-Identifier: MIT
// Scopes, declarations, labels, instructions; then layout and control flow.
#include "tools/emulator/ptx/body.h"

#include "tools/emulator/ptx/cfg.h"
#include "tools/emulator/ptx/declarations.h"
#include "tools/emulator/ptx/lower.h"
#include "tools/emulator/ptx/slots.h"
#include "tools/emulator/ptx/syntax.h"

namespace emu::ptx {
namespace {

constexpr size_t most_instructions = 1 << 18;
constexpr std::string_view callee_end = " end of the callee";  // no text can name these labels

uint64_t align_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

void skip_line(Cursor& in) {
  const uint32_t line = in.pos().line;
  while (!in.at_end() && in.pos().line == line) in.next();
}

void skip_braces(Cursor& in) {
  while (!in.at_end() && !in.peek().is('{')) in.next();
  for (uint32_t depth = 0; !in.at_end();) {
    if (in.peek().is('{')) ++depth;
    if (in.next().is('}') && --depth == 0) return;
  }
}

}  // namespace

// Debug information and hints change nothing that can be observed.
bool skip_ignored_directive(Cursor& in) {
  const Token& t = in.peek();
  if (t.dot("loc") || t.dot("file")) {
    skip_line(in);
  } else if (t.dot("section")) {
    skip_braces(in);
  } else if (t.dot("pragma")) {
    do {
      in.next();
      if (in.peek().kind != Token::Kind::string) in.fail("a string expected");
      in.next();
    } while (in.peek().is(','));
    in.expect(';');
  } else {
    return false;
  }
  return true;
}

void BodyParser::parse_callee() {
  is_callee_ = true;
  parse();
  require_labels();
}

void BodyParser::parse() {
  scopes_.push_body();
  while (depth_) {
    if (in_.at_end()) in_.fail("'}' expected");
    statement();
  }
}

void BodyParser::statement() {
  const Token& t = in_.peek();
  if (in_.accept('{')) {
    scopes_.push();
    ++depth_;
  } else if (t.is('}')) {
    close_scope();
  } else if (t.kind == Token::Kind::dotted) {
    if (t.dot("loc")) return loc();
    if (!skip_ignored_directive(in_)) directive();
  } else if (t.kind == Token::Kind::word && in_.peek(1).is(':')) {
    label();
  } else {
    instruction();
  }
}

void BodyParser::close_scope() {
  const SourcePos end = in_.pos();
  in_.next();
  if (depth_ == 1 && is_callee_) scopes_.label(callee_end, uint32_t(function_.code.size()), end);
  scopes_.pop([this](uint32_t from, uint32_t to) { function_.code[from].target = to; });
  if (--depth_ == 0 && !is_callee_) finish(end);
}

BodyParser::Position BodyParser::position(size_t ahead) const {
  const auto number = [&](size_t i) {
    const Token& t = in_.peek(ahead + i);
    return t.kind == Token::Kind::integer ? uint32_t(t.bits) : 0;
  };
  return {number(0), number(1), number(2)};
}

// The place of a call is that of an earlier .loc, which may be inlined itself.
uint32_t BodyParser::caller(const Position& at) {
  const auto earlier = places_.find(at);
  const CudaLine line = earlier == places_.end() ? CudaLine{at.file, at.line, 0} : earlier->second;
  const auto [known, fresh] = callers_.emplace(line, uint32_t(function_.callers.size()) + 1);
  if (fresh) function_.callers.push_back(line);
  return known->second;
}

// .loc 1 29 3, function_name $L__info_string0, inlined_at 1 64 5
void BodyParser::loc() {
  if (in_.peek(1).kind != Token::Kind::integer || in_.peek(2).kind != Token::Kind::integer)
    in_.fail("'.loc' with a file and a line expected");
  const Position here = position(1);
  CudaLine line{here.file, here.line, 0};
  const uint32_t row = in_.pos().line;
  for (size_t i = 3; in_.peek(i).pos.line == row && in_.peek(i).kind != Token::Kind::end; ++i)
    if (in_.peek(i).text == "inlined_at") line.from = caller(position(i + 1));
  places_[here] = cuda_ = line;
  skip_line(in_);
}

void BodyParser::directive() {
  if (in_.accept_dot("reg")) return registers();
  if (in_.accept_dot("shared")) return shared_variables();
  if (in_.accept_dot("local")) return local_variables();
  if (in_.accept_dot("param")) return call_variables();
  in_.fail("a statement expected");
}

void BodyParser::registers() {
  const RegisterDeclaration d = parse_registers(in_);
  for (const RegisterName& n : d.names) {
    check_name(n.name, n.pos);
    if (!n.is_range) declare_register(n.name, d, n.pos);
    if (n.is_range) scopes_.expect(n.count);
    for (uint32_t i = 0; i < n.count; ++i)
      declare_register(scopes_.keep(std::string(n.name) + std::to_string(i)), d, n.pos);
  }
}

void BodyParser::declare_register(std::string_view name, const RegisterDeclaration& d,
                                  SourcePos pos) {
  Symbol symbol{Symbol::Kind::reg, d.type, Space::generic, function_.register_slots};
  symbol.lanes = d.lanes;
  scopes_.declare(name, symbol, pos);
  if (d.lanes == 1) {
    function_.register_slots += d.type == Type::b128 ? 2 : 1;
    function_.register_names.resize(function_.register_slots, std::string(name));
    return;
  }
  for (uint32_t i = 0; i < d.lanes; ++i)
    declare_register(scopes_.keep(std::string(name) + "." + "xyzw"[i]), {d.type, 1, {}}, pos);
}

void BodyParser::shared_variables() {
  for (const VariableDeclaration& v : parse_variables(in_)) {
    if (v.open || !v.init.empty())
      throw PtxError(v.pos, "a shared variable has a size and no value");
    const auto [known, fresh] =
        expansion_.shared.emplace(v.name.data(), uint32_t(shared_.variables.size()));
    if (fresh) shared_.variables.push_back({v.name, v.align, v.bytes, false, true});
    scopes_.declare(v.name, variable_symbol(Space::shared_cta, known->second, v.element_bytes),
                    v.pos);
  }
}

void BodyParser::local_variables() {
  for (const VariableDeclaration& v : parse_variables(in_)) {
    if (v.open || !v.init.empty())
      throw PtxError(v.pos, "a local variable has a size and no value");
    Symbol symbol = variable_symbol(Space::local, place_local(v), v.element_bytes);
    symbol.frame = frame();
    scopes_.declare(v.name, symbol, v.pos);
  }
}

uint32_t BodyParser::place_local(const VariableDeclaration& v) {
  uint32_t& used = expansion_.routine ? expansion_.routine->frame_bytes : function_.local_bytes;
  const uint64_t offset = align_up(used, v.align);
  if (offset + v.bytes > 512 << 10) throw PtxError(v.pos, "more than 512 KiB of local memory");
  used = uint32_t(offset + v.bytes);
  return uint32_t(offset);
}

void BodyParser::label() {
  const Token& name = in_.next();
  in_.next();
  if (in_.peek().dot("callprototype")) return prototype(name.text);
  if (in_.peek().dot("branchtargets")) return branch_targets(name.text);
  scopes_.label(name.text, uint32_t(function_.code.size()), name.pos);
}

void BodyParser::instruction() {
  ParsedInstr parsed;
  if (in_.accept('@')) {
    parsed.guard_negated = in_.accept('!');
    parsed.guard = in_.expect_word("a predicate");
  }
  if (in_.peek().kind != Token::Kind::word) in_.fail("an instruction expected");
  if (in_.peek().text == "call") return call(parsed);
  parse_instruction(in_, parsed);
  if (parsed.words[0].text == "brx") branch_by_table(parsed);
  append(parsed);
  // A callee's ret has been checked like every instruction; it leads after the body.
  if (is_callee_ && parsed.words[0].text == "ret") {
    function_.code.pop_back();
    branch(parsed, callee_end);
  }
}

void BodyParser::append(ParsedInstr& parsed) {
  if (function_.code.size() > most_instructions)
    throw PtxError(parsed.pos, "more than 262144 instructions in one function");
  lower(parsed, scopes_, target_, binders_, function_);
  function_.code.back().cuda = cuda_;
}

void BodyParser::require_labels() const {
  for (const Branch& b : scopes_.unresolved())
    throw PtxError(b.pos, "label '" + std::string(b.label) + "' is not in scope");
}

// A label or a guarded branch may stand at the very end; falling off the end is a ret (PTX
// ISA 9.7.12).
void BodyParser::finish(SourcePos end) {
  require_labels();
  Scopes none;
  ParsedInstr ret;
  const std::vector<Token> text = lex("ret;");
  Cursor at(text);
  parse_instruction(at, ret);
  ret.pos = end;
  lower(ret, none, target_, binders_, function_);
  routines();
  check_cta_group(function_);
  shared_.place(function_, end);
  set_reconvergence(function_);
  share_slots(function_);
}

}  // namespace emu::ptx
