// SPDX-License-Identifier: MIT
// Text with numbers in the C locale, whatever locale the program has set: a replay command with a
// decimal comma would not run.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace nvfp4 {

// Works like vsnprintf.
int write_text(char* text, size_t bytes, const char* format, va_list arguments);

}  // namespace nvfp4
