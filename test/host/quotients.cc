// SPDX-License-Identifier: MIT
// The proofs that two kernels without divisions rest on. kernel/common/block.cuh divides by a
// reciprocal and one correction, which need not round like a division; codes must change where
// those of a division do. All its operations commute with powers of two, so significands in [1, 2)
// stand for all numbers; and what it computes is within two units in the last place of the
// quotient, so that only the neighbours of a few numbers matter.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tools/testing/catch.h"

namespace {

uint32_t bits_of(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bits;
}
float float_of(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// E2M1, as the specification puts it: the nearest of eight values, a tie to the even code.
uint32_t e2m1(float f) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  uint32_t code = 0;
  while (code < 7) {
    const float middle = (kValues[code] + kValues[code + 1]) / 2;
    if (f < middle || (f == middle && code % 2 == 0)) break;
    ++code;
  }
  return code;
}

float quotient(float a, float b, float reciprocal) {
  const float q = a * reciprocal;
  return std::fma(std::fma(q, b, -a), -reciprocal, q);
}

// append_e2m1: the multiplication by 2^-126 that rounds up is an integer here.
uint32_t e2m1_by_arithmetic(float f) {
  const float no_tie = std::fma(f, 0.36f * 0x1p-23f, f);
  const uint32_t bits =
      no_tie < 1 ? uint32_t(std::ceil(no_tie * 0x1p23f)) : bits_of(no_tie) - (126u << 23);
  return (bits + 0x1FFFFF) >> 22;
}

// quotient_rn of kernel/common/activation.cuh, from a first guess of 1 / b.
float quotient_rn(float a, float b, float guess) {
  return quotient(a, b, std::fma(guess, std::fma(-b, guess, 1.0f), guess));
}

struct Count {
  uint64_t tried = 0, wrong = 0;
};

// Tries the neighbours of every code's boundary, for a step of that significand.
void try_elements(uint32_t significand, Count* count) {
  const float step = float_of(0x3F800000 | significand), reciprocal = 1 / step;
  for (const float boundary : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f}) {
    for (uint32_t i = 0; i < 9; ++i) {
      const float x = float_of(bits_of(boundary * step) - 4 + i);
      const float fast = quotient(x, step, reciprocal);
      const uint32_t want = e2m1(x / step);
      count->wrong += e2m1(fast) != want || e2m1_by_arithmetic(fast) != want;
      ++count->tried;
    }
  }
}

// Where a scale changes, amax / 6 / t has five significant bits; and a sixth of any number.
void try_scales(uint32_t significand, Count* count) {
  const float t = float_of(0x3F800000 | significand), reciprocal = 1 / t;
  for (uint32_t sixteenths = 16; sixteenths < 32; ++sixteenths) {
    for (uint32_t i = 0; i < 9; ++i) {
      const float x = float_of(bits_of(float(sixteenths) / 16 * t) - 4 + i);
      count->wrong += quotient(x, t, reciprocal) != x / t;
      ++count->tried;
    }
  }
  count->wrong += quotient(t, 6, 1.0f / 6) != t / 6;
  ++count->tried;
}

// x / 2^exponent modulo an odd number.
uint64_t halved(uint64_t x, uint32_t exponent, uint64_t odd) {
  x %= odd;
  for (uint32_t i = 0; i < exponent; ++i) x = (x % 2 == 0 ? x : x + odd) / 2;
  return x;
}

// Significands a whose quotient by b is `distance` / 2b units from the middle of two floats:
// a 2^24, or a 2^25 where a < b, is b times an odd number, and `distance`. Powers of two that
// divide b divide the distance. What quotient_rn rounds last is less than 8 / 2b units from a / b.
void try_near_middles(uint32_t b, Count* count) {
  uint32_t twos = 0;
  while ((b >> twos) % 2 == 0) ++twos;
  const uint32_t odd = b >> twos;
  const float divisor = std::ldexp(float(b), -23), rounded = 1 / divisor;
  for (int32_t distance = -7; distance <= 7; ++distance) {
    if (twos > 2 || distance % (2 << twos) == 0 || distance % (1 << twos) != 0) continue;
    const uint64_t residue = uint64_t(int64_t{odd} + distance / (1 << twos)) % odd;
    for (const uint32_t shift : {24u, 25u}) {
      for (uint64_t a = halved(residue, shift - twos, odd); a < 1u << 24; a += odd) {
        if (a < 1u << 23 || (a < b) != (shift == 25)) continue;
        const float x = std::ldexp(float(a), -23);
        count->wrong += quotient_rn(x, divisor, rounded) != x / divisor;
        ++count->tried;
        // A guess that is off by a unit: right except for 1 / (2 - 2^-23) and one other.
        for (const float guess : {float_of(bits_of(rounded) - 1), float_of(bits_of(rounded) + 1)}) {
          if (b >= (1u << 24) - 3) continue;
          count->wrong += quotient_rn(x, divisor, guess) != x / divisor;
          ++count->tried;
        }
      }
    }
  }
}

void try_every(uint32_t nth) {
  Count count;
  for (uint32_t significand = 0; significand < 1u << 23; significand += nth) {
    try_elements(significand, &count);
    try_scales(significand, &count);
  }
  // Where a boundary plus half of its last bit, times the step, comes next to a number of 24 bits.
  for (const uint32_t near : {0u, 1u << 22, (1u << 23) - 64}) {
    for (uint32_t i = 0; i < 64; ++i) {
      try_elements(near + i, &count);
      try_elements((near + (1u << 23) - i) & 0x7FFFFF, &count);
    }
  }
  INFO(count.tried << " quotients");
  CHECK(count.wrong == 0);
}

}  // namespace

TEST_CASE("quotients without a division change codes where divisions do") { try_every(1009); }

// A minute: test_host 'quotients without a division change codes where divisions do at every step'
TEST_CASE("quotients without a division change codes where divisions do at every step", "[.]") {
  try_every(1);
}

TEST_CASE("a division of activations is right next to the middle of two floats") {
  Count count;
  for (uint32_t b = 1u << 23; b < 1u << 24; b += 31) try_near_middles(b, &count);
  for (uint32_t i = 1; i < 4096; ++i) try_near_middles((1u << 24) - i, &count);
  INFO(count.tried << " quotients");
  CHECK(count.tried > 100000);
  CHECK(count.wrong == 0);
}

// Ten seconds: test_host 'a division of activations is right next to each middle of two floats'
TEST_CASE("a division of activations is right next to each middle of two floats", "[.]") {
  Count count;
  for (uint32_t b = 1u << 23; b < 1u << 24; ++b) try_near_middles(b, &count);
  INFO(count.tried << " quotients");
  CHECK(count.wrong == 0);
}
