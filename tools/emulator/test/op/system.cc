// SPDX-License-Identifier: MIT
// printf, assert, malloc and free in kernels: their PTX is what nvcc makes of them.
#include "tools/emulator/base/tell.h"
#include "tools/emulator/op/printed.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using emu::FaultKind;

namespace {

std::string said;
void hear(const std::string& text) { said += text; }

struct Hearing {
  Hearing() {
    said.clear();
    emu::set_listener(hear);
    emu::set_reader(hear);
  }
  ~Hearing() {
    emu::set_listener(nullptr);
    emu::set_reader(nullptr);
  }
};

// A string as a variable of bytes.
std::string text(const std::string& name, const std::string& value) {
  std::string bytes;
  for (const char c : value) bytes += std::to_string(int(c)) + ", ";
  return ".global .align 1 .b8 " + name + "[" + std::to_string(value.size() + 1) + "] = {" + bytes +
         "0};\n";
}

const std::string declared =
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,"
    " .param .b64 s);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 p);\n" +
    text("words", "%d of %s, %5.2f|%lld%%\n") + text("name", "two") + text("unknown", "%d %q\n");

std::string print_of(const std::string& format) {
  return "{ .param .b64 f; .param .b64 a; .param .b32 r; mov.u64 %rd0, " + format +
         "; cvta.global.u64 %rd0, %rd0; st.param.b64 [f], %rd0; mov.u64 %rd1, list;"
         "cvta.local.u64 %rd1, %rd1; st.param.b64 [a], %rd1; call.uni (r), vprintf, (f, a);"
         "ld.param.b32 %r1, [r]; }";
}

const std::string arguments =
    ".local .align 8 .b8 list[32]; mov.u32 %r0, %tid.x; st.local.u32 [list], %r0;"
    "mov.u64 %rd0, name; cvta.global.u64 %rd0, %rd0; st.local.u64 [list+8], %rd0;"
    "st.local.f64 [list+16], 0d4009333333333333; st.local.s64 [list+24], -7;";

std::string malloc_of(const std::string& bytes) {
  return "{ .param .b64 n; .param .b64 p; st.param.b64 [n], " + bytes +
         "; call.uni (p), malloc, (n); ld.param.b64 %rd0, [p]; }";
}
const std::string free_it = "{ .param .b64 p; st.param.b64 [p], %rd0; call.uni free, (p); }";

std::string printed(const std::string& format, std::vector<uint64_t> values, int count) {
  size_t next = 0;
  const auto got = emu::ops::print_as(
      format, [&](uint32_t) { return values.at(next++); },
      [](uint64_t address) { return "at " + std::to_string(address); });
  CHECK(got.arguments == count);
  CHECK((next == values.size()));
  return got.text;
}

}  // namespace

TEST_CASE("a kernel prints lane after lane and is told how many arguments there were") {
  const Hearing hearing;
  const auto out = exec_test::run(arguments + print_of("words") + "st.global.u32 [%out], %r1;",
                                  {{}, {2}, {}}, std::vector<uint32_t>(1), declared);
  CHECK(said == "0 of two,  3.15|-7%\n1 of two,  3.15|-7%\n");
  CHECK(out[0] == 4);
  said.clear();
  CHECK(exec_test::run(arguments + print_of("unknown") + "st.global.u32 [%out], %r1;", {},
                       std::vector<uint32_t>(1), declared)[0] == ~0u);
  CHECK(said == "0 %q\n");
  said.clear();
  exec_test::run(arguments + "setp.eq.u32 %p0, %r0, 1; @!%p0 bra E;" + print_of("unknown") + "E:",
                 {{}, {2}, {}}, std::vector<uint32_t>(1), declared);
  CHECK(said == "1 %q\n");
}

TEST_CASE("a printed argument that nobody stored is an error") {
  const Hearing hearing;
  FaultKind kind{};
  const std::string report =
      exec_test::fault(".local .align 8 .b8 list[32];" + print_of("unknown"), {}, &kind, declared);
  CHECK(kind == FaultKind::uninitialised);
  CHECK(contains(report, "vprintf"));
}

