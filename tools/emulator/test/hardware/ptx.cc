// SPDX-License-Identifier: MIT
// The units as PTX programs meet them: a small GEMM through TMA, cp, mma, commit and ld, and the
// same program with one line taken away or changed.
#include "tools/emulator/op/load.h"
#include "tools/emulator/op/scaled_sum.h"
#include "tools/emulator/test/support/scaled_model.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;
using unit::Random;
using unit::replaced;

namespace {

const char* const head = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out, .param .u64 k_in, .param .align 64 .b8 k_a[128],
                  .param .align 64 .b8 k_b[128])
{
.reg .pred %p, %q;
.reg .b32 %r<16>, %t, %thread, %warp, %bar, %done, %d<8>;
.reg .b64 %rd<16>, %out, %in, %da, %db, %ds, %map;
ld.param.u64 %out, [k_out];
ld.param.u64 %in, [k_in];
mov.u32 %thread, %tid.x;
shr.u32 %warp, %thread, 5;
)";

// Two barriers, tensor memory and its address in %t. Thread 0 goes on, the others wait for %done.
std::string start(const std::string& columns) {
  return R"(.shared .align 8 .b64 bars[2];
.shared .align 4 .b32 taddr;
mov.u32 %bar, bars;
add.u32 %done, %bar, 8;
setp.ne.u32 %p, %warp, 0;
@%p bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], )" +
         columns + R"(;
ALLOCATED:
setp.ne.u32 %q, %thread, 0;
@%q bra READY;
mbarrier.init.shared::cta.b64 [%bar], 1;
mbarrier.init.shared::cta.b64 [%done], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
ld.shared.u32 %t, [taddr];
@%q bra WAIT_DONE;
)";
}
// All threads after thread 0's work, and the address of the warp's lanes in %r4.
const char* const committed = R"(
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%done];
WAIT_DONE:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%done], 0;
@!%p bra WAIT_DONE;
tcgen05.fence::after_thread_sync;
shl.b32 %r4, %warp, 21;
add.u32 %r4, %r4, %t;
)";

// 128 x 8 x 256: one stage, four K steps. Columns: D 0, SFA 32, SFB 48.
std::string gemm() {
  std::string text = head;
  text += R"(
.shared .align 1024 .b8 tile_a[16384];
.shared .align 1024 .b8 tile_b[1024];
.shared .align 128 .b8 scales[4096];
)";
  text += start("64") + R"(mov.b64 %map, k_a;
cvta.param.u64 %map, %map;
mov.u32 %r0, tile_a;
mov.u32 %r1, tile_b;
mov.u32 %r2, scales;
cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
    [%r0], [%map, {0, 0}], [%bar];
mov.b64 %map, k_b;
cvta.param.u64 %map, %map;
cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
    [%r1], [%map, {0, 0}], [%bar];
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%in], 4096, [%bar];
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 21504;
WAIT_FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra WAIT_FULL;
shr.u32 %r0, %r0, 4;
cvt.u64.u32 %da, %r0;
or.b64 %da, %da, 0x4000404000000000;
shr.u32 %r1, %r1, 4;
cvt.u64.u32 %db, %r1;
or.b64 %db, %db, 0x4000404000000000;
shr.u32 %r2, %r2, 4;
cvt.u64.u32 %ds, %r2;
or.b64 %ds, %ds, 0x0000400800000000;
mov.b32 %r3, 0x08020480;
)";
  for (int s = 0; s < 4; ++s)
    text += format(
        "add.u32 %%r4, %%t, %d; add.u32 %%r5, %%t, %d;\n"
        "add.u64 %%rd0, %%ds, %d; add.u64 %%rd1, %%ds, %d;\n"
        "add.u64 %%rd2, %%da, %d; add.u64 %%rd3, %%db, %d;\n"
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [%%r4], %%rd0;\n"
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [%%r5], %%rd1;\n"
        "setp.ne.u32 %%p, %d, 0;\n"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%%t], %%rd2, %%rd3, %%r3, "
        "[%%r4], [%%r5], %%p;\n",
        32 + 4 * s, 48 + 4 * s, 0x20 * s, 0x80 + 0x20 * s, 2 * s, 2 * s, s);
  text += committed;
  text += R"(tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%r4];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd4, %thread, 32;
add.u64 %out, %out, %rd4;
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
st.global.v4.b32 [%out+16], {%d4, %d5, %d6, %d7};
bar.sync 0;
setp.ne.u32 %p, %warp, 0;
@%p bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;
END:
ret;
}
)";
  return text;
}

