// SPDX-License-Identifier: MIT
// Values of integer instructions, worked out by hand from the PTX manual.
#include "tools/emulator/test/support/exec_support.h"

using exec_test::Widths;

TEST_CASE("integer sums wrap and saturate") {
  CHECK(eval("add.s32 d, a, b;", {0x7FFFFFFF, 1}) == 0x80000000);
  CHECK(eval("add.sat.s32 d, a, b;", {0x7FFFFFFF, 1}) == 0x7FFFFFFF);
  CHECK(eval("sub.sat.s32 d, a, b;", {0x80000000, 1}) == 0x80000000);
  CHECK(eval("add.s16 d, a, b;", {0xFFFF, 2}, {16, 16, 16}) == 1);
  CHECK(eval("sub.s64 d, a, b;", {0, 1}, {64, 64, 64}) == ~0ull);
}

TEST_CASE("products have a low and a high and a wide half") {
  CHECK(eval("mul.lo.s32 d, a, b;", {0x10001, 0x10001}) == 0x20001);
  CHECK(eval("mul.hi.u32 d, a, b;", {~0u, ~0u}) == 0xFFFFFFFE);
  CHECK(eval("mul.hi.s32 d, a, b;", {~0u, 2}) == 0xFFFFFFFF);
  CHECK(eval("mul.hi.u64 d, a, b;", {~0ull, ~0ull}, {64, 64, 64}) == ~0ull - 1);
  CHECK(eval("mul.wide.s32 d, a, b;", {~0u, 3}, {64}) == ~0ull - 2);
  CHECK(eval("mul.wide.u16 d, a, b;", {0xFFFF, 0xFFFF}, {32, 16, 16}) == 0xFFFE0001);
  CHECK(eval("mad.lo.s32 d, a, b, c;", {3, 5, ~0u}) == 14);
  CHECK(eval("mad.wide.u32 d, a, b, c;", {~0u, 2, 1}, {64, 32, 32, 64}) == 0x1FFFFFFFFull);
  CHECK(eval("mad.hi.sat.s32 d, a, b, c;", {0x40000000, 8, 0x7FFFFFFF}) == 0x7FFFFFFF);
}

TEST_CASE("division rounds toward zero and does not trap") {
  CHECK(eval("div.s32 d, a, b;", {uint32_t(-7), 2}) == uint32_t(-3));
  CHECK(eval("rem.s32 d, a, b;", {uint32_t(-7), 2}) == uint32_t(-1));
  CHECK(eval("div.s32 d, a, b;", {0x80000000, uint32_t(-1)}) == 0x80000000);
  CHECK(eval("div.u32 d, a, b;", {5, 0}) == ~0u);
  CHECK(eval("rem.u32 d, a, b;", {5, 0}) == 0xFFFFFFFF);
  CHECK(eval("div.u16 d, a, b;", {0xFFFF, 16}, {16, 16, 16}) == 0xFFF);
}

TEST_CASE("shift amounts beyond the width are clamped") {
  CHECK(eval("shl.b32 d, a, b;", {1, 31}) == 0x80000000);
  CHECK(eval("shl.b32 d, a, b;", {1, 32}) == 0);
  CHECK(eval("shr.s32 d, a, b;", {0x80000000, 40}) == ~0u);
  CHECK(eval("shr.u64 d, a, b;", {1ull << 63, 63}, {64, 64}) == 1);
  CHECK(eval("shr.s16 d, a, b;", {0x8000, 4}, {16, 16}) == 0xF800);
  CHECK(eval("shf.l.wrap.b32 d, a, b, c;", {0x80000000, 1, 33}) == 3);
  CHECK(eval("shf.r.clamp.b32 d, a, b, c;", {1, 2, 40}) == 2);
}

TEST_CASE("prmt picks bytes and spreads signs") {
  CHECK(eval("prmt.b32 d, a, b, 0x7530;", {0x03020100, 0x07060504}) == 0x07050300);
  CHECK(eval("prmt.b32 d, a, b, 0xF008;", {0x00000080, 0x80000000}) == 0xFF8080FF);
  CHECK(eval("prmt.b32.rc16 d, a, b, 1;", {0x12345678, 0}) == 0x12341234);
  CHECK(eval("prmt.b32.b4e d, a, b, 0;", {0x03020100, 0x07060504}) == 0x05060700);
}

