// SPDX-License-Identifier: MIT
// Targets: sm_N runs on every newer chip, sm_Nf within its family, sm_Na on one chip only.
#include "tools/emulator/ptx/target.h"

#include <utility>

namespace emu::ptx {

bool Target::has(Since since) const {
  // Tensor memory exists in 10.x and 11.x; 12.x has the number but not the hardware.
  const bool tensor_memory = number >= 100 && number < 120;
  switch (since) {
    case Since::any: return true;
    case Since::sm_90: return number >= 90;
    case Since::sm_90a: return (number == 90 || number >= 100) && variant != 0;
    case Since::only_90a: return number == 90 && variant == 'a';
    case Since::sm_100: return number >= 100;
    case Since::sm_100f: return tensor_memory && variant != 0;
    case Since::sm_100af: return number >= 100 && variant != 0;
    case Since::sm_100a: return tensor_memory && variant == 'a';
    case Since::sm_120f: return number >= 120 && number < 130 && variant != 0;
    case Since::sm_100a_110a: return (number == 100 || number == 110) && variant == 'a';
  }
  return false;
}

bool Target::runs_on(int compute_capability) const {
  const int chip = number == 101 ? 110 : number;  // its name before 9.0
  if (variant == 'a') return chip == compute_capability;
  if (variant == 'f') return chip / 10 == compute_capability / 10 && compute_capability >= chip;
  return compute_capability >= number;
}

std::string Target::needs_version(const std::string& what, int needed) const {
  return what + " needs .version " + dotted(needed) + " or later, the module's is " +
         dotted(version);
}

bool find_target(std::string_view text, Target& out) {
  constexpr std::pair<std::string_view, Target> rows[] = {
#define EMU_TARGET(number, variant, first) {"sm_" #number #variant, {number, #variant[0], first}},
#include "tools/emulator/ptx/targets.def"
#undef EMU_TARGET
  };
  for (const auto& [name, row] : rows)
    if (name == text) return out = row, true;
  return false;
}

bool find_version(std::string_view text, int& out) {
  if (text.size() != 3 || text[1] != '.') return false;
  const int major = text[0] - '0', minor = text[2] - '0';
  out = 10 * major + minor;
  return minor >= 0 && ((major == 6 && minor <= 5) || (major == 7 && minor <= 8) ||
                        (major == 8 && minor <= 8) || (major == 9 && minor <= 5));
}

std::string dotted(int tenths) {
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

const char* describe(Since since) {
  switch (since) {
    case Since::any: return "any target";
    case Since::sm_90: return "sm_90 or newer";
    case Since::sm_90a: return "sm_90a or an a or f variant of a newer one";
    case Since::only_90a: return "sm_90a";
    case Since::sm_100: return "sm_100 or newer";
    case Since::sm_100f: return "sm_100a or sm_100f";
    case Since::sm_100af: return "an a or f variant of sm_100 or newer";
    case Since::sm_100a:
    case Since::sm_100a_110a: return "sm_100a";
    case Since::sm_120f: return "sm_120a or sm_120f";
  }
  return "";
}

}  // namespace emu::ptx
