// SPDX-License-Identifier: MIT
// The copies of inventory.def that one CTA issues, each into 128 bytes of its own: what they load
// is what the tensor has there.
#include <numeric>

#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::dense_map;
using unit::MapType;
using unit::OrderGuard;

namespace {

const char* const program = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out, .param .u64 k_in, .param .align 64 .b8 k_1[128],
                  .param .align 64 .b8 k_3[128], .param .align 64 .b8 k_4[128],
                  .param .align 64 .b8 k_s2[128], .param .align 64 .b8 k_s3[128])
{
.reg .pred %p, %first;
.reg .b32 %r<8>, %to, %bar, %thread;
.reg .b64 %rd<8>, %out, %in, %m1, %m3, %m4, %s2, %s3, %policy;
.shared .align 128 .b8 box[768];
.shared .align 8 .b64 bar;
ld.param.u64 %out, [k_out];
ld.param.u64 %in, [k_in];
mov.b64 %m1, k_1; cvta.param.u64 %m1, %m1;
mov.b64 %m3, k_3; cvta.param.u64 %m3, %m3;
mov.b64 %m4, k_4; cvta.param.u64 %m4, %m4;
mov.b64 %s2, k_s2; cvta.param.u64 %s2, %s2;
mov.b64 %s3, k_s3; cvta.param.u64 %s3, %s3;
mov.u32 %thread, %tid.x;
setp.eq.u32 %first, %thread, 0;
mov.u32 %bar, bar;
mov.u32 %to, box;
mov.b64 %policy, 0x12f0000000000000;
@!%first bra WAIT;
mbarrier.init.shared::cta.b64 [%bar], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%bar], 768;
add.u64 %rd0, %in, 256;
mov.u32 %r1, 128;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%to], [%rd0], %r1, [%bar], %policy;
mov.u32 %r1, 16; mov.u32 %r2, 1; mov.u32 %r3, 2; add.u32 %r0, %to, 128;
cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%bar], %policy;
mov.u32 %r1, 0; mov.u32 %r2, 3; mov.u32 %r3, 5; add.u32 %r0, %to, 256;
cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes.cta_group::1.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%bar], %policy;
mov.u32 %r1, 1280; add.u32 %r0, %to, 384;
cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1.L2::cache_hint [%r0], [%m1, {%r1}], [%bar], %policy;
mov.u32 %r1, 32; mov.u32 %r2, 6; mov.u32 %r3, 7; add.u32 %r0, %to, 512;
cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%m3, {%r1, %r2, %r3}], [%bar], %policy;
mov.u32 %r1, 0; mov.u32 %r2, 2; mov.u32 %r3, 3; mov.u32 %r4, 4; add.u32 %r0, %to, 640;
cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%m4, {%r1, %r2, %r3, %r4}], [%bar], %policy;
WAIT:
bar.warp.sync -1;
LOOP:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra.uni LOOP;
@!%first bra END;
mov.u32 %r1, 0; mov.u32 %r2, 1; mov.u32 %r3, 2; add.u32 %r0, %to, 128;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%s2, {%r1, %r2}], [%to], %policy;
cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%s3, {%r1, %r2, %r3}], [%r0];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
bar.warp.sync -1;
shl.b32 %r1, %thread, 2;
add.u32 %r0, %to, %r1;
cvt.u64.u32 %rd0, %r1;
add.u64 %out, %out, %rd0;
)";

constexpr uint32_t boxes = 6, box_bytes = 128;

std::string text() {
  std::string out = program;
  for (uint32_t b = 0; b < boxes; ++b)
    out += format("ld.shared.u32 %%r1, [%%r0+%u]; st.global.u32 [%%out+%u], %%r1;\n", b * box_bytes,
                  b * box_bytes);
  return out + "ret;\n}\n";
}

using Bytes = std::vector<uint8_t>;

// The box at `at` of a dense tensor, zeros outside.
Bytes box_of(const Bytes& tensor, const std::vector<uint32_t>& dims,
             const std::vector<uint32_t>& box, const std::vector<uint32_t>& at) {
  Bytes out;
  const uint32_t count = std::accumulate(box.begin(), box.end(), 1u, std::multiplies<>());
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t rest = i, offset = 0, stride = 1;
    bool inside = true;
    for (size_t d = 0; d < dims.size(); ++d) {
      const uint32_t x = at[d] + rest % box[d];
      inside = inside && x < dims[d];
      offset += x * stride;
      stride *= dims[d];
      rest /= box[d];
    }
    out.push_back(inside ? tensor[offset] : 0);
  }
  return out;
}

}  // namespace

TEST_CASE("the copies of the inventory bring what the tensor has there and take it back") {
  if (ptx_test::have_ptxas()) CHECK(ptx_test::ptxas_verdict(text()) == "");
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 3);
    GlobalMemory memory(1 << 24);
    Bytes data(4096);
    unit::Random random{7};
    for (uint8_t& x : data) x = uint8_t(random());
    const uint64_t in = unit::upload(memory, data), out = memory.allocate(768, "out");
    const uint64_t stored2 = unit::upload(memory, Bytes(1024)),
                   stored3 = unit::upload(memory, Bytes(1024));
    const EncodedMap maps[] = {dense_map(MapType::bytes, in, {4096}, {128}),
                               dense_map(MapType::bytes, in, {64, 8, 8}, {32, 2, 2}),
                               dense_map(MapType::bytes, in, {16, 4, 8, 8}, {16, 2, 2, 2}),
                               dense_map(MapType::bytes, stored2, {64, 16}, {64, 2}),
                               dense_map(MapType::bytes, stored3, {32, 4, 8}, {32, 2, 2})};
    const Counters counters = unit::run(text(), memory, {}, unit::parameters(out, in, maps));
    const std::vector<uint32_t> cube = {64, 8, 8}, cube_box = {32, 2, 2};
    const Bytes expected[boxes] = {box_of(data, {4096}, {128}, {256}),
                                   box_of(data, cube, cube_box, {16, 1, 2}),
                                   box_of(data, cube, cube_box, {0, 3, 5}),
                                   box_of(data, {4096}, {128}, {1280}),
                                   box_of(data, cube, cube_box, {32, 6, 7}),
                                   box_of(data, {16, 4, 8, 8}, {16, 2, 2, 2}, {0, 2, 3, 4})};
    const Bytes got = unit::download<uint8_t>(memory, out, 768);
    for (uint32_t b = 0; b < boxes; ++b) {
      CAPTURE(int(order), b);
      CHECK(Bytes(&got[b * box_bytes], &got[b * box_bytes] + box_bytes) == expected[b]);
    }
    const uint8_t *s2 = memory.at(stored2, 1024, 1, "test"),
                  *s3 = memory.at(stored3, 1024, 1, "test");
    CHECK(box_of(Bytes(s2, s2 + 1024), {64, 16}, {64, 2}, {0, 1}) == expected[0]);
    CHECK(box_of(Bytes(s3, s3 + 1024), {32, 4, 8}, {32, 2, 2}, {0, 1, 2}) == expected[1]);
    CHECK(counters.tma_loads == 5);
    CHECK(counters.tma_stores == 2);
    CHECK(counters.bulk_bytes == 128);
  }
}
