// SPDX-License-Identifier: MIT
// Declaration and search of names.
#include "symbols.h"

namespace emu::ptx {

void Scopes::declare(std::string_view name, const Symbol& symbol, SourcePos pos) {
  if (!scopes_.back().symbols.emplace(name, symbol).second)
    throw PtxError(pos, "'" + std::string(name) + "' is declared twice in one scope");
}

void Scopes::declare_copy(std::string name, const Symbol& symbol, SourcePos pos) {
  names_.push_back(std::move(name));
  declare(names_.back(), symbol, pos);
}

const Symbol* Scopes::find(std::string_view name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].symbols.find(name);
    if (found != scopes_[i].symbols.end()) return &found->second;
  }
  return nullptr;
}

void Scopes::label(std::string_view name, uint32_t instruction, SourcePos pos) {
  if (!scopes_.back().labels.emplace(name, instruction).second)
    throw PtxError(pos, "label '" + std::string(name) + "' stands twice in one scope");
}

}  // namespace emu::ptx
