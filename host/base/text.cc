// SPDX-License-Identifier: MIT
#include "host/base/text.h"

#include <clocale>
#include <cstdio>

namespace nvfp4 {

// The locale is set for the calling thread alone, and the C locale is static, so nothing is
// allocated.
int write_text(char* text, size_t bytes, const char* format, va_list arguments) {
  const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const locale_t callers = uselocale(plain);
  const int length = vsnprintf(text, bytes, format, arguments);
  uselocale(callers);
  return length;
}

}  // namespace nvfp4
