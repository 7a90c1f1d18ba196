// SPDX-License-Identifier: MIT
// Reports that say the same are told once: an unrolled loop repeats each access, and a program its
// launches.
#pragma once

#include <cstdint>
#include <string>

#include "tools/emulator/base/tell.h"

namespace emu {

// A finding's cause: a rule, and the lines of the two accesses. Neighbours are of one cause when
// they share the rule and either line.
struct Cause {
  std::string rule;  // with the kernel, and the class
  uint32_t earlier, later;
};

// Told now; false: one of that cause was told in this process, and this one is counted.
bool first_of(const Cause& cause, const Label& label, const std::string& report);
// "7 more like it: ..", for each cause that was met again since the last call. When a launch ends.
void tell_the_rest();

}  // namespace emu
