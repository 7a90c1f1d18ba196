// SPDX-License-Identifier: MIT
// The integer arithmetic against the host's floating-point unit, and conversions against the values
// that the CUDA headers compute (test/golden).
#include "tools/emulator/arithmetic/softfloat.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>

#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_support.h"

namespace soft = emu::soft;

namespace {

float as_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
uint32_t as_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return std::isnan(f) ? soft::f32.nan() : bits;
}

struct Mode {
  int host;
  soft::Round round;
};
constexpr Mode modes[] = {{FE_TONEAREST, soft::Round::nearest},
                          {FE_TOWARDZERO, soft::Round::zero},
                          {FE_DOWNWARD, soft::Round::down},
                          {FE_UPWARD, soft::Round::up}};

// Every operation on three operands, in every rounding mode. True when all bits agree.
bool agrees(uint32_t a, uint32_t b, uint32_t c) {
  volatile float x = as_float(a), y = as_float(b), z = as_float(c);
  bool same = true;
  for (const Mode& m : modes) {
    fesetround(m.host);
    volatile float sum = x + y, product = x * y, quotient = x / y;
    volatile float fused = std::fma(float(x), float(y), float(z));
    fesetround(FE_TONEAREST);
    soft::Rules rules;
    rules.round = m.round;
    same = same && soft::add(a, b, soft::f32, rules) == as_bits(sum) &&
           soft::mul(a, b, soft::f32, rules) == as_bits(product) &&
           soft::div(a, b, soft::f32, rules) == as_bits(quotient) &&
           soft::fma(a, b, c, soft::f32, rules) == as_bits(fused);
  }
  return same;
}

const uint32_t edges[] = {0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001,
                          0x00FFFFFF, 0x01000000, 0x33800000, 0x34000000, 0x3F7FFFFF, 0x3F800000,
                          0x3F800001, 0x3FFFFFFF, 0x40000000, 0x4B000000, 0x4B7FFFFF, 0x7F000000,
                          0x7F7FFFFF, 0x7F800000, 0x7FC00000};

}  // namespace

TEST_CASE(
    "fp32 rounded to nearest: exponents close together and cancellation and long runs of zeros") {
  std::mt19937 random(9);
  const auto draw = [&](uint32_t exponent) {
    uint32_t mantissa = uint32_t(random()) & 0x7FFFFF;
    switch (random() % 4) {
      case 0: mantissa = 0; break;
      case 1: mantissa = 0x7FFFFF; break;
      case 2: mantissa &= ~0u << random() % 23; break;
      default: break;
    }
    return uint32_t(random() & 1) << 31 | (exponent & 0xFF) << 23 | mantissa;
  };
  size_t wrong = 0;
  for (int i = 0; i < 1500000; ++i) {
    const uint32_t ea = uint32_t(random()) % 256, eb = uint32_t(random()) % 256;
    const uint32_t a = draw(ea), b = draw(eb);
    // The addend lies around the product, from far above to far below.
    const int ec = int(ea + eb) - 127 + int(random() % 128) - 64;
    uint32_t c = draw(uint32_t(std::clamp(ec, 0, 255)));
    if (i % 3 == 0) c = as_bits(-(as_float(a) * as_float(b)));
    wrong +=
        soft::fma(a, b, c, soft::f32) != as_bits(std::fma(as_float(a), as_float(b), as_float(c))) ||
        soft::add(a, c, soft::f32) != as_bits(as_float(a) + as_float(c)) ||
        soft::mul(a, b, soft::f32) != as_bits(as_float(a) * as_float(b));
  }
  CHECK(wrong == 0);
}

TEST_CASE("f32 arithmetic equals the host's for all triples of edge values") {
  for (uint32_t a : edges)
    for (uint32_t b : edges)
      for (uint32_t c : edges)
        for (uint32_t signs = 0; signs < 8; ++signs) {
          uint32_t x = a | (signs & 1) << 31, y = b | (signs >> 1 & 1) << 31,
                   z = c | signs >> 2 << 31;
          CAPTURE(x, y, z);
          if (!agrees(x, y, z)) FAIL("a result differs");
        }
  SUCCEED();
}

TEST_CASE("f32 arithmetic equals the host's for random bits and near cancellation") {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    uint32_t a = random(), b = random(), c = random();
    if (i % 2) b = (b & 0x807FFFFF) | 0x3F000000, a = (a & 0x80FFFFFF) | 0x3F000000;
    if (i % 4 == 1) c = as_bits(-as_float(a) * as_float(b)) + (c & 3);
    CAPTURE(a, b, c);
    if (!agrees(a, b, c)) FAIL("a result differs");
  }
  SUCCEED();
}

