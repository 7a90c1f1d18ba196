// SPDX-License-Identifier: MIT
// What the ordering checks found in one launch, and what happens to it.
//
// Two classes. An *error* is an order that hardware can be seen to break. A *formal* finding is an
// order that the manual requires and that no known hardware needs (tcgen05.fence, a scope that is
// too narrow for a barrier of another CTA). EMU_HAZARDS and EMU_FORMAL say what follows.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/base/settings.h"

namespace emu {

enum class Severity : uint8_t { error, formal };
const char* name_of(Severity severity);

// A Fault that says already where it happened.
struct Finding : Fault {
  Severity severity;
  std::string rule;
  Finding(Severity s, std::string r, const std::string& report)
      : Fault(FaultKind::ordering, report), severity(s), rule(std::move(r)) {}
};

// Clusters on several host threads share one.
class Findings {
 public:
  // `key` names the pair of places: later findings of one pair are counted, not told. `rule` is
  // the rule's identifier, `text` the located report. Throws Finding when the class stops the
  // launch.
  void add(Severity severity, uint64_t key, const std::string& rule, const std::string& text);
  // Counts a finding of a pair that was told already; false: it was not.
  bool again(Severity severity, uint64_t key);
  // Is it worth looking for findings of the class?
  static bool wanted(Severity severity) { return reaction(severity) != Reaction::ignore; }

  uint64_t count(Severity severity) const { return counts_[size_t(severity)]; }
  const std::map<std::string, uint64_t>& by_rule() const { return by_rule_; }
  std::string text() const;  // what was told, one report after the other

 private:
  static Reaction reaction(Severity severity) {
    return severity == Severity::error ? settings().hazards : settings().formal;
  }
  std::mutex lock_;
  uint64_t counts_[2] = {};
  std::map<std::string, uint64_t> by_rule_;
  std::map<uint64_t, uint64_t*> told_;  // with the rule's count
  std::string text_;
};

}  // namespace emu
