// SPDX-License-Identifier: MIT
// Registers that are vectors, and registers as parameters of functions.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using emu::FaultKind;

namespace {

using Words = std::vector<uint32_t>;

std::string refused(const std::string& body, const std::string& declarations = "") {
  return ptx_test::verdict(exec_test::kernel(body, declarations));
}

// Counts down by calls of itself: 1 + 2 .. n.
const char* const sum_to = R"(
.func (.reg .u32 sum) sum_to(.reg .u32 n)
{ .reg .pred p; .reg .u32 less;
  mov.u32 sum, 0; setp.eq.u32 p, n, 0; @p ret;
  sub.u32 less, n, 1; call (sum), sum_to, (less); add.u32 sum, sum, n; ret; }
)";

}  // namespace

TEST_CASE("the parts of a vector register are registers under two names each") {
  CHECK(run(".reg .v4 .u32 v; .reg .v2 .f32 w<2>; .reg .v4 .b16 h;"
            "mov.u32 v.x, 1; add.u32 v.y, v.x, 1; add.u32 v.b, v.g, 1; mov.u32 v.a, v.z;"
            "mov.f32 w1.x, 1.0; add.f32 w1.g, w1.r, w1.x; mov.b64 %rd0, {v.w, v.x};"
            "mov.b16 h.x, 7; mov.b16 h.y, 8; mov.b16 h.z, 9; mov.b16 h.w, 10; mov.b64 %rd1, h;"
            "st.global.v4.u32 [%out], v; st.global.v2.f32 [%out+16], w1;"
            "st.global.u64 [%out+24], %rd0; st.global.u64 [%out+32], %rd1;"
            "st.global.u32 [%out+40], {v.y};",
            {}, Words(11)) == Words{1, 2, 3, 3, 0x3F800000, 0x40000000, 3, 1, 0x80007, 0xA0009, 2});
}

TEST_CASE("a vector register is loaded and moved and unpacked as a whole") {
  CHECK(run(".reg .v4 .u32 a, b; .reg .v2 .u64 c; .reg .v2 .u32 d;"
            "ld.global.v4.u32 a, [%out]; mov.v4.u32 b, a; mov.v4.u32 {%r0, _, %r1, b.x}, b;"
            "mov.v2.u64 c, {5, 6}; mov.b64 d, c.y; mov.v2.b32 d, {d.y, d.x};"
            "st.global.v4.u32 [%out+16], b; st.global.v2.u32 [%out+32], {%r0, %r1};"
            "st.global.v2.u32 [%out+40], d;",
            {}, {1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 9, 9}) == Words{1, 2, 3, 4, 4, 2, 3, 4, 1, 3, 0, 6});
  CHECK(run(".reg .v4 .u32 v; mov.v4.u32 v, %tid; st.global.v4.u32 [%out], v;", {}, Words(4, 9)) ==
        Words(4, 0));
}

TEST_CASE("a part that was never written has no value whatever the others have") {
  FaultKind kind{};
  const char* const half = ".reg .v2 .u32 v, w; mov.u32 v.x, 4; mov.v2.u32 w, v; ";
  CHECK(run(std::string(half) + "add.u32 w.x, w.x, 1; st.global.u32 [%out], w.x;", {}, {0}) ==
        Words{5});
  const std::string report = exec_test::fault(std::string(half) +
                                                  "add.u32 w.y, w.y, 1;"
                                                  "st.global.u32 [%out], w.y;",
                                              {}, &kind);
  CHECK(kind == FaultKind::uninitialised);
  CHECK(contains(report, "v.y"));
}

