// SPDX-License-Identifier: MIT
#include "tools/nvfp4/report.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace nvfp4_tool {

namespace {

struct Character {
  unsigned code;
  size_t bytes;
};

// Reads UTF-8 as far as 0xFFFF; any other byte is a character by itself, and not a control.
Character character_at(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? unsigned(uint8_t(text[at + i])) : 0;
  };
  const bool second = byte(1) >> 6 == 2;
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) >> 5 == 6 && second) return {(byte(0) & 31) << 6 | (byte(1) & 63), 2};
  if (byte(0) >> 4 == 14 && second && byte(2) >> 6 == 2) {
    return {(byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63), 3};
  }
  return {0x100, 1};
}

// What moves a cursor, ends a line or reverses what follows.
bool is_control(unsigned code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

void Report::line(const char* key, const char* format, ...) {
  if (as_json_) return;
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(size_t(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  std::printf("%-9s %s\n", key, shown(text).c_str());
}

std::string shown(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, c.code < 0x100 ? "\\x%02x" : "\\u%04x", c.code);
    out += is_control(c.code) ? escaped : text.substr(i, c.bytes);
    i += c.bytes;
  }
  return out;
}

void Report::finish() {
  // File names and driver texts may be invalid UTF-8; such bytes are replaced. In ASCII no control
  // character is left.
  const auto replace = Json::error_handler_t::replace;
  if (as_json_) std::printf("%s\n", values_.dump(2, ' ', true, replace).c_str());
}

}  // namespace nvfp4_tool
