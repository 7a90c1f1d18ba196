// SPDX-License-Identifier: MIT
// Asynchronous work that outlives its CTA.
#include "tools/emulator/test/support/exec_support.h"

using exec_test::contains;

TEST_CASE("a bulk copy that nobody waited for when its CTA ends is a fault, early or late") {
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

TEST_CASE("a bulk store that may still read when its CTA ends is a fault, early or late") {
  const exec_test::SettingsGuard guard;
  emu::settings().order = GENERATE(emu::Order::soonest, emu::Order::latest, emu::Order::random);
  const std::string store = R"(
    st.shared.u32 [s+16], 1; st.shared.u32 [s+20], 2; st.shared.u32 [s+24], 3;
    st.shared.u32 [s+28], 4; fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [s+16], 16; cp.async.bulk.commit_group;)";
  const std::string memory = ".shared .align 16 .b8 s[32];";
  emu::FaultKind kind{};
  CHECK(contains(exec_test::fault(store, {}, &kind, memory),
                 "the CTA ends while a copy from its shared memory at 0x410"));
  CHECK(kind == emu::FaultKind::ordering);
  for (const char* wait : {"cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"})
    CHECK(exec_test::run(store + wait, {}, std::vector<uint32_t>(4), memory)[3] == 4);
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
