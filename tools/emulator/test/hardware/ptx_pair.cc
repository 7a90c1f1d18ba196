// SPDX-License-Identifier: MIT
// A GEMM of a CTA pair as PTX: alloc, TMA with the leader's barrier, cp, mma, multicast commit, ld,
// dealloc with .cta_group::2; and the same program with one line changed.
#include "tools/emulator/op/scaled_sum.h"
#include "tools/emulator/test/support/scaled_model.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;
using unit::Random;
using unit::replaced;

namespace {

constexpr uint32_t m = 256, n = 32, row_bytes = 128;  // K = 256

// 256 x 32 x 256 per pair, each pair the same. Columns: D 0, SFA 32, SFB 48. The full barrier of
// the even CTA gets the bytes of both; each CTA announces its own.
const char* const before_steps = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out, .param .align 64 .b8 k_a[128], .param .align 64 .b8 k_b[128],
                  .param .align 64 .b8 k_sfa[128], .param .align 64 .b8 k_sfb[128])
{
.reg .pred %p, %q;
.reg .b16 %mask;
.reg .b32 %r<16>, %d<32>, %t, %thread, %warp, %rank, %odd, %full, %leader, %done;
.reg .b64 %rd<8>, %out, %da, %db, %ds, %map;
.shared .align 1024 .b8 tile_a[16384];
.shared .align 1024 .b8 tile_b[2048];
.shared .align 128 .b8 sfa[2048];
.shared .align 128 .b8 sfb[2048];
.shared .align 8 .b64 bars[2];
.shared .align 4 .b32 taddr;
ld.param.u64 %out, [k_out];
mov.u32 %thread, %tid.x;
shr.u32 %warp, %thread, 5;
mov.u32 %rank, %cluster_ctarank;
and.b32 %odd, %rank, 1;
mov.u32 %full, bars;
and.b32 %leader, %full, 0xFEFFFFFF;
add.u32 %done, %full, 8;
setp.ne.u32 %q, %thread, 0;
@%q bra INITIALISED;
mbarrier.init.shared::cta.b64 [%full], 2;
mbarrier.init.shared::cta.b64 [%done], 1;
fence.mbarrier_init.release.cluster;
INITIALISED:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
setp.ne.u32 %p, %warp, 1;
@%p bra ALLOCATED;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [taddr], 64;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ALLOCATED:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
ld.shared.u32 %t, [taddr];
@%q bra WAIT_DONE;
mov.u32 %r0, tile_a;
mov.u32 %r1, tile_b;
mov.u32 %r2, sfa;
mov.u32 %r3, sfb;
shl.b32 %r4, %odd, 7;
shl.b32 %r5, %odd, 4;
shl.b32 %r6, %odd, 3;
mov.b64 %map, k_a;
cvta.param.u64 %map, %map;
cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r0], [%map, {0, %r4}], [%leader];
mov.b64 %map, k_b;
cvta.param.u64 %map, %map;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::2
    [%r1], [%map, {0, %r5}], [%leader];
mov.b64 %map, k_sfa;
cvta.param.u64 %map, %map;
cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r2], [%map, {0, %r6}], [%leader];
mov.b64 %map, k_sfb;
cvta.param.u64 %map, %map;
cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r3], [%map, {0, 0}], [%leader];
mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%leader], 22528;
setp.ne.u32 %p, %odd, 0;
@%p bra WAIT_DONE;
WAIT_FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], 0;
@!%p bra WAIT_FULL;
and.b32 %r0, %r0, 0x3FFFF;
shr.u32 %r0, %r0, 4;
cvt.u64.u32 %da, %r0;
or.b64 %da, %da, 0x4000404000000000;
and.b32 %r1, %r1, 0x3FFFF;
shr.u32 %r1, %r1, 4;
cvt.u64.u32 %db, %r1;
or.b64 %db, %db, 0x4000404000000000;
and.b32 %r2, %r2, 0x3FFFF;
shr.u32 %r2, %r2, 4;
cvt.u64.u32 %ds, %r2;
or.b64 %ds, %ds, 0x0000400800000000;
mov.b32 %r3, 0x10080480;
)";
const char* const behind_steps = R"(
and.b32 %r4, %rank, 14;
mov.b32 %r5, 3;
shl.b32 %r5, %r5, %r4;
cvt.u16.u32 %mask, %r5;
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [%done], %mask;
WAIT_DONE:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%done], 0;
@!%p bra WAIT_DONE;
tcgen05.fence::after_thread_sync;
shl.b32 %r4, %warp, 21;
shl.b32 %r5, %odd, 23;
add.u32 %r4, %r4, %r5;
add.u32 %r4, %r4, %t;
tcgen05.ld.sync.aligned.32x32b.x32.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10,
    %d11, %d12, %d13, %d14, %d15, %d16, %d17, %d18, %d19, %d20, %d21, %d22, %d23, %d24, %d25, %d26,
    %d27, %d28, %d29, %d30, %d31}, [%r4];
