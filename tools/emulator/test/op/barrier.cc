// SPDX-License-Identifier: MIT
// Barriers of CTA and cluster, shared memory across a cluster, and deadlock reports.
#include "tools/emulator/test/support/exec_support.h"

using emu::FaultKind;
using Words = std::vector<uint32_t>;

namespace {

// %r0 = thread, %r1 = warp, %rd0 = the thread's word in the buffer.
const std::string prologue =
    "mov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nmul.wide.u32 %rd0, %r0, 4;\n"
    "add.s64 %rd0, %rd0, %out;\n";
const std::string shared_words = ".shared .align 16 .b8 s[4096];";

}  // namespace

TEST_CASE("bar.sync makes stores of all warps visible") {
  Words out = run(prologue + R"(
    mov.u32 %r2, s; shl.b32 %r3, %r0, 2; add.s32 %r4, %r2, %r3; st.shared.u32 [%r4], %r0;
    bar.sync 0; xor.b32 %r3, %r3, 252; add.s32 %r4, %r2, %r3; ld.shared.u32 %r5, [%r4];
    st.global.u32 [%rd0], %r5;)",
                  {{}, {64}, {}}, Words(64), shared_words);
  for (uint32_t i = 0; i < 64; ++i) CHECK(out[i] == (i ^ 63));
}

TEST_CASE("producers arrive and consumers wait at a named barrier") {
  Words out = run(prologue + R"(
    setp.ne.u32 %p0, %r1, 0; @%p0 bra CONSUMER;
    mov.u32 %r2, 77; st.shared.u32 [s], %r2; bar.arrive 3, 64; bra END;
    CONSUMER: setp.ne.u32 %p1, %r1, 1; @%p1 bra END;
    bar.sync 3, 64; ld.shared.u32 %r2, [s]; st.global.u32 [%rd0], %r2;
    END: mov.u32 %r9, 0;)",
                  {{}, {96}, {}}, Words(96), shared_words);
  CHECK(out[32] == 77);
  CHECK(out[64] == 0);
}

TEST_CASE("warps that have returned are not waited for at a whole-CTA barrier") {
  Words out =
      run(prologue + "setp.eq.u32 %p0, %r1, 0; @%p0 ret; bar.sync 0; st.global.u32 [%rd0], 1;",
          {{}, {64}, {}}, Words(64));
  CHECK(out[0] == 0);
  CHECK(out[63] == 1);
}

TEST_CASE("barrier.sync without .aligned lets lanes arrive one by one") {
  Words out = run(prologue + R"(
    setp.lt.u32 %p0, %r0, 7; @%p0 bra LOW; mov.u32 %r2, 1; st.shared.u32 [s], %r2;
    barrier.sync 1; bra END;
    LOW: barrier.sync 1; ld.shared.u32 %r2, [s]; st.global.u32 [%rd0], %r2;
    END: mov.u32 %r9, 0;)",
                  {{}, {64}, {}}, Words(64), shared_words);
  for (uint32_t i = 0; i < 7; ++i) CHECK(out[i] == 1);
}

TEST_CASE("misused barriers are faults") {
  FaultKind kind{};
  fault(prologue + "mov.u32 %r2, 16; bar.sync %r2;", {{}, {32}, {}}, &kind);
  CHECK(kind == FaultKind::barrier_misuse);
  fault(prologue + "mov.u32 %r2, 40; bar.sync 1, %r2;", {{}, {64}, {}}, &kind);
  CHECK(kind == FaultKind::barrier_misuse);
  fault(prologue + "bar.arrive 1, 96; bar.arrive 1, 96;", {{}, {96}, {}}, &kind);
  CHECK(kind == FaultKind::barrier_misuse);
  fault(prologue + "barrier.cluster.wait;", {{}, {32}, {}}, &kind);
  CHECK(kind == FaultKind::barrier_misuse);
  fault(prologue + "barrier.cluster.arrive; barrier.cluster.arrive;", {{2}, {32}, {2}}, &kind);
  CHECK(kind == FaultKind::barrier_misuse);
}

