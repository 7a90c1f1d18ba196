// SPDX-License-Identifier: MIT
// Who calls whom in a module's text, and whose address is taken. Functions that may recur, or whose
// address a register may hold, cannot be expanded at their calls.
#pragma once

#include <map>
#include <set>
#include <string_view>

#include "tools/emulator/ptx/cursor.h"

namespace emu::ptx {

class CallGraph {
 public:
  explicit CallGraph(const std::vector<Token>& tokens);

  // Defined by .func; its call is a jump, not an expansion.
  bool is_routine(std::string_view name) const { return taken_.count(name) || recurs(name); }
  // Whether its address is a value somewhere: an indirect call may end there.
  bool is_taken(std::string_view name) const { return taken_.count(name); }

 private:
  void functions(Cursor in);
  void uses(Cursor in);
  bool recurs(std::string_view name) const;

  std::map<std::string_view, std::set<std::string_view>> calls_;  // of functions defined here
  std::set<std::string_view> taken_;
};

}  // namespace emu::ptx
