// SPDX-License-Identifier: MIT
// printf of CUDA C++ (programming guide, "Formatted Output"): %[flags][width][.precision][size]type
// with the host's own text for each.
#include "tools/emulator/op/printed.h"

#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

namespace emu::ops {

namespace {

constexpr int widest = 1 << 12;

template <class T>
std::string formatted(const std::string& directive, T value) {
  const int bytes = snprintf(nullptr, 0, directive.c_str(), value);
  if (bytes < 0) return {};
  std::vector<char> buffer(size_t(bytes) + 1);
  snprintf(buffer.data(), buffer.size(), directive.c_str(), value);
  return {buffer.data(), size_t(bytes)};
}

class Printer {
 public:
  Printer(const std::string& format, const std::function<uint64_t(uint32_t)>& value,
          const std::function<std::string(uint64_t)>& string)
      : format_(format), value_(value), string_(string) {}

  Printed run() {
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c != '%')
        out_.text += c;
      else
        directive();
    }
    if (unknown_) out_.arguments = -1;
    return std::move(out_);
  }

 private:
  char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }
  bool one_of(const char* set) const { return peek() && strchr(set, peek()); }

  uint64_t argument(uint32_t bytes) {
    ++out_.arguments;
    return value_(bytes);
  }

  // Digits, or an argument for `*`.
  void number(std::string& spec) {
    if (peek() == '*') {
      ++at_;
      const int n = int(argument(4));
      spec += std::to_string(n < -widest ? -widest : n > widest ? widest : n);
    }
    size_t digits = 0;
    for (; isdigit(static_cast<unsigned char>(peek())); ++at_)
      if (digits++ < 4) spec += peek();
  }

  void directive() {
    const size_t begin = at_ - 1;
    if (peek() == '%') {
      out_.text += format_[at_++];
      return;
    }
    std::string spec = "%";
    while (one_of("-+ #0")) spec += format_[at_++];
    number(spec);
    if (peek() == '.') {
      spec += format_[at_++];
      number(spec);
    }
    std::string size;
    while (one_of("hlzjtL")) size += format_[at_++];
    const char type = peek();
    if (type) ++at_;
    if (type && strchr("diouxXcs", type)) return whole(spec, size, type);
    if (type && strchr("fFeEgGaA", type)) {
      out_.text += formatted(spec + type, std::bit_cast<double>(argument(8)));
    } else if (type == 'p') {
      out_.text += formatted(spec + type, reinterpret_cast<void*>(uintptr_t(argument(8))));
    } else {
      unknown_ = true;
      out_.text += format_.substr(begin, at_ - begin);
    }
  }

  void whole(const std::string& spec, const std::string& size, char type) {
    if (type == 's') {
      const uint64_t address = argument(8);
      out_.text += formatted(spec + type, (address ? string_(address) : "(null)").c_str());
    } else if (type == 'c') {
      out_.text += formatted(spec + type, int(argument(4)));
    } else if (size.empty() || size[0] == 'h') {
      out_.text += formatted(spec + size + type, uint32_t(argument(4)));
    } else {
      out_.text += formatted(spec + "ll" + type, static_cast<unsigned long long>(argument(8)));
    }
  }

  const std::string& format_;
  const std::function<uint64_t(uint32_t)>& value_;
  const std::function<std::string(uint64_t)>& string_;
  size_t at_ = 0;
  bool unknown_ = false;
  Printed out_;
};

}  // namespace

Printed print_as(const std::string& format, const std::function<uint64_t(uint32_t)>& value,
                 const std::function<std::string(uint64_t)>& string) {
  return Printer(format, value, string).run();
}

}  // namespace emu::ops
