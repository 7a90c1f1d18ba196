// SPDX-License-Identifier: MIT
// Floating-point instructions through PTX: modifiers, packing, comparison. The arithmetic itself is
// tested in exec_softfloat.cc.
#include "tools/emulator/test/support/exec_support.h"

using exec_test::eval;

TEST_CASE("rounding, flushing and saturation are taken from the modifiers") {
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
