// SPDX-License-Identifier: MIT
// Declaration and search of names.
#include "tools/emulator/ptx/symbols.h"

#include <algorithm>

namespace emu::ptx {

void check_name(std::string_view name, SourcePos pos) {
  if (name == "_" || name == "WARP_SZ")
    throw PtxError(pos, "'" + std::string(name) + "' is no name");
}

void Scopes::declare(std::string_view name, const Symbol& symbol, SourcePos pos) {
  check_name(name, pos);
  const bool is_parameter =
      scopes_.back().is_body && scopes_[scopes_.size() - 2].symbols.count(name);
  if (is_parameter || !scopes_.back().symbols.emplace(name, symbol).second)
    throw PtxError(pos, "'" + std::string(name) + "' is declared twice in one scope");
}

// Sizes double, as those of vectors do, so that many small ranges do not each move all names.
void Scopes::expect(size_t names) {
  auto& symbols = scopes_.back().symbols;
  const size_t wanted = symbols.size() + names;
  if (wanted > symbols.bucket_count()) symbols.reserve(std::max(wanted, 2 * symbols.size()));
}

const Symbol* Scopes::find(std::string_view name) const {
  const auto in = [&](const Scope& scope) {
    const auto found = scope.symbols.find(name);
    return found == scope.symbols.end() ? nullptr : &found->second;
  };
  for (size_t i = scopes_.size(); i-- > function_;)
    if (const Symbol* s = in(scopes_[i])) return s;
  if (const Symbol* s = in(scopes_[0])) return s;
  const auto function = functions_.find(name);
  const bool seen = function != functions_.end() && (all_functions_ || seen_.count(name));
  return seen ? &function->second : nullptr;
}

bool Scopes::any_starts_with(std::string_view prefix) const {
  for (const Scope& scope : scopes_)
    for (const auto& [name, symbol] : scope.symbols)
      if (name.substr(0, prefix.size()) == prefix) return true;
  return false;
}

void Scopes::label(std::string_view name, uint32_t instruction, SourcePos pos) {
  check_name(name, pos);
  if (!scopes_.back().labels.emplace(name, instruction).second)
    throw PtxError(pos, "label '" + std::string(name) + "' stands twice in one scope");
}

}  // namespace emu::ptx
