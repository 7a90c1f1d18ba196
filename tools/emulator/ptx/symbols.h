// SPDX-License-Identifier: MIT
// What names mean: registers, variables and labels, in lexical scopes.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/ptx/types.h"

namespace emu::ptx {

struct Symbol {
  enum class Kind : uint8_t { reg, variable, function };
  Kind kind = Kind::reg;
  Type type = Type::none;        // reg
  Space space = Space::generic;  // variable
  // reg: slot. variable: offset of a .param or .local one, index of a .shared one in the list of
  // ShareLayout, index in Module::variables of a .global or .const one. function: its number.
  uint32_t index = 0;
  // A .param variable of a call, size and alignment. It lies in local memory, at index.
  uint32_t call_bytes = 0, call_align = 0;
  bool read_only = false;  // the function's own parameter
  uint32_t frame = ~0u;    // local: the slot of the register that index counts from, if any
  uint32_t lanes = 1;      // reg: of .v2 and .v4, whose parts are registers of the names v.x to v.w
  uint32_t element_bytes = 0;  // array: of what an index counts; 0: no array
};

// `element_bytes`: see there.
inline Symbol variable_symbol(Space space, uint32_t index, uint32_t element_bytes) {
  Symbol symbol{Symbol::Kind::variable, Type::none, space, index};
  symbol.element_bytes = element_bytes;
  return symbol;
}

// A branch to a label that may come later.
struct Branch {
  std::string_view label;
  uint32_t instruction = 0;
  SourcePos pos;
};

void check_name(std::string_view name, SourcePos pos);  // of anything that is declared

// Scopes nest by braces. A name means its innermost declaration; a branch, the label of that name
// in the innermost scope around the branch that has one, wherever it stands in that scope.
class Scopes {
 public:
  Scopes() { push(); }  // the module's scope
  void push() { scopes_.emplace_back(); }
  // The scope of a body. It may not declare a parameter's name again; the parameters are in the
  // scope around it.
  void push_body() {
    push();
    scopes_.back().is_body = true;
  }
  // Resolves the closed scope's branches: calls resolved(instruction, target) for those whose label
  // it has, and leaves the rest to the scope around it.
  template <class F>
  void pop(F resolved);

  void declare(std::string_view name, const Symbol& symbol, SourcePos pos);
  void expect(size_t names);  // so many will be declared in the innermost scope
  // A function or a kernel, which is seen everywhere once it is declared, and in the texts that are
  // expanded before their turn.
  void declare_function(std::string_view name, uint32_t number) {
    functions_[name] = {Symbol::Kind::function, Type::none, Space::generic, number};
  }
  void show_functions(bool all) { all_functions_ = all; }
  void see_function(std::string_view name) { seen_.insert(name); }
  // For names that are not in the text: %r<4> declares %r0 .. %r3.
  std::string_view keep(std::string name) { return names_.emplace_back(std::move(name)); }
  const Symbol* find(std::string_view name) const;
  bool any_starts_with(std::string_view prefix) const;  // of what is declared in the open scopes

  // The innermost scope becomes the outermost of a function: only it, those in it and the module's
  // are seen. Returns what leave_function() wants back.
  size_t enter_function() { return std::exchange(function_, scopes_.size() - 1); }
  void leave_function(size_t outer) { function_ = outer; }

  void label(std::string_view name, uint32_t instruction, SourcePos pos);
  void branch(const Branch& branch) { scopes_.back().branches.push_back(branch); }
  // Branches that no scope resolved; to be asked when the function is over.
  const std::vector<Branch>& unresolved() const { return scopes_.back().branches; }

 private:
  struct Scope {
    std::unordered_map<std::string_view, Symbol> symbols;
    std::unordered_map<std::string_view, uint32_t> labels;
    std::vector<Branch> branches;
    bool is_body = false;
  };
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, Symbol> functions_;
  std::set<std::string_view> seen_;  // those declared so far
  bool all_functions_ = false;
  size_t function_ = 0;            // the outermost scope of the function, besides the module's
  std::deque<std::string> names_;  // made names: a deque does not move them
};

template <class F>
void Scopes::pop(F resolved) {
  Scope closed = std::move(scopes_.back());
  scopes_.pop_back();
  for (const Branch& b : closed.branches) {
    const auto found = closed.labels.find(b.label);
    if (found != closed.labels.end())
      resolved(b.instruction, found->second);
    else
      branch(b);
  }
}

}  // namespace emu::ptx
