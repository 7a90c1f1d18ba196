// SPDX-License-Identifier: MIT
// Text that is built part by part in the caller's buffer.
#pragma once

#include <cstdarg>
#include <cstddef>

#include "host/base/text.h"

namespace nvfp4 {

// Appends to the caller's buffer and counts what did not fit.
class Text {
 public:
  Text(char* buffer, size_t bytes) : buffer_(buffer), bytes_(bytes) {}

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char* at = length_ < bytes_ ? buffer_ + length_ : nullptr;
    const int length = write_text(at, at != nullptr ? bytes_ - length_ : 0, format, arguments);
    va_end(arguments);
    if (length > 0) length_ += static_cast<size_t>(length);
  }

  size_t needed() const { return length_ + 1; }

 private:
  char* buffer_;
  size_t bytes_;
  size_t length_ = 0;
};

}  // namespace nvfp4
