// SPDX-License-Identifier: MIT
// Grids: identity of threads, co-residence, seeds, budgets.
#include "tools/emulator/test/support/exec_support.h"

using emu::FaultKind;
using exec_test::SettingsGuard;
using Words = std::vector<uint32_t>;

TEST_CASE("special registers number threads and CTAs and clusters") {
  // One word per CTA: clusterid and rank, from a grid of 4 x 4 CTAs in clusters of 2 x 2.
  Words out = run(R"(
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd0, %r4, 4; add.s64 %rd0, %rd0, %out;
    mov.u32 %r5, %clusterid.x; mov.u32 %r6, %clusterid.y; mov.u32 %r7, %cluster_ctarank;
    mov.u32 %r8, %cluster_ctaid.y; mov.u32 %r9, %nclusterid.y; mov.u32 %r10, %cluster_nctarank;
    shl.b32 %r5, %r5, 4; or.b32 %r7, %r7, %r5; shl.b32 %r6, %r6, 8; or.b32 %r7, %r7, %r6;
    shl.b32 %r8, %r8, 12; or.b32 %r7, %r7, %r8; shl.b32 %r9, %r9, 16; or.b32 %r7, %r7, %r9;
    shl.b32 %r10, %r10, 20; or.b32 %r7, %r7, %r10; st.global.u32 [%rd0], %r7;)",
                  {{4, 4, 1}, {1}, {2, 2, 1}}, Words(16));
  CHECK(out[0] == 0x420000);
  CHECK(out[1] == 0x420001);
  CHECK(out[4] == 0x421002);
  CHECK(out[15] == 0x421113);
}

TEST_CASE("threads of a block are numbered x first") {
  Words out = run(R"(
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mad.lo.s32 %r4, %r3, 3, %r2;
    mad.lo.s32 %r4, %r4, 5, %r1; mul.wide.u32 %rd0, %r4, 4; add.s64 %rd0, %rd0, %out;
    mov.u32 %r5, %warpid; shl.b32 %r5, %r5, 8; mov.u32 %r6, %laneid; or.b32 %r5, %r5, %r6;
    st.global.u32 [%rd0], %r5;)",
                  {{}, {5, 3, 4}, {}}, Words(60));
  for (uint32_t i = 0; i < 60; ++i) CHECK(out[i] == (i / 32 << 8 | i % 32));
}

TEST_CASE("a CTA may spin on a flag that a later CTA writes") {
  SettingsGuard guard;
  emu::settings().workers = 1;
  Words out = run(R"(
    mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 2; @%p0 bra WRITE;
    SPIN: ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN;
    red.global.add.u32 [%out+4], %r1; bra END;
    WRITE: st.release.gpu.global.u32 [%out], 21;
    END: mov.u32 %r9, 0;)",
                  {{3}, {1}, {}}, Words(2));
  CHECK(out[1] == 42);
}

TEST_CASE("a CTA that stands still may be waiting for a flag of a later CTA") {
  // Block 0 looks at the flag whenever try_wait has given up; its mbarrier never completes a phase.
  SettingsGuard guard;
  for (uint32_t workers : {1, 2}) {
    emu::settings().workers = workers;
    const Words out = run(R"(
      mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra WRITE;
      mbarrier.init.shared::cta.b64 [bar], 1;
      WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
      ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;
      st.global.u32 [%out+4], %r1; bra END;
      WRITE: mov.u32 %r2, 0;
      COUNT: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100000; @%p1 bra COUNT;
      st.release.gpu.global.u32 [%out], 21;
      END: mov.u32 %r9, 0;)",
                          {{2}, {1}, {}}, Words(2), ".shared .align 8 .b64 bar;");
    CHECK(out[1] == 21);
  }
}

TEST_CASE("a deadlock of one cluster is told when nothing else can go on") {
  SettingsGuard guard;
  for (uint32_t workers : {1, 2}) {
    emu::settings().workers = workers;
    FaultKind kind{};
    const std::string report = fault(R"(
      mov.u32 %r0, %ctaid.x; mbarrier.init.shared::cta.b64 [bar], 1;
      setp.lt.u32 %p0, %r0, 3; @%p0 bra END;
      WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
      END: red.global.add.u32 [%out], 1;)",
                                     {{5}, {1}, {}}, &kind, ".shared .align 8 .b64 bar;");
    CHECK(kind == FaultKind::deadlock);
    CHECK((contains(report, "block (3,0,0)") || contains(report, "block (4,0,0)")));
  }
}

TEST_CASE("atomics of CTAs on different host threads lose nothing") {
  SettingsGuard guard;
  emu::settings().workers = 4;
  Words out = run("red.global.add.u32 [%out], 1; atom.global.add.f32 %r1, [%out+4], 0f3F800000;",
                  {{64}, {64}, {}}, Words(2));
  CHECK(out[0] == 4096);
  CHECK(out[1] == 0x45800000);
}

