// SPDX-License-Identifier: MIT
// A in tensor memory as a PTX program has it, with M = 64: each warp has 16 rows, the other half of
// its lanes is stored and loaded along with them and means nothing.
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;
using unit::replaced;

namespace {

// D[m][n] = m * (n + 1): A has m in its first column, B n + 1, all else is zero.
const char* const program = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out)
{
.reg .pred %p, %elected, %upper;
.reg .b16 %h;
.reg .b32 %r<8>, %a<8>, %d<8>, %t, %thread, %warp, %lane, %row, %bar, %zero;
.reg .b64 %rd<4>, %out, %db;
.shared .align 128 .b8 tile_b[256];
.shared .align 8 .b64 done;
.shared .align 4 .b32 taddr;
ld.param.u64 %out, [k_out];
mov.u32 %thread, %tid.x;
mov.u32 %lane, %laneid;
shr.u32 %warp, %thread, 5;
mov.u32 %bar, done;
mov.u32 %zero, 0;
setp.eq.u32 %elected, %thread, 0;
@%elected mbarrier.init.shared::cta.b64 [%bar], 1;
@%elected fence.mbarrier_init.release.cluster;
setp.ne.u32 %p, %warp, 0;
@%p bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
ALLOCATED:
mov.u32 %r0, tile_b;
setp.ge.u32 %p, %thread, 8;
@%p bra FILLED;
add.u32 %r1, %thread, 1;
cvt.rn.f16.u32 %h, %r1;
cvt.u32.u16 %r2, %h;
shl.b32 %r3, %thread, 4;
add.u32 %r3, %r3, %r0;
st.shared.v4.u32 [%r3], {%r2, %zero, %zero, %zero};
st.shared.v4.u32 [%r3+128], {%zero, %zero, %zero, %zero};
fence.proxy.async.shared::cta;
FILLED:
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %t, [taddr];
shl.b32 %row, %warp, 4;
add.u32 %row, %row, %lane;
cvt.rn.f16.u32 %h, %row;
cvt.u32.u16 %a0, %h;
mov.u32 %a1, 0; mov.u32 %a2, 0; mov.u32 %a3, 0; mov.u32 %a4, 0;
mov.u32 %a5, 0; mov.u32 %a6, 0; mov.u32 %a7, 0;
shl.b32 %r4, %warp, 21;
add.u32 %r4, %r4, %t;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r4+16], {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
@!%elected bra WAIT;
shr.u32 %r0, %r0, 4;
cvt.u64.u32 %db, %r0;
or.b64 %db, %db, 0x0000400000080000;
mov.b32 %r5, 0x04020010;
setp.ne.u32 %p, %zero, 0;
add.u32 %r6, %t, 16;
tcgen05.mma.cta_group::1.kind::f16 [%t], [%r6], %db, %r5, %p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];
WAIT:
bar.warp.sync -1;
LOOP:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra LOOP;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%r4];
tcgen05.wait::ld.sync.aligned;
add.f32 %d7, %d7, 0f3F800000;
setp.ge.u32 %upper, %lane, 16;
@%upper bra STORED;
mul.wide.u32 %rd0, %row, 32;
add.u64 %out, %out, %rd0;
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
st.global.v4.b32 [%out+16], {%d4, %d5, %d6, %d7};
STORED:
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
setp.ne.u32 %p, %warp, 0;
@%p bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;
END:
ret;
}
)";

std::vector<float> run(const std::string& text) {
  GlobalMemory memory(1 << 22);
  const uint64_t out = memory.allocate(128 * 32, "out");
  unit::run(text, memory, {1, 128}, unit::parameters(out));
  return unit::download<float>(memory, out, 128 * 8);
}

std::string fault_of(const std::string& text, FaultKind kind, Order order) {
  OrderGuard guard(order, 2);
  return unit::fault(kind, [&] { run(text); });
}

}  // namespace

TEST_CASE("M = 64 with A in tensor memory: what the idle lanes load is computed with and dropped") {
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 3);
    settings().formal = Reaction::stop;
    const std::vector<float> d = run(program);
    size_t wrong = 0;
    for (uint32_t m = 0; m < 64; ++m)
      for (uint32_t n = 0; n < 8; ++n)
        wrong += d[m * 8 + n] != float(m * (n + 1)) + float(n == 7 ? 1 : 0);
    CAPTURE(int(order));
    CHECK(wrong == 0);
    const std::string all =
        fault_of(replaced(program, "@%upper bra STORED;\n", "red.global.add.f32 [%out], %d0;\n"),
                 FaultKind::uninitialised, order);
    INFO(all);
    CHECK(unit::says(all, "lanes 0xffff0000"));
  }
}

TEST_CASE(
    "tcgen05.mma reads A in tensor memory after the wait and the barrier of whoever stored it") {
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    const std::string
        wait = "tcgen05.wait::st.sync.aligned;\n",
        fence =
            "tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n";
    const std::string unwaited = fault_of(replaced(program, wait, ""), FaultKind::ordering, order);
    INFO(unwaited);
    CHECK(unit::says(unwaited, "tcgen05.mma"));
    CHECK(unit::says(unwaited, "column 16"));
    // Without the barrier the MMA may also come before the store: then there is nothing to read.
    const std::string early = replaced(program, wait + fence, wait);
    std::string apart = fault_of(early, FaultKind::ordering, order);
    if (apart.find("another kind") == 0) apart = fault_of(early, FaultKind::uninitialised, order);
    INFO(apart);
    CHECK(unit::says(apart, "tcgen05.mma"));
  }
}
