// SPDX-License-Identifier: MIT
// Counters in global memory to which so many blocks add that the emulator no longer searches the
// whole list of records. And clusters on several host threads: the findings do not depend on which
// thread is faster.
#include "tools/emulator/test/support/exec_support.h"

using namespace emu;

namespace {

constexpr uint32_t blocks = 100;

Counters run(const std::string& rest) {
  exec_test::SettingsGuard guard;
  settings().workers = 1;
  settings().hazards = settings().formal = Reaction::report;
  return exec_test::counters("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 99;\n" + rest,
                             {{blocks}, {1}, {}});
}

}  // namespace

TEST_CASE("atomics of many blocks on one word are in order even if each has more than one") {
  const Counters c =
      run("red.relaxed.gpu.global.add.u32 [%out], 1;"
          "red.relaxed.gpu.global.add.u32 [%out], 1;"
          "ld.relaxed.gpu.global.u32 %r2, [%out];");
  CHECK(c.hazards == 0);
  CHECK(c.formal_hazards == 0);
  CHECK(c.atomics == 2 * blocks);
}

TEST_CASE("a plain access meets the atomics of all blocks before it") {
  CHECK(run("red.relaxed.gpu.global.add.u32 [%out], 1; @%p0 ld.global.u32 %r2, [%out];").hazards ==
        blocks - 1);
  CHECK(run("@%p0 red.relaxed.cta.global.add.u32 [%out], 1; @%p0 bra END;"
            "red.relaxed.gpu.global.add.u32 [%out], 1; END: mov.u32 %r2, 0;")
            .formal_hazards == blocks - 1);
}

TEST_CASE("each of many atomics meets the one before it whose scope is too narrow") {
  const Counters c =
      run("setp.eq.u32 %p1, %r1, 0; @%p1 red.relaxed.cta.global.add.u32 [%out], 1;"
          "@%p1 bra END; red.relaxed.gpu.global.add.u32 [%out], 1;"
          "END: mov.u32 %r2, 0;");
  CHECK(c.hazards == 0);
  CHECK(c.formal_hazards == blocks - 1);
}

TEST_CASE("each of many atomics meets the plain access before it") {
  const Counters c =
      run("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%out], 1;"
          "red.relaxed.gpu.global.add.u32 [%out], 1;");
  CHECK(c.hazards == blocks - 1);
}

namespace {

// Both clusters get here before either goes on, without any order of memory.
const char* const together = R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra MET;
    red.relaxed.gpu.global.add.u32 [%out], 1;
    MEET: ld.relaxed.gpu.global.u32 %r2, [%out]; setp.ne.u32 %p1, %r2, 2; @%p1 bra MEET;
    MET: bar.warp.sync -1; shl.b32 %r3, %r0, 2; cvt.u64.u32 %rd0, %r3; add.u64 %rd0, %out, %rd0;
)";

Counters run_twice(const std::string& rest) {
  return exec_test::counters(together + rest, {{2}, {32}, {}});
}

}  // namespace

TEST_CASE("two clusters that store one value are a formal finding whichever thread looks first") {
  exec_test::SettingsGuard guard;
  settings().workers = 2;
  settings().hazards = Reaction::report;
  for (int i = 0; i < 100; ++i) {
    const Counters c = run_twice("@%p0 st.global.u32 [%rd0], 7; st.global.u32 [%rd0+128], 7;");
    REQUIRE(c.hazards == 0);
    REQUIRE(c.formal_hazards == 63);
  }
}