// Inputs of the GEMM in device memory, and the kernel's answer.
struct Device {
  GlobalMemory memory{1 << 24};
  std::vector<uint8_t> a = std::vector<uint8_t>(128 * 128), b = std::vector<uint8_t>(8 * 128);
  std::vector<uint8_t> scales = std::vector<uint8_t>(4096);
  uint64_t out, in;
  EncodedMap map_a, map_b;
  Counters counters;

  Device() {
    Random r{42};
    for (auto* v : {&a, &b})
      for (uint8_t& x : *v) x = uint8_t(r());
    for (uint8_t& x : scales) x = uint8_t(0x30 + r.below(16));
    out = memory.allocate(4096 * 4, "out");
    in = put(scales);
    map_a = unit::byte_map(put(a), 128, 128, 128, 128, 3);
    map_b = unit::byte_map(put(b), 128, 8, 128, 8, 3);
  }
  uint64_t put(const std::vector<uint8_t>& bytes) { return unit::upload(memory, bytes); }
  std::vector<uint32_t> run(const std::string& text, uint32_t threads = 128, uint32_t ctas = 1) {
    counters = unit::run(text, memory, {ctas, threads}, unit::parameters(out, in, map_a, map_b));
    return unit::download<uint32_t>(memory, out, 4096);
  }
  uint32_t expected(uint32_t m, uint32_t n) const {
    uint32_t d = 0;
    for (uint32_t s = 0; s < 4; ++s) {
      const uint8_t* tile = &scales[512 * s];
      d = unit::scaled_model(ops::scaled_sum(), &a[m * 128 + 32 * s], &b[n * 128 + 32 * s],
                             tile + m % 32 * 16 + m / 32 * 4, tile + 2048 + n * 16,
                             ScaleType::ue4m3, d);
    }
    return d;
  }
};

std::string run_fault(const std::string& text, FaultKind kind, Order order = Order::latest) {
  OrderGuard guard(order, 5);
  Device device;
  return unit::fault(kind, [&] { device.run(text); });
}

#define CHECK_RUN_FAULT(kind_, part_, ...)                                \
  do {                                                                    \
    const std::string report_ = run_fault(__VA_ARGS__, FaultKind::kind_); \
    INFO(report_);                                                        \
    CHECK(unit::says(report_, part_));                                    \
  } while (0)

}  // namespace

TEST_CASE(
    "a GEMM through TMA and cp and mma and commit and ld is right in every completion order") {
  const Order order = GENERATE(Order::soonest, Order::latest, Order::random);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    OrderGuard guard(order, seed);
    Device device;
    const std::vector<uint32_t> d = device.run(gemm());
    size_t wrong = 0;
    for (uint32_t m = 0; m < 128; ++m)
      for (uint32_t n = 0; n < 8; ++n) wrong += d[m * 8 + n] != device.expected(m, n);
    CAPTURE(int(order), seed);
    CHECK(wrong == 0);
    CHECK(device.counters.mmas == 4);
    CHECK(device.counters.scale_copies == 8);
    CHECK(device.counters.commits == 1);
    CHECK(device.counters.tma_loads == 2);
    CHECK(device.counters.tma_bytes == 17408);
    CHECK(device.counters.bulk_bytes == 4096);
  }
}

TEST_CASE("operands used before the full barrier is waited for are a fault") {
  const std::string early = replaced(gemm(), "@!%p bra WAIT_FULL;", "");
  CHECK_RUN_FAULT(ordering, "after a write by cp.async.bulk",
                  replaced(early, "mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;", ""));
}

TEST_CASE("an accumulator loaded before the commit is waited for is a fault") {
  std::string early = replaced(gemm(), "@!%p bra WAIT_DONE;", "bar.sync 0;");
  early = replaced(early, "mbarrier.try_wait.parity.shared::cta.b64 %p, [%done], 0;", "");
  CHECK_RUN_FAULT(ordering, "tcgen05.commit", early);
}

