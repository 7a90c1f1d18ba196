// SPDX-License-Identifier: MIT
// A place in the token list, with the sentences for what should have been there.
#pragma once

#include <string>

#include "tools/emulator/ptx/lexer.h"

namespace emu::ptx {

class Cursor {
 public:
  explicit Cursor(const std::vector<Token>& tokens) : tokens_(tokens) {}

  const Token& peek(size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_end() const { return peek().kind == Token::Kind::end; }
  SourcePos pos() const { return peek().pos; }

  bool accept(char c) { return peek().is(c) && (next(), true); }
  bool accept_dot(std::string_view name) { return peek().dot(name) && (next(), true); }

  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "' expected");
  }
  std::string_view expect_word(const char* what) {
    if (peek().kind != Token::Kind::word) fail(std::string(what) + " expected");
    return next().text;
  }
  uint64_t expect_integer(const char* what) {
    if (peek().kind != Token::Kind::integer) fail(std::string(what) + " expected");
    return next().bits;
  }
  uint32_t expect_number() {
    const Token& t = peek();
    if (t.kind != Token::Kind::integer || t.bits > ~0u) fail("a number below 2^32 expected");
    next();
    return uint32_t(t.bits);
  }

  // What stands here instead, for the end of a sentence.
  std::string found() const {
    const Token& t = peek();
    if (t.kind == Token::Kind::end) return "the text ends";
    return "found '" + std::string(t.kind == Token::Kind::dotted ? "." : "") +
           std::string(t.text.substr(0, 60)) + "'";
  }
  [[noreturn]] void fail(const std::string& text) const {
    throw PtxError(pos(), text + ", " + found());
  }

 private:
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
};

}  // namespace emu::ptx
