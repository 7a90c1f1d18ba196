// SPDX-License-Identifier: MIT
// Asynchronous work that outlives its CTA.
#include "tools/emulator/test/support/exec_support.h"

TEST_CASE("a bulk copy that nobody waited for when its CTA ends is a fault in every order") {
  const exec_test::SettingsGuard guard;
  emu::settings().order = GENERATE(emu::Order::soonest, emu::Order::latest, emu::Order::random);
  const std::string copy = R"(
    mbarrier.init.shared::cta.b64 [s], 1; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+16], [%out], 16, [s];)";
  const std::string wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [s], 0; @!%p0 bra W;";
  const std::string memory = ".shared .align 16 .b8 s[32];";
  emu::FaultKind kind{};
  CHECK(contains(exec_test::fault(copy, {}, &kind, memory),
                 "the CTA ends while a copy into its shared memory at 0x410"));
  CHECK(kind == emu::FaultKind::ordering);
  exec_test::run(copy + wait, {}, std::vector<uint32_t>(4), memory);
}

namespace {

// A bulk store of the words 1, 2, 3, 4 from s+16 to %out, not yet in a group.
const std::string bulk_store = R"(
    st.shared.u32 [s+16], 1; st.shared.u32 [s+20], 2; st.shared.u32 [s+24], 3;
    st.shared.u32 [s+28], 4; fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [s+16], 16;)";
const std::string commit_group = "cp.async.bulk.commit_group;";

}  // namespace

// What epilogues end with: the last stores are committed, and no thread waits until they have been
// read.
TEST_CASE("a committed bulk store that may still read when its CTA ends is formal and happens") {
  const exec_test::SettingsGuard guard;
  emu::settings().order = GENERATE(emu::Order::soonest, emu::Order::latest, emu::Order::random);
  const std::string memory = ".shared .align 16 .b8 s[32];";
  const std::string store = bulk_store + commit_group;
  for (const char* wait : {"", "cp.async.bulk.wait_group.read 1;", "cp.async.bulk.wait_group 1;"}) {
    emu::settings().formal = emu::Reaction::report;
    CHECK(exec_test::run(store + wait, {}, std::vector<uint32_t>(4), memory)[3] == 4);
    const emu::Counters counters = exec_test::counters(store + wait, {}, memory);
    CHECK(counters.formal_hazards == 1);
    CHECK(counters.hazards == 0);
    emu::settings().formal = emu::Reaction::stop;
    emu::FaultKind kind{};
    CHECK(contains(exec_test::fault(store + wait, {}, &kind, memory),
                   "the CTA ends while a copy from its shared memory at 0x410"));
    CHECK(kind == emu::FaultKind::ordering);
  }
  for (const char* wait : {"cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"})
    CHECK(exec_test::run(store + wait, {}, std::vector<uint32_t>(4), memory)[3] == 4);
}

TEST_CASE("a bulk store that is in no group or whose bytes are overwritten is a fault") {
  const exec_test::SettingsGuard guard;
  emu::settings().formal = emu::Reaction::ignore;
  emu::settings().order = GENERATE(emu::Order::soonest, emu::Order::latest, emu::Order::random);
  const std::string memory = ".shared .align 16 .b8 s[32];";
  CHECK(contains(exec_test::fault(bulk_store, {}, nullptr, memory),
                 "the CTA ends while a copy from its shared memory at 0x410"));
  CHECK(contains(
      exec_test::fault(bulk_store + commit_group + "st.shared.u32 [s+16], 5;", {}, nullptr, memory),
      "a cp.async.bulk.wait_group"));
}

TEST_CASE("bytes that were announced and never came are formal when the cluster ends") {
  const exec_test::SettingsGuard guard;
  const std::string expect =
      "mbarrier.init.shared::cta.b64 [s], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 16;";
  const std::string memory = ".shared .align 16 .b8 s[32];";
  emu::settings().formal = emu::Reaction::report;
  const emu::Counters counters = exec_test::counters(expect, {{2}, {1}, {2}}, memory);
  CHECK(counters.formal_hazards == 2);
  CHECK(counters.hazards == 0);
  emu::settings().formal = emu::Reaction::ignore;
  CHECK(exec_test::counters(expect, {}, memory).formal_hazards == 0);
  emu::settings().formal = emu::Reaction::stop;
  emu::FaultKind kind{};
  CHECK(contains(exec_test::fault(expect, {}, &kind, memory), "at the end of the CTA of rank 0"));
  CHECK(kind == emu::FaultKind::ordering);
}

