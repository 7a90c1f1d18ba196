// SPDX-License-Identifier: MIT
// Calls of functions: what they compute, where their faults are, and what is refused.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using emu::FaultKind;

namespace {

// max of two by an early return, and a function that calls it.
const char* const functions = R"(
.func (.param .b32 result) larger(.param .b32 x, .param .b32 y);
.func (.param .b32 result) larger_and_one(.param .b32 x, .param .b32 y)
{
  .reg .b32 %r<4>;
  { .param .b32 a; .param .b32 b; .param .b32 got;
    ld.param.b32 %r0, [x]; ld.param.b32 %r1, [y];
    st.param.b32 [a], %r0; st.param.b32 [b+0], %r1;
    call.uni (got),
      larger,
      (a, b);
    ld.param.b32 %r2, [got]; }
  add.u32 %r3, %r2, 1;
  st.param.b32 [result], %r3;
  ret;
}
.func (.param .b32 result) larger(.param .b32 x, .param .b32 y)
{
  .reg .b32 %r<2>; .reg .pred %p0;
  ld.param.b32 %r0, [x]; ld.param.b32 %r1, [y];
  setp.lt.u32 %p0, %r0, %r1; @%p0 bra OTHER;
  st.param.b32 [result], %r0;
  ret;
OTHER:
  st.param.b32 [result], %r1;
}
.func fails() { st.global.u32 [ERROR], 1; ret; }
)";

std::string functions_with(const std::string& statement) {
  std::string text = functions;
  return text.replace(text.find("st.global.u32 [ERROR], 1;"), 25, statement);
}

std::string called(const std::string& declaration, const std::string& call) {
  return ptx_test::verdict(".version 9.0\n.target sm_100a\n.address_size 64\n" + declaration +
                           "\n.visible .entry k(.param .u64 out) {\n" + ptx_test::declarations() +
                           call + "\nret;\n}\n");
}

std::string text_of(const std::string& name) {
  std::ifstream file(EMU_TEST_PTX_DIR "/" + name);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a function is called and returns from two places and calls another") {
  // Lanes diverge inside the callee and are together again after the call.
  const auto out =
      exec_test::run(R"(
    { .param .b32 a; .param .b32 b; .param .b32 got;
      mov.u32 %r0, %laneid; st.param.b32 [a], %r0; st.param.b32 [b], 20;
      call.uni (got), larger_and_one, (a, b); ld.param.b32 %r1, [got]; }
    { .param .b32 a; .param .b32 b; .param .b32 got;
      st.param.b32 [a], %r1; st.param.b32 [b], 25;
      call (got), larger, (a, b); ld.param.b32 %r1, [got]; }
    bar.warp.sync -1; shfl.sync.idx.b32 %r1, %r1, %r0, 31, -1;
    mul.wide.u32 %rd0, %r0, 4; add.s64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r1;)",
                     {{}, {32}, {}}, std::vector<uint32_t>(32), functions_with("ret;"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    CHECK(out[lane] == std::max(std::max(lane, 20u) + 1, 25u));
}

TEST_CASE("a guarded call is made by the lanes that its guard lets pass") {
  const auto out =
      exec_test::run(R"(
    mov.u32 %r0, %laneid; setp.lt.u32 %p0, %r0, 7; mov.u32 %r1, 0;
    { .param .b32 a; .param .b32 b; .param .b32 got;
      st.param.b32 [a], %r0; st.param.b32 [b], 20; st.param.b32 [got], 3;
      @%p0 call (got), larger, (a, b); ld.param.b32 %r1, [got]; }
    mul.wide.u32 %rd0, %r0, 4; add.s64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r1;)",
                     {{}, {32}, {}}, std::vector<uint32_t>(32), functions_with("ret;"));
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 7 ? 20u : 3u));
}

TEST_CASE("a shared variable of a function exists once however often it is called") {
  const auto out = exec_test::run(R"(
    mov.u32 %r0, 1024; st.shared.u32 [%r0], 0; call counts; call counts; call.uni counts;
    ld.shared.u32 %r1, [%r0]; st.global.u32 [%out], %r1;)",
                                  {}, std::vector<uint32_t>(1), R"(
    .func counts() { .shared .align 4 .b8 count[4];
      .reg .b32 r;
      mov.u32 r, 1; atom.shared.add.u32 r, [count], 1; ret; })");
  CHECK(out[0] == 3);
}