tcgen05.wait::ld.sync.aligned;
shl.b32 %r5, %rank, 7;
add.u32 %r5, %r5, %thread;
mul.wide.u32 %rd4, %r5, 128;
add.u64 %out, %out, %rd4;
)";
const char* const ending = R"(
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
setp.ne.u32 %p, %warp, 1;
@%p bra END;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %t, 64;
END:
ret;
}
)";

// The collector is a hint: each step has another.
const char* const step_mma[] = {
    "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16.collector::a::fill",
    "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16.collector::a::lastuse",
    "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16",
    "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16.collector::a::lastuse"};

std::string gemm() {
  std::string text = before_steps;
  for (int s = 0; s < 4; ++s)
    text += format(
        "add.u32 %%r4, %%t, %d; add.u32 %%r5, %%t, %d;\n"
        "add.u64 %%rd0, %%ds, %d; add.u64 %%rd1, %%ds, %d;\n"
        "add.u64 %%rd2, %%da, %d; add.u64 %%rd3, %%db, %d;\n"
        "tcgen05.cp.cta_group::2.32x128b.warpx4 [%%r4], %%rd0;\n"
        "tcgen05.cp.cta_group::2.32x128b.warpx4 [%%r5], %%rd1;\n"
        "setp.ne.u32 %%p, %d, 0;\n"
        "%s [%%t], %%rd2, %%rd3, %%r3, [%%r4], [%%r5], %%p;\n",
        32 + 4 * s, 48 + 4 * s, 0x20 * s, 0x80 + 0x20 * s, 2 * s, 2 * s, s, step_mma[s]);
  text += behind_steps;
  for (int i = 0; i < 32; i += 4)
    text += format("st.global.v4.b32 [%%out+%d], {%%d%d, %%d%d, %%d%d, %%d%d};\n", 4 * i, i, i + 1,
                   i + 2, i + 3);
  return text + ending;
}

struct Device {
  GlobalMemory memory{1 << 24};
  std::vector<uint8_t> a = std::vector<uint8_t>(m * row_bytes),
                       b = std::vector<uint8_t>(n * row_bytes);
  std::vector<uint8_t> sfa = std::vector<uint8_t>(4096), sfb = std::vector<uint8_t>(2048);
  uint64_t out;
  std::vector<uint8_t> parameters;
  Counters counters;

  Device() {
    Random r{42};
    for (auto* v : {&a, &b})
      for (uint8_t& x : *v) x = uint8_t(r());
    for (auto* v : {&sfa, &sfb})
      for (uint8_t& x : *v) x = uint8_t(0x30 + r.below(16));
    out = memory.allocate(4 * 128 * n * 4, "out");
    const EncodedMap maps[] = {
        unit::byte_map(unit::upload(memory, a), row_bytes, m, row_bytes, m / 2, 3),
        unit::byte_map(unit::upload(memory, b), row_bytes, n, row_bytes, n / 2, 3),
        unit::byte_map(unit::upload(memory, sfa), 256, 16, 256, 8, 0),
        unit::byte_map(unit::upload(memory, sfb), 256, 8, 256, 8, 0)};
    parameters = unit::parameters(out, maps);
  }
  std::vector<uint32_t> run(const std::string& text, uint32_t ctas = 2, uint32_t threads = 128) {
    counters = unit::run(text, memory, {ctas, threads}, parameters);
    return unit::download<uint32_t>(memory, out, ctas * 128 * n);
  }
  uint32_t expected(uint32_t row, uint32_t column) const {
    uint32_t d = 0;
    for (uint32_t s = 0; s < 4; ++s)
      d = unit::scaled_model(ops::scaled_sum(), &a[row * row_bytes + 32 * s],
                             &b[column * row_bytes + 32 * s],
                             &sfa[row / 128 * 2048 + 512 * s + row % 32 * 16 + row % 128 / 32 * 4],
                             &sfb[512 * s + column * 16], ScaleType::ue4m3, d);
    return d;
  }
};

std::string run_fault(const std::string& text, FaultKind kind, Order order = Order::latest,
                      uint32_t ctas = 2) {
  OrderGuard guard(order, 5);
  Device device;
  return unit::fault(kind, [&] { device.run(text, ctas); });
}