// The exact sum and product of two f16 fit a double; the nearest code is then found by search.
TEST_CASE("f16 sums and products are the nearest codes") {
  auto value = [](uint32_t code) {
    double m = code & 0x3FF, e = double(code >> 10 & 31);
    double v = e ? std::ldexp(1024 + m, int(e) - 25) : std::ldexp(m, -24);
    return code & 0x8000 ? -v : v;
  };
  auto nearest = [&](double exact) {
    uint32_t low = 0, high = 0x7C00;  // the last code at or below |exact|, with infinity as 65536
    double magnitude = std::fabs(exact);
    while (high - low > 1) (value((low + high) / 2) <= magnitude ? low : high) = (low + high) / 2;
    double down = magnitude - value(low), up = value(low + 1) - magnitude;
    uint32_t code = low + (up < down || (up == down && (low & 1)));
    return code | (std::signbit(exact) ? 0x8000u : 0u);
  };
  std::mt19937 random(11);
  for (int i = 0; i < 100000; ++i) {
    uint32_t a = random() & 0xFFFF, b = random() & 0xFFFF;
    if ((a & 0x7C00) == 0x7C00 || (b & 0x7C00) == 0x7C00) continue;
    CAPTURE(a, b);
    if (soft::mul(a, b, soft::f16) != nearest(value(a) * value(b))) FAIL("product");
    if (soft::add(a, b, soft::f16) != nearest(value(a) + value(b))) FAIL("sum");
  }
  SUCCEED();
}

TEST_CASE("encodings equal the CUDA headers'") {
  auto number = [](const std::string& s) { return uint32_t(std::stoull(s, nullptr, 16)); };
  soft::Rules saturating, plain;
  saturating.satfinite = true;
  for (const auto& row : unit::golden("numeric_encode")) {
    uint32_t bits = number(row[0]);
    CAPTURE(bits);
    CHECK(soft::convert(bits, soft::f32, soft::e2m1, saturating) == number(row[1]));
    CHECK(soft::convert(bits, soft::f32, soft::e4m3, saturating) == number(row[2]));
    CHECK(soft::convert(bits, soft::f32, soft::e5m2, saturating) == number(row[3]));
    CHECK(soft::encode_ue8m0(bits, soft::f32, soft::Round::up, true) == number(row[4]));
    CHECK(soft::convert(bits, soft::f32, soft::f16, plain) == number(row[5]));
    CHECK(soft::convert(bits, soft::f32, soft::bf16, plain) == number(row[6]));
  }
}

TEST_CASE("decoded values equal the CUDA headers'") {
  auto number = [](const std::string& s) { return uint32_t(std::stoull(s, nullptr, 16)); };
  for (const auto& row : unit::golden("numeric_decode")) {
    CAPTURE(row[0], row[1]);
    uint32_t code = number(row[1]), bits = number(row[2]);
    if (row[0] == "ue8m0") {
      CHECK(soft::encode(soft::decode_ue8m0(code), soft::f32) == bits);
    } else if (row[0] != "ue4m3") {  // the tensor core's own reading; no cvt has it
      const soft::Format& f = row[0] == "e2m1"   ? soft::e2m1
                              : row[0] == "e4m3" ? soft::e4m3
                                                 : soft::e5m2;
      CHECK(soft::convert(code, f, soft::f32) == bits);
    }
  }
}

TEST_CASE("every f16 and bf16 code survives the way to f32 and back") {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    CAPTURE(code);
    if ((code & 0x7FFF) <= soft::f16.infinity() &&
        soft::convert(soft::convert(code, soft::f16, soft::f32), soft::f32, soft::f16) != code)
      FAIL("f16");
    if ((code & 0x7FFF) <= soft::bf16.infinity() &&
        soft::convert(soft::convert(code, soft::bf16, soft::f32), soft::f32, soft::bf16) != code)
      FAIL("bf16");
  }
  SUCCEED();
}

TEST_CASE("floats become integers with clamping and NaN becomes zero or the top bit") {
  auto to = [](float f, uint32_t bits, bool is_signed, soft::Round r = soft::Round::zero) {
    return soft::to_integer(soft::decode(as_bits(f), soft::f32), bits, is_signed, r);
  };
  CHECK(to(-1.5f, 32, true) == 0xFFFFFFFF);
  CHECK(to(-1.5f, 32, false) == 0);
  CHECK(to(3e9f, 32, true) == 0x7FFFFFFF);
  CHECK(to(-3e9f, 32, true) == 0x80000000);
  CHECK(to(3e9f, 32, false) == 3000000000u);
  CHECK(to(1e30f, 64, true) == 0x7FFFFFFFFFFFFFFF);
  CHECK(to(-INFINITY, 64, true) == 0x8000000000000000);
  CHECK(to(NAN, 32, true) == 0);
  CHECK(to(NAN, 64, true) == 0x8000000000000000);
  CHECK(to(2.5f, 32, true, soft::Round::nearest) == 2);
  CHECK(to(3.5f, 32, true, soft::Round::nearest) == 4);
  CHECK(to(-0.25f, 32, true, soft::Round::down) == 0xFFFFFFFF);
  CHECK(to(0.25f, 32, true, soft::Round::up) == 1);
}
