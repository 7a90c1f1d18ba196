// SPDX-License-Identifier: MIT
// See findings.h.
#include "tools/emulator/base/findings.h"

#include "tools/emulator/base/tell.h"

namespace emu {

void Findings::add(Severity severity, uint64_t key, const std::string& text) {
  const Reaction what = reaction(severity);
  if (what == Reaction::ignore) return;
  std::lock_guard guard(lock_);
  ++counts_[size_t(severity)];
  if (what == Reaction::stop) {
    text_ += text + "\n";
    throw Finding(text);
  }
  if (!told_.insert(key).second) return;
  text_ += text + "\n";
  tell(text);
}

bool Findings::again(Severity severity, uint64_t key) {
  if (reaction(severity) != Reaction::report) return false;
  std::lock_guard guard(lock_);
  if (!told_.count(key)) return false;
  ++counts_[size_t(severity)];
  return true;
}

std::string Findings::text() const { return text_; }

}  // namespace emu
