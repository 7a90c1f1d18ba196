// SPDX-License-Identifier: MIT
// Bulk stores that several lanes of a warp execute: those with the same operands are one store, as
// ptxas makes them; reductions go lane by lane.
#include "tools/emulator/test/support/exec_support.h"

namespace {

const exec_test::Shape warp{{}, {32}, {}};
const char* const memory = ".shared .align 128 .b8 s[128];";

// Word i of s is i; %r2 is its address, %r0 the lane.
std::string program(const std::string& copy) {
  return "mov.u32 %r0, %laneid; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
         "st.shared.u32 [%r1], %r0; fence.proxy.async.shared::cta; bar.warp.sync -1;" +
         copy + "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
}

const std::string store = "cp.async.bulk.global.shared::cta.bulk_group ";

}  // namespace

TEST_CASE("a bulk store by a whole warp with one set of operands is one store by the manual 32") {
  const exec_test::SettingsGuard guard;
  emu::settings().order = GENERATE(emu::Order::soonest, emu::Order::latest, emu::Order::random);
  const std::string one = program(store + "[%out], [%r2], 64;");
  const emu::Counters c = exec_test::counters(one, warp, memory);
  CHECK(c.bulk_copies == 1);
  CHECK(c.bulk_bytes == 64);
  CHECK(c.hazards == 0);
  CHECK(c.formal_hazards > 0);
  CHECK(exec_test::run(one, warp, std::vector<uint32_t>(16), memory)[15] == 15);
}

TEST_CASE("bulk stores of lanes with different operands are each their own") {
  const std::string own =
      "shl.b32 %r3, %r0, 4; cvt.u64.u32 %rd1, %r3; add.u64 %rd1, %rd1, %out; add.u32 %r3, %r3, %r2;"
      "setp.lt.u32 %p0, %r0, 8; @%p0 " +
      store + "[%rd1], [%r3], 16;";
  const emu::Counters c = exec_test::counters(program(own), warp, memory);
  CHECK(c.bulk_copies == 8);
  CHECK(c.hazards + c.formal_hazards == 0);
  const std::string clash = "and.b32 %r3, %r0, 1; shl.b32 %r3, %r3, 4; add.u32 %r3, %r3, %r2;" +
                            store + "[%out], [%r3], 16;";
  emu::FaultKind kind{};
  exec_test::fault(program(clash), warp, &kind, memory);
  CHECK(kind == emu::FaultKind::ordering);
}

TEST_CASE("a bulk reduction by a whole warp adds 32 times") {
  const std::string add =
      program("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%r2], 64;");
  CHECK(exec_test::run(add, warp, std::vector<uint32_t>(16), memory)[3] == 96);
  CHECK(exec_test::counters(add, warp, memory).bulk_copies == 32);
}

TEST_CASE("a bulk prefetch moves nothing and counts as a copy of its bytes") {
  const std::string ask = program("cp.async.bulk.prefetch.L2.global [%out], 64;");
  const emu::Counters c = exec_test::counters(ask, warp, memory);
  CHECK(c.bulk_copies == 32);
  CHECK(c.bulk_bytes == 32 * 64);
  CHECK(c.hazards + c.formal_hazards == 0);
}
