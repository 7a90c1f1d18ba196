// SPDX-License-Identifier: MIT
// Targets: plain ones run on everything newer, f ones within their family, a ones on one chip only.
#include "target.h"

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
  if (variant == 'a') return number == compute_capability;
  if (variant == 'f') return number / 10 == compute_capability / 10 && compute_capability >= number;
  return compute_capability >= number;
}

bool parse_target(std::string_view text, Target& out) {
  if (text.substr(0, 3) != "sm_") return false;
  size_t at = 3;
  out = {};
  while (at < text.size() && at < 6 && text[at] >= '0' && text[at] <= '9')
    out.number = out.number * 10 + (text[at++] - '0');
  if (at < text.size() && (text[at] == 'a' || text[at] == 'f')) out.variant = text[at++];
  return at == text.size() && out.number >= 10;
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
