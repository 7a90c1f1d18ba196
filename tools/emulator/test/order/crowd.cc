// SPDX-License-Identifier: MIT
// Counters in global memory that more blocks add to than a list is searched for.
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

TEST_CASE("atomics of many blocks on one word are in order, more than one each as well") {
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
