// SPDX-License-Identifier: MIT
// Phases, counts and bytes of mbarriers.
#include "tools/emulator/hardware/mbarrier.h"

#include "tools/emulator/test/support/unit_support.h"

using emu::MbarrierTable;

TEST_CASE("a fresh mbarrier has parity 1 after it and parity 0 before it") {
  MbarrierTable t;
  t.init(0x400, 2);
  CHECK(t.test_parity(0x400, 1));
  CHECK_FALSE(t.test_parity(0x400, 0));
}

TEST_CASE("a phase completes with the last arrival and the next one starts with the full count") {
  MbarrierTable t;
  t.init(0x400, 2);
  t.arrive(0x400);
  CHECK_FALSE(t.test_parity(0x400, 0));
  t.arrive(0x400);
  CHECK(t.test_parity(0x400, 0));
  CHECK_FALSE(t.test_parity(0x400, 1));
  CHECK(t.state(0x400, "").pending == 2);
  t.arrive(0x400, 2);
  CHECK(t.test_parity(0x400, 1));
}

TEST_CASE("expected bytes hold a phase open until they are complete") {
  MbarrierTable t;
  t.init(0x400, 1);
  t.arrive_expect_tx(0x400, 4096);
  CHECK_FALSE(t.test_parity(0x400, 0));
  t.complete_tx(0x400, 4080);
  CHECK_FALSE(t.test_parity(0x400, 0));
  t.complete_tx(0x400, 16);
  CHECK(t.test_parity(0x400, 0));
}

TEST_CASE("bytes may complete before they are expected while an arrival is pending") {
  MbarrierTable t;
  t.init(0x400, 1);
  t.complete_tx(0x400, 512);
  CHECK_FALSE(t.test_parity(0x400, 0));
  CHECK(t.state(0x400, "").tx == -512);
  t.arrive_expect_tx(0x400, 512);
  CHECK(t.test_parity(0x400, 0));
  CHECK(t.state(0x400, "").tx == 0);
}

TEST_CASE("bytes that nobody expects and bytes that never come are outstanding at the end") {
  MbarrierTable t;
  t.init(0x400, 1);
  t.init(0x408, 1);
  CHECK(t.outstanding().empty());
  t.complete_tx(0x400, 16);
  CHECK(t.outstanding().find("0x400") != std::string::npos);
  CHECK(t.outstanding().find("0x408") == std::string::npos);
  CHECK(t.outstanding().find("tx -16 bytes") != std::string::npos);
}

TEST_CASE("the count of an mbarrier is 1 to 2^20 - 1") {
  MbarrierTable t;
  CHECK_FAULT(barrier_misuse, "a count is 1 to 1048575", t.init(0x400, 0));
  CHECK_FAULT(barrier_misuse, "a count is 1 to 1048575", t.init(0x400, 1 << 20));
  t.init(0x400, (1 << 20) - 1);
  CHECK(t.live(0x400));
  CHECK_FAULT(misaligned_address, "8-byte aligned", t.init(0x404, 1));
}

TEST_CASE("the tx-count stays within 2^20 - 1 on both sides") {
  MbarrierTable t;
  t.init(0x400, 1);
  t.expect_tx(0x400, (1 << 20) - 1);
  CHECK_FAULT(barrier_misuse, "its range is +-1048575", t.expect_tx(0x400, 1));
  t.init(0x408, 1);
  t.complete_tx(0x408, (1 << 20) - 1);
  CHECK_FAULT(barrier_misuse, "its range is +-1048575", t.complete_tx(0x408, 1));
}

TEST_CASE("more arrivals than pending are misuse even while only bytes are missing") {
  MbarrierTable t;
  t.init(0x400, 2);
  CHECK_FAULT(barrier_misuse, "more arrivals than the phase has pending", t.arrive(0x400, 3));
  CHECK_FAULT(barrier_misuse, "at least 1", t.arrive(0x400, 0));
  t.expect_tx(0x400, 16);
  t.arrive(0x400, 2);
  CHECK_FAULT(barrier_misuse, "more arrivals", t.arrive(0x400));
}

TEST_CASE("an mbarrier has to be initialised once and can be invalidated") {
  MbarrierTable t;
  CHECK_FAULT(barrier_misuse, "no mbarrier was initialised", t.arrive(0x400));
  CHECK_FAULT(barrier_misuse, "no mbarrier was initialised", t.test_parity(0x400, 0));
  t.init(0x400, 1);
  CHECK_FAULT(barrier_misuse, "lives already", t.init(0x400, 1));
  CHECK_FALSE(t.was_live(0x400));
  t.inval(0x400);
  CHECK(t.was_live(0x400));
  CHECK_FAULT(barrier_misuse, "no mbarrier was initialised", t.inval(0x400));
  t.init(0x400, 3);
  CHECK_FALSE(t.was_live(0x400));
  CHECK(t.state(0x400, "").pending == 3);
}

TEST_CASE("an mbarrier is idle between its phases") {
  MbarrierTable t;
  CHECK_FALSE(t.idle(0x400));
  t.init(0x400, 2);
  CHECK(t.idle(0x400));
  t.arrive(0x400);
  CHECK_FALSE(t.idle(0x400));
  t.arrive(0x400);
  CHECK(t.idle(0x400));
  t.expect_tx(0x400, 16);
  CHECK_FALSE(t.idle(0x400));
}

TEST_CASE("a state can be waited for in its own and in the next phase only") {
  MbarrierTable t;
  t.init(0x400, 1);
  const uint64_t first = t.arrive(0x400);
  CHECK(MbarrierTable::pending_of(first) == 1);
  CHECK(t.test_state(0x400, first));
  const uint64_t second = t.arrive(0x400);
  CHECK(t.test_state(0x400, second));
  CHECK_FAULT(barrier_misuse, "immediately preceding", t.test_state(0x400, first));
}

TEST_CASE("of a parity bit 0 counts") {
  MbarrierTable t;
  t.init(0x400, 1);
  for (const uint32_t even : {0u, 2u, 0xFFFFFFFEu}) {
    CHECK_FALSE(t.test_parity(0x400, even));
    CHECK(t.test_parity(0x400, even + 1));
  }
}

TEST_CASE("arrive_drop lowers the count of the following phases") {
  MbarrierTable t;
  t.init(0x400, 3);
  t.arrive_drop(0x400);
  t.arrive(0x400, 2);
  CHECK(t.test_parity(0x400, 0));
  CHECK(t.state(0x400, "").pending == 2);
  CHECK_FAULT(barrier_misuse, "leaves no expected arrivals", t.arrive_drop(0x400, 2));
}

TEST_CASE("a report of an mbarrier has its phase and arrivals and bytes") {
  MbarrierTable t;
  t.init(0x418, 4);
  t.arrive_expect_tx(0x418, 32);
  CHECK(t.describe(0x418) ==
        "mbarrier 0x418: phase 0 (parity 0), pending 3 of 4 arrivals, tx 32 bytes");
  CHECK(t.describe() == t.describe(0x418) + "\n");
}