namespace {

// Two CTAs whose barriers are there: %r0 = rank, %r1 = the other's `s`, %r2 = its `bar`.
const std::string peers = R"(
    mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p1, %r0, 0; xor.b32 %r3, %r0, 1;
    mov.u32 %r1, s; mapa.shared::cluster.u32 %r1, %r1, %r3;
    mov.u32 %r2, bar; mapa.shared::cluster.u32 %r2, %r2, %r3;
    st.shared.u32 [s], 1; mbarrier.init.shared::cta.b64 [bar], 1;
    @!%p1 mbarrier.expect_tx.shared::cta.b64 [bar], TX; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
)";
const char* const peers_memory = ".shared .align 16 .b8 s[32]; .shared .align 8 .b64 bar;";

// How the visit of rank 0 to rank 1 is found in each schedule, once it is followed by `end`.
void find(const std::string& visit, const std::string& end, const char* how) {
  const exec_test::SettingsGuard guard;
  const std::string bytes = contains(visit, "async") ? "4" : "0";
  std::string body = peers + "@%p1 " + visit + end;
  body.replace(body.find("TX"), 2, bytes);
  for (const emu::Order order : {emu::Order::soonest, emu::Order::latest, emu::Order::random})
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      emu::settings().order = order;
      emu::settings().seed = seed;
      emu::settings().hazards = emu::settings().formal = emu::Reaction::stop;
      CAPTURE(visit, end, int(order), seed);
      const exec_test::Shape two{{2}, {1}, {2}};
      if (!*how) {
        CHECK_NOTHROW(exec_test::counters(body, two, peers_memory));
        continue;
      }
      const std::string text = exec_test::fault(body, two, nullptr, peers_memory);
      CHECK((contains(text, how) || contains(text, "which has ended")));
      CHECK(contains(text, "without release") == contains(end, "relaxed"));
    }
}

const std::string released = "barrier.cluster.arrive; barrier.cluster.wait;";
const std::string relaxed = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;";
const std::string awaited =
    "@%p1 bra E; W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0; @!%p0 bra W; E:";

}  // namespace

TEST_CASE("a CTA ends after what another does to its shared memory whoever is faster") {
  for (const char* store : {"st.shared::cluster.u32 [%r1], 2;",
                            "red.relaxed.cluster.shared::cluster.add.u32 [%r1], 2;"}) {
    find(store, "", "while a store to its shared memory");
    find(store, relaxed, "while a store to its shared memory");
    find(store, released, "");
  }
  const char* const load = "ld.shared::cluster.u32 %r4, [%r1];";
  find(load, "", "while a load from its shared memory");
  find(load, relaxed, "");
  find(load, released, "");
}

TEST_CASE("a CTA ends after the arrivals of others at its mbarriers whoever is faster") {
  const char* const arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];";
  find(arrive, "", "while an arrival at its mbarrier");
  find(arrive, relaxed, "while an arrival at its mbarrier");
  find(arrive, released, "");
  find(arrive, awaited, "");
}

TEST_CASE("a CTA waits for relaxed arrivals and ends") {
  const char* const arrive = "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r2];";
  find(arrive, "", "while an arrival at its mbarrier");
  find(arrive, awaited, "");
}

// Only its own wait keeps rank 1 from ending: rank 0 has waited only for the arrival at its own
// mbarrier.
TEST_CASE("a CTA ends after the commits of its pair") {
  const exec_test::SettingsGuard guard;
  emu::settings().formal = emu::Reaction::stop;
  const std::string commit = R"(
    mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p1, %r0, 0; setp.gt.u32 %p2, %r0, 1; mov.b16 %h0, 3;
    mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p1 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
      [bar], %h0;
    WAITS bra E; W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0; @!%p0 bra W; E:
    barrier.cluster.arrive; barrier.cluster.wait;)";
  const auto body = [&](const char* which) {
    std::string text = commit;
    return text.replace(text.find("WAITS"), 5, which);
  };
  const exec_test::Shape two{{2}, {1}, {2}};
  const std::string text = exec_test::fault(body("@!%p1"), two, nullptr, peers_memory);
  CHECK(contains(text, "while the arrival of a tcgen05.commit at its mbarrier"));
  CHECK(contains(text, "at the end of the CTA of rank 1"));
  CHECK_NOTHROW(exec_test::counters(body("@%p1"), two, peers_memory));
  CHECK_NOTHROW(exec_test::counters(body("@%p2"), two, peers_memory));
}

TEST_CASE("a CTA ends after what st.async brings whoever is faster") {
  const std::string store =
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], 2, [%r2];";
  const std::string arrive = "@!%p1 mbarrier.arrive.shared::cta.b64 _, [bar];";
  find(store, arrive, "while a copy into its shared memory");
  find(store, arrive + released, "while a copy into its shared memory");
  find(store, arrive + awaited, "");
}
