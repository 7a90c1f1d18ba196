// SPDX-License-Identifier: MIT
// EMU_LATE: warps that run only while no other can.
#include "tools/emulator/test/support/exec_support.h"

using namespace emu;
using exec_test::SettingsGuard;
using Words = std::vector<uint32_t>;

namespace {

// Each warp counts to its number in %r7, then takes a ticket from word 0 and stores it in word
// 1 + its number in the cluster. Words 8 to 11 are for copies.
const std::string ticket = R"(
  mov.u32 %r4, %tid.x; and.b32 %r5, %r4, 31; setp.ne.u32 %p1, %r5, 0; @%p1 bra END;
  mov.u32 %r6, 0;
  COUNT: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, %r7; @%p2 bra COUNT;
  shr.u32 %r4, %r4, 5; mov.u32 %r5, %ntid.x; shr.u32 %r5, %r5, 5; mov.u32 %r6, %cluster_ctarank;
  mad.lo.u32 %r4, %r6, %r5, %r4; mul.wide.u32 %rd0, %r4, 4; add.s64 %rd0, %rd0, %out;
  atom.global.add.u32 %r5, [%out], 1; st.global.u32 [%rd0+4], %r5;
  END: mov.u32 %r9, 0;)";

// The tickets of the warps of a cluster.
Words tickets(const std::string& late, uint32_t warps, uint32_t ctas, const std::string& before) {
  REQUIRE(find_setting("EMU_LATE")->set(settings(), late.c_str()));
  Words out = run(before + ticket, {{ctas}, {32 * warps}, {ctas}}, Words(16),
                  ".shared .align 8 .b64 bar; .shared .align 16 .b32 s[4];");
  return Words(out.begin() + 1, out.begin() + 1 + warps * ctas);
}

}  // namespace

TEST_CASE("a late warp runs when the others have ended or wait for it") {
  SettingsGuard guard;
  // Late or not, each warp but the first has a thousand instructions before its ticket.
  const std::string count = "mov.u32 %r0, %tid.x; min.u32 %r7, %r0, 1000; shl.b32 %r7, %r7, 5;";
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    settings().seed = seed;
    CAPTURE(seed);
    CHECK(tickets("0", 4, 1, count)[0] == 3);
    CHECK(tickets("2", 4, 1, count)[2] == 3);
    const Words two = tickets("1-2", 4, 1, count);
    CHECK(std::min(two[1], two[2]) == 2);
    const Words one_cta = tickets("0.1", 2, 2, count);
    CHECK(one_cta[2] == 3);
    const Words all_ctas = tickets("0", 2, 2, count);
    CHECK(std::min(all_ctas[0], all_ctas[2]) == 2);
    CHECK(tickets("0-31", 4, 1, count).size() == 4);  // all of them, and still they end
    CHECK(tickets("", 4, 1, count)[0] == 0);          // the shortest way by far
  }
  // The late warp lets the other go on in the middle of its turn, and takes its ticket after it.
  const std::string release = R"(
    mov.u32 %r0, %tid.x; shl.b32 %r7, %r0, 3; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    READY: bar.sync 0; setp.ge.u32 %p3, %r0, 32; @%p3 bra WAIT;
    @!%p0 mbarrier.arrive.shared::cta.b64 _, [bar]; bra DONE;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;
    DONE:)";
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    settings().seed = seed;
    CAPTURE(seed);
    CHECK(tickets("0", 2, 1, release) == Words{1, 0});
  }
}

TEST_CASE("asynchronous work is complete before a late warp runs") {
  SettingsGuard guard;
  settings().order = Order::latest;
  const std::string copy = R"(
    mov.u32 %r7, 1; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta;
    READY: bar.sync 0; @%p0 bra DONE;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%out+32], 16, [bar];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;
    DONE:)";
  CHECK(tickets("", 2, 1, copy) == Words{1, 0});
  settings().seed = 3;
  CHECK(tickets("1", 2, 1, copy) == Words{0, 1});
}

TEST_CASE("a warp that spins for a late warp sees what it does") {
  SettingsGuard guard;
  const std::string spin = R"(
    mov.u32 %r7, 1; mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; @%p0 bra SET;
    st.volatile.shared.u32 [s], 0; bar.sync 0;
    SPIN: ld.acquire.cta.shared.u32 %r1, [s]; setp.eq.u32 %p3, %r1, 0; @%p3 bra SPIN; bra DONE;
    SET: bar.sync 0; st.release.cta.shared.u32 [s], 1;
    DONE:)";
  settings().max_instructions = 10'000;
  CHECK(tickets("1", 2, 1, spin).size() == 2);
}

namespace {

// Which of two steps warp 1 was late for, as bits. Before the barrier warp 1 stores a word at once;
// warp 0 counts for a long time and then reads the word. After the barrier the two exchange roles.
uint32_t late_steps(uint64_t seed) {
  settings().seed = seed;
  const char* const body = R"(
    mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; mov.u32 %r2, 0;
    @%p0 st.global.u32 [%out], 1; @%p0 bra MEET;
    ONE: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra ONE;
    ld.global.u32 %r3, [%out]; st.global.u32 [%out+8], %r3;
    MEET: bar.sync 0; mov.u32 %r2, 0;
    @!%p0 st.global.u32 [%out+4], 1; @!%p0 bra END;
    TWO: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra TWO;
    ld.global.u32 %r3, [%out+4]; st.global.u32 [%out+12], %r3;
    END: mov.u32 %r9, 0;)";
  const Words out = run(body, {{}, {64}, {}}, Words(4));
  return uint32_t(out[2] == 0) | uint32_t(out[3] == 0) << 1;
}

}  // namespace

TEST_CASE("by seed one role after the other is late for as long as the others can go on") {
  SettingsGuard guard;
  settings().hazards = settings().formal = Reaction::ignore;  // the races are the point
  uint32_t seen[4] = {};
  for (uint64_t seed = 1; seed <= 40; ++seed) ++seen[late_steps(seed)];
  CHECK(seen[0] == 40);  // a rest is 4096 instructions at most
  REQUIRE(find_setting("EMU_LATE")->set(settings(), "seed"));
  seen[0] = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) ++seen[late_steps(seed)];
  CAPTURE(seen[0], seen[1], seen[2], seen[3]);
  CHECK(seen[1] + seen[3] > 5);
  CHECK(seen[2] + seen[3] > 5);
  CHECK(seen[3] > 0);  // one after the other
  CHECK(seen[3] < 40);
}

TEST_CASE("a warp alone is late for nobody and a role whose warps have ended makes room") {
  SettingsGuard guard;
  REQUIRE(find_setting("EMU_LATE")->set(settings(), "seed"));
  const std::string count = "mov.u32 %r7, %tid.x;";
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    settings().seed = seed;
    CHECK(tickets("seed", 1, 1, count) == Words{0});
    CHECK(tickets("seed", 1, 2, count).size() == 2);
    CHECK(tickets("seed", 8, 1, count).size() == 8);
  }
}
