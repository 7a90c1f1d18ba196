// SPDX-License-Identifier: MIT
// Divergence, reconvergence and membermask synchronisation of one warp.
#include <algorithm>
#include <numeric>

#include "tools/emulator/test/support/exec_support.h"

using Words = std::vector<uint32_t>;

namespace {

// %r0 = lane, %rd0 = the lane's word in the buffer.
const std::string prologue =
    "mov.u32 %r0, %laneid;\nmul.wide.u32 %rd0, %r0, 4;\nadd.s64 %rd0, %rd0, %out;\n";

Words lanes(const std::string& body, uint32_t threads = 32) {
  return run(prologue + body, {{}, {threads}, {}}, Words(32));
}

}  // namespace

TEST_CASE("lanes leave a loop one by one and meet behind it") {
  // Lane i adds up 0 + 1 + .. + i; after the loop all 32 lanes are together again.
  Words out = lanes(R"(
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    LOOP: add.s32 %r2, %r2, %r1; add.s32 %r1, %r1, 1; setp.le.u32 %p0, %r1, %r0; @%p0 bra LOOP;
    activemask.b32 %r3; xor.b32 %r2, %r2, %r3; st.global.u32 [%rd0], %r2;)");
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[i] == ~(i * (i + 1) / 2));
}

TEST_CASE("nested loops with a break reconverge at every level") {
  // Inner loop counts to the lane's number but breaks at 5; outer runs 3 times.
  Words out = lanes(R"(
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    OUTER: mov.u32 %r3, 0;
    INNER: setp.ge.u32 %p0, %r3, %r0; @%p0 bra DONE; setp.eq.u32 %p1, %r3, 5; @%p1 bra DONE;
    add.s32 %r3, %r3, 1; add.s32 %r2, %r2, 1; bra INNER;
    DONE: activemask.b32 %r4; setp.ne.u32 %p2, %r4, 0xFFFFFFFF; @%p2 trap;
    add.s32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 3; @%p3 bra OUTER;
    st.global.u32 [%rd0], %r2;)");
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[i] == 3 * std::min(i, 5u));
}

TEST_CASE("lanes that return early are not waited for") {
  Words out = lanes(R"(
    mov.u32 %r1, 7; st.global.u32 [%rd0], %r1; setp.lt.u32 %p0, %r0, 9; @%p0 bra HALF; bra REST;
    HALF: setp.lt.u32 %p1, %r0, 4; @%p1 ret;
    REST: activemask.b32 %r2; st.global.u32 [%rd0], %r2;)");
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[i] == (i < 4 ? 7 : 0xFFFFFFF0));
}

TEST_CASE("a block laid out beyond the end joins where it jumps back") {
  Words out = lanes(R"(
    mov.u32 %r1, 1; setp.eq.u32 %p0, %r0, 3; @%p0 bra COLD;
    BACK: activemask.b32 %r2; add.s32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1; ret;
    COLD: mov.u32 %r1, 5; bra BACK;)");
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[i] == (i == 3 ? 4u : 0u));
}

TEST_CASE("a guarded instruction leaves its destination alone") {
  Words out = lanes(
      "mov.u32 %r1, 1; setp.lt.u32 %p0, %r0, 16; @!%p0 mov.u32 %r1, 2; st.global.u32 [%rd0], %r1;");
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[i] == (i < 16 ? 1u : 2u));
}

TEST_CASE("a lane that spins lets its siblings release it") {
  // Lane 0 waits for the word that lane 1 writes on the other side of the branch.
  Words out = run(prologue + R"(
    setp.eq.u32 %p0, %r0, 0; @%p0 bra SPIN;
    setp.ne.u32 %p1, %r0, 1; @%p1 bra END;
    mov.u32 %r1, 42; st.global.u32 [%out+128], %r1; bra END;
    SPIN: ld.volatile.global.u32 %r2, [%out+128]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN;
    st.global.u32 [%rd0], %r2;
    END:)",
                  {{}, {32}, {}}, Words(33));
  CHECK(out[0] == 42);
}

