// SPDX-License-Identifier: MIT
// Floating-point instructions through PTX. f64, division, roots and approximate functions: exact
// operations against the host's, the others against its functions within the manual's bound. And
// modifiers, packing, comparison; the arithmetic itself is tested in arithmetic/softfloat.cc.
#include <bit>
#include <cmath>

#include "tools/emulator/test/support/exec_support.h"

namespace {

uint64_t f64(const std::string& instruction, double a, double b = 1, double c = 1) {
  return eval(instruction,
              {std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b), std::bit_cast<uint64_t>(c)},
              {64, 64, 64, 64});
}
float f32(const std::string& instruction, float a, float b = 1) {
  return std::bit_cast<float>(
      uint32_t(eval(instruction, {std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)})));
}
bool same(uint64_t code, double want) { return code == std::bit_cast<uint64_t>(want); }
// Within `bits` of relative error.
bool near(float have, double want, int bits) {
  return std::fabs(have - want) <= std::ldexp(std::fabs(want), -bits);
}

const double doubles[] = {1.0, -0.1, 3.5e-310, 1e300, 7.25, 0.0};

}  // namespace

TEST_CASE("approximate reciprocals and roots of f64") {
  for (const double a : {1.0, 3.0, 0.1, 7.25e100, 4e-200}) {
    CAPTURE(a);
    const auto value = [&](const char* op) { return std::bit_cast<double>(f64(op, a)); };
    CHECK(std::fabs(value("rsqrt.approx.f64 d, a;") * std::sqrt(a) - 1) < 1e-15);
    CHECK(std::fabs(value("rsqrt.approx.ftz.f64 d, a;") * std::sqrt(a) - 1) < 2e-6);
    CHECK(std::fabs(value("rcp.approx.ftz.f64 d, a;") * a - 1) < 2e-6);
    CHECK((f64("rcp.approx.ftz.f64 d, a;", a) & 0xFFFFFFFF) == 0);
  }
  CHECK(f64("rcp.approx.ftz.f64 d, a;", std::bit_cast<double>(1ull << 63 | 1)) ==
        0xFFF0000000000000);
}

TEST_CASE("sine and cosine in every quadrant and far out") {
  for (const float x :
       {0.0f,    1e-30f,  1e-4f, 3e-4f, 0.5f,   0.78539f, 0.7854f, 1.5707f,    1.5708f, 2.0f,
        3.1415f, 3.1416f, 4.7f,  4.72f, 6.283f, 6.2832f,  100.0f,  12345.678f, 1e10f,   3e38f})
    for (const float a : {x, -x}) {
      CAPTURE(a);
      CHECK(f32("sin.approx.f32 d, a;", a) == float(std::sin(double(a))));
      CHECK(f32("cos.approx.f32 d, a;", a) == float(std::cos(double(a))));
    }
  CHECK(std::isnan(f32("sin.approx.f32 d, a;", INFINITY)));
  CHECK(eval("sin.approx.ftz.f32 d, a;", {0x80000001}) == 0x80000000);
  CHECK(eval("sin.approx.f32 d, a;", {0x80000001}) == 0x80000001);
  CHECK(f32("copysign.f32 d, a, b;", -1.0f, 3.5f) == -3.5f);
  CHECK(same(f64("copysign.f64 d, a, b;", 1.0, -3.5), 3.5));
}

TEST_CASE("f64 arithmetic has the host's bits") {
  for (const double a : doubles)
    for (const double b : doubles) {
      CAPTURE(a, b);
      CHECK(same(f64("add.f64 d, a, b;", a, b), a + b));
      CHECK(same(f64("sub.rn.f64 d, a, b;", a, b), a - b));
      CHECK(same(f64("mul.f64 d, a, b;", a, b), a * b));
      CHECK(same(f64("fma.rn.f64 d, a, b, c;", a, b, -0.3), std::fma(a, b, -0.3)));
      if (b != 0) CHECK(same(f64("div.rn.f64 d, a, b;", a, b), a / b));
      if (a != 0 || b != 0) CHECK(same(f64("max.f64 d, a, b;", a, b), std::fmax(a, b)));
      CHECK(f64("{ .reg .pred p; setp.lt.f64 p, a, b; selp.b64 d, 1, 0, p; }", a, b) == (a < b));
    }
  CHECK(same(f64("sqrt.rn.f64 d, a;", 2), std::sqrt(2.0)));
  CHECK(same(f64("sqrt.rn.f64 d, a;", 3.5e-310), std::sqrt(3.5e-310)));
  CHECK(same(f64("rcp.rn.f64 d, a;", 3), 1.0 / 3));
  CHECK(same(f64("neg.f64 d, a;", 0.0), -0.0));
  CHECK(same(f64("cvt.rpi.f64.f64 d, a;", -2.5), -2.0));
}

