// SPDX-License-Identifier: MIT
// The scanner: one pass, one character of look-ahead.
#include "tools/emulator/ptx/lexer.h"

#include <bit>
#include <cstdlib>
#include <string>
#include <utility>

namespace emu::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_word(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool continues_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

class Scanner {
 public:
  Scanner(std::string_view source, SourcePos start, bool around_bodies)
      : source_(source),
        line_start_(0 - size_t(start.column - 1)),  // may lie before the text
        line_(start.line),
        around_bodies_(around_bodies) {}

  std::vector<Token> run() {
    std::vector<Token> out;
    if (!around_bodies_) out.reserve(source_.size() / 4 + 1);
    for (;;) {
      const bool spaced = skip_blank();
      Token t;
      t.pos = token_ = position();
      t.spaced = spaced;
      if (at_ == source_.size()) {
        out.push_back(t);
        return out;
      }
      scan(t);
      out.push_back(t);
      if (around_bodies_ && opens_body(t)) scan_body(out);
    }
  }

 private:
  // The brace after .entry, its name and so on, outside of all others.
  bool opens_body(const Token& t) {
    if (t.is('{')) return depth_++ == 0 && std::exchange(is_entry_, false);
    if (t.is('}')) --depth_;
    if (depth_ == 0 && t.dot("entry")) is_entry_ = true;
    if (t.is(';')) is_entry_ = false;
    return false;
  }

  // Adds the body, up to its closing brace, as one token. Adds nothing if the body calls functions
  // or its end is not plain.
  void scan_body(std::vector<Token>& out) {
    const size_t before = at_, line_start = line_start_;
    const uint32_t line = line_;
    Token t;
    t.kind = Token::Kind::body;
    t.pos = position();
    if (skip_body()) {
      t.text = source_.substr(before, at_ - before);
      if (t.text.find("call") == t.text.npos) return out.push_back(t);
    }
    at_ = before;
    line_start_ = line_start;
    line_ = line;
  }

  // To the brace; false if there is none, or where a string might hide one.
  bool skip_body() {
    for (uint32_t depth = 1; at_ < source_.size();) {
      const char c = source_[at_];
      if (c == '\n') {
        new_line();
        continue;
      }
      if (c == '/') {
        if (skip_blank()) continue;
      } else if (c == '{') {
        ++depth;
      } else if (c == '"') {
        const size_t end = source_.find_first_of("\"\\\n", at_ + 1);
        if (end == source_.npos || source_[end] != '"') return false;
        at_ = end;
      } else if (c == '}' && --depth == 0) {
        return true;
      }
      ++at_;
    }
    return false;
  }

  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  SourcePos position() const { return {line_, uint32_t(at_ - line_start_ + 1)}; }
  [[noreturn]] void fail(const std::string& text) const { throw PtxError(token_, text); }

  // Comments count as blanks; a NUL ends the text, since drivers are handed C strings.
  bool skip_blank() {
    const size_t before = at_;
    for (;;) {
      const char c = peek();
      if (c == '\n') {
        new_line();
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < source_.size() && peek() != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        skip_block_comment();
      } else {
        if (c == '\0') at_ = source_.size();
        return at_ != before;
      }
    }
  }

  void new_line() {
    ++at_;
    ++line_;
    line_start_ = at_;
  }

  void skip_block_comment() {
    const SourcePos start = position();
    for (at_ += 2; at_ < source_.size();) {
      if (peek() == '*' && peek(1) == '/') {
        at_ += 2;
        return;
      }
      if (peek() == '\n')
        new_line();
      else
        ++at_;
    }
    throw PtxError(start, "comment without an end");
  }

  void scan(Token& t) {
    const char c = peek();
    if (starts_word(c)) return scan_word(t);
    if (is_digit(c)) return scan_number(t);
    if (c == '"') return scan_string(t);
    if (c == '.' && (continues_word(peek(1)))) return scan_dotted(t);
    if (std::string_view("{}()[]<>,;:=@!|+-*~/&^?").find(c) == std::string_view::npos)
      fail(format("character '%c' (0x%02x) has no place in PTX", c >= ' ' ? c : '?', uint8_t(c)));
    t.kind = Token::Kind::mark;
    t.text = source_.substr(at_++, 1);
  }

  void scan_word(Token& t) {
    const size_t start = at_++;
    while (continues_word(peek())) ++at_;
    t.kind = Token::Kind::word;
    t.text = source_.substr(start, at_ - start);
  }

  // `::` belongs to a modifier when a letter or digit follows on both sides.
  void scan_dotted(Token& t) {
    const size_t start = ++at_;
    for (;;) {
      while (continues_word(peek())) ++at_;
      if (peek() != ':' || peek(1) != ':' || !continues_word(peek(2))) break;
      at_ += 2;
    }
    t.kind = Token::Kind::dotted;
    t.text = source_.substr(start, at_ - start);
  }

  void scan_string(Token& t) {
    const size_t start = ++at_;
    while (peek() != '"') {
      if (at_ == source_.size() || peek() == '\n') fail("string without an end");
      at_ += peek() == '\\' && peek(1) == '"' ? 2 : 1;
    }
    t.kind = Token::Kind::string;
    t.text = source_.substr(start, at_++ - start);
  }

  void scan_number(Token& t) {
    const size_t start = at_;
    const char mark = char(peek() == '0' ? peek(1) | 0x20 : 0);
    t.kind = Token::Kind::integer;
    if (mark == 'x') {
      at_ += 2;
      t.bits = digits(16);
    } else if (mark == 'b') {
      at_ += 2;
      t.bits = digits(2);
    } else if (mark == 'f' || mark == 'd') {
      scan_exact_real(t, mark == 'f');
    } else if (!scan_decimal_real(t)) {
      t.bits = digits(peek() == '0' && is_digit(peek(1)) ? 8 : 10);
    }
    if (t.kind == Token::Kind::integer && peek() == 'U') ++at_;
    if (continues_word(peek())) fail("a number ends in letters");
    if (peek() == '.') fail("a number ends in a dot");
    t.text = source_.substr(start, at_ - start);
  }

  uint64_t digits(unsigned base) {
    uint64_t value = 0;
    const size_t start = at_;
    for (; hex_digit(peek()) < int(base); ++at_) {
      const uint64_t digit = uint64_t(hex_digit(peek()));
      if (value > (~0ull - digit) / base) fail("integer constant above 2^64-1");
      value = value * base + digit;
    }
    if (at_ == start) fail("digits expected");
    return value;
  }

  void scan_exact_real(Token& t, bool single) {
    t.kind = single ? Token::Kind::real32 : Token::Kind::real64;
    at_ += 2;
    const size_t start = at_;
    t.bits = digits(16);
    if (at_ - start != (single ? 8u : 16u))
      fail(format("%s takes exactly %d hexadecimal digits", single ? "0f" : "0d", single ? 8 : 16));
  }

  bool scan_decimal_real(Token& t) {
    size_t n = 0;
    while (is_digit(peek(n))) ++n;
    const bool exponent = (peek(n) | 0x20) == 'e';
    if (!exponent && (peek(n) != '.' || !is_digit(peek(n + 1)))) return false;
    if (!exponent) ++n;
    while (is_digit(peek(n))) ++n;
    if ((peek(n) | 0x20) == 'e') {
      n += peek(n + 1) == '+' || peek(n + 1) == '-' ? 2 : 1;
      while (is_digit(peek(n))) ++n;
    }
    const std::string text(source_.substr(at_, n));
    t.kind = Token::Kind::real64;
    t.bits = std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr));
    at_ += n;
    return true;
  }

  std::string_view source_;
  SourcePos token_;  // where the token being read starts
  size_t at_ = 0, line_start_;
  uint32_t line_;
  bool around_bodies_, is_entry_ = false;
  int depth_ = 0;  // of braces
};

}  // namespace

std::vector<Token> lex(std::string_view source, SourcePos start) {
  return Scanner(source, start, false).run();
}

std::vector<Token> lex_around_bodies(std::string_view source) {
  return Scanner(source, {1, 1}, true).run();
}

}  // namespace emu::ptx