TEST_CASE("what ptxas refuses of vector registers is refused") {
  const std::string v = ".reg .v2 .u64 v; .reg .v2 .u32 w; ";
  CHECK(refused(v + "mov.u32 w.x, 1;") == "accepted");
  for (const char* wide : {".v4 .b64", ".v2 .b128", ".v2 .pred"})
    CHECK(contains(refused(".reg " + std::string(wide) + " z;"), "at most 128 bits"));
  CHECK(contains(refused(v + "mov.u32 w.z, 1;"), "'w' has no '.z'"));
  CHECK(contains(refused(v + "add.u64 v, v, v;"), "no vector here"));
  CHECK(contains(refused(v + "mov.u64 v, v;"), "no vector"));
  CHECK(contains(refused(v + "ld.global.u32 %r0, [v];"), "'v' is a vector of registers"));
  CHECK(contains(refused(v + "mov.b64 %rd0, {w, w};"), "'w' is a vector of registers"));
  CHECK(contains(refused(v + "ld.global.v4.u32 {w, w}, [%rd0];"), "'w' is a vector of registers"));
  CHECK(contains(refused(v + "mov.v2.f32 w, w;"), ".f32 expected"));
  CHECK(contains(refused(v + "mov.v2.u32 w, {%r0, _};"), "'_' is not allowed"));
  CHECK(contains(refused(".reg .u32 u; mov.u32 u.x, 1;"), "'u' has no '.x'"));
  CHECK(contains(refused("mov.v4.b64 {%rd0, %rd1, %rd2, %rd3}, {1, 2, 3, 4};"),
                 ".v4 does not go with"));
}

TEST_CASE("one register in braces is that register") {
  CHECK(run("mov.b32 %r0, 5; mov.b32 {%r1}, %r0; mov.b32 %r0, {%r1}; st.global.u32 [%out], {%r0};",
            {}, {0}) == Words{5});
  CHECK(contains(refused("mov.b32 {%r0}, {%r1};"), "no vector here"));
}

TEST_CASE("isspacep.const knows the variables") {
  CHECK(run("mov.u64 %rd0, c; cvta.const.u64 %rd0, %rd0; isspacep.const %p0, %rd0;"
            "add.u64 %rd1, %rd0, 8; isspacep.const %p1, %rd1; isspacep.const %p2, %out;"
            "selp.u32 %r0, 1, 0, %p0; selp.u32 %r1, 2, 0, %p1; selp.u32 %r2, 4, 0, %p2;"
            "add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2; st.global.u32 [%out], %r0;",
            {}, {9}, ".const .align 8 .b8 c[8] = {1, 2};") == Words{1});
}

TEST_CASE("registers and constants are handed to a function in registers and in memory") {
  const char* const functions = R"(
.func (.reg .u32 o) madd(.reg .u32 a, .param .u32 b, .reg .s32 c)
{ .reg .u32 t; ld.param.u32 t, [b]; mad.lo.u32 o, a, t, c; mov.u32 a, 99; ret; }
.func (.param .f32 o) half(.reg .f32 a)
{ mul.f32 a, a, 0.5; st.param.f32 [o], a; ret; }
.func (.reg .b16 o) low(.reg .b16 a, .reg .b64 b) { .reg .b32 z;
  cvt.u32.u64 z, b; mov.b32 {o, _}, z; add.u16 o, o, a; ret; }
)";
  CHECK(run(".param .b32 in; .param .b32 got; .reg .b16 h; .reg .f32 f;"
            "mov.u32 %r0, 7; st.param.b32 [in], 5;"
            "call (%r1), madd, (%r0, in, -1); call (got), madd, (2, %r0, in);"
            "ld.param.u32 %r2, [got]; call (_), madd, (1, 2, 3); call (f), half, (3.0);"
            "call (h), low, (2, 40); cvt.u32.u16 %r3, h;"
            "st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3}; st.global.f32 [%out+16], f;",
            {}, Words(5), functions) == Words{7, 34, 19, 42, 0x3FC00000});
}

