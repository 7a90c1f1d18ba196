// SPDX-License-Identifier: MIT
// See findings.h.
#include "tools/emulator/base/findings.h"

#include "tools/emulator/base/causes.h"
#include "tools/emulator/base/tell.h"

namespace emu {

namespace {

// The key is of two lines and a rule (order/reporter.cc), or of a line or place alone.
Cause cause_of(Severity severity, uint64_t key, const std::string& text) {
  const bool pair = !(key >> 63) && key >> 32;
  const std::string head = text.substr(0, text.find(", "));  // with the kernel
  return {std::string(severity == Severity::formal ? "formal " : "error ") + head +
              format("|%llu", (unsigned long long)(pair ? key & 0xFF : key)),
          uint32_t(key >> 32), uint32_t(key) >> 8};
}

}  // namespace

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
  const std::string report =
      std::string(severity == Severity::formal ? "formal: " : "error: ") + text;
  if (first_of(cause_of(severity, key, text), report)) tell(report);
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
