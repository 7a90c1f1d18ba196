// SPDX-License-Identifier: MIT
// mbarriers at the end of their lives: arrivals after mbarrier.inval, and a second mbarrier.init.
// Kernels of Triton's warp specialisation do both, and GPUs run them.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;

namespace {

const char* const memory = ".shared .align 8 .b64 bar; .shared .align 4 .b32 word;";

uint64_t formal_findings(const std::string& body) {
  return exec_test::counters(body, {}, memory).formal_hazards;
}

std::string stopped_by(const std::string& body) {
  const exec_test::SettingsGuard guard;
  settings().formal = Reaction::stop;
  return fault(body, {}, nullptr, memory);
}

const char* const arrivals[] = {
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];",
    "cp.async.ca.shared.global [word], [%out], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];",
};

}  // namespace

TEST_CASE("an arrival of asynchronous work after mbarrier.inval is formal") {
  const OrderGuard guard(Order::latest, 1);
  for (const std::string arrival : arrivals) {
    const std::string body = "mbarrier.init.shared::cta.b64 [bar], 1;" + arrival;
    CAPTURE(arrival);
    CHECK(formal_findings(body + "mbarrier.inval.shared::cta.b64 [bar];") == 1);
    const std::string text = stopped_by(body + "mbarrier.inval.shared::cta.b64 [bar];");
    CHECK(contains(text, "barrier misuse in kernel k in asynchronous work"));
    CHECK(contains(text, "at the mbarrier at 0x400 comes after mbarrier.inval"));
    CHECK(contains(text, "effect of PTX line"));
  }
}

TEST_CASE("an arrival is a fault where something else is stored by then") {
  const OrderGuard guard(Order::latest, 1);
  for (const std::string arrival : arrivals) {
    CAPTURE(arrival);
    FaultKind kind{};
    const std::string reused = "mbarrier.init.shared::cta.b64 [bar], 1;" + arrival +
                               "mbarrier.inval.shared::cta.b64 [bar]; st.shared.u8 [bar+7], 1;";
    CHECK(contains(fault(reused, {}, &kind, memory), "no mbarrier was initialised"));
    CHECK(kind == FaultKind::barrier_misuse);
    CHECK(contains(fault(arrival, {}, nullptr, memory), "no mbarrier was initialised"));
  }
}

TEST_CASE("mbarrier.init over an idle mbarrier is formal and over one in use a fault") {
  const OrderGuard guard(Order::soonest, 1);
  const std::string twice =
      "mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 _, [bar], 2;"
      "mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.arrive.shared::cta.b64 _, [bar];"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0; @!%p0 bra W;";
  CHECK(formal_findings(twice) == 1);
  CHECK(contains(stopped_by(twice), "where one lives already without mbarrier.inval"));
  FaultKind kind{};
  const std::string busy =
      "mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 _, [bar];"
      "mbarrier.init.shared::cta.b64 [bar], 1;";
  CHECK(contains(fault(busy, {}, &kind, memory), "pending 1 of 2 arrivals"));
  CHECK(kind == FaultKind::barrier_misuse);
}
