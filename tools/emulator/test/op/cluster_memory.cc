// SPDX-License-Identifier: MIT
// Shared memory of other CTAs: ordinary accesses, asynchronous stores and updates, bulk copies and
// reductions.
#include "tools/emulator/test/support/exec_support.h"

using emu::FaultKind;
using exec_test::SettingsGuard;
using exec_test::Shape;
using Words = std::vector<uint32_t>;

namespace {

const Shape pair{{2}, {1}, {2}};
const char* const declarations =
    ".shared .align 16 .b8 s[256]; .shared .align 8 .b64 bar; .shared .align 16 .b8 t[256];"
    ".shared .align 8 .b64 bar2;";

// %r0 = rank, %r1 = the other rank, %r2 = s there, %r3 = bar there, %r4 = bar here.
const std::string peers =
    "mov.u32 %r0, %cluster_ctarank; xor.b32 %r1, %r0, 1; mov.u32 %r2, s; mov.u32 %r3, bar;"
    "mov.u32 %r4, bar; mapa.shared::cluster.u32 %r2, %r2, %r1;"
    "mapa.shared::cluster.u32 %r3, %r3, %r1;";
const std::string meet = "barrier.cluster.arrive; barrier.cluster.wait;";
std::string wait_for(const char* label) {
  return std::string(label) + ": mbarrier.try_wait.parity.shared.b64 %p0, [%r4], 0; @!%p0 bra " +
         label + ";";
}
// An mbarrier in each CTA that expects one arrival and `bytes`.
std::string expecting(int bytes) {
  return "mbarrier.init.shared.b64 [%r4], 1; fence.mbarrier_init.release.cluster;"
         "mbarrier.arrive.expect_tx.shared.b64 _, [%r4], " +
         std::to_string(bytes) + ";" + meet;
}

// Runs under the three completion orders; the results have to agree.
Words in_every_order(const std::string& body, const Shape& shape, const Words& buffer) {
  SettingsGuard guard;
  Words first;
  for (const emu::Order order : {emu::Order::soonest, emu::Order::latest, emu::Order::random}) {
    emu::settings().order = order;
    Words out = run(body, shape, buffer, declarations);
    if (first.empty()) first = out;
    CHECK(out == first);
  }
  return first;
}

}  // namespace

TEST_CASE("ld and st and atom and red reach the other CTA's shared memory") {
  Words out = in_every_order(
      peers + meet + "st.shared::cluster.u32 [%r2], 5; st.shared::cluster.u32 [%r2+4], %r0;" +
          meet +
          "ld.shared.u32 %r5, [s+4]; atom.shared::cluster.add.u32 %r6, [%r2], 10;"
          "red.shared::cluster.add.u32 [%r2], 100;" +
          meet +
          "ld.shared.u32 %r7, [s]; mul.wide.u32 %rd1, %r0, 16; add.s64 %rd1, %out, %rd1;"
          "st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r0};" +
          meet,
      pair, Words(8));
  CHECK(out == Words{1, 5, 115, 0, 0, 5, 115, 1});
}

TEST_CASE("a generic address made by mapa leads to the other CTA") {
  Words out = in_every_order(
      "mov.u32 %r0, %cluster_ctarank; xor.b32 %r1, %r0, 1; mov.u32 %r2, s; st.shared.u32 [s], %r0;"
      "cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r1;"
      "getctarank.u64 %r3, %rd2; getctarank.shared::cluster.u32 %r7, %r2;" +
          meet + "ld.u32 %r5, [%rd2];" + meet +
          "mul.wide.u32 %rd3, %r0, 16; add.s64 %rd3, %out, %rd3;"
          "st.global.v4.u32 [%rd3], {%r5, %r3, %r7, %r0};",
      pair, Words(8));
  CHECK(out == Words{1, 1, 0, 0, 0, 0, 1, 1});
}

