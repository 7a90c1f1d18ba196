// SPDX-License-Identifier: MIT
// The header's enumerations by name, so that messages say NVFP4_TYPE_BF16 instead of 2.
#pragma once

#include <cstdint>

#include "host/base/status.h"
#include "host/problem/field_rows.h"

namespace nvfp4 {

// Values of an enumeration, one bit each.
using EnumeratorSet = uint32_t;
constexpr EnumeratorSet only(int32_t value) { return EnumeratorSet{1} << value; }
constexpr bool holds(EnumeratorSet set, int32_t value) {
  return value >= 0 && value < 32 && (set >> value & 1) != 0;
}

// All values of an enumeration.
constexpr EnumeratorSet every(Enumeration enumeration) {
  EnumeratorSet values = 0;
#define ENUMERATOR(its_enumeration, name) \
  if (enumeration == Enumeration::its_enumeration) values |= only(name);
#include "host/problem/enumeration.def"
#undef ENUMERATOR
  return values;
}

// NULL if the enumeration has no such value.
const char* enumerator_name(Enumeration enumeration, int32_t value);

// As the command line has it: "gelu-tanh" for NVFP4_ACTIVATION_GELU_TANH. The number of a value
// that has no name.
struct Word {
  char text[24];
};
Word enumerator_word(Enumeration enumeration, int32_t value);

// INVALID_ENUM with the names of the legal values, unless the value is one of them.
nvfp4_status rule_enumerator(const char* field, int32_t value, Enumeration enumeration,
                             EnumeratorSet legal);

}  // namespace nvfp4
