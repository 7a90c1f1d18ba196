// SPDX-License-Identifier: MIT
// What goes wrong, as values: a Fault ends the running grid, a PtxError refuses a module.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace emu {

// A position in PTX text, counted from 1; line 0 = unknown.
struct SourcePos {
  uint32_t line = 0, column = 0;
};

// Which driver status a fault becomes. The names are the driver's own words for asynchronous
// errors.
enum class FaultKind : uint8_t {
  illegal_address,  // outside every allocation, or freed
  misaligned_address,
  illegal_instruction,  // a rule of one instruction is broken (descriptor bits, shapes, .aligned
                        // ...)
  uninitialised,        // a value that was never written is read
  barrier_misuse,       // mbarrier or named barrier used against its contract
  tensor_memory,        // TMEM allocation rules, leaks, unequal scale bands
  ordering,             // asynchronous work used before the required wait or fence
  deadlock,
  watchdog,       // instruction budget spent
  assertion,      // trap, brkpt
  failed_assert,  // of CUDA C++
};

// Thrown by instruction semantics and units. `what` is one sentence with addresses and values; the
// report adds where: kernel, block, warp, threads, PTX line, and the object.
struct Fault : std::exception {
  FaultKind kind;
  std::string text;
  static constexpr int64_t none = -1;
  int64_t shared = none;  // the shared address it is about, rank in bits 24 and up
  int64_t lane = none;    // of the warp, where one alone is to blame
  bool located = false;   // the text says where already
  Fault(FaultKind k, std::string t, int64_t s = none) : kind(k), text(std::move(t)), shared(s) {}
  const char* what() const noexcept override { return text.c_str(); }
};

// Thrown while PTX text is loaded. `text` says what is wrong and quotes the source.
struct PtxError : std::exception {
  SourcePos pos;
  std::string text;
  PtxError(SourcePos p, std::string t) : pos(p), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
};

// printf into a std::string.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  const int n = vsnprintf(nullptr, 0, fmt, ap);
  std::string text(n < 0 ? 0 : size_t(n), ' ');
  vsnprintf(text.data(), text.size() + 1, fmt, again);
  va_end(again);
  va_end(ap);
  return text;
}

}  // namespace emu