// ThunderKittens' NVFP4 GEMM multiplies what it loads before the wait.
TEST_CASE(
    "registers of a tcgen05.ld used before tcgen05.wait::ld: the value and a formal finding") {
  const std::string wait = "tcgen05.wait::ld.sync.aligned;";
  const std::string early =
      replaced(gemm(), wait, "add.u32 %r9, %d7, 1;\n" + wait + "\nsub.u32 %d7, %r9, 1;");
  for (const Order order : {Order::soonest, Order::latest}) {
    OrderGuard guard(order, 1);
    settings().formal = Reaction::report;
    Device device;
    CHECK(device.run(early)[127 * 8 + 7] == device.expected(127, 7));
    CHECK(device.counters.formal_hazards > 0);
    settings().formal = Reaction::stop;
    CHECK_RUN_FAULT(ordering, "register %d7 is used while a tcgen05.ld", early);
    CHECK_RUN_FAULT(ordering, "register %d3 is used while a tcgen05.ld",
                    replaced(gemm(), wait, "mov.b32 %d3, 0;\n" + wait));
  }
}

TEST_CASE("an address without a lane means the warp's own quarter with a formal finding") {
  const std::string text =
      replaced(gemm(), "shl.b32 %r4, %warp, 21;\nadd.u32 %r4, %r4, %t;", "mov.b32 %r4, %t;");
  OrderGuard guard(Order::random, 1);
  settings().formal = Reaction::report;
  Device device;
  CHECK(device.run(text)[127 * 8 + 7] == device.expected(127, 7));
  CHECK(device.counters.formal_hazards > 0);
  settings().formal = Reaction::stop;
  CHECK_RUN_FAULT(ordering, "whose lane belongs to the first warp", text);
}

TEST_CASE("a tcgen05.ld of cells that nobody wrote is a fault only when a register is used") {
  // D has 8 columns of the 16 that are loaded.
  std::string text = replaced(gemm(), ".reg .b64 %rd<16>", ".reg .b32 %e<8>;\n.reg .b64 %rd<16>");
  text = replaced(text, "32x32b.x8.b32", "32x32b.x16.b32");
  text = replaced(text, "%d6, %d7}, [%r4]",
                  "%d6, %d7, %e0, %e1, %e2, %e3, %e4, %e5, %e6, %e7}, [%r4]");
  for (const Order order : {Order::soonest, Order::latest}) {
    OrderGuard guard(order, 1);
    Device device;
    CHECK(device.run(text)[127 * 8 + 7] == device.expected(127, 7));
    const std::string use =
        replaced(text, "\nbar.sync 0;\nsetp.ne.u32 %p, %warp, 0;\n@%p bra END;",
                 "\nmov.b32 %e2, %e1;\nst.global.b32 [%out+8192], %e2;\nbar.sync 0;\n"
                 "setp.ne.u32 %p, %warp, 0;\n@%p bra END;");
    CHECK_RUN_FAULT(uninitialised, "column 9, which holds no value", use);
  }
}

TEST_CASE("a tile that is loaded again while its MMAs may still read it is a fault") {
  const std::string commit = "tcgen05.commit.cta_group::1";
  CHECK_RUN_FAULT(
      ordering, "overwrites",
      replaced(
          gemm(), commit,
          "mov.u32 %r6, tile_b;\ncp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx"
          "::bytes [%r6], [%map, {0, 0}], [%bar];\n" +
              commit));
}

TEST_CASE("bytes that are expected and do not come are a deadlock that names the barrier") {
  CHECK_RUN_FAULT(deadlock, "tx 16 bytes", replaced(gemm(), "21504", "21520"));
}

TEST_CASE("tcgen05.mma issued by a whole warp is a fault that counts the lanes") {
  std::string text = replaced(gemm(), "setp.ne.u32 %q, %thread, 0;", "setp.ne.u32 %q, %warp, 0;");
  // One thread still feeds the barrier, so that only the tcgen05 instructions run 32 times.
  text = replaced(text, "cp.async.bulk.tensor.2d",
                  "setp.eq.u32 %p, %thread, 0;\n@%p cp.async.bulk.tensor.2d");
  text = replaced(
      text, "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes\n    [%r1]",
      "@%p cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes\n    [%r1]");
  text = replaced(text, "cp.async.bulk.shared::cta", "@%p cp.async.bulk.shared::cta");
  text = replaced(text, "mbarrier.arrive.expect_tx", "@%p mbarrier.arrive.expect_tx");
  CHECK_RUN_FAULT(illegal_instruction, "issued by 32 lanes", text);
}