TEST_CASE("st.async stores values and counts their bytes at the mbarrier beside them") {
  Words out = in_every_order(
      peers + expecting(4 + 8 + 16) +
          "add.s32 %r5, %r0, 7; cvt.u64.u32 %rd1, %r5; mov.b32 %r6, 0f3F800000;"
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r5, [%r3];"
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r2+8], %rd1, [%r3];"
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r2+16],"
          " {%r6, %r6, %r6, %r5}, [%r3];" +
          wait_for("W") +
          "ld.shared.u32 %r7, [s]; ld.shared.u32 %r8, [s+8]; ld.shared.v2.u32 {%r9, %r10}, [s+24];"
          "mul.wide.u32 %rd2, %r0, 16; add.s64 %rd2, %out, %rd2;"
          "st.global.v4.u32 [%rd2], {%r7, %r8, %r9, %r10};" +
          meet,
      pair, Words(8));
  CHECK(out == Words{8, 8, 0x3F800000, 8, 7, 7, 0x3F800000, 7});
}

TEST_CASE("red.async updates words of the other CTA") {
  Words out = in_every_order(
      peers + "mov.u32 %r5, 12; st.shared.v4.u32 [s], {%r5, %r5, %r5, %r5};" + expecting(20) +
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2],"
          " %r0, [%r3];"
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r2+4],"
          " -3, [%r3];"
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32 [%r2+8],"
          " 5, [%r3];"
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r2+12],"
          " 12, [%r3];"
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2],"
          " 100, [%r3];" +
          wait_for("W") +
          "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [s]; mul.wide.u32 %rd2, %r0, 16;"
          "add.s64 %rd2, %out, %rd2; st.global.v4.u32 [%rd2], {%r5, %r6, %r7, %r8};" +
          meet,
      pair, Words(8));
  CHECK(out == Words{113, 12, 9, 0, 112, 12, 9, 0});
}

TEST_CASE("st.async demands data and mbarrier in one CTA and an mbarrier there") {
  FaultKind kind{};
  const std::string store =
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r0, ";
  CHECK(contains(fault(peers + expecting(4) + store + "[%r4];", pair, &kind, declarations),
                 "both have to be in one CTA"));
  CHECK(contains(fault(peers + meet + store + "[%r3];" + meet, pair, &kind, declarations),
                 "no mbarrier was initialised"));
  CHECK(contains(fault(peers + expecting(4) + "add.s32 %r2, %r2, 2;" + store + "[%r3];", pair,
                       &kind, declarations),
                 "no multiple of its size"));
}

TEST_CASE("a bulk copy goes to the other CTA and signals its mbarrier") {
  Words out = in_every_order(
      peers +
          "mov.u32 %r6, t; add.s32 %r5, %r0, 40; st.shared.v4.u32 [t], {%r5, %r5, %r5, %r0};"
          "fence.proxy.async.shared::cta;" +
          expecting(16) +
          "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [%r6], 16,"
          " [%r3];" +
          wait_for("W") +
          "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [s]; mul.wide.u32 %rd2, %r0, 16;"
          "add.s64 %rd2, %out, %rd2; st.global.v4.u32 [%rd2], {%r7, %r8, %r9, %r10};" +
          meet,
      pair, Words(8));
  CHECK(out == Words{41, 41, 41, 1, 40, 40, 40, 0});
}

TEST_CASE("a bulk copy to the other CTA brings what has no value without one") {
  const auto reading = [](const std::string& what) {
    return peers + "mov.u32 %r6, t; st.shared.u32 [t+12], 7; fence.proxy.async.shared::cta;" +
           expecting(16) +
           "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [%r6],"
           " 16, [%r3];" +
           wait_for("W") + "ld.shared.u32 %r7, [" + what +
           "]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd2, %out, %rd2; st.global.u32 [%rd2], %r7;" +
           meet;
  };
  CHECK(run(reading("s+12"), pair, Words(2), declarations) == Words{7, 7});
  CHECK(contains(fault(reading("s+8"), pair, nullptr, declarations), "nobody has written"));
}