TEST_CASE("CTAs of a cluster read each other's shared memory between cluster barriers") {
  // Each CTA stores its rank plus ten; rank r reads from rank 3 - r.
  Words out = run(R"(
    mov.u32 %r0, %cluster_ctarank; add.s32 %r1, %r0, 10; st.shared.u32 [s+16], %r1;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mov.u32 %r2, s; sub.s32 %r3, 3, %r0; mapa.shared::cluster.u32 %r4, %r2, %r3;
    ld.shared::cluster.u32 %r5, [%r4+16]; getctarank.shared::cluster.u32 %r6, %r4;
    barrier.cluster.arrive; barrier.cluster.wait;
    mul.wide.u32 %rd0, %r0, 12; add.s64 %rd0, %rd0, %out;
    st.global.u32 [%rd0], %r5; st.global.u32 [%rd0+4], %r6; st.global.u32 [%rd0+8], %r2;)",
                  {{4}, {32}, {4}}, Words(12), shared_words);
  for (uint32_t r = 0; r < 4; ++r) {
    CHECK(out[3 * r] == 13 - r);
    CHECK(out[3 * r + 1] == 3 - r);
    CHECK(out[3 * r + 2] == (0x400 | r << 24));
  }
}

TEST_CASE("another CTA's address is refused by .shared::cta and after that CTA's end") {
  FaultKind kind{};
  CHECK(contains(fault("mov.u32 %r1, s; xor.b32 %r1, %r1, 0x01000000; st.shared.u32 [%r1], 1;",
                       {{2}, {32}, {2}}, &kind, shared_words),
                 "through .shared::cta"));
  CHECK(kind == FaultKind::illegal_address);
  // Rank 1 leaves at once; rank 0 waits until it is gone and writes into its memory.
  CHECK(contains(fault(R"(
    mov.u32 %r0, %cluster_ctarank; setp.ne.u32 %p0, %r0, 0; @%p0 bra GONE;
    mov.u32 %r2, 0; WAIT: add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1000; @%p1 bra WAIT;
    mov.u32 %r1, s; xor.b32 %r1, %r1, 0x01000000; st.shared::cluster.u32 [%r1], 1;
    GONE: mov.u32 %r9, 0;)",
                       {{2}, {32}, {2}}, &kind, shared_words),
                 "which has ended"));
}

TEST_CASE("a deadlock names every waiting warp and what it waits for") {
  FaultKind kind{};
  std::string text = fault(prologue + R"(
    setp.eq.u32 %p0, %r1, 0; @%p0 bra A; bar.sync 2, 64; bra END; A: bar.sync 1, 64;
    END: mov.u32 %r9, 0;)",
                           {{}, {64}, {}}, &kind);
  CHECK(kind == FaultKind::deadlock);
  CHECK(contains(text, "warp 0 lanes 0xffffffff wait for bar.sync at barrier 1, PTX line"));
  CHECK(contains(text, "warp 1 lanes 0xffffffff wait for bar.sync at barrier 2, PTX line"));
  CHECK(contains(text, "barrier 2 (whole CTA): warp 1 lanes 0xffffffff arrived"));
  CHECK(contains(text, "no asynchronous work is pending"));
}

TEST_CASE("waiting for an mbarrier that nobody completes is a deadlock with its state") {
  FaultKind kind{};
  std::string text = fault(R"(
    mbarrier.init.shared::cta.b64 [s], 1;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p0, [s], 0; @!%p0 bra WAIT;)",
                           {}, &kind, shared_words);
  CHECK(kind == FaultKind::deadlock);
  CHECK(contains(text, "mbarrier"));
  CHECK(contains(text, "0x400"));
}

TEST_CASE("a try_wait that stands still for good may answer false") {
  // The kernel gives up after five tries and writes how often it tried.
  Words out = run(R"(
    mbarrier.init.shared::cta.b64 [s], 1; mov.u32 %r1, 0;
    WAIT: add.s32 %r1, %r1, 1; mbarrier.try_wait.parity.shared::cta.b64 %p0, [s], 0;
    setp.lt.u32 %p1, %r1, 5; @%p1 bra WAIT; st.global.u32 [%out], %r1;)",
                  {}, Words(1), shared_words);
  CHECK(out[0] == 5);
}

TEST_CASE("bar.warp.sync meets lanes that wait after the branch for its own lanes") {
  const std::string body = R"(
    .reg .pred %low; .reg .b32 %lane; .reg .b64 %at;
    mov.u32 %lane, %tid.x;
    mul.wide.u32 %at, %lane, 4;
    add.u64 %at, %out, %at;
    setp.lt.u32 %low, %lane, 16;
    @!%low bra JOIN;
    bar.warp.sync -1;
    st.global.u32 [%at], 7;
  JOIN:
    bar.warp.sync -1;
    ld.global.u32 %lane, [%at];
    add.u32 %lane, %lane, 1;
    st.global.u32 [%at], %lane;
    ret;
  )";
  exec_test::Shape shape;
  shape.block = {32, 1, 1};
  const std::vector<uint32_t> out = run(body, shape, std::vector<uint32_t>(32, 1));
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 16 ? 8u : 2u));
}
