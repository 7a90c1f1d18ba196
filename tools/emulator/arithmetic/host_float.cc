// SPDX-License-Identifier: MIT
// See host_float.h. Contraction is off (EMU_FLAGS), so that a product and a sum stay two
// operations.
#include "tools/emulator/arithmetic/host_float.h"

#include <bit>
#include <cmath>

#if defined(__x86_64__)
#define EMU_WITH_FMA [[gnu::target("avx2,fma")]]
#else
#define EMU_WITH_FMA
#endif

namespace emu::host {

namespace {

constexpr int lanes = 32;

#if defined(__x86_64__)

// MXCSR: round to nearest, no flushing of operands or results, every exception masked.
bool control_is_plain() {
  constexpr uint32_t flags = 0x3F, plain = 0x1F80;
  return (__builtin_ia32_stmxcsr() & ~flags) == plain;
}
bool has_fma() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

#elif defined(__aarch64__)

// FPCR: round to nearest, no flushing, NaN operands kept, no traps.
bool control_is_plain() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control == 0;
}
constexpr bool has_fma() { return true; }

#else

constexpr bool control_is_plain() { return false; }
constexpr bool has_fma() { return false; }

#endif

// Codes are the low bits of a register.
template <class Code>
[[gnu::always_inline]] inline uint32_t nans(const Code* d) {
  constexpr Code infinity = Code(sizeof(Code) == 4 ? 0x7F800000ull : 0x7FF0000000000000ull),
                 sign = Code(1) << (sizeof(Code) * 8 - 1);
  Code any = 0;
  for (int i = 0; i < lanes; ++i) any |= Code((d[i] & ~sign) > infinity);
  if (!any) return 0;
  uint32_t mask = 0;
  for (int i = 0; i < lanes; ++i) mask |= uint32_t((d[i] & ~sign) > infinity) << i;
  return mask;
}

template <class Code, class Float>
[[gnu::always_inline]] inline void unpack(const uint64_t* from, Float* to) {
  for (int i = 0; i < lanes; ++i) to[i] = std::bit_cast<Float>(Code(from[i]));
}

template <class Code, class Float>
[[gnu::always_inline]] inline uint32_t pack(const Float* from, uint64_t* to) {
  Code codes[lanes];
  for (int i = 0; i < lanes; ++i) codes[i] = std::bit_cast<Code>(from[i]);
  for (int i = 0; i < lanes; ++i) to[i] = codes[i];
  return nans(codes);
}

// IEEE 754 rounds roots correctly, and so does the host's instruction. Without -fno-math-errno the
// compiler calls the library for a negative operand, which answers with the same NaN.
template <class Code, class Float>
[[gnu::always_inline]] inline uint32_t root(const uint64_t* a, uint64_t* d) {
  Float x[lanes];
  unpack<Code>(a, x);
  for (int i = 0; i < lanes; ++i) x[i] = std::sqrt(x[i]);
  return pack<Code>(x, d);
}

template <class Code, class Float, class F>
[[gnu::always_inline]] inline uint32_t two(const uint64_t* a, const uint64_t* b, uint64_t* d, F f) {
  Float x[lanes], y[lanes], result[lanes];
  unpack<Code>(a, x);
  unpack<Code>(b, y);
  for (int i = 0; i < lanes; ++i) result[i] = f(x[i], y[i]);
  return pack<Code>(result, d);
}

// std::fma rounds once, in one instruction here.
template <class Code, class Float>
[[gnu::always_inline]] inline uint32_t three(const uint64_t* a, const uint64_t* b,
                                             const uint64_t* c, uint64_t* d) {
  Float x[lanes], y[lanes], z[lanes], result[lanes];
  unpack<Code>(a, x);
  unpack<Code>(b, y);
  unpack<Code>(c, z);
  for (int i = 0; i < lanes; ++i) result[i] = std::fma(x[i], y[i], z[i]);
  return pack<Code>(result, d);
}

}  // namespace

bool is_ieee() { return has_fma() && control_is_plain(); }

EMU_WITH_FMA uint32_t add_f32(const uint64_t* a, const uint64_t* b, uint64_t* d) {
  return two<uint32_t, float>(a, b, d, [](float x, float y) { return x + y; });
}
EMU_WITH_FMA uint32_t mul_f32(const uint64_t* a, const uint64_t* b, uint64_t* d) {
  return two<uint32_t, float>(a, b, d, [](float x, float y) { return x * y; });
}
EMU_WITH_FMA uint32_t fma_f32(const uint64_t* a, const uint64_t* b, const uint64_t* c,
                              uint64_t* d) {
  return three<uint32_t, float>(a, b, c, d);
}
EMU_WITH_FMA uint32_t add_f64(const uint64_t* a, const uint64_t* b, uint64_t* d) {
  return two<uint64_t, double>(a, b, d, [](double x, double y) { return x + y; });
}
EMU_WITH_FMA uint32_t mul_f64(const uint64_t* a, const uint64_t* b, uint64_t* d) {
  return two<uint64_t, double>(a, b, d, [](double x, double y) { return x * y; });
}
EMU_WITH_FMA uint32_t fma_f64(const uint64_t* a, const uint64_t* b, const uint64_t* c,
                              uint64_t* d) {
  return three<uint64_t, double>(a, b, c, d);
}
EMU_WITH_FMA uint32_t sqrt_f32(const uint64_t* a, uint64_t* d) {
  return root<uint32_t, float>(a, d);
}
EMU_WITH_FMA uint32_t sqrt_f64(const uint64_t* a, uint64_t* d) {
  return root<uint64_t, double>(a, d);
}

}  // namespace emu::host