TEST_CASE("bulk reductions of several CTAs into one add up") {
  const std::string reduce =
      "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r2],"
      " [%r6], 32, [%r3];";
  Words out = in_every_order(
      peers +
          "mov.u32 %r6, t; add.s32 %r5, %r0, 1; st.shared.v4.u32 [t], {%r5, %r5, %r5, %r0};"
          "st.shared.v4.u32 [t+16], {1, 2, 3, 4}; st.shared.v4.u32 [s], {9, 9, 9, 9};"
          "st.shared.v4.u32 [s+16], {0, 0, 0, 0}; fence.proxy.async;"
          "mov.u32 %r1, 0; mov.u32 %r2, s; mov.u32 %r3, bar;"
          "mapa.shared::cluster.u32 %r2, %r2, %r1; mapa.shared::cluster.u32 %r3, %r3, %r1;" +
          expecting(0) +
          "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [bar2], 1;"
          "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar2], 64; mov.u32 %r3, bar2;"
          "mapa.shared::cluster.u32 %r3, %r3, %r1; mov.u32 %r4, bar2;" +
          meet + reduce + "@!%p1 bra OUT;" + wait_for("W") +
          "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [s]; st.global.v4.u32 [%out], {%r7, %r8, %r9,"
          " %r10}; ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [s+16];"
          "st.global.v4.u32 [%out+16], {%r7, %r8, %r9, %r10}; OUT:" +
          meet,
      pair, Words(8));
  CHECK(out == Words{12, 12, 12, 10, 2, 4, 6, 8});
}

TEST_CASE("bulk reductions to global memory know their types") {
  // Two CTAs, each adds its 16 bytes.
  const auto reduce = [](const std::string& op, uint32_t value, uint32_t there) {
    return in_every_order(
        "mov.u32 %r6, t; mov.u32 %r5, " + std::to_string(value) +
            "; st.shared.v4.u32 [t], {%r5, %r5, %r5, %r5}; fence.proxy.async.shared::cta;"
            "cp.reduce.async.bulk.global.shared::cta.bulk_group." +
            op + " [%out], [%r6], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        {{2}, {1}, {}}, Words(4, there));
  };
  CHECK(reduce("add.u32", 3, 10) == Words(4, 16));
  CHECK(reduce("add.f32", 0x3F800000, 0x40000000) == Words(4, 0x40800000));
  CHECK(reduce("add.noftz.f16", 0x3C003C00, 0x00004000) == Words(4, 0x40004400));
  CHECK(reduce("add.noftz.bf16", 0x3F803F80, 0) == Words(4, 0x40004000));
  CHECK(reduce("max.f16", 0xBC004000, 0xC0003C00) == Words(4, 0xBC004000));
  CHECK(reduce("min.s32", uint32_t(-5), 2) == Words(4, uint32_t(-5)));
  CHECK(reduce("and.b64", 0xF0F0, 0xFF00) == Words(4, 0xF000));
  CHECK(reduce("dec.u32", 7, 1) == Words(4, 7));
  // 1.0 + 1.0 + 1.0 in doubles whose low words are zero.
  CHECK(in_every_order("mov.u32 %r6, t; st.shared.v4.u32 [t], {0, 0x3FF00000, 0, 0x3FF00000};"
                       "fence.proxy.async.shared::cta;"
                       "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%out], [%r6],"
                       " 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
                       {{2}, {1}, {}},
                       {0, 0x3FF00000, 0, 0}) == Words{0, 0x40080000, 0, 0x40000000});
}

TEST_CASE("a bulk store with a byte mask leaves the other bytes alone") {
  CHECK(in_every_order("mov.u32 %r6, t; mov.u32 %r5, 0x44332211; mov.b16 %h1, 0x8005;"
                       "st.shared.v4.u32 [t], {%r5, %r5, %r5, %r5}; fence.proxy.async.shared::cta;"
                       "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [%r6], 16, %h1;"
                       "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
                       {}, Words(4, 0)) == Words{0x00330011, 0, 0, 0x44000000});
}

TEST_CASE("arrivals that drop out or do not complete or ask how many are pending") {
  Words out =
      run("mbarrier.init.shared.b64 [bar], 3; mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 1;"
          "mbarrier.pending_count.b64 %r1, %rd1; mbarrier.arrive_drop.shared.b64 %rd2, [bar];"
          "mbarrier.pending_count.b64 %r2, %rd2; mbarrier.arrive.shared.b64 %rd3, [bar];"
          "mbarrier.test_wait.shared.b64 %p1, [bar], %rd3; selp.u32 %r3, 1, 0, %p1;"
          "mbarrier.arrive.shared.b64 %rd4, [bar]; mbarrier.pending_count.b64 %r4, %rd4;"
          "st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};",
          {}, Words(4), declarations);
  CHECK(out == Words{3, 2, 1, 2});
  CHECK(contains(fault("mbarrier.init.shared.b64 [bar], 1;"
                       "mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 1;",
                       {}, nullptr, declarations),
                 "would complete the phase"));
}