TEST_CASE("a commit by a shared address in 64 bits is formal and by any other address a fault") {
  const std::string named =
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
      "[%done];";
  const auto committed = [&](const std::string& address) {
    return replaced(gemm(), named,
                    "cvt.u64.u32 %rd0, %done; " + address +
                        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd0];");
  };
  OrderGuard guard(Order::random, 1);
  Device device;
  settings().formal = Reaction::stop;
  CHECK_RUN_FAULT(ordering, "tcgen05.commit without", committed(""));
  settings().formal = Reaction::ignore;
  CHECK(device.run(committed(""))[127 * 8 + 7] == device.expected(127, 7));
  CHECK_RUN_FAULT(barrier_misuse, "mbarrier", committed("add.u64 %rd0, %rd0, 64;"));
  CHECK_RUN_FAULT(illegal_address, "not in shared memory", committed("mov.b64 %rd0, %out;"));
}

TEST_CASE("tensor memory that is not given back is a fault at the end of the CTA") {
  CHECK_RUN_FAULT(tensor_memory, "without tcgen05.dealloc",
                  replaced(gemm(), "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;", ""));
}

TEST_CASE("a wrong descriptor faults at the line of the instruction with every field's reason") {
  const std::string text = replaced(gemm(), "0x08020480", "0x18020485");
  const std::string report = run_fault(text, FaultKind::illegal_instruction);
  INFO(report);
  CHECK(unit::says(report, "bits 1:0"));
  CHECK(unit::says(report, "bit 2 "));
  CHECK(unit::says(report, "bits 28:27"));
  CHECK(unit::says(report, "tcgen05.mma.cta_group::1"));
}

TEST_CASE("what is not emulated is refused when the module is loaded") {
  for (const char* text : {"tcgen05.mma.cta_group::1.kind::f16.ashift [%t], [%t], %rd0, %r0, %p;",
                           "tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.b4x16_p64 [%t], %rd0;"}) {
    std::string why;
    try {
      ops::load(std::string(head) + text + "\nret;\n}\n", 100);
    } catch (const PtxError& e) {
      why = e.text;
    }
    INFO(text << ": " << why);
    CHECK(why.find("not emulated") != std::string::npos);
  }
}

TEST_CASE("a copy of 6-bit elements arrives as one byte for every lane's element") {
  const std::string text = std::string(head) + R"(
.shared .align 128 .b8 rows[2048];
)" + start("32") + R"(mov.u32 %r2, rows;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 2048;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%in], 2048, [%bar];
WAIT_FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra WAIT_FULL;
shr.u32 %r2, %r2, 4;
cvt.u64.u32 %ds, %r2;
or.b64 %ds, %ds, 0x0000400800000000;
tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32 [%t], %ds;
)" + committed + R"(tcgen05.ld.sync.aligned.32x32b.x4.b32 {%d0, %d1, %d2, %d3}, [%r4];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd4, %thread, 16;
add.u64 %out, %out, %rd4;
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
tcgen05.fence::before_thread_sync;
bar.sync 0;
setp.ne.u32 %p, %warp, 0;
@%p bra END;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;
END:
ret;
}
)";
  Device d;
  const std::vector<uint32_t> out = d.run(text);
  for (uint32_t lane = 0; lane < 128; ++lane)
    for (uint32_t i = 0; i < 16; ++i) {
      uint32_t element = 0;
      for (uint32_t bit = 6 * i; bit < 6 * i + 6; ++bit)
        element |= uint32_t(d.scales[16 * lane + bit / 8] >> bit % 8 & 1) << (bit - 6 * i);
      CHECK((out[4 * lane + i / 4] >> 8 * (i % 4) & 0xFF) == element);
    }
}

TEST_CASE("multicast brings a box to every CTA of the mask at its own barrier") {
  const std::string text = std::string(head) + R"(
.shared .align 1024 .b8 tile[1024];
.shared .align 8 .b64 bar[1];
.reg .b16 %mask;
mov.u32 %bar, bar;
mov.u32 %r0, tile;
setp.ne.u32 %q, %thread, 0;
@%q bra READY;
mbarrier.init.shared::cta.b64 [%bar], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;
READY:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
mov.u32 %r1, %cluster_ctarank;
setp.ne.u32 %p, %r1, 1;
@%p bra WAIT;
@%q bra WAIT;
mov.b64 %map, k_b;
cvta.param.u64 %map, %map;
mov.u16 %mask, 5;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [%r0], [%map, {0, 0}], [%bar], %mask;
mov.u16 %mask, 2;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [%r0], [%map, {0, 0}], [%bar], %mask;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra WAIT;
shl.b32 %r2, %thread, 2;
add.u32 %r3, %r2, %r0;
ld.shared.u32 %r4, [%r3];
shl.b32 %r1, %r1, 7;
add.u32 %r2, %r2, %r1;
cvt.u64.u32 %rd0, %r2;
add.u64 %out, %out, %rd0;
st.global.u32 [%out], %r4;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
ret;
}
)";
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 3);
    Device device;
    const std::vector<uint32_t> d = device.run(text, 32, 3);
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK(std::memcmp(&d[rank * 32], device.b.data(), 128) ==
            0);  // row 0 is not moved by the XOR
    CHECK(device.counters.tma_bytes == 3 * 1024);
  }
  OrderGuard guard(Order::soonest, 1);
  Device device;
  const std::string report = unit::fault(FaultKind::illegal_instruction, [&] {
    device.run(replaced(text, "mov.u16 %mask, 5;", "mov.u16 %mask, 9;"), 32, 3);
  });
  CHECK(unit::says(report, "CTA mask 0x9 in a cluster of 3"));
}

