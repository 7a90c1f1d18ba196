// SPDX-License-Identifier: MIT
// Instructions of public kernels, with values worked out by hand from the manual.
#include <bit>
#include <limits>
#include <random>

#include "tools/emulator/test/support/exec_support.h"

using emu::format;
using exec_test::Shape;

TEST_CASE("max and min take three operands and their magnitudes with .abs") {
  const uint32_t one = 0x3F800000, minus_two = 0xC0000000, three = 0x40400000, nan = 0x7FC00000;
  CHECK(eval("max.f32 d, a, b, c;", {one, minus_two, three}) == three);
  CHECK(eval("min.f32 d, a, b, c;", {one, minus_two, three}) == minus_two);
  CHECK(eval("min.abs.f32 d, a, b, c;", {three, minus_two, three}) == 0x40000000);
  CHECK(eval("max.f32 d, a, b, c;", {nan, minus_two, nan}) == minus_two);
  CHECK(eval("max.NaN.f32 d, a, b, c;", {one, nan, three}) == 0x7FFFFFFF);
}

TEST_CASE("6-bit floats lie in a byte each with the first source in the upper one") {
  const exec_test::Widths narrow{.d = 16};
  // e2m3: 1.5 = 0.1100 (exponent 1, mantissa 4), the largest is 7.5; e3m2: -28 is the largest.
  CHECK(eval("cvt.rn.satfinite.e2m3x2.f32 d, a, b;", {0x3FC00000, 0x41200000}, narrow) == 0x0C1F);
  CHECK(eval("cvt.rn.satfinite.e3m2x2.f32 d, a, b;", {0xC2C80000, 0x3F800000}, narrow) == 0x3F0C);
  CHECK(eval("cvt.rn.satfinite.relu.e3m2x2.f32 d, a, b;", {0xC2C80000, 0x3F800000}, narrow) ==
        0x000C);
  CHECK(eval("cvt.rn.f16x2.e2m3x2 d, a;", {0x0C1F}, {.a = 16}) == 0x3E004780);
  CHECK(eval("cvt.rn.f16x2.e3m2x2 d, a;", {0x3F0C}, {.a = 16}) == 0xCF003C00);
}

TEST_CASE("powers of two come from pairs of bf16 too") {
  const exec_test::Widths narrow{.d = 16};
  // 1.0 and 1.5: 2^0, then 2^0 below and 2^1 above.
  CHECK(eval("cvt.rz.ue8m0x2.bf16x2 d, a;", {0x3F803FC0}, narrow) == 0x7F7F);
  CHECK(eval("cvt.rp.ue8m0x2.bf16x2 d, a;", {0x3F803FC0}, narrow) == 0x7F80);
}

TEST_CASE("tf32 has ten bits of mantissa rounded to even or away from zero or cut") {
  const uint32_t tie = 0x3F801000, above = 0x3F803000;  // 1 + half a place, 1 + three halves
  CHECK(eval("cvt.rn.tf32.f32 d, a;", {tie}) == 0x3F800000);
  CHECK(eval("cvt.rn.tf32.f32 d, a;", {above}) == 0x3F804000);
  CHECK(eval("cvt.rna.tf32.f32 d, a;", {tie}) == 0x3F802000);
  CHECK(eval("cvt.rz.tf32.f32 d, a;", {above}) == 0x3F802000);
  CHECK(eval("cvt.rz.relu.tf32.f32 d, a;", {0xBF803000}) == 0);
  CHECK(eval("cvt.rna.tf32.f32 d, a;", {0x7F7FFFFF}) == 0x7F800000);
  CHECK(eval("cvt.rna.satfinite.tf32.f32 d, a;", {0x7F7FFFFF}) == 0x7F7FE000);
  CHECK(eval("cvt.rn.tf32.f32 d, a;", {0xFFFFFFFF}) == 0x7FFFE000);  // as an H200 has it
}