TEST_CASE("a fault in a function names the line of the function") {
  FaultKind kind{};
  const std::string declarations = functions_with("trap;");
  const std::string report = exec_test::fault("call fails;", {}, &kind, declarations);
  CHECK(kind == FaultKind::assertion);
  CHECK(contains(report, ": trap;"));
}

TEST_CASE("a result that the function did not store has no value") {
  FaultKind kind{};
  exec_test::fault(
      "{ .param .b32 got; call (got), f; ld.param.b32 %r0, [got]; st.global.u32 [%out], %r0; }", {},
      &kind, ".func (.param .b32 x) f() { ret; }");
  CHECK(kind == FaultKind::uninitialised);
}

TEST_CASE("calls that do not fit or are not supported are refused") {
  const std::string f = ".func (.param .b32 y) f(.param .b32 x) { ret; }";
  const std::string variables = "{ .param .b32 a; .param .b64 wide; .param .b32 got;";
  const auto refused = [&](const std::string& declaration, const std::string& call) {
    return called(declaration, variables + call + " }");
  };
  CHECK(refused(f, "call (got), f, (a);") == "accepted");
  CHECK(contains(refused(f, "call (got), g, (a);"), "no function 'g' is declared above"));
  CHECK(contains(refused(f, "call f, (a);"), "'f' has 1 results, the call 0"));
  CHECK(contains(refused(f, "call (got), f;"), "'f' has 1 parameters, the call 0"));
  CHECK(contains(refused(f, "call (got), f, (wide);"), "differ in size or alignment"));
  CHECK(contains(refused(f, "call (got), f, (d1);"), "register or constant of type .b32"));
  CHECK(contains(refused(f, "call (got), d1, (a), proto;"), "names no .callprototype above it"));
  CHECK(contains(refused(f, "mov.b64 d1, a;"), "only ld.param and st.param reach it"));
  CHECK(contains(refused(f, "st.local.b32 [a], r1;"), "only ld.param and st.param reach it"));
  CHECK(contains(refused(f, "ld.param.b32 r1, [a+4];"), "ends before this"));
  CHECK(contains(refused(".func f(.param .b32 x) { st.param.b32 [x], 1; }", ""),
                 "cannot write to its parameter"));
  CHECK(refused(".func f(); .func g() { call f; } .func f() { call g; }", "call f;") == "accepted");
  CHECK(contains(refused(".extern .func f();", "call f;"), "modules are not linked"));
  CHECK(refused(".extern .func f();", "") == "accepted");
  for (const char* linkage : {"", ".visible ", ".weak "})
    CHECK(contains(refused(std::string(linkage) + ".func f();", ""),
                   "'f' is declared and not defined"));
  CHECK(contains(refused(".func f(); .func f(.param .b32 x) { ret; }", ""), "other parameters"));
  CHECK(contains(refused(".func f() { ret; } .func f() { ret; }", ""), "defined twice"));
  CHECK(contains(refused(".func f() { add.s32 r1, r2, r3; }", "call f;"), "unknown name 'r1'"));
  CHECK(contains(refused(".func f() { bra L; }", "call f; L: ret;"), "not in scope"));
}

TEST_CASE("calls that double with every link are refused and not expanded for ever") {
  std::string text = ".func f0() { ret; }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "call f" + std::to_string(i - 1) + "; ";
    text += ".func f" + std::to_string(i) + "() { " + before + before + "}\n";
  }
  CHECK(contains(called(text, "call f39;"), "more than 65536 calls"));
}

TEST_CASE("what nvcc -G and -lineinfo make of this repository's kernels loads") {
  for (const char* options : {"debug", "lineinfo"}) {
    const auto probe = ptx_test::load(text_of(std::string("load_probe.") + options + ".ptx"));
    const emu::ptx::Function* const entry = probe->entry("load_probe");
    REQUIRE(entry);
    size_t named = 0;
    for (const emu::ptx::Instr& in : entry->code) named += !probe->cuda_line(*entry, in).empty();
    CHECK(named > entry->code.size() * 9 / 10);
  }
}