TEST_CASE("tcgen05.st in one shape and tcgen05.ld in another see the same cells") {
  const std::string text = std::string(head) + R"(
.shared .align 4 .b32 taddr;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
ld.shared.u32 %t, [taddr];
shl.b32 %d0, %thread, 8;
add.u32 %d1, %d0, 1;
add.u32 %d2, %d0, 2;
add.u32 %d3, %d0, 3;
add.u32 %d4, %d0, 4;
add.u32 %d5, %d0, 5;
add.u32 %d6, %d0, 6;
add.u32 %d7, %d0, 7;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%t], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.16x256b.x1.b32 {%d0, %d1, %d2, %d3}, [%t+0x100000];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd4, %thread, 16;
add.u64 %out, %out, %rd4;
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;
ret;
}
)";
  for (const Order order : {Order::soonest, Order::latest}) {
    OrderGuard guard(order, 1);
    Device device;
    const std::vector<uint32_t> d = device.run(text, 32);
    // Register 2h + b of thread t is lane 16 + t/4 + 8h, column 2 * (t%4) + b.
    for (uint32_t t = 0; t < 32; ++t)
      for (uint32_t j = 0; j < 4; ++j)
        CHECK(d[t * 4 + j] == ((16 + t / 4 + 8 * (j / 2)) << 8 | (2 * (t % 4) + j % 2)));
  }
  const std::string unwaited = replaced(text, "tcgen05.wait::st.sync.aligned;", "");
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 1);
    Device device;
    CHECK(unit::says(unit::fault(FaultKind::ordering, [&] { device.run(unwaited, 32); }),
                     "a tcgen05.wait::st is missing"));
  }
}

TEST_CASE("cp.async arrives at an mbarrier and a bulk store waits for its group") {
  const std::string text = std::string(head) + R"(
.shared .align 128 .b8 buffer[512];
.shared .align 8 .b64 bar[1];
mov.u32 %bar, bar;
setp.ne.u32 %q, %thread, 0;
@%q bra READY;
mbarrier.init.shared::cta.b64 [%bar], 32;
READY:
bar.sync 0;
shl.b32 %r0, %thread, 4;
cvt.u64.u32 %rd0, %r0;
add.u64 %rd0, %rd0, %in;
mov.u32 %r1, buffer;
add.u32 %r2, %r1, %r0;
cp.async.cg.shared::cta.global [%r2], [%rd0], 16, 12;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra WAIT;
@%q bra END;
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
ret;
}
)";
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 9);
    Device device;
    const std::vector<uint32_t> d = device.run(text, 32);
    for (uint32_t t = 0; t < 32; ++t) {
      CHECK(std::memcmp(&d[t * 4], &device.scales[t * 16], 12) == 0);
      CHECK(d[t * 4 + 3] == 0);  // the source size left it out
    }
  }
}

TEST_CASE("ordinary stores and loads may not touch what asynchronous work still reads or writes") {
  const std::string tile =
      "shared address 0x400, tile_a + 0x0 (.shared, 16384 bytes at 0x400), after a ";
  const std::string commit = "tcgen05.commit.cta_group::1";
  CHECK_RUN_FAULT(
      ordering, "st by thread 0 overwrites " + tile + "read by tcgen05.mma",
      replaced(gemm(), commit, "mov.u32 %r6, tile_a;\nst.shared.b32 [%r6], %r6;\n" + commit));
  const std::string wait = "WAIT_FULL:\n";
  CHECK_RUN_FAULT(
      ordering, "st by thread 0 overwrites " + tile + "write by cp.async.bulk.tensor",
      replaced(gemm(), wait, "mov.u32 %r6, tile_a;\nst.shared.b32 [%r6], %r6;\n" + wait));
  CHECK_RUN_FAULT(
      ordering, "ld by thread 0 reads " + tile + "write by cp.async.bulk.tensor",
      replaced(gemm(), wait, "mov.u32 %r6, tile_a;\nld.shared.b32 %r6, [%r6];\n" + wait));
  CHECK_RUN_FAULT(
      ordering, "atom by thread 0 updates " + tile + "write by cp.async.bulk.tensor",
      replaced(gemm(), wait, "mov.u32 %r6, tile_a;\natom.shared.add.u32 %r6, [%r6], 1;\n" + wait));
}