TEST_CASE("lop3 is its truth table") {
  CHECK(eval("lop3.b32 d, a, b, c, 0x96;", {0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA}) ==
        (0xF0F0F0F0u ^ 0xCCCCCCCCu ^ 0xAAAAAAAAu));
  CHECK(eval("lop3.b32 d, a, b, c, 0xEA;", {0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA}) ==
        ((0xF0F0F0F0u & 0xCCCCCCCCu) | 0xAAAAAAAAu));
}

TEST_CASE("bit fields are cut at the operand's end") {
  CHECK(eval("bfe.u32 d, a, b, c;", {0xABCD1234, 8, 8}) == 0x12);
  CHECK(eval("bfe.s32 d, a, b, c;", {0x0000F000, 12, 4}) == ~0u);
  CHECK(eval("bfe.u32 d, a, b, c;", {0xF0000000, 28, 16}) == 0xF);
  CHECK(eval("bfe.s32 d, a, b, c;", {0x80000000, 40, 4}) == ~0u);
  CHECK(eval("bfe.u64 d, a, b, c;", {~0ull, 0, 64}, {64, 64}) == ~0ull);
  CHECK(eval("bfi.b32 d, a, b, c, e;", {0xF, 0, 4, 4}) == 0xF0);
  CHECK(eval("bfi.b32 d, a, b, c, e;", {~0u, 0, 28, 8}) == 0xF0000000);
  CHECK(eval("bfi.b64 d, a, b, c, e;", {0xAB, ~0ull, 32, 8}, {64, 64, 64}) == 0xFFFFFFABFFFFFFFF);
}

TEST_CASE("bmsk makes a run of ones") {
  CHECK(eval("bmsk.clamp.b32 d, a, b;", {4, 8}) == 0xFF0);
  CHECK(eval("bmsk.clamp.b32 d, a, b;", {28, 8}) == 0xF0000000);
  CHECK(eval("bmsk.clamp.b32 d, a, b;", {0, 40}) == 0xFFFFFFFF);
  CHECK(eval("bmsk.clamp.b32 d, a, b;", {32, 1}) == 0);
  CHECK(eval("bmsk.wrap.b32 d, a, b;", {33, 33}) == 2);
}

TEST_CASE("bits are counted and found") {
  CHECK(eval("popc.b32 d, a;", {0xF0F00001}) == 9);
  CHECK(eval("clz.b32 d, a;", {0}) == 32);
  CHECK(eval("clz.b64 d, a;", {1}, {32, 64}) == 63);
  CHECK(eval("brev.b32 d, a;", {0x80000001}) == 0x80000001);
  CHECK(eval("brev.b32 d, a;", {2}) == 0x40000000);
  CHECK(eval("bfind.u32 d, a;", {0x00010000}) == 16);
  CHECK(eval("bfind.s32 d, a;", {uint32_t(-2)}) == 0);
  CHECK(eval("bfind.u32 d, a;", {0}) == ~0u);
  CHECK(eval("bfind.shiftamt.u32 d, a;", {0x00010000}) == 15);
}