#define CHECK_RUN_FAULT(kind_, part_, ...)                                \
  do {                                                                    \
    const std::string report_ = run_fault(__VA_ARGS__, FaultKind::kind_); \
    INFO(report_);                                                        \
    CHECK(unit::says(report_, part_));                                    \
  } while (0)

}  // namespace

TEST_CASE("a GEMM of a CTA pair is right in every completion order at every rank of a cluster") {
  const Order order = GENERATE(Order::soonest, Order::latest, Order::random);
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (const uint32_t ctas : {2u, 4u}) {
      OrderGuard guard(order, seed);
      Device device;
      const std::vector<uint32_t> d = device.run(gemm(), ctas);
      size_t wrong = 0;
      for (uint32_t row = 0; row < ctas * 128; ++row)
        for (uint32_t column = 0; column < n; ++column)
          wrong += d[row * n + column] != device.expected(row % m, column);
      CAPTURE(int(order), seed, ctas);
      CHECK(wrong == 0);
      CHECK(device.counters.mmas == 4 * ctas / 2);
      CHECK(device.counters.tma_bytes == 22528 * ctas);
    }
}

TEST_CASE("an instruction of a pair needs the CTA whose rank differs in the last bit") {
  CHECK(unit::says(run_fault(gemm(), FaultKind::illegal_instruction, Order::latest, 1),
                   "needs the CTA of rank 1"));
  CHECK(unit::says(run_fault(gemm(), FaultKind::illegal_instruction, Order::latest, 3),
                   "tcgen05.alloc by CTA 2 of a cluster of 3"));
}

TEST_CASE("the pair's barriers and bytes and masks have to fit together") {
  // The odd CTA's bytes and arrival go to its own barrier, where no thread waits.
  CHECK_RUN_FAULT(deadlock, "mbarrier.try_wait",
                  replaced(gemm(), "and.b32 %leader, %full, 0xFEFFFFFF", "mov.b32 %leader, %full"));
  CHECK_RUN_FAULT(deadlock, "tx 32 bytes", replaced(gemm(), "22528", "22544"));
  CHECK_RUN_FAULT(deadlock, "mbarrier.try_wait",
                  replaced(gemm(), "mov.b32 %r5, 3;", "mov.b32 %r5, 1;"));
  CHECK_RUN_FAULT(illegal_instruction, "CTA mask 0xc in a cluster of 2",
                  replaced(gemm(), "mov.b32 %r5, 3;", "mov.b32 %r5, 12;"));
}

TEST_CASE("a pair's hazards are found in both CTAs") {
  const std::string full =
      "WAIT_FULL:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%full], 0;\n@!%p bra WAIT_FULL;\n";
  for (const Order order : {Order::soonest, Order::latest})
    CHECK(unit::says(run_fault(replaced(gemm(), full, ""), FaultKind::ordering, order),
                     "after a write by cp.async.bulk"));
  // The odd CTA loads its half of D after a while instead of waiting; the even one does not look.
  const std::string wait =
      "mbarrier.try_wait.parity.shared::cta.b64 %p, [%done], 0;\n@!%p bra WAIT_DONE;\n";
  const std::string spin =
      "setp.eq.u32 %p, %odd, 0;\n@%p bra FINISH;\nmov.u32 %r8, 0;\nSPIN:\nadd.u32 %r8, %r8, 1;\n"
      "setp.lt.u32 %p, %r8, 3000;\n@%p bra SPIN;\n";
  std::string text = replaced(gemm(), ending, std::string("FINISH:\n") + ending);
  CHECK(unit::says(run_fault(replaced(text, wait, spin), FaultKind::ordering, Order::soonest),
                   "block (1,0,0)"));
  // What the even CTA has waited for, a cluster barrier passes on.
  const std::string passed_on =
      "setp.eq.u32 %p, %odd, 1;\n@%p bra PASSED_ON;\nWAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p, [%done], 0;\n@!%p bra WAIT;\nPASSED_ON:\n"
      "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n";
  for (const Order order : {Order::soonest, Order::latest})
    CHECK(run_fault(replaced(gemm(), wait, passed_on), FaultKind::ordering, order) == "no fault");
}

