// SPDX-License-Identifier: MIT
// Counters of small kernels, each expectation worked out by hand.
#include <cstring>

#include "tools/emulator/test/support/exec_support.h"

using emu::Counters;

namespace {

Counters count(const std::string& body, const exec_test::Shape& shape = {}) {
  // The bodies count and do not order: their threads store to the same words.
  exec_test::SettingsGuard guard;
  emu::settings().hazards = emu::settings().formal = emu::Reaction::ignore;
  return exec_test::counters(body, shape, ".shared .align 16 .b8 s[1024];");
}

}  // namespace

TEST_CASE("bytes are counted per thread and space") {
  // 64 threads load 8 bytes and store 4; one thread stores 16.
  const Counters c = count(R"(
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4; add.s64 %rd0, %rd0, %out;
    ld.global.u64 %rd1, [%out]; st.global.u32 [%rd0], %r0; st.shared.u32 [s], 1;
    setp.ne.u32 %p0, %r0, 5; @%p0 bra END;
    st.global.v4.u32 [%out], {%r0, %r0, %r0, %r0}; red.global.add.u32 [%out], 1;
    END: mov.u32 %r1, 0;)",
                           {{}, {64}, {}});
  CHECK(c.global_load_bytes == 64 * 8);
  CHECK(c.global_store_bytes == 64 * 4 + 16);
  CHECK(c.atomics == 1);
  CHECK(c.cluster_bytes == 0);
  // The warp with thread 5 executes two instructions more than the other.
  CHECK(c.instructions == 2 * 11 + 2);
}

TEST_CASE("a generic address counts where it leads and another CTA's memory as the cluster's") {
  const Counters c = count(R"(
    st.u32 [%out], 7;
    mov.u32 %r0, s; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;
    mapa.shared::cluster.u32 %r3, %r0, %r2; st.shared::cluster.u64 [%r3], %out;
    barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u64 %rd1, [s];
    mapa.shared::cluster.u32 %r3, %r0, %r1; st.shared::cluster.u64 [%r3+8], %out;)",
                           {{2}, {32}, {2}});
  CHECK(c.global_store_bytes == 2 * 32 * 4);
  CHECK(c.cluster_bytes == 2 * 32 * 8);
  CHECK(c.cluster_barriers == 2);
}

TEST_CASE("barriers count warps that arrive and mbarriers count the answers") {
  const Counters c = count(R"(
    mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [s], 1; mbarrier.arrive.shared::cta.b64 %rd1, [s];
    READY: bar.sync 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [s], 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [s], 1;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], 0; @!%p1 bra WAIT;)",
                           {{}, {96}, {}});
  CHECK(c.cta_barriers == 3);
  CHECK(c.barrier_tries == 3 * 3);
  CHECK(c.barrier_waits == 0);
}

TEST_CASE("tcgen05.ld and st count 128 bytes per register and warp and cp.async its whole size") {
  const Counters c = count(R"(
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32; ld.shared.u32 %r0, [s];
    mov.u32 %r1, 1;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r0], {%r1, %r1}; tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0]; tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;
    mov.u32 %r3, s; cp.async.ca.shared.global [%r3+16], [%out], 8, 4; cp.async.wait_all;)",
                           {{}, {32}, {}});
  CHECK(c.tensor_store_bytes == 2 * 128);
  CHECK(c.tensor_load_bytes == 128);
  CHECK(c.copy_bytes == 32 * 8);
}
