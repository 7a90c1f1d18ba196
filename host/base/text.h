// SPDX-License-Identifier: MIT
// Text with numbers as the C locale writes them, whatever locale the program has set: a command
// line with a decimal comma would not run.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace nvfp4 {

// As vsnprintf.
int write_text(char* text, size_t bytes, const char* format, va_list arguments);

}  // namespace nvfp4
