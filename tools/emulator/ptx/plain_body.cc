// SPDX-License-Identifier: MIT
// One pass over the characters; an instruction's shape is its text with each register replaced by
// its type.
#include "tools/emulator/ptx/plain_body.h"

#include <algorithm>
#include <cstring>

#include "tools/emulator/ptx/declarations.h"
#include "tools/emulator/ptx/lower.h"
#include "tools/emulator/ptx/notation.h"
#include "tools/emulator/ptx/syntax.h"
#include "tools/emulator/ptx/words.h"

namespace emu::ptx {
namespace {

// Limits below those of a body, so that padding need not be counted here. A larger body is parsed
// at once.
constexpr uint32_t most_instructions = 1 << 17, most_registers = 1 << 20;
constexpr uint64_t most_local = 256 << 10, most_shared = 8 << 20;
constexpr size_t most_names = 256, deepest = 64;

// What stands in a shape for a name. No text that is read has these characters.
enum Stand : char { a_register = 1, a_variable, a_label, an_array };

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_word(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool continues_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

bool is_register_type(Type t) {
  const char cls = class_of(t);
  if (t == Type::pred || t == Type::f16 || t == Type::f16x2) return true;
  if (t == Type::f32 || t == Type::f64) return true;
  return (cls == 'b' || cls == 'u' || cls == 's') && bits_of(t) >= 8 && bits_of(t) <= 64;
}

// Where a name's number begins: 2 in %r12. One with a zero in front is no member of a range.
size_t number_at(std::string_view name) {
  size_t at = name.size();
  while (at > 0 && is_digit(name[at - 1])) --at;
  const size_t digits = name.size() - at;
  if (digits == 0 || digits > 7 || (digits > 1 && name[at] == '0')) return name.size();
  return at;
}

uint32_t number_in(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) value = 10 * value + uint32_t(c - '0');
  return value;
}

uint8_t groups_of(const Instr& in) {
  if (std::string_view(in.opcode).substr(0, 8) != "tcgen05.") return 0;
  return uint8_t(in.has(Mod::cta_group_1) | in.has(Mod::cta_group_2) << 1);
}

}  // namespace

bool PlainBodies::accepts(std::string_view text, const Scopes& around,
                          uint64_t module_shared_bytes) {
  text_ = text;
  at_ = 0;
  broken_ = false;
  around_ = &around;
  ranges_.clear();
  names_.clear();
  scopes_.clear();
  instructions_ = 0;
  local_bytes_ = 0;
  shared_bytes_ = module_shared_bytes;
  cta_groups_ = 0;
  open();
  for (blank(); at_ < text_.size(); blank())
    if (!statement()) return false;
  constexpr uint8_t both_groups = 3;
  return !broken_ && scopes_.size() == 1 && close() && cta_groups_ != both_groups;
}

bool PlainBodies::blank() {
  const size_t before = at_;
  for (;;) {
    const char c = peek();
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '/' && peek(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      broken_ |= end == text_.npos;
      at_ = broken_ ? text_.size() : end + 2;
    } else {
      return at_ != before;
    }
  }
}

bool PlainBodies::accept(char c) {
  blank();
  return peek() == c && (++at_, true);
}

std::string_view PlainBodies::word() {
  blank();
  const size_t start = at_;
  if (!starts_word(peek())) return {};
  ++at_;
  while (continues_word(peek())) ++at_;
  return text_.substr(start, at_ - start);
}

bool PlainBodies::number(uint32_t* value) {
  blank();
  const size_t start = at_;
  while (is_digit(peek())) ++at_;
  const std::string_view digits = text_.substr(start, at_ - start);
  if (continues_word(peek()) || peek() == '.' || digits.empty() || digits.size() > 7) return false;
  *value = number_in(digits);
  return digits.size() == 1 || digits[0] != '0';
}

bool PlainBodies::statement() {
  const char c = peek();
  if (c == '{') return ++at_, open();
  if (c == '}') return ++at_, scopes_.size() > 1 && close();
  if (c == '.') return directive();
  return instruction();
}

bool PlainBodies::open() {
  scopes_.push_back({ranges_.size(), names_.size(), {}, {}});
  return scopes_.size() < deepest;
}

// As Scopes::pop: a branch to a label that is not here may lead to one further out.
bool PlainBodies::close() {
  Scope closed = std::move(scopes_.back());
  scopes_.pop_back();
  ranges_.resize(closed.ranges);
  names_.resize(closed.names);
  std::vector<std::string_view>& labels = closed.labels;
  std::sort(labels.begin(), labels.end());
  if (std::adjacent_find(labels.begin(), labels.end()) != labels.end()) return false;
  for (const std::string_view to : closed.branches) {
    if (std::binary_search(labels.begin(), labels.end(), to)) continue;
    if (scopes_.empty()) return false;
    scopes_.back().branches.push_back(to);
  }
  return true;
}

const Symbol* PlainBodies::find(std::string_view name, size_t from_range, size_t from_name) const {
  for (size_t i = names_.size(); i-- > from_name;)
    if (names_[i].name == name) return &names_[i].symbol;
  const size_t at = number_at(name);
  if (at == name.size()) return nullptr;
  for (size_t i = ranges_.size(); i-- > from_range;)
    if (ranges_[i].prefix == name.substr(0, at))
      return number_in(name.substr(at)) < ranges_[i].count ? &ranges_[i].symbol : nullptr;
  return nullptr;
}

const Symbol* PlainBodies::find(std::string_view name) const {
  const Symbol* own = find(name, 0, 0);
  return own ? own : around_->find(name);
}

bool PlainBodies::declare(std::string_view name, const Symbol& symbol) {
  if (name.empty() || name == "_" || name == "WARP_SZ" || names_.size() > most_names) return false;
  const Scope& scope = scopes_.back();
  if (find(name, scope.ranges, scope.names) || around_->find(name)) return false;
  names_.push_back({name, symbol});
  return true;
}

// Two ranges of one prefix would share names, and so might one and a name that begins alike.
bool PlainBodies::declare_range(std::string_view prefix, uint32_t count, const Symbol& symbol) {
  if (prefix.empty() || prefix == "_" || is_digit(prefix.back()) || count > most_registers)
    return false;
  for (const Range& r : ranges_)
    if (r.prefix == prefix) return false;
  for (const Name& n : names_)
    if (n.name.substr(0, prefix.size()) == prefix) return false;
  if (around_->any_starts_with(prefix)) return false;
  ranges_.push_back({prefix, count, symbol});
  return true;
}

bool PlainBodies::directive() {
  ++at_;
  const std::string_view name = peek() == '%' ? std::string_view() : word();
  if (name == "reg") return registers();
  if (name == "local" || name == "shared") return variables(name);
  if (name == "loc") return loc();
  return name == "pragma" && pragma();
}

bool PlainBodies::registers() {
  if (!accept('.')) return false;
  const size_t start = at_;
  while (continues_word(peek())) ++at_;
  const Suffix s = find_suffix(text_.substr(start, at_ - start));
  if (s.kind != Suffix::Kind::type || !is_register_type(s.type)) return false;
  Symbol symbol;
  symbol.type = s.type;
  do {
    const std::string_view name = word();
    uint32_t count = 0;
    const bool declared = accept('<')
                              ? number(&count) && declare_range(name, count, symbol) && accept('>')
                              : declare(name, symbol);
    if (!declared) return false;
  } while (accept(','));
  return accept(';');
}

// The front end's own words: there are few.
bool PlainBodies::variables(std::string_view directive) {
  const size_t end = text_.find(';', at_);
  if (end == text_.npos) return false;
  const std::vector<Token> tokens = lex(text_.substr(at_, end + 1 - at_));
  check_words(Cursor(tokens), target_);
  Cursor in(tokens);
  const bool local = directive == "local";
  for (const VariableDeclaration& v : parse_variables(in)) {
    Symbol symbol;
    symbol.kind = Symbol::Kind::variable;
    symbol.space = local ? Space::local : Space::shared_cta;
    symbol.element_bytes = v.element_bytes;
    if (v.open || !v.init.empty() || !declare(v.name, symbol)) return false;
    uint64_t& used = local ? local_bytes_ : shared_bytes_;
    used += v.bytes + v.align;
    if (used > (local ? most_local : most_shared)) return false;
  }
  at_ = end + 1;
  return in.at_end();
}

bool PlainBodies::position() {
  uint32_t value = 0;
  for (int i = 0; i < 3; ++i)
    if (!number(&value)) return false;
  return true;
}

// .loc 1 23 4, alone in its line; or .loc 1 23 4, function_name name+2, inlined_at 1 40 7
bool PlainBodies::loc() {
  const size_t start = at_;
  uint32_t value = 0;
  if (!position()) return false;
  const auto gap = [this] {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  };
  gap();
  if (peek() == ',') {
    ++at_;
    if (word() != "function_name" || word().empty()) return false;
    if (accept('+') && !number(&value)) return false;
    if (!accept(',') || word() != "inlined_at" || !position()) return false;
  }
  if (text_.substr(start, at_ - start).find('\n') != text_.npos) return false;
  gap();
  return peek() == '\n';
}

bool PlainBodies::pragma() {
  if (!accept('"')) return false;
  while (continues_word(peek()) || peek() == ' ' || peek() == '.') ++at_;
  return accept('"') && accept(';');
}

bool PlainBodies::label(std::string_view name) {
  if (name == "_" || name == "WARP_SZ") return false;
  blank();
  if (peek() == '.' && (peek(1) == 'c' || peek(1) == 'b')) return false;  // a prototype, a table
  scopes_.back().labels.push_back(name);
  return true;
}

bool PlainBodies::instruction() {
  if (++instructions_ > most_instructions) return false;
  const size_t start = at_;
  shape_.clear();
  named_.clear();
  const bool guarded = accept('@');
  if (guarded) {
    shape_ += accept('!') ? "@!" : "@";
    const std::string_view name = word();
    const Symbol* symbol = name.empty() ? nullptr : find(name);
    if (!symbol || symbol->type != Type::pred) return false;
    named_.push_back({name, *symbol});
  }
  const std::string_view opcode = word();
  if (opcode.empty() || opcode == "call" || opcode == "brx") return false;
  const size_t behind = at_;
  if (!guarded && accept(':')) return label(opcode);
  at_ = behind;
  shape_ += opcode;
  if (!shape(opcode)) return false;
  const auto found = known_.find(shape_);
  if (found == known_.end()) return check(text_.substr(start, at_ - start), guarded);
  cta_groups_ |= found->second;
  return true;
}

// The rest of the instruction, to behind the semicolon.
bool PlainBodies::shape(std::string_view opcode) {
  for (;;) {
    if (blank()) shape_ += ' ';
    const size_t start = at_;
    const char c = peek();
    if (starts_word(c)) {
      if (!operand(opcode)) return false;
      continue;
    }
    ++at_;
    if (is_digit(c)) {
      while (continues_word(peek()) || peek() == '.') ++at_;
    } else if (c == '.') {
      if (!continues_word(peek())) return false;
      while (continues_word(peek()) || (peek() == ':' && peek(1) == ':' && continues_word(peek(2))))
        at_ += peek() == ':' ? 2 : 1;
    } else if (!c || !strchr("{}[](),|!+-*~&^?:;<>=", c)) {
      return false;
    }
    shape_ += text_.substr(start, at_ - start);
    if (c == ';') return true;
  }
}

bool PlainBodies::operand(std::string_view opcode) {
  const std::string_view name = word();
  const Symbol* symbol = find(name);
  if (!symbol) {
    if (opcode == "bra") {
      scopes_.back().branches.push_back(name);
      shape_ += a_label;
    } else {
      shape_ += name;
    }
    return true;
  }
  if (symbol->kind == Symbol::Kind::function || symbol->lanes > 1 || symbol->call_bytes)
    return false;
  const bool is_register = symbol->kind == Symbol::Kind::reg;
  shape_ += is_register ? a_register : a_variable;
  shape_ += char('A' + (is_register ? int(symbol->type) : int(symbol->space)));
  if (symbol->element_bytes) shape_ += an_array;
  named_.push_back({name, *symbol});
  return true;
}

// The front end judges a new shape.
bool PlainBodies::check(std::string_view text, bool guarded) {
  const std::vector<Token> tokens = lex(text);
  check_words(Cursor(tokens), target_);
  Scopes scopes;
  for (const Name& n : named_)
    if (!scopes.find(n.name)) scopes.declare(n.name, n.symbol, {});
  Cursor in(tokens);
  ParsedInstr parsed;
  if (guarded) {
    in.expect('@');
    parsed.guard_negated = in.accept('!');
    parsed.guard = in.expect_word("a predicate");
  }
  parse_instruction(in, parsed);
  if (!in.at_end()) return false;
  lower(parsed, scopes, target_, binders_, scratch_);
  const uint8_t groups = groups_of(scratch_.code.back());
  scratch_.code.clear();
  known_.emplace(shape_, groups);
  cta_groups_ |= groups;
  return true;
}

}  // namespace emu::ptx