TEST_CASE("an aligned instruction in divergent code is a fault with both masks") {
  emu::FaultKind kind{};
  std::string text = fault(prologue + R"(
    setp.eq.u32 %p0, %r0, 0; @!%p0 bra END; bar.sync 0; END: mov.u32 %r1, 0;)",
                           {{}, {32}, {}}, &kind);
  CHECK(kind == emu::FaultKind::illegal_instruction);
  CHECK(contains(text, "0xffffffff"));
  CHECK(contains(text, "0x00000001"));
  CHECK(contains(text, "bar.sync 0;"));
}

TEST_CASE("bar.uni that diverges is a fault") {
  CHECK(contains(fault(prologue + "setp.eq.u32 %p0, %r0, 0; @%p0 bra.uni END; mov.u32 %r1, 0; END:",
                       {{}, {32}, {}}),
                 "bra.uni"));
}

TEST_CASE("elect.sync elects one lane that is always the same") {
  Words out = lanes(R"(
    mov.u32 %r1, 0; elect.sync %r2|%p0, 0xFFFFFFFF; @!%p0 bra END; mov.u32 %r1, 100;
    END: bar.warp.sync 0xFFFFFFFF; add.s32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1;)");
  CHECK(out[0] == 100);
  for (uint32_t i = 1; i < 32; ++i) CHECK(out[i] == 0);
}

TEST_CASE("lanes meet at bar.warp.sync in different places") {
  Words out = run(prologue + R"(
    setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW;
    mov.u32 %r1, 5; st.global.u32 [%out+128], %r1; bar.warp.sync 0xFFFFFFFF; bra END;
    LOW: bar.warp.sync 0xFFFFFFFF; ld.global.u32 %r1, [%out+128];
    END: st.global.u32 [%rd0], %r1;)",
                  {{}, {32}, {}}, Words(33));
  CHECK(out == Words(33, 5));
}

TEST_CASE("shfl.sync moves values inside segments") {
  Words up = lanes(
      "shfl.sync.up.b32 %r1|%p0, %r0, 1, 0, -1; selp.b32 %r1, %r1, 99, %p0;"
      "st.global.u32 [%rd0], %r1;");
  CHECK(up[0] == 99);
  CHECK(up[31] == 30);
  Words down = lanes("shfl.sync.down.b32 %r1, %r0, 2, 0x181F, -1; st.global.u32 [%rd0], %r1;");
  CHECK(down[5] == 7);  // segments of 8: mask 0x18 in bits 8..12, clamp 31
  CHECK(down[6] == 6);
  Words bfly = lanes("shfl.sync.bfly.b32 %r1, %r0, 16, 31, -1; st.global.u32 [%rd0], %r1;");
  CHECK(bfly[3] == 19);
  Words idx = lanes("shfl.sync.idx.b32 %r1, %r0, 3, 0x181F, -1; st.global.u32 [%rd0], %r1;");
  CHECK(idx[2] == 3);
  CHECK(idx[30] == 27);
}

TEST_CASE("vote.sync counts the lanes it names") {
  Words out = lanes(R"(
    setp.lt.u32 %p0, %r0, 3; vote.sync.ballot.b32 %r1, %p0, -1; vote.sync.any.pred %p1, %p0, -1;
    vote.sync.all.pred %p2, %p0, -1; selp.u32 %r2, 0x100, 0, %p1; or.b32 %r1, %r1, %r2;
    selp.u32 %r2, 0x200, 0, %p2; or.b32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1;)");
  CHECK(out == Words(32, 0x107));
}

TEST_CASE("a lane outside the membermask is a fault") {
  CHECK(contains(fault(prologue + "bar.warp.sync 1;", {{}, {32}, {}}), "does not name"));
}