TEST_CASE("a warp may fall behind the others by more than a hundred instructions") {
  // Warp 0 has one store to do, warp 1 counts to 50 before it looks: a missing barrier between the
  // two shows only when warp 0 is late.
  SettingsGuard guard;
  emu::settings().hazards = emu::Reaction::ignore;  // the race is the point
  emu::settings().formal = emu::Reaction::ignore;
  uint32_t late = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    emu::settings().seed = seed;
    late += run(R"(
      mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; @%p0 bra COUNT; bar.sync 0;
      mov.u32 %r1, 1; st.global.u32 [%out], %r1; bra END;
      COUNT: bar.sync 0; mov.u32 %r2, 0;
      LOOP: add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra LOOP;
      ld.global.u32 %r3, [%out]; st.global.u32 [%out+4], %r3;
      END: mov.u32 %r9, 0;)",
                {{}, {64}, {}}, Words(2))[1] == 0;
  }
  CHECK(late > 0);
  CHECK(late < 100);
}

TEST_CASE("a run is a function of its seed") {
  // Warps append their number to a list; the order is the schedule.
  SettingsGuard guard;
  const std::string body = R"(
    mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; setp.ne.u32 %p0, %r1, 0; @%p0 bra END;
    mov.u32 %r2, 0;
    LOOP: atom.global.add.u32 %r3, [%out], 1; mul.wide.u32 %rd0, %r3, 4; add.s64 %rd0, %rd0, %out;
    st.global.u32 [%rd0+4], %r0; add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20; @%p1 bra LOOP;
    END: mov.u32 %r9, 0;)";
  auto order = [&](uint64_t seed) {
    emu::settings().seed = seed;
    return run(body, {{}, {256}, {}}, Words(161));
  };
  Words first = order(1);
  CHECK(first[0] == 160);
  CHECK(order(1) == first);
  CHECK(order(2) != first);
}

namespace {

// Three barriers of the grid, as cooperative groups have them: thread 0 of each CTA arrives at a
// counter and polls it.
const char* const barriers = R"(
  mov.u32 %r0, %tid.x; mov.u32 %r1, %nctaid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;
  AGAIN: add.u32 %r2, %r2, %r1; bar.sync 0; setp.ne.u32 %p0, %r0, 0; @%p0 bra MET;
  atom.add.release.gpu.global.u32 %r4, [%out], 1;
  SPIN: ld.acquire.gpu.global.u32 %r4, [%out]; setp.lt.u32 %p1, %r4, %r2; @%p1 bra SPIN;
  MET: bar.sync 0; add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 3; @%p0 bra AGAIN;)";

// The instructions of 16 CTAs on one host thread.
uint64_t instructions_of(const std::string& body, exec_test::Shape shape) {
  const SettingsGuard guard;
  emu::settings().workers = 1;
  shape.grid = {16};
  return exec_test::counters(body, shape).instructions;
}

}  // namespace

TEST_CASE("a barrier of the grid costs in proportion to its CTAs") {
  for (const uint32_t threads : {32u, 256u}) {
    exec_test::Shape shape{{}, {threads}, {}};
    CAPTURE(threads);
    CHECK(instructions_of(barriers, shape) < 20'000);
    shape.cooperative = true;
    CHECK(instructions_of(barriers, shape) < 20'000);
  }
}

TEST_CASE("a CTA that polls a lock lets the one run that frees it") {
  // The lock is taken from the start: the last CTA frees it.
  const char* const lock = R"(
    mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 15; @%p0 bra FREE;
    TAKE: atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKE;
    FREE: st.release.gpu.global.u32 [%out], 0;)";
  const auto taken = [&](uint64_t seed) {
    const SettingsGuard guard;
    emu::settings().workers = 1;
    emu::settings().seed = seed;
    emu::settings().max_instructions = 2000;
    Words out(1, 1);
    return run(lock, {{16}, {1}, {}}, out)[0];
  };
  for (uint64_t seed = 1; seed <= 20; ++seed) CHECK(taken(seed) == 0);
}

TEST_CASE("asynchronous work takes effect when all that is left is to poll for it") {
  const SettingsGuard guard;
  emu::settings().order = emu::Order::latest;
  emu::settings().max_instructions = 1000;
  const Words out = run(R"(
    mov.u32 %r0, %tid.x; mbarrier.init.shared::cta.b64 [bar], 1;
    cp.async.ca.shared.global [word], [%out], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    POLL: mbarrier.test_wait.parity.shared::cta.b64 %p0, [bar], 0; @!%p0 bra POLL;
    ld.shared.u32 %r1, [word]; st.global.u32 [%out+4], %r1;)",
                        {}, {17, 0}, ".shared .align 8 .b64 bar; .shared .b32 word;");
  CHECK(out[1] == 17);
}

TEST_CASE("an endless loop ends at the instruction budget") {
  SettingsGuard guard;
  emu::settings().max_instructions = 10000;
  FaultKind kind{};
  CHECK(contains(fault("LOOP: bra LOOP;", {}, &kind), "10000 warp instructions"));
  CHECK(kind == FaultKind::watchdog);
}

TEST_CASE("trap ends the grid") {
  FaultKind kind{};
  CHECK(contains(
      fault("mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 5; @%p0 trap;", {{8}, {1}, {}}, &kind),
      "block (5,0,0)"));
  CHECK(kind == FaultKind::assertion);
}

TEST_CASE("more shared memory than a CTA has is refused") {
  CHECK(contains(fault("mov.u32 %r0, dyn;", {{}, {}, {}, 232449}, nullptr,
                       ".extern .shared .align 16 .b8 dyn[];"),
                 "232448"));
  run("mov.u32 %r0, dyn;", {{}, {}, {}, 232448}, Words(1), ".extern .shared .align 16 .b8 dyn[];");
}
