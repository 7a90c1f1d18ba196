// SPDX-License-Identifier: MIT
// What the loops of the tensor core's arithmetic share: 32 columns at a time in plain loops of
// constant length, which compilers vectorise, and the rounding of their exact sums. Integers take
// part, and floats where every step is exact, so every clone and every host gives the same bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

// One clone per instruction set; the loader picks one (ifunc). Results are equal, speed is not. The
// sanitizers' run-time does not exist yet when the loader asks, so they get the plain version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EMU_CLONES [[gnu::target_clones("default", "avx2", "arch=skylake-avx512")]]
#else
#define EMU_CLONES
#endif
#define EMU_INLINE [[gnu::always_inline]] inline

namespace emu {

constexpr int mma_width = 32;  // columns per step, at most
constexpr uint32_t nan_f32 = 0x7FFFFFFF, nan_f16 = 0x7FFF;

// What a step leaves for each column: sum * 2^(largest - fraction bits of the model).
template <int Width = mma_width>
struct MmaSums {
  alignas(64) int64_t sum[Width];
  alignas(64) int32_t largest[Width];
};

// Rounds toward zero to fp32 where the result is a normal number or zero; returns whether all
// columns were. |sum| < 2^52.
template <int Width>
EMU_INLINE bool round_normal(const MmaSums<Width>& sums, int fraction_bits, uint32_t* d) {
  constexpr double two52 = 4503599627370496.0;
  alignas(64) int64_t bits[Width];
  int32_t odd = 0;
  for (int n = 0; n < Width; ++n) {
    // The magnitude is below 2^52, so adding 2^52 and subtracting it again is exact in every
    // rounding mode. It turns the integer into a normalised double.
    const int64_t magnitude = sums.sum[n] < 0 ? -sums.sum[n] : sums.sum[n];
    const double d52 = std::bit_cast<double>(magnitude | 0x4330000000000000) - two52;
    bits[n] = std::bit_cast<int64_t>(d52);
  }
  for (int n = 0; n < Width; ++n) {
    const int32_t exponent = int32_t(bits[n] >> 52) - 1023 + sums.largest[n] - fraction_bits + 127;
    const uint32_t fraction = uint32_t(bits[n] >> 29) & 0x7FFFFF;
    const uint32_t sign = uint32_t(uint64_t(sums.sum[n]) >> 32) & 0x80000000;
    const bool zero = sums.sum[n] == 0;
    odd |= int32_t(!zero) & int32_t((exponent < 1) | (exponent > 254));
    d[n] = zero ? 0 : sign | uint32_t(exponent) << 23 | fraction;
  }
  return odd == 0;
}

// sum * 2^unit toward zero to fp32: the general case, one number at a time.
inline uint32_t round_toward_zero(int64_t sum, int unit) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000 : 0;
  const uint64_t magnitude = sum < 0 ? -uint64_t(sum) : uint64_t(sum);
  const int top = 63 - std::countl_zero(magnitude), exponent = top + unit;
  if (exponent > 127) return sign | 0x7F800000;
  const int last = std::max(exponent, -126) - 23;  // weight of the result's last bit
  const int up = unit - last;
  const uint64_t cut = up >= 0 ? magnitude << up : -up > 63 ? 0 : magnitude >> -up;
  if (exponent < -126) return sign | uint32_t(cut);
  return sign | uint32_t(exponent + 127) << 23 | (uint32_t(cut) & 0x7FFFFF);
}

// sum * 2^unit to fp16, ties to even. A result above the largest finite number becomes infinity. A
// sum that rounds to zero becomes +0, even a negative one (H200, 2026-11-21).
inline uint32_t round_to_half(int64_t sum, int unit) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x8000 : 0;
  const uint64_t magnitude = sum < 0 ? -uint64_t(sum) : uint64_t(sum);
  const int exponent = std::max(63 - std::countl_zero(magnitude) + unit, -14);
  const int down = exponent - 10 - unit;  // bits below the result's last one
  uint64_t kept = magnitude;
  if (down > 63) return 0;
  if (down > 0) {
    const uint64_t rest = magnitude & ((1ull << down) - 1), half = 1ull << (down - 1);
    kept = magnitude >> down;
    kept += rest > half || (rest == half && kept % 2);
  } else {
    if (exponent > 15) return sign | 0x7C00;
    kept <<= -down;
  }
  // A carry out of the fraction goes into the exponent, as the encoding wants it.
  const int64_t bits = int64_t(exponent + 14) * 1024 + int64_t(kept);
  if (bits == 0) return 0;
  return bits >= 0x7C00 ? sign | 0x7C00 : sign | uint32_t(bits);
}

}  // namespace emu