TEST_CASE("lanes with different masks shuffle and vote and match and meet in one instruction") {
  // Cooperative groups' tiled_partition<8>: %r1 = the mask of the lane's tile.
  const std::string tile = "and.b32 %r1, %r0, 24; shl.b32 %r1, 0xFF, %r1; shr.u32 %r4, %r0, 3;";
  Words shuffled =
      lanes(tile + "shfl.sync.idx.b32 %r2, %r0, 7, 0x181F, %r1; st.global.u32 [%rd0], %r2;");
  Words voted = lanes(tile + R"(
    setp.lt.u32 %p0, %r0, 11; vote.sync.ballot.b32 %r2, %p0, %r1; st.global.u32 [%rd0], %r2;)");
  Words matched = lanes(tile + R"(
    shr.u32 %r3, %r0, 2; match.any.sync.b32 %r2, %r3, %r1; redux.sync.add.u32 %r3, 1, %r1;
    shl.b32 %r3, %r3, 28; xor.b32 %r2, %r2, %r3; st.global.u32 [%rd0], %r2;)");
  Words elected = lanes(tile + R"(
    mov.u32 %r2, 0; elect.sync _|%p0, %r1; @%p0 mov.u32 %r2, 1; bar.warp.sync %r1;
    activemask.b32 %r3; setp.ne.u32 %p0, %r3, -1; @%p0 trap; st.global.u32 [%rd0], %r2;)");
  for (uint32_t i = 0; i < 32; ++i) {
    CAPTURE(i);
    CHECK(shuffled[i] == (i | 7));
    CHECK(voted[i] == (i < 8 ? 0xFF : i < 16 ? 0x700 : 0));
    CHECK(matched[i] == ((0xFu << (i & ~3u)) ^ 0x80000000));
    CHECK(elected[i] == (i % 8 == 0));
  }
}

TEST_CASE("tiles of a warp that a branch has parted shuffle on their own") {
  // Half of each tile comes from either side.
  Words out = lanes(R"(
    and.b32 %r1, %r0, 24; shl.b32 %r1, 0xFF, %r1; mov.u32 %r3, 100;
    and.b32 %r2, %r0, 4; setp.eq.u32 %p0, %r2, 0; @%p0 bra SHUFFLE; mov.u32 %r3, 200;
    bra SHUFFLE; SHUFFLE: add.u32 %r3, %r3, %r0;
    shfl.sync.bfly.b32 %r2, %r3, 4, 31, %r1; st.global.u32 [%rd0], %r2;)");
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[i] == (i & 4 ? 100 : 200) + (i ^ 4));
}

TEST_CASE("an .aligned instruction waits for lanes that come another way") {
  // nvcc threads the jump of `if (t == 0) init(); if (t < 16) all();` over the second comparison.
  const std::string threaded = prologue + R"(
    setp.ne.u32 %p0, %r0, 0; @%p0 bra OTHERS; st.shared.u32 [word], 7; bra ALL;
    OTHERS: setp.gt.u32 %p1, %r0, 31; @%p1 bra END;
    ALL: )";
  const std::string rest =
      " ld.shared.u32 %r1, [word]; st.global.u32 [%rd0], %r1; END: mov.u32 %r9, 0;";
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const exec_test::SettingsGuard guard;
    emu::settings().seed = seed;
    for (const char* all :
         {"bar.sync 0;", "barrier.sync.aligned 0;", "bar.red.popc.u32 %r3, 0, %p0;",
          "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"})
      CHECK(run(threaded + all + rest, {{}, {32}, {}}, Words(32), ".shared .b32 word;") ==
            Words(32, 7));
    const std::string matrix =
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r0}; bar.warp.sync -1;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r4];";
    CHECK(run("mov.u32 %r5, %laneid; and.b32 %r5, %r5, 7; shl.b32 %r5, %r5, 4; mov.u32 %r4, rows;"
              "add.u32 %r4, %r4, %r5;" +
                  threaded + matrix + rest,
              {{}, {32}, {}}, Words(32),
              ".shared .b32 word; .shared .align 16 .b8 rows[128];") == Words(32, 7));
  }
}

