// SPDX-License-Identifier: MIT
// Sums of products of 4-bit integers and of single bits, which the warp's tensor core takes 32
// bytes at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tools/emulator/op/op.h"

namespace emu::ops {

constexpr uint32_t k_bytes = 32;

inline int64_t nibble(const uint8_t* bytes, uint32_t k, bool is_signed) {
  const int v = bytes[k / 2] >> k % 2 * 4 & 15;
  return is_signed && v > 7 ? v - 16 : v;
}

inline int64_t nibbles(const uint8_t* a, const uint8_t* b, const Instr& in) {
  const bool sa = in.type(1) == Type::s4, sb = in.type(2) == Type::s4;
  int64_t sum = 0;
  for (uint32_t k = 0; k < 2 * k_bytes; ++k) sum += nibble(a, k, sa) * nibble(b, k, sb);
  return sum;
}

inline int64_t bits(const uint8_t* a, const uint8_t* b, const Instr& in) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < k_bytes; ++k)
    sum += std::popcount(uint8_t(in.has(Mod::xor_) ? a[k] ^ b[k] : a[k] & b[k]));
  return sum;
}

// Adds `products` to a 32-bit accumulator. The sum wraps, or with .satfinite is clamped.
inline uint32_t integer_sum(uint32_t c, int64_t products, const Instr& in) {
  const int64_t sum = int32_t(c) + products;
  return uint32_t(in.has(Mod::satfinite) ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
}

}  // namespace emu::ops