TEST_CASE("lanes that a guard keeps from a call keep the register of its result") {
  CHECK(run("mov.u32 %r0, %laneid; setp.lt.u32 %p0, %r0, 2; mov.u32 %r1, 50;"
            "@%p0 call (%r1), next, (%r0); mul.wide.u32 %rd0, %r0, 4; add.u64 %rd0, %rd0, %out;"
            "st.global.u32 [%rd0], %r1;",
            {{}, {4}, {}}, Words(4),
            ".func (.reg .u32 o) next(.reg .u32 a) { add.u32 o, a, 1; ret; }") ==
        Words{1, 2, 50, 50});
}

TEST_CASE("functions with parameters in registers recur and are pointed to") {
  CHECK(run("mov.u32 %r0, %laneid; call (%r1), sum_to, (%r0); mov.u64 %rd1, sum_to;"
            "proto : .callprototype (.reg .u32 _) _ (.reg .u32 _);"
            "call (%r2), %rd1, (%r1), proto; mul.wide.u32 %rd0, %r0, 8; add.u64 %rd0, %rd0, %out;"
            "st.global.v2.u32 [%rd0], {%r1, %r2};",
            {{}, {4}, {}}, Words(8), sum_to) == Words{0, 0, 1, 1, 3, 6, 6, 21});
}

TEST_CASE("a result in a register that the function did not write has no value") {
  FaultKind kind{};
  exec_test::fault("call (%r0), f; st.global.u32 [%out], %r0;", {}, &kind,
                   ".func (.reg .b32 x) f() { ret; }");
  CHECK(kind == FaultKind::uninitialised);
}

TEST_CASE("what ptxas refuses of parameters in registers is refused") {
  const std::string f = ".func (.reg .u32 y) f(.reg .u32 x) { mov.u32 y, x; ret; }";
  CHECK(refused("call (%r0), f, (%r1);", f) == "accepted");
  CHECK(contains(refused("call (%r0), f, (%rd1);", f), "constant of type .u32"));
  CHECK(contains(refused("call (%rd0), f, (%r1);", f), "constant of type .u32"));
  CHECK(contains(refused(".reg .f32 a; call (%r0), f, (a);", f), "constant of type .u32"));
  CHECK(contains(refused("call (%r0), f, (%r1+4);", f), "constant of type .u32"));
  CHECK(contains(refused("call (%r0), f, (_);", f), "constant of type .u32"));
  CHECK(contains(refused("call (3), f, (%r1);", f), "constant of type .u32"));
  CHECK(contains(refused("call (%r0), f, (1.0);", f), "cannot have type .u32"));
  CHECK(contains(refused("call f, (%r1);", f), "'f' has 1 results, the call 0"));
  CHECK(contains(refused("call g, (%r1);", ".func g(.param .align 4 .b8 x[4]) { ret; }"),
                 "a .param variable expected"));
  CHECK(contains(refused("", ".func (.reg .u32 y) g(.reg .u32 y) { ret; }"), "declared twice"));
  CHECK(contains(refused("", ".func g(.reg .u32 x) { .reg .u32 x; ret; }"), "declared twice"));
  CHECK(contains(refused(".reg .u32 k_out;"), "declared twice"));
  CHECK(refused("{ .reg .u32 k_out; }") == "accepted");
  CHECK(contains(refused("", ".func g(.reg .u32 x[3]) { ret; }"), "neither an array"));
  CHECK(contains(refused("", ".func g(.reg .b128 x) { ret; }"), "nor .b128"));
  CHECK(contains(refused("", ".func g(.reg .pred x) { ret; }"), "a predicate"));
  CHECK(contains(refused("", ".func g(.reg .u32 _) { ret; }"), "has a name"));
  CHECK(contains(refused("", ".func g(.reg .u64 .ptr x) { ret; }"), "a variable's name"));
  for (const char* other : {".param .u32", ".reg .s32", ".reg .b32"})
    CHECK(contains(refused("", ".func g(.reg .u32 x); .func g(" + std::string(other) + " x) {}"),
                   "other parameters"));
  CHECK(contains(refused("", ".entry e(.reg .u32 x) { ret; }"), "not supported"));
}