TEST_CASE("the carry goes from one instruction to the next") {
  const auto pair = [](const std::string& low, const std::string& high, uint64_t a, uint64_t b) {
    return eval("{ .reg .b32 al, ah, bl, bh, l, h; mov.b64 {al, ah}, a; mov.b64 {bl, bh}, b; " +
                    low + " l, al, bl; " + high + " h, ah, bh; mov.b64 d, {l, h}; }",
                {a, b}, {64, 64, 64});
  };
  CHECK(pair("add.cc.u32", "addc.u32", 0xFFFFFFFF, 1) == 0x100000000);
  CHECK(pair("add.cc.s32", "addc.cc.s32", 0x1FFFFFFFF, 0x2FFFFFFFF) == 0x4FFFFFFFE);
  CHECK(pair("sub.cc.u32", "subc.u32", 0x100000000, 1) == 0xFFFFFFFF);
  CHECK(pair("sub.cc.u32", "subc.cc.u32", 5, 7) == uint64_t(-2));
  // All ones squared, its upper half: the low half carries once, and so does the first cross
  // product.
  CHECK(eval("{ .reg .b64 x; mad.lo.cc.u64 x, a, b, c; madc.hi.u64 d, a, b, c; }",
             {~0ull, ~0ull, ~0ull}, {64, 64, 64, 64}) == ~0ull - 1 + ~0ull + 1);
  CHECK(eval("{ .reg .b32 x; mad.hi.cc.u32 x, a, b, c; addc.u32 d, 0, 0; }", {~0u, ~0u, 3}) == 1);
  CHECK(eval("{ .reg .b32 x; mad.hi.cc.u32 x, a, b, c; addc.u32 d, 0, 0; }", {~0u, ~0u, 1}) == 0);
  CHECK(eval("{ .reg .b64 x; add.cc.s64 x, a, b; madc.lo.cc.s64 d, a, b, a; }", {~0ull, 2},
             {64, 64, 64}) == uint64_t(-2));
  // sub.cc with addc, and add.cc with subc: without a borrow sub.cc leaves the carry flag at 1.
  CHECK(eval("{ .reg .b32 x; sub.cc.u32 x, a, b; addc.u32 d, 0, 0; }", {5, 5}) == 1);
  CHECK(eval("{ .reg .b32 x; sub.cc.u32 x, a, b; addc.u32 d, 0, 0; }", {5, 6}) == 0);
  CHECK(eval("{ .reg .b32 x; add.cc.u32 x, a, b; subc.u32 d, 9, 0; }", {~0u, 1}) == 9);
  CHECK(eval("{ .reg .b32 x; add.cc.u32 x, a, b; subc.u32 d, 9, 0; }", {1, 1}) == 8);
  CHECK(eval("{ .reg .b32 x, y; sub.cc.s32 x, a, b; subc.cc.s32 y, 0, 0; addc.u32 d, 0, 0; }",
             {5, 6}) == 0);
  emu::FaultKind kind;
  CHECK(exec_test::contains(exec_test::fault("{ .reg .u32 d; addc.u32 d, 1, 2; }", {}, &kind),
                            "no .cc instruction has written it"));
  CHECK(kind == emu::FaultKind::uninitialised);
}

TEST_CASE("dot products of bytes wrap and differences are summed") {
  CHECK(eval("dp4a.u32.u32 d, a, b, c;", {0xFF010203, 0x02030405, 7}) ==
        255 * 2 + 1 * 3 + 2 * 4 + 3 * 5 + 7);
  CHECK(eval("dp4a.s32.u32 d, a, b, c;", {0xFF000000, 0xFF000000, 0}) == uint32_t(-255));
  CHECK(eval("dp4a.u32.s32 d, a, b, c;", {0xFF000000, 0x80000000, 1}) == uint32_t(-255 * 128 + 1));
  CHECK(eval("dp4a.s32.s32 d, a, b, c;", {0x80, 0x80, 0xFFFFFFFF}) == 128 * 128 - 1);
  CHECK(eval("dp2a.lo.s32.s32 d, a, b, c;", {0xFFFE0003, 0x7F80FF02, 0}) == uint32_t(3 * 2 + 2));
  CHECK(eval("dp2a.hi.s32.u32 d, a, b, c;", {0xFFFE0003, 0x02800000, 0}) ==
        uint32_t(3 * 128 - 2 * 2));
  CHECK(eval("sad.u32 d, a, b, c;", {3, 10, 100}) == 107);
  CHECK(eval("sad.s32 d, a, b, c;", {uint32_t(-3), 10, 100}) == 113);
  CHECK(eval("sad.u16 d, a, b, c;", {0xFFFF, 0, 2}, {16, 16, 16, 16}) == 1);
}

TEST_CASE("minima and maxima of pairs") {
  CHECK(eval("min.s16x2 d, a, b;", {0xFFFF0001, 0x00010000}) == 0xFFFF0000);
  CHECK(eval("min.u16x2 d, a, b;", {0xFFFF0001, 0x00010000}) == 0x00010000);
  CHECK(eval("max.s16x2 d, a, b;", {0xFFFF0001, 0x00010000}) == 0x00010001);
  CHECK(eval("max.u16x2 d, a, b;", {0xFFFF0001, 0x00010000}) == 0xFFFF0001);
}

