// SPDX-License-Identifier: MIT
// .target sm_100f: which instructions a target has, and which devices run it (PTX ISA 11.1.2).
#pragma once

#include <string>
#include <string_view>

namespace emu::ptx {

// The first column of opcodes.def, explained there.
enum class Since : unsigned char {
  any,
  sm_90,
  sm_90a,
  only_90a,
  sm_100,
  sm_100f,
  sm_100af,
  sm_100a,
  sm_100a_110a,
  sm_120f,
};

struct Target {
  int number = 0;    // 100
  char variant = 0;  // 'a', 'f' or 0
  int first = 0;     // the first version that has the target: 86 = .version 8.6
  int version = 0;   // the module's
  bool has(Since since) const;
  bool runs_on(int compute_capability) const;
  // "'.b128' needs .version 8.3 or later, the module's is 8.0"
  std::string needs_version(const std::string& what, int needed) const;
};

bool find_target(std::string_view text, Target& out);  // "sm_100f"
bool find_version(std::string_view text, int& out);    // "8.6" as 86
std::string dotted(int tenths);                        // 86 as "8.6"
const char* describe(Since since);                     // "sm_100a or sm_100f"

}  // namespace emu::ptx
