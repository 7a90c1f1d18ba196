// SPDX-License-Identifier: MIT
// words.def against a text's tokens.
#include "tools/emulator/ptx/words.h"

namespace emu::ptx {
namespace {

// A word of words.def.
struct Word {
  std::string_view text;
  int version, target;
  bool is(const Token& t) const {
    const bool dotted = text[0] == '.';
    return t.kind == (dotted ? Token::Kind::dotted : Token::Kind::word) &&
           t.text == text.substr(dotted);
  }
};

}  // namespace

void check_words(Cursor at, const Target& target) {
  constexpr Word rows[] = {
#define EMU_WORD(text, version, target) {text, version, target},
#include "tools/emulator/ptx/words.def"
#undef EMU_WORD
  };
  for (; !at.at_end(); at.next())
    for (const Word& row : rows) {
      if (!row.is(at.peek())) continue;
      const std::string word = "'" + std::string(row.text) + "'";
      if (target.version < row.version)
        throw PtxError(at.pos(), target.needs_version(word, row.version));
      if (target.number < row.target)
        throw PtxError(at.pos(), word + " needs target sm_" + std::to_string(row.target) +
                                     " or newer, the module's is sm_" +
                                     std::to_string(target.number) +
                                     (target.variant ? std::string(1, target.variant) : ""));
    }
}

}  // namespace emu::ptx