TEST_CASE("set answers with ones in every bit or with 1") {
  CHECK(eval("set.lt.u32.s32 d, a, b;", {uint32_t(-1), 1}) == ~0u);
  CHECK(eval("set.lo.u32.u32 d, a, b;", {~0u, 1}) == 0);
  CHECK(eval("set.ge.f32.s32 d, a, b;", {1, 1}) == 0x3F800000);
  CHECK(eval("set.eq.u32.f32 d, a, b;", {0x80000000, 0}) == ~0u);
  CHECK(eval("set.equ.s32.f32 d, a, b;", {0x7FC00000, 0}) == ~0u);
  CHECK(eval("set.gt.f16.f16 d, a, b;", {0x4000, 0x3C00}, {16, 16, 16}) == 0x3C00);
  CHECK(eval("set.gt.u16.f16 d, a, b;", {0x4000, 0x3C00}, {16, 16, 16}) == 0xFFFF);
  CHECK(eval("set.gt.u32.f16x2 d, a, b;", {0x40003C00, 0x3C003C00}) == 0xFFFF0000);
  CHECK(eval("set.le.bf16x2.bf16x2 d, a, b;", {0x40003F80, 0x3F803F80}) == 0x00003F80);
  CHECK(eval("{ .reg .pred p; setp.ne.s32 p, c, 0; set.lt.xor.u32.s32 d, a, b, p; }", {1, 2, 1}) ==
        0);
}

TEST_CASE("minima and maxima follow the type's sign") {
  CHECK(eval("min.s32 d, a, b;", {~0u, 1}) == ~0u);
  CHECK(eval("min.u32 d, a, b;", {~0u, 1}) == 1);
  CHECK(eval("max.s64 d, a, b;", {~0ull, 1}, {64, 64, 64}) == 1);
  CHECK(eval("abs.s32 d, a;", {uint32_t(-5)}) == 5);
  CHECK(eval("neg.s64 d, a;", {1}, {64, 64}) == ~0ull);
}

TEST_CASE("integer conversions cut and extend and saturate") {
  CHECK(eval("cvt.s32.s8 d, a;", {0x80}) == 0xFFFFFF80);
  CHECK(eval("cvt.u64.u32 d, a;", {0xFFFFFFFF}, {64}) == 0xFFFFFFFF);
  CHECK(eval("cvt.s64.s32 d, a;", {0xFFFFFFFF}, {64}) == ~0ull);
  CHECK(eval("cvt.u16.u32 d, a;", {0x12345678}, {16}) == 0x5678);
  CHECK(eval("cvt.sat.s8.s32 d, a;", {1000}) == 127);
  CHECK(eval("cvt.sat.u8.s32 d, a;", {uint32_t(-3)}) == 0);
  CHECK(eval("cvt.s16.s8 d, a;", {0xFE}, {16, 16}) == 0xFFFE);
}

TEST_CASE("mov packs low parts first") {
  CHECK(eval("mov.b32 d, {a, b};", {0x1111, 0x2222}, {32, 16, 16}) == 0x22221111);
  CHECK(eval("mov.b64 d, {a, b};", {1, 2}, {64}) == 0x200000001);
  CHECK(eval("{ .reg .b32 t; mov.b64 {t, d}, a; }", {0x0000000200000001}, {32, 64}) == 2);
  CHECK(eval("{ .reg .b16 l, h; mov.b32 {l, h}, a; mov.b32 d, {h, l}; }", {0x12345678}) ==
        0x56781234);
  CHECK(eval("{ .reg .b128 q; .reg .b64 l; mov.b128 q, {a, b}; mov.b128 {l, d}, q; }", {5, 7},
             {64, 64, 64}) == 7);
}

TEST_CASE("setp combines its test with a predicate and gives the complement") {
  const char* text =
      "{ .reg .pred p, q, r; setp.ne.s32 r, c, 0; setp.lt.and.s32 p|q, a, b, r;"
      " selp.u32 d, 1, 0, p; .reg .b32 t; selp.u32 t, 2, 0, q; or.b32 d, d, t; }";
  CHECK(eval(text, {uint32_t(-1), 1, 1}) == 1);
  CHECK(eval(text, {1, 1, 1}) == 2);
  CHECK(eval(text, {uint32_t(-1), 1, 0}) == 0);
  CHECK(eval("{ .reg .pred p; setp.hi.u32 p, a, b; selp.b32 d, a, b, p; }", {~0u, 1}) == ~0u);
}

TEST_CASE("predicates have logic of their own") {
  const char* text =
      "{ .reg .pred p, q; setp.ne.s32 p, a, 0; setp.ne.s32 q, b, 0; not.pred q, q;"
      " xor.pred p, p, q; selp.u32 d, 1, 0, p; }";
  CHECK(eval(text, {1, 1}) == 1);
  CHECK(eval(text, {1, 0}) == 0);
}
