// SPDX-License-Identifier: MIT
// The shared-memory swizzles: an XOR on absolute CTA-relative shared addresses (rank bits removed).
// TMA writes with it and the tensor core reads with it, so both agree wherever a tile starts.
#pragma once

#include <cstdint>

namespace emu {

enum class Swizzle : uint8_t { none, b32, b64, b128 };

// Bytes of one row of the pattern: the span inside which 16-byte chunks change places.
constexpr uint32_t swizzle_span(Swizzle s) {
  return s == Swizzle::b128 ? 128 : s == Swizzle::b64 ? 64 : s == Swizzle::b32 ? 32 : 16;
}

// 128B: bits 6:4 ^= 9:7; 64B: bits 5:4 ^= 8:7; 32B: bit 4 ^= 7. Eight rows of the pattern, then
// again.
constexpr uint32_t swizzled(uint32_t address, Swizzle s) {
  return address ^ ((address >> 7 & (swizzle_span(s) / 16 - 1)) << 4);
}

// The 128-byte swizzle in larger pieces (CUtensorMapSwizzle, 128B_ATOM_*). There are three kinds:
// pieces of 32 bytes; pieces of 32 bytes, where every other row exchanges the 8-byte halves of each
// 16; and pieces of 64 bytes. The enumerators are those of tensormap.replace's .swizzle_atomicity.
enum class Atom : uint8_t { b16, b32, b32_flip_8, b64 };

constexpr uint32_t swizzled(uint32_t address, Swizzle s, Atom atom) {
  const uint32_t row = address >> 7;
  switch (atom) {
    case Atom::b16: break;
    case Atom::b32: return address ^ (row & 3) << 5;
    case Atom::b32_flip_8: return address ^ (row & 3) << 5 ^ (row & 1) << 3;
    case Atom::b64: return address ^ (row & 1) << 6;
  }
  return swizzled(address, s);
}

static_assert(swizzled(0x0400 + 5 * 128 + 0x20, Swizzle::b128) ==
              0x0400 + 5 * 128 + (2 ^ 0x5) * 16);
static_assert(swizzled(0x0400 + 5 * 128 + 0x20, Swizzle::none) == 0x0400 + 5 * 128 + 0x20);

}  // namespace emu
