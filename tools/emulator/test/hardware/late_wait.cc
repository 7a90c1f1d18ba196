// SPDX-License-Identifier: MIT
// Waits by parity of a warp that nothing keeps in step: suspended in time, and too late.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;
using unit::replaced;

namespace {

// Warp 0 lets two phases of a barrier end while warp 1 is in (or before) its wait for the first.
std::string program(const char* leader_delay, const char* follower_delay) {
  const auto spin = [](const char* label, const char* turns) {
    return std::string("mov.u32 %r1, 0;\n") + label +
           ":\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p, %r1, " + turns + ";\n@%p bra " + label + ";\n";
  };
  return R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k() {
.reg .pred %p, %q;
.reg .b32 %r<4>, %bar;
.shared .align 8 .b64 bar;
mov.u32 %bar, bar;
mov.u32 %r0, %tid.x;
setp.ne.u32 %p, %r0, 0;
@%p bra READY;
mbarrier.init.shared::cta.b64 [%bar], 1;
READY:
bar.sync 0;
setp.ge.u32 %p, %r0, 32;
@%p bra FOLLOWER;
)" + spin("LEAD", leader_delay) +
         R"(
setp.ne.u32 %p, %r0, 0;
@%p bra END;
mbarrier.arrive.shared::cta.b64 _, [%bar];
mbarrier.arrive.shared::cta.b64 _, [%bar];
bra END;
FOLLOWER:
)" + spin("FOLLOW", follower_delay) +
         R"(
FIRST:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra FIRST;
SECOND:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 1;
@!%p bra SECOND;
END:
ret;
}
)";
}

// The leader ends a third phase long after, and the follower waits for no other than the first.
std::string three_phases(const std::string& text) {
  const char* const third = R"(
mov.u32 %r1, 0;
STAY: add.u32 %r1, %r1, 1; setp.lt.u32 %q, %r1, 30000; @%q bra STAY;
mbarrier.arrive.shared::cta.b64 _, [%bar];
bra END;
FOLLOWER:
)";
  return replaced(replaced(text, "bra END;\nFOLLOWER:\n", third), "bra SECOND;", "bra END;");
}

Counters run(const std::string& text) {
  GlobalMemory memory{1 << 20};
  return unit::run(text, memory, {1, 64}, {});
}

}  // namespace

TEST_CASE("a thread that mbarrier.try_wait has suspended sees the end of its phase however late") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    OrderGuard guard(Order::random, seed);
    CAPTURE(seed);
    CHECK(run(program("9000", "1")).formal_hazards == 0);
  }
}

// On hardware it waits for the next phase of that parity, which nobody ends.
TEST_CASE("a wait that comes two phases late ends in a deadlock that names it") {
  OrderGuard guard(Order::random, 1);
  const std::string late = program("1", "9000");
  for (const Reaction formal : {Reaction::report, Reaction::ignore}) {
    settings().formal = formal;
    const std::string text = unit::fault(FaultKind::deadlock, [&] { run(late); });
    INFO(text);
    CHECK(unit::says(text, "too late: block (0,0,0), warp 1 lanes 0xffffffff waited for phase 0"));
    CHECK(unit::says(text, "of which it knows 0 phases to be over, when 2 were"));
  }
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
  const std::string never = replaced(program("1", "9000"), arrive + arrive, "");
  CHECK(!unit::says(unit::fault(FaultKind::deadlock, [&] { run(never); }), "too late"));
}

TEST_CASE("a wait that comes two phases late and finds a later phase is a formal finding") {
  OrderGuard guard(Order::random, 1);
  const std::string late = three_phases(program("1", "9000"));
  CHECK(run(late).formal_hazards == 1);
  CHECK(run(three_phases(program("1", "1"))).formal_hazards == 0);
  settings().formal = Reaction::stop;
  const std::string text = unit::fault(FaultKind::ordering, [&] { run(late); });
  INFO(text);
  CHECK(unit::says(text, "for phase 0 of mbarrier"));
  CHECK(unit::says(text, "came when 2 phases were over"));
  CHECK(unit::says(text, "warp 1"));
}

// A warp that leaves out phases which it knows to be over, from another barrier, means the next.
TEST_CASE("a wait for the third phase is in time for a warp that knows the first two to be over") {
  OrderGuard guard(Order::random, 1);
  settings().formal = Reaction::stop;
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
  const std::string leads =
      replaced(three_phases(program("1", "1")), arrive + arrive,
               arrive + arrive +
                   "LED: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], "
                   "1; @!%p bra LED;\nbarrier.arrive 1, 64;\n");
  const std::string knows = replaced(leads, "FIRST:", "barrier.sync 1, 64;\nFIRST:");
  CHECK(run(knows).formal_hazards == 0);
}

TEST_CASE("a phase that nobody ends is a deadlock still") {
  OrderGuard guard(Order::random, 1);
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
  const std::string never = replaced(program("1", "9000"), arrive + arrive, "");
  CHECK(unit::says(unit::fault(FaultKind::deadlock, [&] { run(never); }), "mbarrier.try_wait"));
  const std::string once = replaced(program("1", "1"), arrive + arrive, arrive);
  CHECK(unit::says(unit::fault(FaultKind::deadlock, [&] { run(once); }), "phase 1"));
}

// Compilers hand a counter of phases to the wait as it is.
TEST_CASE("a parity above 1 orders what its bit 0 names") {
  const auto program_of = [](const char* parity) {
    std::string text =
        "mov.u32 %r2, PARITY; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; setp.ge.u32 %p1, %r0, "
        "32;"
        "@!%p0 mbarrier.init.shared::cta.b64 [bar], 32; @!%p0 st.shared.u32 [s], 0; "
        "bar.sync 0;"
        "@%p1 bra READ;"
        "st.shared.u32 [s], 3; mbarrier.arrive.shared::cta.b64 _, [bar]; bra END;"
        "READ: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r2; @!%p2 bra READ;"
        "ld.shared.u32 %r1, [s]; st.global.u32 [%out], %r1; END:";
    return text.replace(text.find("PARITY"), 6, parity);
  };
  const char* const memory = ".shared .align 8 .b64 bar; .shared .align 4 .b32 s;";
  const exec_test::Shape two_warps{{}, {64}, {}};
  const exec_test::SettingsGuard guard;
  settings().formal = Reaction::stop;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    settings().seed = seed;
    for (const char* even : {"0", "2", "4294967294"})
      CHECK(exec_test::run(program_of(even), two_warps, {0}, memory)[0] == 3);
    const std::string report = exec_test::fault(program_of("3"), two_warps, nullptr, memory);
    INFO(report);  // of a reader that was early, or late
    CHECK((exec_test::contains(report, "no barrier, fence or wait orders the two") ||
           exec_test::contains(report, "phase 1 (parity 1)")));
  }
}
