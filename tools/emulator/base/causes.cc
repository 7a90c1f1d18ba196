// SPDX-License-Identifier: MIT
// See causes.h.
#include "tools/emulator/base/causes.h"

#include <map>
#include <mutex>
#include <vector>

#include "tools/emulator/base/fault.h"

namespace emu {
namespace {

struct Known {
  std::string head;  // of the report that was told
  Label label;
  uint64_t more = 0;
};

std::mutex lock;
std::vector<Known>& known() {
  static std::vector<Known>& all = *new std::vector<Known>;
  return all;
}
// Rule and line, of which there may be two to a cause.
std::map<std::string, size_t>& by_line() {
  static std::map<std::string, size_t>& all = *new std::map<std::string, size_t>;
  return all;
}

}  // namespace

bool first_of(const Cause& cause, const Label& label, const std::string& report) {
  const std::string names[] = {cause.rule + format("|later %u", cause.later),
                               cause.rule + format("|earlier %u", cause.earlier)};
  std::lock_guard guard(lock);
  for (const std::string& name : names) {
    const auto found = by_line().find(name);
    if (found == by_line().end()) continue;
    ++known()[found->second].more;
    for (const std::string& of : names) by_line().emplace(of, found->second);
    return false;
  }
  for (const std::string& name : names) by_line()[name] = known().size();
  known().push_back({report.substr(0, report.find(", block")), label, 0});
  return true;
}

void tell_the_rest() {
  std::vector<std::pair<std::string, Label>> reports;
  {
    std::lock_guard guard(lock);
    for (Known& k : known()) {
      if (!k.more) continue;
      reports.emplace_back(
          format("%s: and %llu more like it", k.head.c_str(), (unsigned long long)k.more), k.label);
      k.more = 0;
    }
  }
  for (const auto& [report, label] : reports) tell(report, label);
}

}  // namespace emu
