// SPDX-License-Identifier: MIT
// What inventory.def has of clusters: copies of a CTA pair and their barriers, remote arrivals, the
// request for the next cluster.
#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::dense_map;
using unit::MapType;
using unit::OrderGuard;

namespace {

// Seven boxes of 128 bytes come to each CTA of a pair: all but the fourth count at the leader's
// barrier. The leader reads both CTAs' boxes; the peer's arrivals and a st.async let it go on.
const char* const program = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out, .param .align 64 .b8 k_1[128],
                  .param .align 64 .b8 k_3[128], .param .align 64 .b8 k_4[128])
{
.reg .pred %p, %follower, %canceled;
.reg .b16 %mask;
.reg .b32 %r<8>, %to, %from, %thread, %rank, %leader, %own, %remote, %next, %x, %y, %z, leads;
.reg .b64 %rd<4>, %out, %m1, %m3, %m4, %policy;
.reg .b128 answer;
.shared .align 128 .b8 box[896];
.shared .align 16 .b8 said[16];
.shared .align 16 .b8 sent[16];
.shared .align 8 .b64 bars[4];
ld.param.u64 %out, [k_out];
mov.b64 %m1, k_1; cvta.param.u64 %m1, %m1;
mov.b64 %m3, k_3; cvta.param.u64 %m3, %m3;
mov.b64 %m4, k_4; cvta.param.u64 %m4, %m4;
mov.u32 %thread, %tid.x;
mov.u32 %rank, %cluster_ctarank;
setp.ne.u32 %follower, %thread, 0;
mov.b64 %policy, 0x12f0000000000000;
mov.u32 %r0, bars;
and.b32 %leader, %r0, 0xFEFFFFFF;
add.u32 %own, %r0, 8;
add.u32 %remote, %r0, 16;
add.u32 %next, %r0, 24;
mov.u32 %to, box;
@%follower bra READY;
mbarrier.init.shared::cta.b64 [%r0], 2;
mbarrier.init.shared::cta.b64 [%own], 1;
mbarrier.init.shared::cta.b64 [%remote], 5;
mbarrier.init.shared::cta.b64 [%next], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%own], 128;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%next], 16;
READY:
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.aligned;
@%follower bra ISSUED;
mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%leader], 768;
shl.b32 %r1, %rank, 7;
cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2.L2::cache_hint [%to], [%m1, {%r1}], [%leader], %policy;
add.u32 %r0, %to, 256; mov.u32 %r1, 0; mov.u32 %r2, 2; add.u32 %r3, %rank, 3;
cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%leader], %policy;
add.u32 %r0, %to, 512; add.u32 %r2, %r2, 1;
cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%leader], %policy;
setp.ne.u32 %p, %rank, 0;
@%p bra ISSUED;
mov.u16 %mask, 3;
mov.u32 %r1, 640; add.u32 %r0, %to, 128;
cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2.L2::cache_hint [%r0], [%m1, {%r1}], [%leader], %mask, %policy;
mov.u32 %r1, 32; mov.u32 %r2, 1; mov.u32 %r3, 2; add.u32 %r0, %to, 384;
cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::1.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%own], %mask, %policy;
mov.u32 %r1, 16; add.u32 %r0, %to, 640;
cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%leader], %mask, %policy;
mov.u32 %r1, 8; mov.u32 %r4, 1; add.u32 %r0, %to, 768;
cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r0], [%m4, {%r1, %r2, %r3, %r4}], [%leader], %mask, %policy;
mov.u32 %r0, said;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r0], [%next];
ISSUED:
bar.warp.sync -1;
OWN:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%own], 0;
@!%p bra.uni OWN;
NEXT:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%next], 0;
@!%p bra.uni NEXT;
mov.u32 %r0, said;
ld.shared.b128 answer, [%r0];
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %canceled, answer;
@%canceled trap;
@%canceled clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, _}, answer;
setp.eq.u32 %p, %rank, 0;
@%p bra.uni LEADER;
@%follower bra END;
mov.u32 %r0, 0;
mapa.shared::cluster.u32 leads, %remote, %r0;
mov.u32 %r1, 16;
mov.u32 %r2, 2;
mbarrier.arrive.expect_tx.release.cta.shared::cluster.b64 _, [leads], %r1;
mbarrier.arrive.release.cta.shared::cluster.b64 _, [leads];
mbarrier.arrive.shared::cluster.b64 _, [leads], %r2;
mbarrier.arrive.shared::cluster.b64 _, [leads];
mov.u32 %r1, sent;
mapa.shared::cluster.u32 %r1, %r1, %r0;
mov.b32 %r2, 0f40000000;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r1], {%r2, %r2, %r2, %r2}, [leads];
bra END;
LEADER:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%leader], 0;
@!%p bra.uni LEADER;
REMOTE:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%remote], 0;
@!%p bra.uni REMOTE;
mov.u32 %r3, 1;
mapa.shared::cluster.u32 %from, %to, %r3;
shl.b32 %r1, %thread, 2;
add.u32 %to, %to, %r1;
add.u32 %from, %from, %r1;
cvt.u64.u32 %rd0, %r1;
add.u64 %out, %out, %rd0;
)";

