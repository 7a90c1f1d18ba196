// SPDX-License-Identifier: MIT
// clusterlaunchcontrol: every tile is done once, by any CTA.
#include "tools/emulator/test/support/exec_support.h"

using exec_test::SettingsGuard;
using exec_test::Shape;
using Words = std::vector<uint32_t>;

namespace {

const char* const declarations = ".shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;";

// Counts a visit of each CTA's number, and the CTAs that were launched, in the last word.
std::string persistent(const std::string& multicast, int last) {
  const std::string meet = multicast.empty() ? "" : "barrier.cluster.arrive; barrier.cluster.wait;";
  return R"(
    .reg .b128 q; .reg .b32 x, y, z, w, phase;
    red.global.add.u32 [%out+)" +
         std::to_string(last * 4) + R"(], 1;
    mov.u32 %r1, bar; mov.u32 %r2, answer; mov.u32 phase, 0; mov.u32 x, %ctaid.x;
    mov.u32 y, %ctaid.y; mbarrier.init.shared.b64 [%r1], 1;
    fence.mbarrier_init.release.cluster;)" +
         meet + R"(
  TILE: mov.u32 %r3, %nctaid.x; mad.lo.s32 %r3, y, %r3, x; mul.wide.u32 %rd1, %r3, 4;
    add.s64 %rd1, %out, %rd1; red.global.add.u32 [%rd1], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16;)" +
         meet + R"(
    mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p3, %r5, 0;
    @%p3 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes)" +
         multicast + R"(.b128 [%r2], [%r1];
  W: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], phase; @!%p1 bra W;
    xor.b32 phase, phase, 1; ld.shared.b128 q, [%r2]; fence.proxy.async.shared::cta;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, q; @!%p2 bra OUT;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, q;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 w, q;
    setp.ne.u32 %p1, w, y; @%p1 trap;
    add.s32 x, x, %r5; bra TILE;
  OUT:)" +
         meet;
}

}  // namespace

TEST_CASE("CTAs that take over others' work do every tile once however requests are answered") {
  SettingsGuard guard;
  for (const emu::Order order : {emu::Order::soonest, emu::Order::latest, emu::Order::random}) {
    emu::settings().order = order;
    Words out = run(persistent("", 24), {{6, 4}, {1}, {}, 0, 1}, Words(25), declarations);
    for (int i = 0; i < 24; ++i) CHECK(out[size_t(i)] == 1);
    if (order == emu::Order::soonest) CHECK(out[24] < 24);
    if (order == emu::Order::latest) CHECK(out[24] == 24);
  }
}

TEST_CASE("a cluster takes over whole clusters: the answer goes to every CTA") {
  SettingsGuard guard;
  for (const emu::Order order : {emu::Order::soonest, emu::Order::random}) {
    emu::settings().order = order;
    Words out = run(persistent(".multicast::cluster::all", 16), {{8, 2}, {1}, {2}, 0, 2}, Words(17),
                    declarations);
    for (int i = 0; i < 16; ++i) CHECK(out[size_t(i)] == 1);
  }
}

TEST_CASE("a CTA that has seen a refusal asks no more and a refusal names no CTA") {
  SettingsGuard guard;
  emu::settings().order = emu::Order::latest;
  const std::string ask =
      "mov.u32 %r1, bar; mov.u32 %r2, answer; mbarrier.init.shared.b64 [%r1], 1;"
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16; .reg .b128 q;"
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2],"
      " [%r1]; W: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra W;"
      "ld.shared.b128 q, [%r2];";
  CHECK(contains(
      fault(
          ask +
              "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, q;"
              "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
              " [%r2], [%r1];",
          {}, nullptr, declarations),
      "has seen an earlier request fail"));
  // Its tile may be divided into coordinates before anybody asks whether there is one.
  const std::string tile = ask +
                           "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, q;"
                           "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, q;"
                           "div.u32 %r4, %r3, 7; setp.lt.and.u32 %p3, %r4, 5, %p2; @%p3 trap;";
  CHECK(run(tile + "st.global.u32 [%out], 1;", {}, Words(1), declarations)[0] == 1);
  CHECK(contains(fault(tile + "st.global.u32 [%out], %r4;", {}, nullptr, declarations),
                 "had failed"));
  CHECK(contains(fault(".reg .b128 q; mov.b128 q, {%out, %out};"
                       "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, q;",
                       {}, nullptr, declarations),
                 "no answer of try_cancel"));
}
