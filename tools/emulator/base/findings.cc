// SPDX-License-Identifier: MIT
// See findings.h.
#include "tools/emulator/base/findings.h"

#include "tools/emulator/base/causes.h"

namespace emu {

namespace {

// The key is of two lines and a rule (order/reporter.cc), or of a line or place alone.
Cause cause_of(Severity severity, uint64_t key, const std::string& text) {
  const bool pair = !(key >> 63) && key >> 32;
  const std::string head = text.substr(0, text.find(", "));  // with the kernel
  return {name_of(severity) + (" " + head) +
              format("|%llu", (unsigned long long)(pair ? key & 0xFF : key)),
          uint32_t(key >> 32), uint32_t(key) >> 8};
}

}  // namespace

const char* name_of(Severity severity) { return severity == Severity::formal ? "formal" : "error"; }

void Findings::add(Severity severity, uint64_t key, const std::string& rule,
                   const std::string& text) {
  const Reaction what = reaction(severity);
  if (what == Reaction::ignore) return;
  std::lock_guard guard(lock_);
  ++counts_[size_t(severity)];
  uint64_t& of_rule = by_rule_[rule];
  ++of_rule;
  if (what == Reaction::stop) {
    text_ += text + "\n";
    throw Finding(severity, rule, text);
  }
  if (!told_.emplace(key, &of_rule).second) return;
  text_ += text + "\n";
  const Label label{name_of(severity), rule};
  if (first_of(cause_of(severity, key, text), label, text)) tell(text, label);
}

bool Findings::again(Severity severity, uint64_t key) {
  if (reaction(severity) != Reaction::report) return false;
  std::lock_guard guard(lock_);
  const auto told = told_.find(key);
  if (told == told_.end()) return false;
  ++*told->second;
  ++counts_[size_t(severity)];
  return true;
}

std::string Findings::text() const { return text_; }

}  // namespace emu
