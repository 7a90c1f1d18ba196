// SPDX-License-Identifier: MIT
// What correct kernels do to order their work, each in the manual's way: no finding of either
// class, in no schedule. A finding here would send somebody looking for a bug that is not there.
#include "tools/emulator/test/support/exec_support.h"

using namespace emu;

namespace {

struct Pattern {
  const char* name;
  exec_test::Shape shape;
  const char* body;
  uint32_t first;  // word of the buffer in the end
};

// Every body finds %r0 = thread, %r1 = block, %r2 = lane, %rd0 = its own word of the buffer (words
// from 64 on), %p0 unless thread 0, %p1 unless lane 0. The buffer begins as zeros.
const char* const head = R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %laneid; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r1, %r3, %r0; mul.wide.u32 %rd0, %r4, 4; add.u64 %rd0, %rd0, %out;
    add.u64 %rd0, %rd0, 256; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r2, 0;
)";
const char* const memory =
    ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bars[2];\n"
    ".shared .align 4 .b32 word;";

const Pattern patterns[] = {
    {"warp-aggregated atomics: one lane adds for all, shuffles hand out the sum",
     {{4}, {64}, {}},
     R"(
    activemask.b32 %r5; vote.sync.ballot.b32 %r6, 1, %r5; popc.b32 %r7, %r6;
    elect.sync %r8|%p2, %r5; mov.u32 %r9, 0;
    @%p2 atom.global.add.u32 %r9, [%out], %r7;
    shfl.sync.idx.b32 %r10, %r9, %r8, 31, %r5; add.u32 %r10, %r10, %r2; st.global.u32 [%rd0], %r10;)",
     256},
    {"the last block: a counter tells it, fences by the thread that counts on both sides",
     {{4}, {64}, {}},
     R"(
    st.global.u32 [%rd0], 1; bar.sync 0; @%p0 bra COUNTED;
    membar.gl; atom.global.inc.u32 %r5, [%out+4], 3; st.shared.u32 [word], %r5; membar.gl;
    COUNTED: bar.sync 0; ld.shared.u32 %r5, [word]; setp.ne.u32 %p2, %r5, 3; @%p2 bra END;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %out; ld.global.u32 %r6, [%rd1+256];
    ld.global.u32 %r7, [%rd1+1024]; add.u32 %r6, %r6, %r7; red.global.add.u32 [%out], %r6;
    END: mov.u32 %r9, 0;)",
     128},
    {"barrier of the grid: release by an atomic add, acquire by a spinning load, three rounds",
     {{3}, {64}, {}},
     R"(
    mov.u32 %r8, 0;
    ROUND: st.global.u32 [%rd0], %r8; bar.sync 0; @%p0 bra MET;
    atom.add.release.gpu.global.u32 %r5, [%out], 1; add.u32 %r9, %r8, 1; mul.lo.u32 %r9, %r9, 3;
    SPIN: ld.acquire.gpu.global.u32 %r5, [%out]; setp.lt.u32 %p2, %r5, %r9; @%p2 bra SPIN;
    MET: bar.sync 0; add.u32 %r6, %r1, 1; rem.u32 %r6, %r6, 3; mad.lo.u32 %r6, %r6, %r3, %r0;
    mul.wide.u32 %rd1, %r6, 4; add.u64 %rd1, %rd1, %out; ld.global.u32 %r7, [%rd1+256];
    setp.ne.u32 %p3, %r7, %r8; @%p3 trap;
    bar.sync 0; @%p0 bra AGAIN;
    atom.add.release.gpu.global.u32 %r5, [%out+4], 1;
    SPIN2: ld.acquire.gpu.global.u32 %r5, [%out+4]; setp.lt.u32 %p2, %r5, %r9; @%p2 bra SPIN2;
    AGAIN: bar.sync 0; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 3; @%p2 bra ROUND;)",
     9},
    {"stream-K: partial sums in a workspace, a fence and a relaxed flag, volatile polling",
     {{2}, {64}, {}},
     R"(
    setp.ne.u32 %p2, %r1, 0; @%p2 bra FINISH;
    st.global.u32 [%rd0], %r0; bar.sync 0; @%p0 bra END; fence.acq_rel.gpu;
    red.relaxed.gpu.global.add.u32 [%out], 1; bra END;
    FINISH: @%p0 bra READY;
    WAIT: ld.volatile.global.u32 %r5, [%out]; setp.eq.u32 %p3, %r5, 0; @%p3 bra WAIT;
    fence.acq_rel.gpu;
    READY: bar.sync 0; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %out;
    ld.global.u32 %r5, [%rd1+256]; st.global.u32 [%rd0], %r5;
    END: mov.u32 %r9, 0;)",
     1},
    {"a lock by compare and swap with fences, plain accesses inside",
     {{4}, {64}, {}},
     R"(
    @%p1 bra END;
    LOCK: atom.global.cas.b32 %r5, [%out+4], 0, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra LOCK;
    fence.acq_rel.gpu; ld.global.u32 %r6, [%out]; add.u32 %r6, %r6, 1; st.global.u32 [%out], %r6;
    fence.acq_rel.gpu; atom.global.exch.b32 %r5, [%out+4], 0;
    END: mov.u32 %r9, 0;)",
     8},
    {"a lock that acquires and releases",
     {{4}, {64}, {}},
     R"(
    @%p1 bra END;
    LOCK: atom.acquire.gpu.global.cas.b32 %r5, [%out+4], 0, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra LOCK;
    ld.global.u32 %r6, [%out]; add.u32 %r6, %r6, 1; st.global.u32 [%out], %r6;
    st.release.gpu.global.u32 [%out+4], 0;
    END: mov.u32 %r9, 0;)",
     8},
    {"flags of .cta scope between warps of one CTA of a cluster",
     {{2}, {64}, {2}},
     R"(
    setp.ge.u32 %p2, %r0, 32; @%p2 bra READS;
    st.global.u32 [%rd0], 5; st.shared.u32 [tile], 5; bar.warp.sync -1;
    @!%p1 mul.wide.u32 %rd1, %r1, 4; @!%p1 add.u64 %rd1, %rd1, %out;
    @!%p1 st.release.cta.global.u32 [%rd1+8], 1; bra END;
    READS: mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, %out;
    WAIT: ld.acquire.cta.global.u32 %r5, [%rd1+8]; setp.eq.u32 %p3, %r5, 0; @%p3 bra WAIT;
    ld.global.u32 %r6, [%rd0+-128]; ld.shared.u32 %r7, [tile]; add.u32 %r6, %r6, %r7;
    red.global.add.u32 [%out], %r6;
    END: barrier.cluster.arrive; barrier.cluster.wait;)",
     640},
    {"volatile shared memory between the lanes of a warp",
     {{1}, {32}, {}},
     R"(
    shl.b32 %r5, %r0, 2; mov.u32 %r6, tile; add.u32 %r6, %r6, %r5;
    st.volatile.shared.u32 [%r6], 1; st.volatile.shared.u32 [%r6+128], 0; bar.warp.sync -1;
    ld.volatile.shared.u32 %r7, [%r6+64]; ld.volatile.shared.u32 %r8, [%r6];
    red.global.add.u32 [%out], %r8;)",
     32},
    {"a volatile flag in shared memory, polled by the other warp",
     {{1}, {64}, {}},
     R"(
    @!%p0 st.volatile.shared.u32 [word], 0; bar.sync 0; setp.ge.u32 %p2, %r0, 32; @%p2 bra POLL;
    @!%p0 st.volatile.shared.u32 [word], 1; bra END;
    POLL: ld.volatile.shared.u32 %r5, [word]; setp.eq.u32 %p3, %r5, 0; @%p3 bra POLL;
    @!%p1 red.global.add.u32 [%out], %r5;
    END: mov.u32 %r9, 0;)",
     1},
    {"tcgen05.fence before and after, and a warp in the middle that has none",
     {{1}, {96}, {}},
     R"(
    shr.u32 %r5, %r0, 5; setp.eq.u32 %p2, %r5, 1; setp.eq.u32 %p3, %r5, 2; @!%p3 bra ALLOCATED;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [word], 32;
    ALLOCATED: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    ld.shared.u32 %r6, [word]; @%p2 bra MIDDLE; @%p3 bra LAST;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {%r0}; tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync; bar.sync 1, 64; bra END;
    MIDDLE: bar.sync 1, 64; bar.sync 2, 64; bra END;
    LAST: bar.sync 2, 64; tcgen05.fence::after_thread_sync;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
    END: mov.u32 %r9, 0;)",
     0},
    {"all lanes of a warp store one value to one word",
     {{1}, {32}, {}},
     "st.shared.u32 [word], 3; bar.sync 0; ld.shared.u32 %r5, [word]; @!%p1 red.global.add.u32 "
     "[%out], %r5;",
     3},
    {"one lane waits for a bulk load, bar.warp.sync tells the others",
     {{1}, {32}, {}},
     R"(
    mov.u32 %r5, tile; mov.u32 %r6, bars;
    @!%p0 mbarrier.init.shared::cta.b64 [%r6], 1; @!%p0 fence.mbarrier_init.release.cluster;
    bar.warp.sync -1; @%p0 bra MET;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%out], 128, [%r6];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0; @!%p2 bra WAIT;
    MET: bar.warp.sync -1; shl.b32 %r7, %r0, 2; add.u32 %r7, %r7, %r5; ld.shared.u32 %r8, [%r7];
    st.global.u32 [%rd0], %r8;)",
     0},
    {"a tile of all lanes stored by one: fence by each, or by the one after bar.warp.sync",
     {{1}, {32}, {}},
     R"(
    mov.u32 %r5, tile; shl.b32 %r7, %r0, 2; add.u32 %r7, %r7, %r5;
    st.shared.u32 [%r7], 4; fence.proxy.async.shared::cta; bar.warp.sync -1;
    @!%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r5], 128;
    @!%p0 cp.async.bulk.commit_group; @!%p0 cp.async.bulk.wait_group.read 0; bar.warp.sync -1;
    st.shared.u32 [%r7], 6; bar.warp.sync -1; @!%p0 fence.proxy.async.shared::cta;
    @!%p0 cp.async.bulk.global.shared::cta.bulk_group [%out+128], [%r5], 128;
    @!%p0 cp.async.bulk.commit_group; @!%p0 cp.async.bulk.wait_group 0;)",
     4},
    {"cp.async by each lane, read by its neighbour after bar.warp.sync",
     {{1}, {32}, {}},
     R"(
    mov.u32 %r5, tile; shl.b32 %r7, %r0, 2; add.u32 %r7, %r7, %r5;
    cp.async.ca.shared.global [%r7], [%rd0], 4; cp.async.commit_group; cp.async.wait_group 0;
    bar.warp.sync -1; xor.b32 %r8, %r7, 4; ld.shared.u32 %r9, [%r8]; red.global.add.u32 [%out], %r9;)",
     0},
    {"tensor memory's address is read by the warp that allocated it",
     {{1}, {32}, {}},
     R"(
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [word], 32; ld.shared.u32 %r5, [word];
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;)",
     0},
    {"a ring: producer and consumer warps, one elected lane each, an mbarrier each way",
     {{1}, {64}, {}},
     R"(
    mov.u32 %r5, tile; mov.u32 %r6, bars; setp.ge.u32 %p2, %r0, 32;
    @!%p0 mbarrier.init.shared::cta.b64 [%r6], 1; @!%p0 mbarrier.init.shared::cta.b64 [%r6+8], 32;
    @!%p0 fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r8, 0;
    @%p2 bra CONSUME; @%p0 bra END;
    PRODUCE: and.b32 %r9, %r8, 1; xor.b32 %r10, %r9, 1;
    EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6+8], %r10; @!%p3 bra EMPTY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%out], 128, [%r6];
    add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 5; @%p3 bra PRODUCE; bra END;
    CONSUME: and.b32 %r9, %r8, 1;
    FULL: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], %r9; @!%p3 bra FULL;
    shl.b32 %r7, %r2, 2; add.u32 %r7, %r7, %r5; ld.shared.u32 %r11, [%r7];
    mbarrier.arrive.shared::cta.b64 _, [%r6+8]; st.global.u32 [%rd0], %r11;
    add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 5; @%p3 bra CONSUME;
    END: mov.u32 %r9, 0;)",
     0},
};

}  // namespace

TEST_CASE("what correct kernels do to order their work is no finding") {
  exec_test::SettingsGuard guard;
  settings().formal = Reaction::stop;
  for (const Pattern& p : patterns)
    for (Order order : {Order::soonest, Order::latest, Order::random})
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        settings().order = order;
        settings().seed = seed;
        settings().workers = 1 + seed % 2;
        CAPTURE(p.name, int(order), seed);
        std::vector<uint32_t> words;
        REQUIRE_NOTHROW(words = exec_test::run(std::string(head) + p.body, p.shape,
                                               std::vector<uint32_t>(512), memory));
        CHECK(words[0] == p.first);
      }
}