TEST_CASE("the directives of printf in kernels") {
  CHECK(printed("%-4d|%04x|%c|%p", {7, 255, 'z', 16}, 4) == "7   |00ff|z|0x10");
  CHECK(printed("%*d %.*s", {5, 42, 2, 9}, 4) == "   42 at");
  CHECK(printed("%hhd %hu %lu %zu %llX", {300, 65537, 1ull << 40, 5, ~0ull}, 5) ==
        "44 1 1099511627776 5 FFFFFFFFFFFFFFFF");
  CHECK(printed("%s %e %g", {0, 0x3FF8000000000000, 0x3FF8000000000000}, 3) ==
        "(null) 1.500000e+00 1.5");
  CHECK(printed("100%%, %", {}, -1) == "100%, %");
  CHECK(printed("%d", {uint32_t(-3)}, 1) == "-3");
}

TEST_CASE("an assertion that fails says which thread and ends the grid") {
  const Hearing hearing;
  FaultKind kind{};
  const std::string fails =
      "mov.u32 %r0, %tid.y; setp.eq.u32 %p0, %r0, 0; @%p0 bra E;"
      "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;"
      "mov.u64 %rd0, name; cvta.global.u64 %rd0, %rd0; st.param.b64 [a], %rd0;"
      "st.param.b64 [b], %rd0; st.param.b32 [c], 12; st.param.b64 [d], %rd0; st.param.b64 [e], 1;"
      "call.uni __assertfail, (a, b, c, d, e); } E:";
  const std::string report = exec_test::fault(fails, {{}, {1, 2}, {}}, &kind, declared);
  CHECK(kind == FaultKind::failed_assert);
  CHECK(contains(said, "two:12: two: block: [0,0,0], thread: [0,1,0] Assertion `two` failed."));
  CHECK(contains(report, "failed assertion in kernel k"));
}

TEST_CASE("a kernel allocates and another thread frees what it got") {
  const std::string hand_over =
      ".shared .align 8 .b64 pointer; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra B;" +
      malloc_of("64") +
      "st.u32 [%rd0+60], 5; st.shared.b64 [pointer], %rd0; B: bar.sync 0; @!%p0 bra E;"
      "ld.shared.b64 %rd0, [pointer]; ld.u32 %r1, [%rd0+60]; st.global.u32 [%out], %r1;" +
      free_it;
  CHECK(exec_test::run(hand_over + "E:", {{}, {2}, {}}, std::vector<uint32_t>(1), declared)[0] ==
        5);
  FaultKind kind{};
  const auto stops = [&](const std::string& body) {
    const std::string report = exec_test::fault(body, {}, &kind, declared);
    CHECK(kind == FaultKind::illegal_address);
    return report;
  };
  CHECK(contains(stops(malloc_of("16") + free_it + free_it), "free a second time"));
  CHECK(contains(stops(malloc_of("16") + "st.u32 [%rd0], 1;" + free_it + "ld.u32 %r1, [%rd0];"),
                 "what malloc returned in a kernel [0x"));
  CHECK(contains(stops(malloc_of("16") + "st.u32 [%rd0+16], 1;"), "beyond the end of what malloc"));
  CHECK(contains(stops("mov.u64 %rd0, %out;" + free_it), "free of what no malloc"));
}

TEST_CASE("malloc returns null where the heap is full and for no bytes and free takes null") {
  const auto out = exec_test::run(malloc_of("8388609") + "st.global.u64 [%out], %rd0;" + free_it +
                                      malloc_of("8388600") + "st.global.u64 [%out+8], %rd0;" +
                                      malloc_of("16") + "st.global.u64 [%out+16], %rd0;" +
                                      malloc_of("0") + "st.global.u64 [%out+24], %rd0;",
                                  {}, std::vector<uint32_t>(8, 1), declared);
  CHECK((out[0] | out[1]) == 0);
  CHECK((out[2] | out[3]) != 0);
  CHECK((out[4] | out[5] | out[6] | out[7]) == 0);
}

TEST_CASE("a function of the driver with other parameters is refused") {
  for (const char* other : {"(.param .b32 r) vprintf(.param .b64 f)", "(.param .b64 r) vprintf()"})
    CHECK_THROWS_AS(exec_test::run("{ .param .b64 f; call.uni vprintf, (f); }", {}, {},
                                   ".extern .func " + std::string(other) + ";"),
                    emu::PtxError);
}
