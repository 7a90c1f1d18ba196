// SPDX-License-Identifier: MIT
// Clocks that know single lanes beside whole warps.
#include "tools/emulator/order/clock.h"
#include "tools/testing/catch.h"

using emu::Clock;

namespace {
constexpr uint32_t warp = 1, lane = 3, bit = 1u << lane;
}

TEST_CASE("a clock reaches a lane by its warp or by the lane alone") {
  Clock c;
  CHECK_FALSE(c.reaches(warp, bit, 1));
  c.raise_lane(warp, lane, 5);
  CHECK(c.reaches(warp, bit, 5));
  CHECK_FALSE(c.reaches(warp, bit, 6));
  CHECK_FALSE(c.reaches(warp, bit << 1, 1));
  CHECK_FALSE(c.reaches(warp, bit | bit << 1, 1));
  CHECK_FALSE(c.reaches(warp + 1, bit, 1));
  c.raise_lane(warp, lane, 2);  // never back
  CHECK(c.reaches(warp, bit, 5));
  c.raise_lane(warp, lane + 1, 4);
  CHECK(c.reaches(warp, bit | bit << 1, 4));
  CHECK_FALSE(c.reaches(warp, bit | bit << 1, 5));
  c.raise(warp, 7);
  CHECK(c.reaches(warp, ~0u, 7));
}

TEST_CASE("no lanes at all means any of the warp") {
  Clock c;
  CHECK_FALSE(c.reaches_one(warp, 1));
  c.raise_lane(warp, lane, 5);
  CHECK(c.reaches_one(warp, 5));
  CHECK_FALSE(c.reaches_one(warp, 6));
  CHECK_FALSE(c.reaches_one(warp - 1, 1));
}

TEST_CASE("joined clocks reach what either does") {
  Clock a, b;
  a.raise_lane(warp, lane, 5);
  a.raise_lane(warp + 1, 0, 9);
  b.raise_lane(0, 31, 1);
  b.raise_lane(warp, lane, 6);
  b.raise_lane(warp, lane + 1, 4);
  b.raise(warp + 1, 8);
  a.join(b);
  CHECK(a.reaches(0, 1u << 31, 1));
  CHECK(a.reaches(warp, bit, 6));
  CHECK(a.reaches(warp, bit << 1, 4));
  CHECK(a.reaches(warp + 1, 1, 9));
  CHECK(a.reaches(warp + 1, ~0u, 8));
  CHECK_FALSE(a.reaches(warp + 1, ~0u, 9));
  b.raise(warp, 6);
  a.join(b);
  CHECK(a.reaches(warp, ~0u, 6));
  CHECK_FALSE(a.reaches(warp, bit, 7));
}

// One or a few find their places; many are merged. What is known of all lanes is never lost.
TEST_CASE("clocks of many lanes joined reach what either does and so do those of one") {
  for (const uint32_t lanes : {1u, 4u, 5u, 32u}) {
    Clock a, b;
    for (uint32_t i = 0; i < 32; i += 2) a.raise_lane(warp, i, 10 + i);
    a.raise(warp, 11);
    for (uint32_t i = 0; i < lanes; ++i) b.raise_lane(warp, i, 30);
    a.join(b);
    for (uint32_t i = 0; i < 32; ++i) {
      CAPTURE(lanes, i);
      const uint32_t before = i % 2 ? 11 : std::max(11u, 10 + i);
      const uint32_t now = i < lanes ? std::max(before, 30u) : before;
      CHECK(a.reaches(warp, 1u << i, now));
      CHECK_FALSE(a.reaches(warp, 1u << i, now + 1));
    }
  }
}