TEST_CASE("f64 is converted from and to the other types") {
  CHECK(eval("cvt.f64.f32 d, a;", {0x3DCCCCCD}, {64}) == std::bit_cast<uint64_t>(double(0.1f)));
  CHECK(eval("cvt.rn.f32.f64 d, a;", {std::bit_cast<uint64_t>(0.1)}, {32, 64}) == 0x3DCCCCCD);
  CHECK(eval("cvt.rz.f32.f64 d, a;", {std::bit_cast<uint64_t>(0.1)}, {32, 64}) == 0x3DCCCCCC);
  CHECK(eval("cvt.rn.f64.s64 d, a;", {uint64_t(-3)}, {64, 64}) == std::bit_cast<uint64_t>(-3.0));
  CHECK(eval("cvt.rzi.s32.f64 d, a;", {std::bit_cast<uint64_t>(-7.9)}, {32, 64}) == uint32_t(-7));
  CHECK(eval("cvt.rni.f16.f16 d, a;", {0x3E00}, {16, 16}) == 0x4000);
}

TEST_CASE("division and roots of f32 are rounded as told") {
  CHECK(f32("div.rn.f32 d, a, b;", 1, 3) == 1.0f / 3);
  CHECK(f32("div.rp.f32 d, a, b;", 1, 3) == std::nextafter(1.0f / 3, 0.0f) + 0x1p-25f);
  CHECK(f32("sqrt.rn.f32 d, a;", 2) == std::sqrt(2.0f));
  CHECK(f32("sqrt.rz.f32 d, a;", 3) <= std::sqrt(3.0f));
  CHECK(f32("rcp.rn.f32 d, a;", 3) == 1.0f / 3);
  CHECK(std::isnan(f32("sqrt.rn.f32 d, a;", -1)));
  CHECK(std::signbit(f32("sqrt.rn.f32 d, a;", -0.0f)));
  CHECK(f32("rcp.rn.ftz.f32 d, a;", 1e-40f) == HUGE_VALF);
}

TEST_CASE("approximate functions keep the manual's bounds to the ends of the range") {
  for (const float x : {1e-3f, 0.3f, 0.99f, 1.0f, 1.7f, 3.0f, 17.5f, 88.0f}) {
    CAPTURE(x);
    CHECK(near(f32("ex2.approx.ftz.f32 d, a;", x), std::exp2(double(x)), 22));
    CHECK(near(f32("ex2.approx.f32 d, a;", -x), std::exp2(-double(x)), 22));
    CHECK(std::fabs(f32("lg2.approx.f32 d, a;", x) - std::log2(double(x))) < 0x1p-22 * 8);
    CHECK(near(f32("rcp.approx.ftz.f32 d, a;", x), 1.0 / x, 23));
    CHECK(near(f32("sqrt.approx.f32 d, a;", x), std::sqrt(double(x)), 23));
    CHECK(near(f32("rsqrt.approx.ftz.f32 d, a;", x), 1 / std::sqrt(double(x)), 22));
    CHECK(near(f32("tanh.approx.f32 d, a;", -x), std::tanh(-double(x)), 11));
    CHECK(near(f32("div.approx.ftz.f32 d, a, b;", x, 7), x / 7.0, 22));
    CHECK(near(f32("div.full.f32 d, a, b;", x, -7), x / -7.0, 22));
  }
  CHECK(f32("ex2.approx.f32 d, a;", 200) == HUGE_VALF);
  CHECK(f32("ex2.approx.f32 d, a;", -200) == 0);
  CHECK(f32("ex2.approx.f32 d, a;", -140) == 0x1p-140f);
  CHECK(f32("ex2.approx.ftz.f32 d, a;", -140) == 0);
  CHECK(f32("lg2.approx.f32 d, a;", 0) == -HUGE_VALF);
  CHECK(f32("lg2.approx.f32 d, a;", 0x1p-140f) == -140);
  CHECK(std::isnan(f32("lg2.approx.f32 d, a;", -1)));
  CHECK(f32("rsqrt.approx.f32 d, a;", HUGE_VALF) == 0);
  CHECK(f32("div.approx.f32 d, a, b;", 1, 0x1p127f) == 0);
  CHECK(std::isnan(f32("div.approx.f32 d, a, b;", HUGE_VALF, 0x1p127f)));
  CHECK(f32("div.full.f32 d, a, b;", 1, 0x1p127f) == 0x1p-127f);
  CHECK(eval("ex2.approx.f16x2 d, a;", {0x3C00C000}) == 0x40003400);
}