namespace {

// One warp in each CTA allocates and frees; `even` and `odd` go in between.
std::string allocation(const std::string& even, const std::string& odd) {
  std::string text = before_steps;
  text.resize(text.find("mov.u32 %full, bars;"));
  text += "setp.ne.u32 %p, %odd, 0;\n@%p bra ODD;\n" + even + "ret;\nODD:\n" + odd + "ret;\n}\n";
  return text;
}

const std::string alloc =
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [taddr], 64;\n"
    "ld.shared.u32 %t, [taddr];\n";
const std::string dealloc = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %t, 64;\n";
const std::string meet = "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n";

std::string run_warps(const std::string& text, FaultKind kind, Order order) {
  OrderGuard guard(order, 1);
  Device device;
  return unit::fault(kind, [&] { device.run(text, 2, 32); });
}

}  // namespace

TEST_CASE("allocation and deallocation of a pair may wait for the peer or not") {
  const std::string both = alloc + meet + dealloc;
  CHECK(run_warps(allocation(both, both), FaultKind::deadlock, Order::latest) == "no fault");
  CHECK(run_warps(allocation(both, both), FaultKind::deadlock, Order::soonest) == "no fault");
  // The manual's example of a hang that may or may not happen (table 48).
  const std::string hang = allocation(alloc + meet + meet + dealloc, alloc + meet + dealloc + meet);
  CHECK(run_warps(hang, FaultKind::deadlock, Order::soonest) == "no fault");
  CHECK(unit::says(run_warps(hang, FaultKind::deadlock, Order::latest), "tcgen05.dealloc"));
  const std::string late = allocation(alloc + meet + meet + dealloc, meet + alloc + meet + dealloc);
  CHECK(run_warps(late, FaultKind::deadlock, Order::soonest) == "no fault");
  CHECK(unit::says(run_warps(late, FaultKind::deadlock, Order::latest), "tcgen05.alloc"));
}

TEST_CASE("the first alloc of a pair gives the columns in both CTAs") {
  // No barrier after the allocations: the leader copies scales to the peer before its alloc.
  const std::string barrier =
      "ALLOCATED:\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n";
  const std::string slow =
      "mov.u32 %r8, 0;\nSLOW:\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p, %r8, 4000;\n@%p bra SLOW;\n";
  // The odd CTA's allocating warp comes late; its other warps find column 0 by themselves.
  std::string text = replaced(gemm(), barrier, "ALLOCATED:\nmov.u32 %t, 0;\n");
  text = replaced(text, "ld.shared.u32 %t, [taddr];", "");
  text = replaced(text, "@%p bra ALLOCATED;\ntcgen05.alloc",
                  "@%p bra ALLOCATED;\nsetp.eq.u32 %p, %odd, 0;\n@%p bra NOW;\n" + slow +
                      "NOW:\ntcgen05.alloc");
  // The leader's issuing thread is in the warp that does not allocate: it waits for a barrier.
  text = replaced(text, "@%q bra WAIT_DONE;",
                  "setp.eq.u32 %p, %odd, 0;\n@!%p bra GO;\n"
                  "bar.sync 0;\nGO:\n@%q bra WAIT_DONE;");
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    OrderGuard guard(Order::soonest, seed);
    Device device;
    const std::vector<uint32_t> d = device.run(text);
    size_t wrong = 0;
    for (uint32_t row = 0; row < 256; ++row)
      for (uint32_t column = 0; column < n; ++column)
        wrong += d[row * n + column] != device.expected(row, column);
    CHECK(wrong == 0);
  }
  const std::string sizes = allocation(alloc + meet + dealloc, replaced(alloc, "64", "32") + meet);
  CHECK(unit::says(run_warps(sizes, FaultKind::tensor_memory, Order::soonest),
                   "where the other CTA of the pair allocates"));
}

TEST_CASE("tensor memory of a pair is not freed before the peer has allocated") {
  const std::string text = allocation(alloc + dealloc + meet, meet + alloc + dealloc);
  CHECK(unit::says(run_warps(text, FaultKind::tensor_memory, Order::soonest),
                   "before CTA 1 of the pair has executed its tcgen05.alloc"));
}

TEST_CASE("a pair's instruction reaches into a CTA that has ended: a fault") {
  std::string wait =
      "mov.u32 %r0, 0;\nWAIT:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p, %r0, 4000;\n@%p bra WAIT;\n";
  const std::string commit =
      "setp.ne.u32 %p, %thread, 0;\n@%p ret;\nmov.u32 %full, bars;\n"
      "mbarrier.init.shared::cta.b64 [%full], 1;\n"
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%full];\n";
  CHECK(unit::says(run_warps(allocation(wait + commit, ""), FaultKind::ordering, Order::soonest),
                   "CTA of rank 1, which has ended"));
}