TEST_CASE("f32 sums take halves as they are and round once") {
  const exec_test::Widths half{.a = 16};
  // 1 + 2^-10 in fp16, added to 2^-24: a tie in f32, to even.
  CHECK(eval("add.f32.f16 d, a, b;", {0x3C01, 0x33800000}, half) == 0x3F802000);
  CHECK(eval("add.rp.f32.f16 d, a, b;", {0x3C01, 0x33800000}, half) == 0x3F802001);
  CHECK(eval("sub.f32.bf16 d, a, b;", {0x4000, 0x3F800000}, half) == 0x3F800000);
  CHECK(eval("fma.rn.f32.f16 d, a, b, c;", {0x4200, 0x3800, 0xBF800000}, {.a = 16, .b = 16}) ==
        0x3F000000);
  CHECK(eval("fma.rn.sat.f32.bf16 d, a, b, c;", {0x4000, 0x4000, 0}, {.a = 16, .b = 16}) ==
        0x3F800000);
}

TEST_CASE("slct and testp and cnot and szext and pairs of 16-bit integers") {
  CHECK(eval("slct.b32.s32 d, a, b, c;", {1, 2, 0}) == 1);
  CHECK(eval("slct.b32.s32 d, a, b, c;", {1, 2, 0x80000000}) == 2);
  CHECK(eval("slct.b32.f32 d, a, b, c;", {1, 2, 0x80000000}) == 1);  // -0
  CHECK(eval("slct.b32.f32 d, a, b, c;", {1, 2, 0x7FC00000}) == 2);
  CHECK(eval("slct.b32.f32 d, a, b, c;", {1, 2, 0x80000001}) == 2);
  CHECK(eval("slct.ftz.b32.f32 d, a, b, c;", {1, 2, 0x80000001}) == 1);
  const auto test = [](const char* kind, uint32_t value) {
    return eval(std::string(".reg .pred q; testp.") + kind + ".f32 q, a; selp.u32 d, 1, 0, q;",
                {value});
  };
  CHECK(test("finite", 0x7F7FFFFF) == 1);
  CHECK(test("infinite", 0xFF800000) == 1);
  CHECK(test("number", 0x7F800001) == 0);
  CHECK(test("notanumber", 0x7F800001) == 1);
  CHECK(test("subnormal", 0x807FFFFF) == 1);
  CHECK(test("normal", 0x00800000) == 1);
  CHECK(test("normal", 0x80000000) == 1);  // zero counts as normal
  CHECK(test("normal", 0x00000001) == 0);
  CHECK(eval("cnot.b32 d, a;", {0}) == 1);
  CHECK(eval("cnot.b32 d, a;", {7}) == 0);
  CHECK(eval("szext.clamp.s32 d, a, b;", {0x88, 8}) == 0xFFFFFF88);
  CHECK(eval("szext.wrap.s32 d, a, b;", {0x88, 40}) == 0xFFFFFF88);
  CHECK(eval("szext.clamp.u32 d, a, b;", {0xFFFFFFFF, 99}) == 0xFFFFFFFF);
  CHECK(eval("szext.wrap.u32 d, a, b;", {0xFFFFFFFF, 32}) == 0);
  CHECK(eval("add.s16x2 d, a, b;", {0x7FFFFFFF, 0x00010001}) == 0x80000000);
}

TEST_CASE("lop3 also tests its result and combines the answer with a predicate") {
  const auto both = [](const char* op, uint32_t a, int q) {
    return eval(format(".reg .pred p, q; setp.ne.u32 q, %d, 0; lop3.%s.b32 d|p, a, b, b, 0xC0, q;"
                       "selp.u32 b, 1, 0, p; shl.b32 d, d, 4; or.b32 d, d, b;",
                       q, op),
                {a, 0xF});
  };
  CHECK(both("or", 0x3, 0) == 0x31);
  CHECK(both("or", 0x30, 0) == 0);
  CHECK(both("or", 0x30, 1) == 1);
  CHECK(both("and", 0x3, 0) == 0x30);
  CHECK(both("and", 0x3, 1) == 0x31);
}

