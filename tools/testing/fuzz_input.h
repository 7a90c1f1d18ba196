// SPDX-License-Identifier: MIT
// A fuzz input as a source of choices. After its end everything is 0, so a prefix of an input
// means the same calls as the input up to there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t bytes) : at_(data), end_(data + bytes) {}

  bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? 0 : *at_++; }
  uint32_t below(uint32_t limit) { return byte() % limit; }  // limit up to 256

  template <class T>
  T number() {
    T value = 0;
    const size_t there = static_cast<size_t>(end_ - at_);
    const size_t n = there < sizeof value ? there : sizeof value;
    memcpy(&value, at_, n);
    at_ += n;
    return value;
  }

  template <class T, size_t N>
  T pick(const T (&choices)[N]) {
    static_assert(N <= 256);
    return choices[below(N)];
  }

 private:
  const uint8_t *at_, *end_;
};

// A finding: what is wrong, then the end of the process, with or without a sanitizer.
[[noreturn]] inline void found(const char* what, const char* detail = "") {
  fprintf(stderr, "fuzz: %s%s%s\n", what, *detail ? ": " : "", detail);
  abort();
}
inline void expect(bool condition, const char* what, const char* detail = "") {
  if (!condition) found(what, detail);
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);
