// SPDX-License-Identifier: MIT
// Legality of a kernel's body without reading it: most of a large module's instructions differ
// only in the registers that they name. A body that this accepts is right; BodyParser reads it when
// the kernel is first asked for. What it does not accept is read at once, and may be right too.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/emulator/ptx/cursor.h"
#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/symbols.h"
#include "tools/emulator/ptx/target.h"

namespace emu::ptx {

class PlainBodies {
 public:
  PlainBodies(const Target& target, const Binder* binders) : target_(target), binders_(binders) {}

  // `text` is all between the braces; `around` has the module's names and the parameters'.
  bool accepts(std::string_view text, const Scopes& around, uint64_t module_shared_bytes);
  // An upper bound for the shared variables of the body accepted last and of the module, in bytes.
  uint64_t shared_at_most() const { return shared_bytes_; }

 private:
  struct Range {  // %r<4>
    std::string_view prefix;
    uint32_t count;
    Symbol symbol;
  };
  struct Name {
    std::string_view name;
    Symbol symbol;
  };
  // One pair of braces. The lists of names are stacks; what was added since belongs to the scope.
  struct Scope {
    size_t ranges, names;
    std::vector<std::string_view> labels, branches;
  };

  bool statement();
  bool directive();
  bool registers();
  bool variables(std::string_view directive);
  bool loc();
  bool position();
  bool pragma();
  bool label(std::string_view name);
  bool instruction();
  bool shape(std::string_view opcode);
  bool operand(std::string_view opcode);
  bool check(std::string_view text, bool guarded);
  bool open();
  bool close();
  bool declare(std::string_view name, const Symbol& symbol);
  bool declare_range(std::string_view prefix, uint32_t count, const Symbol& symbol);
  const Symbol* find(std::string_view name, size_t from_range, size_t from_name) const;
  const Symbol* find(std::string_view name) const;

  // The scanner.
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0; }
  bool blank();  // past white space and comments: whether there were any
  bool accept(char c);
  std::string_view word();
  bool number(uint32_t* value);

  const Target& target_;
  const Binder* const binders_;
  // Shapes of instructions that a target admits, and which CTA groups of tcgen05 they name.
  std::unordered_map<std::string, uint8_t> known_;
  Function scratch_;

  // The body at hand:
  std::string_view text_;
  size_t at_ = 0;
  bool broken_ = false;  // a comment without an end
  const Scopes* around_ = nullptr;
  std::vector<Range> ranges_;
  std::vector<Name> names_;
  std::vector<Scope> scopes_;
  std::string shape_;
  std::vector<Name> named_;  // what the instruction at hand names
  uint32_t instructions_ = 0;
  uint64_t local_bytes_ = 0, shared_bytes_ = 0;
  uint8_t cta_groups_ = 0;
};

}  // namespace emu::ptx