TEST_CASE("a special register is moved whole with a zero after it") {
  const auto words =
      run("mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid;\n"
          "st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};\n"
          "mov.v4.u32 {%r1, _, %r3, %r4}, %laneid;\nst.global.u32 [%out+16], %r4;",
          {.block = {1, 1, 1}}, std::vector<uint32_t>(8, 9));
  CHECK(words[0] == 1);
  CHECK(words[1] == 1);
  CHECK(words[2] == 1);
  CHECK(words[3] == 0);
  CHECK(words[4] == 0);
}

TEST_CASE("st.bulk clears shared memory and discard takes a line's values") {
  const char* const shared = ".shared .align 16 .b8 s[64];";
  const auto words = run(
      "mov.u32 %r1, s;\nmov.u32 %r2, 7;\nst.shared.u32 [s+12], %r2;\nst.shared.u32 [s+16], %r2;\n"
      "st.bulk.weak.shared::cta [%r1], 16, 0;\n"
      "ld.shared.u32 %r3, [s+12];\nld.shared.u32 %r4, [s+16];\nst.global.v2.u32 [%out], {%r3, "
      "%r4};",
      {}, {9, 9}, shared);
  CHECK(words[0] == 0);
  CHECK(words[1] == 7);
  CHECK(contains(fault("st.bulk [%out], 16, 0;"), "shared memory only"));
  const auto line = run("discard.global.L2 [%out], 128;", {}, std::vector<uint32_t>(32, 5));
  CHECK(line[0] != 5);
  CHECK(line[31] != 5);
}

TEST_CASE("atomics of 16 bytes swap both halves or none") {
  const auto words =
      run(".reg .b128 x, y, z;\nmov.b64 %rd1, 1;\nmov.b64 %rd2, 2;\nmov.b64 %rd3, 3;\n"
          "mov.b128 x, {%rd1, %rd2};\nmov.b128 y, {%rd3, %rd1};\n"
          "atom.global.cas.b128 z, [%out], x, y;\natom.global.cas.b128 z, [%out], x, x;\n"
          "st.global.b128 [%out+16], z;\natom.global.exch.b128 _, [%out+32], y;",
          {}, {1, 0, 2, 0, 9, 9, 9, 9, 0, 0, 0, 0});
  CHECK(words == std::vector<uint32_t>{3, 0, 1, 0, 3, 0, 1, 0, 3, 0, 1, 0});
}

TEST_CASE("vectors of halves are added and their minimum kept part by part") {
  const auto words =
      run("mov.b32 %r1, 0x3C004000;\nmov.b32 %r2, 0x40003C00;\n"
          "red.global.add.noftz.v2.f16x2 [%out], {%r1, %r2};\n"
          "red.global.min.noftz.v2.f16x2 [%out+8], {%r1, %r2};",
          {}, {0x3C003C00, 0, 0x3E003E00, 0xBC007E00});
  CHECK(words == std::vector<uint32_t>{0x40004200, 0x40003C00, 0x3C003E00, 0xBC003C00});
}

TEST_CASE("barriers may say that they are of the CTA") {
  const auto words =
      run("barrier.cta.sync.aligned 0;\nbar.cta.sync 1, 64;\nmov.u32 %r1, %tid.x;\n"
          "setp.lt.u32 %p1, %r1, 40;\nbarrier.cta.red.popc.aligned.u32 %r2, 2, %p1;\n"
          "fence.acquire.sync_restrict::shared::cluster.cluster;\n"
          "setp.eq.u32 %p2, %r1, 0;\n@%p2 st.global.u32 [%out], %r2;",
          {.block = {64, 1, 1}}, {0});
  CHECK(words[0] == 40);
}

TEST_CASE("quotients of subnormal doubles are the host's") {
  static_assert(std::numeric_limits<double>::is_iec559);
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const uint64_t a = random() >> (12 + random() % 50), b = 1 + (random() >> (1 + random() % 40));
    const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b), quotient = x / y;
    if (!(y < 1e300)) continue;
    CAPTURE(a, b);
    CHECK(eval("div.rn.f64 d, a, b;", {a, b}, {.d = 64, .a = 64, .b = 64}) ==
          std::bit_cast<uint64_t>(quotient));
  }
}