TEST_CASE("a warp allocates tensor memory although one lane comes from its init") {
  // `if (t == 0) init(); if (t < 32) alloc();` in a block of two warps.
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const exec_test::SettingsGuard guard;
    emu::settings().seed = seed;
    emu::settings().formal = emu::Reaction::stop;
    const Words out = run(R"(
      mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra OTHERS;
      mbarrier.init.shared::cta.b64 [bar], 1; bra ALLOC;
      OTHERS: setp.gt.u32 %p1, %r0, 31; @%p1 bra END;
      ALLOC: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [word], 32;
      bar.warp.sync -1; ld.shared.u32 %r9, [word];
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
      END: bar.sync 0; @!%p0 st.global.u32 [%out], 1;)",
                          {{}, {64}, {}}, Words(1), ".shared .b64 bar; .shared .b32 word;");
    CHECK(out[0] == 1);
  }
}

TEST_CASE("a barrier that lanes of a warp reach in two places is a fault") {
  emu::FaultKind kind{};
  const std::string text = fault(prologue + R"(
    setp.eq.u32 %p0, %r0, 0; @%p0 bra ONE; bar.sync 0; bra END; ONE: bar.sync 0;
    END: mov.u32 %r1, 0;)",
                                 {{}, {32}, {}}, &kind);
  CHECK(kind == emu::FaultKind::illegal_instruction);
  CHECK(contains(text, "is .aligned"));
}

TEST_CASE("an .aligned instruction does not wait for lanes that end") {
  Words out = lanes(R"(
    mov.u32 %r1, 0; setp.ne.u32 %p0, %r0, 3; @%p0 bra MEET;
    LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra LOOP; ret;
    MEET: bar.sync 0; mov.u32 %r1, 5; st.global.u32 [%rd0], %r1;)");
  CHECK(std::accumulate(out.begin(), out.end(), 0u) == 31 * 5);
}

TEST_CASE("each lane of a warp takes a spin lock in turn") {
  const exec_test::SettingsGuard guard;
  emu::settings().max_instructions = 4'000'000;
  const Words out = run(prologue + R"(
    LOCK: atom.acquire.gpu.global.cas.b32 %r1, [%out+128], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra LOCK;
    ld.global.u32 %r2, [%out+132]; add.u32 %r2, %r2, 1; st.global.u32 [%out+132], %r2;
    atom.release.gpu.global.exch.b32 %r1, [%out+128], 0; bar.sync 0;
    ld.global.u32 %r2, [%out+132]; st.global.u32 [%rd0], %r2;)",
                        {{}, {32}, {}}, Words(34));
  CHECK(out[0] == 32);
  CHECK(out[31] == 32);
}

TEST_CASE("a lane may wait for what its siblings do after the branch") {
  const Words out = run(prologue + R"(
    setp.eq.u32 %p0, %r0, 0; @!%p0 bra INIT; mbarrier.init.shared::cta.b64 [bar], 1;
    INIT: bar.warp.sync -1; @!%p0 bra JOIN;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
    JOIN: setp.eq.u32 %p2, %r0, 1; @%p2 mbarrier.arrive.shared::cta.b64 _, [bar];
    bar.sync 0; activemask.b32 %r1; st.global.u32 [%rd0], %r1;)",
                        {{}, {32}, {}}, Words(32), ".shared .b64 bar;");
  CHECK(out == Words(32, 0xFFFFFFFF));
}

TEST_CASE("a shuffled value of a lane that takes no part cannot be used") {
  emu::FaultKind kind{};
  fault(prologue + R"(
    setp.ge.u32 %p0, %r0, 16; @%p0 bra END;
    shfl.sync.down.b32 %r1, %r0, 8, 31, 0xFFFF; st.global.u32 [%out], %r1; END:)",
        {{}, {32}, {}}, &kind);
  CHECK(kind == emu::FaultKind::uninitialised);
}

TEST_CASE("a warp with fewer than 32 threads executes aligned instructions") {
  Words out = lanes("bar.sync 0; mov.u32 %r1, 3; st.global.u32 [%rd0], %r1;", 20);
  CHECK(std::accumulate(out.begin(), out.end(), 0u) == 60);
}
