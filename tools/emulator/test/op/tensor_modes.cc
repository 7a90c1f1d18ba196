// SPDX-License-Identifier: MIT
// The modes of cp.async.bulk.tensor as a program writes them: which operand is what.
#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;

namespace {

// A tensor of 16 bytes by 16 rows, or 16 channels by 4 by 4 pixels by 1: row r is full of r. Each
// load has four rows; the last one goes to both CTAs.
const char* const program = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out, .param .align 64 .b8 k_rows[128],
                  .param .align 64 .b8 k_images[128], .param .align 64 .b8 k_to[128])
{
.reg .pred %p, %first, %leader;
.reg .b16 %w, %h, %mask;
.reg .b32 %r<8>, %s, %bar, %thread, %rank;
.reg .b64 %rd<4>, %out, %rows, %images, %to, %policy;
.shared .align 128 .b8 box[512];
.shared .align 8 .b64 bar;
ld.param.u64 %out, [k_out];
mov.b64 %rows, k_rows; cvta.param.u64 %rows, %rows;
mov.b64 %images, k_images; cvta.param.u64 %images, %images;
mov.b64 %to, k_to; cvta.param.u64 %to, %to;
mov.b64 %policy, 0x12f0000000000000;
mov.u32 %thread, %tid.x;
mov.u32 %rank, %cluster_ctarank;
setp.eq.u32 %first, %thread, 0;
setp.eq.u32 %leader, %rank, 0;
mov.u32 %bar, bar;
mov.u32 %s, box;
mov.u16 %w, 1;
mov.u16 %h, 2;
mov.u16 %mask, 3;
@!%first bra READY;
mbarrier.init.shared::cta.b64 [%bar], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;
READY:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
@!%first bra WAIT;
mov.u32 %r0, 0; mov.u32 %r1, 9; mov.u32 %r2, 2; mov.u32 %r3, 15; mov.u32 %r4, 4;
cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4.L2::cache_hint [%rows, {%r0, %r1, %r2, %r3, %r4}], %policy;
cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%images, {%r0, %r0, %r0, %r0}], {%w, %h};
cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes.L2::cache_hint [%s], [%rows, {%r0, %r1, %r2, %r3, %r4}], [%bar], %policy;
add.u32 %r5, %s, 128;
cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r5], [%images, {%r0, %r0, %r0, %r0}], [%bar], {%w, %h};
@!%leader bra WAIT;
add.u32 %r5, %s, 256;
cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%rows, {%r0, %r4, %r3, %r2, %r1}], [%bar], %mask;
mov.u32 %r6, 1;
add.u32 %r5, %s, 384;
cp.async.bulk.tensor.4d.im2col.cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r5], [%images, {%r0, %r6, %r0, %r0}], [%bar], {%w, 1}, %mask, %policy;
WAIT:
bar.warp.sync -1;
LOOP:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra LOOP;
mul.lo.u32 %r5, %rank, 256;
and.b32 %r6, %thread, 15;
shl.b32 %r6, %r6, 2;
add.u32 %s, %s, %r6;
add.u32 %r6, %r6, %r5;
cvt.u64.u32 %rd0, %r6;
add.u64 %out, %out, %rd0;
setp.gt.u32 %p, %thread, 15;
@%p bra STORE;
ld.shared.u32 %r1, [%s]; st.global.u32 [%out], %r1;
ld.shared.u32 %r1, [%s+128]; st.global.u32 [%out+64], %r1;
ld.shared.u32 %r1, [%s+256]; st.global.u32 [%out+128], %r1;
ld.shared.u32 %r1, [%s+384]; st.global.u32 [%out+192], %r1;
STORE:
@!%first bra END;
@!%leader bra END;
mov.u32 %r0, 0; mov.u32 %r1, 1; mov.u32 %r2, 3; mov.u32 %r3, 5; mov.u32 %r4, 7;
mov.u32 %s, box;
cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%to, {%r0, %r1, %r2, %r3, %r4}], [%s];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
ret;
}
)";

}  // namespace

TEST_CASE("gather4 and scatter4 and im2col take their operands in the manual's order") {
  if (ptx_test::have_ptxas()) CHECK(ptx_test::ptxas_verdict(program) == "");
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 3);
    GlobalMemory memory(1 << 22);
    std::vector<uint8_t> rows(256);
    for (uint32_t i = 0; i < 256; ++i) rows[i] = uint8_t(i / 16);
    const uint64_t in = unit::upload(memory, rows),
                   to = unit::upload(memory, std::vector<uint8_t>(256, 0xEE)),
                   out = memory.allocate(512, "out");
    EncodedMap maps[3] = {
        unit::byte_map(in, 16, 16, 16, 1, 0), {}, unit::byte_map(to, 16, 16, 16, 1, 0)};
    alignas(64) TensorMap images;
    const uint64_t dims[] = {16, 4, 4, 1}, strides[] = {16, 64, 256};
    const uint32_t steps[] = {1, 1, 1, 1};
    const int32_t lower[] = {-1, -1}, upper[] = {-1, -1};
    TensorMapArguments a;
    a.map = &images, a.rank = 4, a.address = in;
    a.dims = dims, a.strides = strides, a.element_strides = steps;
    REQUIRE(encode_im2col(a, {lower, upper, 16, 4}, 100, &images) == "");
    maps[1] = images;
    const Counters counters = unit::run(program, memory, {2}, unit::parameters(out, maps));

    // Pixels (0,0) on with the offsets (1, 2), (1,0) on with (1, 1); the box goes from -1 to 2.
    const uint8_t expected[4][4] = {{9, 2, 15, 4},
                                    {2 * 4 + 1, 2 * 4 + 2, 2 * 4 + 3, 3 * 4 + 0},
                                    {4, 15, 2, 9},
                                    {1 * 4 + 2, 1 * 4 + 3, 2 * 4 + 0, 2 * 4 + 1}};
    const auto got = unit::download<uint8_t>(memory, out, 512);
    size_t wrong = 0;
    for (uint32_t i = 0; i < 512; ++i) wrong += got[i] != expected[i % 256 / 64][i % 64 / 16];
    CAPTURE(int(order));
    CHECK(wrong == 0);
    const uint8_t* stored = memory.at(to, 256, 1, "test");
    const int rows_of[] = {-1, 9, -1, 2, -1, 15, -1, 4};
    for (uint32_t r = 0; r < 8; ++r)
      CHECK(stored[r * 16 + 5] == (rows_of[r] < 0 ? 0xEE : uint8_t(rows_of[r])));
    CHECK(counters.tma_loads == 6);
    CHECK(counters.tma_bytes == 8 * 64);
  }
}
