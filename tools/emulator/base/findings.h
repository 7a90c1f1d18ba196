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
#include <set>
#include <string>
#include <utility>

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

// What one launch broke. Clusters on several host threads share one.
class Findings {
 public:
  // `kernel`: its name in reports.
  explicit Findings(std::string kernel = "") : kernel_(std::move(kernel)) {}

  struct Place {
    uint64_t key;   // names the pair of places: later findings with it are only counted
    uint32_t line;  // the PTX line of the later access of the pair
  };
  // `rule` is the rule's identifier, `text` the report with its places. A process prints one
  // example of each rule and kernel, and tell_the_rest() prints the number of the others. If
  // `left_to` is not nullptr, it names a tool (ptxas) that adds what the PTX text lacks, and the
  // finding is only counted. Throws Finding when the class stops the launch.
  void add(Severity severity, const Place& place, const std::string& rule, const std::string& text,
           const char* left_to = nullptr);
  // Counts one more finding and returns true if its pair was added already. Otherwise returns
  // false, and the caller calls add().
  bool again(Severity severity, uint64_t key);
  // To be called when the launch has ended: tells in one line for each class how many findings of
  // each rule were not told as an example.
  void tell_the_rest();
  // Is it worth looking for findings of the class?
  static bool wanted(Severity severity) { return reaction(severity) != Reaction::ignore; }

  uint64_t count(Severity severity) const { return counts_[size_t(severity)]; }
  std::map<std::string, uint64_t> by_rule() const;
  std::string text() const { return text_; }  // a report of every pair, one after the other

 private:
  static Reaction reaction(Severity severity) {
    return severity == Severity::error ? settings().hazards : settings().formal;
  }
  struct OfRule {
    uint64_t count = 0;
    bool has_example = false;  // one finding of `count` was told in full
    std::set<uint32_t> lines;  // PTX lines of the others
    std::string left_to;
  };
  bool is_first(Severity severity, const std::string& rule) const;
  bool is_excepted(Severity severity, const std::string& rule) const;  // by EMU_EXCEPT
  void tell_the_rest(Severity severity);

  const std::string kernel_;
  std::mutex lock_;
  uint64_t counts_[2] = {};
  std::map<std::string, OfRule> rules_[2];  // by class
  std::map<uint64_t, OfRule*> known_;       // by key
  std::map<std::string, uint64_t> excepted_;
  std::string text_;
};

}  // namespace emu
