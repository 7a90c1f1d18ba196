// SPDX-License-Identifier: MIT
// tcgen05.mma.ws as a PTX program has it: M = 32, so each warp finds a quarter of N in its lanes.
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;
using unit::replaced;

namespace {

// D[m][n] = m * (n + 1), f16 to f32: A has m in its first column, B n + 1, all else is zero.
const char* const program = R"(
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out)
{
.reg .pred %p, %elected, %no;
.reg .b16 %h;
.reg .b32 %r<8>, %d<16>, %t, %thread, %warp, %lane, %bar, %zero;
.reg .b64 %rd<4>, %out, %da, %db;
.shared .align 128 .b8 tile_a[1024];
.shared .align 128 .b8 tile_b[2048];
.shared .align 8 .b64 done;
.shared .align 4 .b32 taddr;
ld.param.u64 %out, [k_out];
mov.u32 %thread, %tid.x;
mov.u32 %lane, %laneid;
shr.u32 %warp, %thread, 5;
mov.u32 %bar, done;
mov.u32 %zero, 0;
setp.ne.u32 %no, %zero, 0;
setp.eq.u32 %elected, %thread, 0;
@%elected mbarrier.init.shared::cta.b64 [%bar], 1;
@%elected fence.mbarrier_init.release.cluster;
setp.ne.u32 %p, %warp, 0;
@%p bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
ALLOCATED:
shl.b32 %r3, %thread, 4;
setp.ge.u32 %p, %thread, 32;
@%p bra A_FILLED;
mov.u32 %r0, tile_a;
cvt.rn.f16.u32 %h, %thread;
cvt.u32.u16 %r2, %h;
add.u32 %r1, %r3, %r0;
st.shared.v4.u32 [%r1], {%r2, %zero, %zero, %zero};
st.shared.v4.u32 [%r1+512], {%zero, %zero, %zero, %zero};
A_FILLED:
setp.ge.u32 %p, %thread, 64;
@%p bra B_FILLED;
mov.u32 %r0, tile_b;
add.u32 %r2, %thread, 1;
cvt.rn.f16.u32 %h, %r2;
cvt.u32.u16 %r2, %h;
add.u32 %r1, %r3, %r0;
st.shared.v4.u32 [%r1], {%r2, %zero, %zero, %zero};
st.shared.v4.u32 [%r1+1024], {%zero, %zero, %zero, %zero};
B_FILLED:
fence.proxy.async.shared::cta;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %t, [taddr];
@!%elected bra WAIT;
mov.u32 %r0, tile_a;
shr.u32 %r0, %r0, 4;
cvt.u64.u32 %da, %r0;
or.b64 %da, %da, 0x0000400800200000;
mov.u32 %r0, tile_b;
shr.u32 %r0, %r0, 4;
cvt.u64.u32 %db, %r0;
or.b64 %db, %db, 0x0000400800400000;
mov.b32 %r5, 0x02100010;
tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [%t], %da, %db, %r5, %no, 0;
tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::lastuse [%t], %da, %db, %r5, 1;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];
WAIT:
bar.warp.sync -1;
LOOP:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra LOOP;
tcgen05.fence::after_thread_sync;
shl.b32 %r4, %warp, 21;
add.u32 %r4, %r4, %t;
tcgen05.ld.sync.aligned.32x32b.x16.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10,
  %d11, %d12, %d13, %d14, %d15}, [%r4];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd0, %thread, 64;
add.u64 %out, %out, %rd0;
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
st.global.v4.b32 [%out+16], {%d4, %d5, %d6, %d7};
st.global.v4.b32 [%out+32], {%d8, %d9, %d10, %d11};
st.global.v4.b32 [%out+48], {%d12, %d13, %d14, %d15};
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

constexpr uint32_t threads = 128, columns = 16;

std::vector<float> run(const std::string& text) {
  GlobalMemory memory(1 << 22);
  const uint64_t out = memory.allocate(threads * columns * 4, "out");
  unit::run(text, memory, {1, threads}, unit::parameters(out));
  return unit::download<float>(memory, out, threads * columns);
}

}  // namespace

TEST_CASE("a weight-stationary product in a program: a quarter of N for each warp") {
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 2);
    const std::vector<float> d = run(program);
    for (uint32_t thread = 0; thread < threads; ++thread)
      for (uint32_t c = 0; c < columns; ++c) {
        CAPTURE(int(order), thread, c);
        const uint32_t m = thread % 32, n = thread / 32 * columns + c;
        REQUIRE(d[thread * columns + c] == 2 * float(m * (n + 1)));
      }
  }
}

TEST_CASE("a mask of columns of a weight-stationary product is refused where it executes") {
  OrderGuard guard(Order::soonest, 1);
  const std::string masked = replaced(program, "%r5, %no, 0;", "%r5, %no, 0x8000000000;");
  const std::string report = unit::fault(FaultKind::illegal_instruction, [&] { run(masked); });
  INFO(report);
  CHECK(unit::says(report, "zero-column mask"));
  CHECK(unit::says(report, "tcgen05.mma.ws.cta_group::1"));
}
