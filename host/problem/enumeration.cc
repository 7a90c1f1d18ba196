// SPDX-License-Identifier: MIT
#include "host/problem/enumeration.h"

#include <cinttypes>
#include <cstdio>

namespace nvfp4 {

namespace {

struct Enumerator {
  Enumeration enumeration;
  int32_t value;
  const char* name;
};
constexpr Enumerator kEnumerators[] = {
#define ENUMERATOR(enumeration, name) {Enumeration::enumeration, name, #name},
#include "host/problem/enumeration.def"
#undef ENUMERATOR
};

constexpr size_t kListBytes = 256;  // fits every enumerator of the longest enumeration

void list_names(Enumeration enumeration, EnumeratorSet legal, char list[kListBytes]) {
  size_t length = 0;
  list[0] = '\0';
  for (const Enumerator& row : kEnumerators) {
    if (row.enumeration != enumeration || !holds(legal, row.value) || length >= kListBytes)
      continue;
    const int added =
        snprintf(list + length, kListBytes - length, "%s%s", length == 0 ? "" : ", ", row.name);
    length += static_cast<size_t>(added);
  }
}

}  // namespace

const char* enumerator_name(Enumeration enumeration, int32_t value) {
  for (const Enumerator& row : kEnumerators) {
    if (row.enumeration == enumeration && row.value == value) return row.name;
  }
  return nullptr;
}

nvfp4_status rule_enumerator(const char* field, int32_t value, Enumeration enumeration,
                             EnumeratorSet legal) {
  if (holds(legal, value)) return NVFP4_SUCCESS;
  char list[kListBytes];
  list_names(enumeration, legal, list);
  const char* const name = enumerator_name(enumeration, value);
  if (name != nullptr) {
    return fail(NVFP4_STATUS_INVALID_ENUM, "%s = %s is none of %s", field, name, list);
  }
  return fail(NVFP4_STATUS_INVALID_ENUM, "%s = %" PRId32 " is none of %s", field, value, list);
}

nvfp4_status enumerator_not_there(const char* field, int32_t value, Enumeration enumeration) {
  return fail(NVFP4_STATUS_NOT_SUPPORTED, "%s = %s is not there in version %d.%d.%d", field,
              enumerator_name(enumeration, value), NVFP4_VERSION_MAJOR, NVFP4_VERSION_MINOR,
              NVFP4_VERSION_PATCH);
}

}  // namespace nvfp4