TEST_CASE("rounding and flushing and saturation are taken from the modifiers") {
  CHECK(eval("add.rn.f32 d, a, b;", {0x3F800000, 0x33800000}) == 0x3F800000);
  CHECK(eval("add.rp.f32 d, a, b;", {0x3F800000, 0x33800000}) == 0x3F800001);
  CHECK(eval("sub.rz.f32 d, a, b;", {0x3F800000, 0x33000000}) == 0x3F7FFFFF);
  CHECK(eval("add.f32 d, a, b;", {1, 1}) == 2);
  CHECK(eval("add.ftz.f32 d, a, b;", {1, 1}) == 0);
  CHECK(eval("mul.ftz.f32 d, a, b;", {0x80800000, 0x3F000000}) == 0x80000000);
  CHECK(eval("add.sat.f32 d, a, b;", {0x40000000, 0x3F800000}) == 0x3F800000);
  CHECK(eval("add.sat.f32 d, a, b;", {0xC0000000, 0x3F800000}) == 0);
  CHECK(eval("fma.rn.f32 d, a, b, c;", {0x3F800001, 0x3F800001, 0xBF800002}) == 0x28800000);
  CHECK(eval("fma.rm.f32 d, a, b, c;", {0x3F800000, 0x3F800000, 0xBF800000}) == 0x80000000);
  CHECK(eval("mul.f32 d, a, b;", {0x7F800000, 0}) == 0x7FFFFFFF);
}

TEST_CASE("minimum and maximum treat NaN and signed zeros as the manual says") {
  CHECK(eval("max.f32 d, a, b;", {0x7FC00000, 0x3F800000}) == 0x3F800000);
  CHECK(eval("max.NaN.f32 d, a, b;", {0x7FC00000, 0x3F800000}) == 0x7FFFFFFF);
  CHECK(eval("min.f32 d, a, b;", {0x00000000, 0x80000000}) == 0x80000000);
  CHECK(eval("max.f32 d, a, b;", {0x80000000, 0x00000000}) == 0);
  CHECK(eval("max.bf16x2 d, a, b;", {0x3F80C000, 0xBF804000}) == 0x3F804000);
}

TEST_CASE("neg and abs touch the sign only") {
  CHECK(eval("neg.f32 d, a;", {0x7F800000}) == 0xFF800000);
  CHECK(eval("abs.f32 d, a;", {0x80000001}) == 1);
  CHECK(eval("abs.ftz.f32 d, a;", {0x80000001}) == 0);
  CHECK(eval("neg.f16x2 d, a;", {0x3C00BC00}) == 0xBC003C00);
}

