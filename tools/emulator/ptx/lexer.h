// SPDX-License-Identifier: MIT
// PTX text to tokens (PTX ISA 4.2 to 4.5): comments go, positions stay.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/emulator/base/fault.h"

namespace emu::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,
    word,     // add, %r1, $L__BB0_1, _
    dotted,   // .s32, .mbarrier::complete_tx::bytes, .32x32b; text is without the dot
    integer,  // bits
    real32,   // 0f3F800000: bits of a float
    real64,   // 0d3FF0000000000000, 1.5: bits of a double
    string,   // text is without the quotes
    mark,     // one character, text[0]
    body,     // all between a kernel's braces
  };
  Kind kind = Kind::end;
  bool spaced = false;  // white space or a comment before it
  std::string_view text;
  uint64_t bits = 0;
  SourcePos pos;

  bool is(char c) const { return kind == Kind::mark && text[0] == c; }
  bool dot(std::string_view name) const { return kind == Kind::dotted && text == name; }
};

// The last token is Kind::end. The texts point into `source`, whose first character stands at
// `start`.
std::vector<Token> lex(std::string_view source, SourcePos start = {1, 1});

// The same, but a kernel's body is one token, unless the word `call` is in it: whom a module's
// functions call, and whose address is taken, concerns all of the module.
std::vector<Token> lex_around_bodies(std::string_view source);

}  // namespace emu::ptx