TEST_CASE("a forgotten wait is a fault in every completion order") {
  const Order order = GENERATE(Order::soonest, Order::latest, Order::random);
  const std::string full = "mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;";
  const std::string done = "mbarrier.try_wait.parity.shared::cta.b64 %p, [%done], 0;";
  const std::string no_full = replaced(replaced(gemm(), "@!%p bra WAIT_FULL;", ""), full, "");
  const std::string no_done =
      replaced(replaced(gemm(), "@!%p bra WAIT_DONE;", "bar.sync 0;"), done, "");
  CAPTURE(int(order));
  CHECK(
      unit::says(run_fault(no_full, FaultKind::ordering, order), "after a write by cp.async.bulk"));
  CHECK(unit::says(run_fault(no_done, FaultKind::ordering, order), "of its tcgen05.commit first"));
}

TEST_CASE(
    "a fault of asynchronous work names the warp and the block and the PTX line that issued it") {
  const std::string report =
      run_fault(replaced(gemm(), "tcgen05.mma.", "or.b64 %rd2, %rd2, 0x3f00;\ntcgen05.mma."),
                FaultKind::illegal_address);
  INFO(report);
  CHECK(unit::says(report, "kernel k"));
  CHECK(unit::says(report, "in asynchronous work, block (0,0,0), warp 0"));
  CHECK(unit::says(report, "effect of PTX line 6"));
  CHECK(unit::says(report, ": tcgen05.mma."));
}

TEST_CASE("scales that nobody copied are a fault that names the MMA where its results are used") {
  const std::string report =
      run_fault(replaced(gemm(), "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r4], %rd0;", ""),
                FaultKind::uninitialised);
  INFO(report);
  CHECK(unit::says(report, "a tcgen05.mma SFA read tensor memory 0x20, which was never written"));
  CHECK(unit::says(report, "(PTX line 6"));
  CHECK(unit::says(report, "of kernel k stores none there"));
}

TEST_CASE("operands that ordinary stores wrote need a fence.proxy.async after the stores") {
  const std::string after = "shr.u32 %r0, %r0, 4;", fence = "fence.proxy.async.shared::cta;\n";
  const std::string stores = "mov.u32 %r6, tile_a;\nst.shared.b32 [%r6], 0;\n";
  CHECK_RUN_FAULT(ordering,
                  "tcgen05.mma by thread 0 reads shared address 0x400, tile_a + 0x0 (.shared, "
                  "16384 bytes at 0x400), after a write by st",
                  replaced(gemm(), after, stores + after));
  CHECK_RUN_FAULT(ordering, "only after a fence.proxy.async, which is missing",
                  replaced(gemm(), after, fence + stores + after));
  CHECK_RUN_FAULT(ordering, "only after a fence.proxy.async, which is missing",
                  replaced(gemm(), after, stores + "fence.proxy.async.global;\n" + after));
  Device device;
  CHECK_NOTHROW(device.run(replaced(gemm(), after, stores + fence + after)));
  CHECK_NOTHROW(device.run(replaced(gemm(), after, stores + "fence.proxy.async;\n" + after)));
}

TEST_CASE("a bulk store of what ordinary stores wrote needs a fence.proxy.async") {
  const std::string end = "bar.sync 0;\nsetp.ne.u32 %p, %warp, 0;";
  const std::string stores =
      "bar.sync 0;\nmov.u32 %r6, tile_b;\n@!%q st.shared.v4.b32 [%r6], {%r6, %r6, %r6, %r6};\n";
  const std::string copy =
      "@!%q cp.async.bulk.global.shared::cta.bulk_group [%out], [%r6], 16;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  CHECK_RUN_FAULT(ordering, "cp.async.bulk by thread 0 reads shared address",
                  replaced(gemm(), end, stores + copy + end));
}