TEST_CASE("packed halves are independent") {
  CHECK(eval("add.f16x2 d, a, b;", {0x3C004000, 0x3C00C000}) == 0x40000000);
  CHECK(eval("fma.rn.f16x2 d, a, b, c;", {0x40003C00, 0x42004200, 0x3C003C00}) == 0x47004400);
  CHECK(eval("fma.rn.relu.f16x2 d, a, b, c;", {0xC0003C00, 0x42004200, 0x3C003C00}) == 0x00004400);
  CHECK(eval("mul.f32x2 d, a, b;", {0x400000003F800000, 0x4040000040400000}, {64, 64, 64}) ==
        0x40C0000040400000);
}

TEST_CASE("conversions pack their first source high") {
  CHECK(eval("cvt.rn.f16x2.f32 d, a, b;", {0x3F800000, 0x40000000}) == 0x3C004000);
  CHECK(eval("cvt.rn.bf16x2.f32 d, a, b;", {0x3F800000, 0x40000000}) == 0x3F804000);
  CHECK(eval("cvt.rn.satfinite.e4m3x2.f32 d, a, b;", {0x3F800000, 0x7F800000}, {16}) == 0x387E);
  CHECK(eval("{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, a, b; mov.b32 d, {t, t, t, t}; }",
             {0x3F800000, 0xC0C00000}) == 0x2F2F2F2F);
  CHECK(eval("cvt.rn.f16x2.e4m3x2 d, a;", {0x387E}, {32, 16}) == 0x3C005F00);
  CHECK(eval("{ .reg .b8 t, u, v, w; mov.b32 {t, u, v, w}, a; cvt.rn.f16x2.e2m1x2 d, t; }",
             {0x000000F1}) == 0xC6003800);
  CHECK(eval("cvt.rp.satfinite.ue8m0x2.f32 d, a, b;", {0x3F800000, 0x3F800001}, {16}) == 0x7F80);
}

TEST_CASE("conversions between numbers of one value") {
  CHECK(eval("cvt.f32.f16 d, a;", {0x0001}, {32, 16}) == 0x33800000);
  CHECK(eval("cvt.ftz.f32.f16 d, a;", {0x0001}, {32, 16}) == 0x33800000);
  CHECK(eval("cvt.rn.f16.f32 d, a;", {0x33800000}, {16}) == 1);
  CHECK(eval("cvt.rn.f32.s32 d, a;", {uint32_t(-3)}) == 0xC0400000);
  CHECK(eval("cvt.rn.f32.u64 d, a;", {~0ull}, {32, 64}) == 0x5F800000);
  CHECK(eval("cvt.rz.f32.u32 d, a;", {~0u}) == 0x4F7FFFFF);
  CHECK(eval("cvt.rzi.s32.f32 d, a;", {0xC0200000}) == uint32_t(-2));
  CHECK(eval("cvt.rmi.s32.f32 d, a;", {0xC0200000}) == uint32_t(-3));
  CHECK(eval("cvt.rni.f32.f32 d, a;", {0x40200000}) == 0x40000000);
  CHECK(eval("cvt.rzi.f32.f32 d, a;", {0xBF000000}) == 0x80000000);
  CHECK(eval("cvt.sat.f32.f32 d, a;", {0x7FC00000}) == 0);
  CHECK(eval("cvt.sat.f32.f32 d, a;", {0x80000000}) == 0);  // -0, as an H200 has it
}

TEST_CASE("setp distinguishes ordered and unordered tests") {
  auto test = [](const char* name, uint32_t a, uint32_t b) {
    return eval(
        std::string("{ .reg .pred p; setp.") + name + ".f32 p, a, b; selp.u32 d, 1, 0, p; }",
        {a, b});
  };
  const uint32_t nan = 0x7FC00000, one = 0x3F800000, two = 0x40000000;
  CHECK(test("lt", one, two) == 1);
  CHECK(test("lt", one, nan) == 0);
  CHECK(test("ltu", one, nan) == 1);
  CHECK(test("ne", one, nan) == 0);
  CHECK(test("neu", one, nan) == 1);
  CHECK(test("eq", 0, 0x80000000) == 1);
  CHECK(test("ge", 0xC0000000, 0xBF800000) == 0);
  CHECK(test("num", one, two) == 1);
  CHECK(test("nan", nan, two) == 1);
  CHECK(test("eq.ftz", 1, 2) == 1);
}