constexpr uint32_t boxes = 7;

std::string text() {
  std::string out = program;
  for (uint32_t b = 0; b < boxes; ++b)
    out += format(
        "ld.shared.f32 %%r1, [%%to+%u]; st.global.u32 [%%out+%u], %%r1;\n"
        "add.u32 %%r0, %%from, %u; ld.shared::cluster.f32 %%r1, [%%r0];"
        " st.global.u32 [%%out+%u], %%r1;\n",
        b * 128, b * 256, b * 128, b * 256 + 128);
  return out +
         format("ld.shared.u32 %%r1, [sent+12]; @!%%follower st.global.u32 [%%out+%u], %%r1;\n",
                boxes * 256) +
         "END:\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
         "ret;\n}\n";
}

// A tensor of words 0, 1, 2 ..; `box` of 32 of them.
}  // namespace

TEST_CASE("the cluster instructions of the inventory move every word to its place") {
  if (ptx_test::have_ptxas()) CHECK(ptx_test::ptxas_verdict(text()) == "");
  for (const Order order : {Order::soonest, Order::latest, Order::random})
    for (const uint64_t seed : {1, 2, 3}) {
      OrderGuard guard(order, seed);
      GlobalMemory memory(1 << 24);
      std::vector<uint32_t> data(1024);
      for (uint32_t i = 0; i < 1024; ++i) data[i] = i;
      const uint64_t in = memory.allocate(4096, "in"), out = memory.allocate(2048, "out");
      std::memcpy(memory.at(in, 4096, 1, "test"), data.data(), 4096);
      const EncodedMap maps[] = {dense_map(MapType::words, in, {1024}, {32}),
                                 dense_map(MapType::words, in, {64, 4, 4}, {8, 2, 2}),
                                 dense_map(MapType::words, in, {16, 4, 4, 4}, {4, 2, 2, 2})};
      unit::run(text(), memory, {2}, unit::parameters(out, maps));
      const auto got = unit::download<uint32_t>(memory, out, 449);
      const auto flat = [](uint32_t at, uint32_t i) { return at + i; };
      const auto cube = [](uint32_t x, uint32_t y, uint32_t z, uint32_t i) {
        x += i % 8, y += i / 8 % 2, z += i / 16;
        return x < 64 && y < 4 && z < 4 ? x + 64 * y + 256 * z : 0;
      };
      size_t wrong[boxes] = {};
      for (uint32_t rank = 0; rank < 2; ++rank)
        for (uint32_t i = 0; i < 32; ++i) {
          const uint32_t x = i % 4, y = i / 4 % 2, z = i / 8 % 2, w = i / 16;
          const uint32_t expected[boxes] = {flat(128 * rank, i),
                                            flat(640, i),
                                            cube(0, 2, 3 + rank, i),
                                            cube(32, 1, 2, i),
                                            cube(0, 3, 3 + rank, i),
                                            cube(16, 1, 2, i),
                                            8 + x + 16 * (1 + y) + 64 * (2 + z) + 256 * (1 + w)};
          for (uint32_t b = 0; b < boxes; ++b)
            wrong[b] += got[b * 64 + rank * 32 + i] != expected[b];
        }
      for (uint32_t b = 0; b < boxes; ++b) {
        CAPTURE(int(order), seed, b);
        CHECK(wrong[b] == 0);
      }
      CHECK(got[448] == 0x40000000);
    }
}
