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
  size_t prefix;  // bytes of the name before what tells the values apart
};
constexpr Enumerator kEnumerators[] = {
#define ENUMERATOR(enumeration, name) \
  {Enumeration::enumeration, name, #name, sizeof("NVFP4_" #enumeration)},
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

const Enumerator* find(Enumeration enumeration, int32_t value) {
  for (const Enumerator& row : kEnumerators) {
    if (row.enumeration == enumeration && row.value == value) return &row;
  }
  return nullptr;
}

char in_a_word(char c) {
  if (c == '_') return '-';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

const char* enumerator_name(Enumeration enumeration, int32_t value) {
  const Enumerator* const row = find(enumeration, value);
  return row == nullptr ? nullptr : row->name;
}

Word enumerator_word(Enumeration enumeration, int32_t value) {
#define ENUMERATOR(...)
#define WORD(of, its_value, text) \
  if (enumeration == Enumeration::of && value == its_value) return {text};
#include "host/problem/enumeration.def"
#undef ENUMERATOR
  Word word{};
  const Enumerator* const row = find(enumeration, value);
  if (row == nullptr) {
    snprintf(word.text, sizeof word.text, "%" PRId32, value);
    return word;
  }
  const char* const own = row->name + row->prefix;
  for (size_t i = 0; own[i] != '\0' && i + 1 < sizeof word.text; ++i) {
    word.text[i] = in_a_word(own[i]);
  }
  return word;
}

nvfp4_status rule_enumerator(const char* field, int32_t value, Enumeration enumeration,
                             EnumeratorSet legal) {
  if (holds(legal, value)) return NVFP4_SUCCESS;
  char list[kListBytes];
  list_names(enumeration, legal, list);
  const char* const name = enumerator_name(enumeration, value);
  if (name != nullptr) {
    return fail(NVFP4_STATUS_INVALID_ENUM, "%s = %s is not one of %s", field, name, list);
  }
  return fail(NVFP4_STATUS_INVALID_ENUM, "%s = %" PRId32 " is not one of %s", field, value, list);
}

}  // namespace nvfp4
