// SPDX-License-Identifier: MIT
// Verdicts on elements that are infinite or NaN: right where a sum inside the bound may become
// them.
#include "tools/harness/compare.h"
#include "tools/harness/formats.h"
#include "tools/testing/catch.h"

namespace {

constexpr uint16_t kNan = 0x7FFF, kInfinity = 0x7C00, kMinusInfinity = 0xFC00, kLargest = 0x7BFF;

// One sum of 64 equal products: 64 * 36 = 2304.
support::Problem one_sum(float alpha) {
  support::Problem p = support::make_problem({1, 1, 64});
  for (support::Operand* o : {&p.a, &p.b}) {
    for (int64_t i = 0; i < 64; ++i) o->set_code(0, 0, i, 7);
    for (int64_t i = 0; i < 4; ++i) o->set_scale(0, 0, i, 0x38);
  }
  p.alpha = alpha;
  return p;
}

int64_t outside(const support::Problem& p, uint16_t d) {
  return support::compare_bound(p, {d}, support::reference(p), 100).outside_bound;
}

}  // namespace

TEST_CASE("an infinite element is right where the sum overflows with its sign", "[verdict]") {
  for (const float alpha : {29.0f, 1e30f, INFINITY}) {
    CAPTURE(alpha);
    CHECK(support::reference(one_sum(alpha)).front() == kInfinity);
    CHECK(outside(one_sum(alpha), kInfinity) == 0);
    for (const uint16_t wrong : {kMinusInfinity, kNan, kLargest, uint16_t(0)})
      CHECK(outside(one_sum(alpha), wrong) == 1);
    CHECK(outside(one_sum(-alpha), kMinusInfinity) == 0);
    CHECK(outside(one_sum(-alpha), kInfinity) == 1);
  }
  CHECK(outside(one_sum(28.0f), kInfinity) == 1);
}

TEST_CASE("a NaN is right where alpha or a scale or infinity times 0 makes one", "[verdict]") {
  support::Problem scale = one_sum(1), nothing = one_sum(INFINITY);
  scale.a.set_scale(0, 0, 2, 0x7F);
  for (int64_t i = 0; i < 64; ++i) nothing.a.set_code(0, 0, i, 0);
  for (const support::Problem& p : {one_sum(NAN), scale, nothing}) {
    CHECK(support::reference(p).front() == kNan);
    CHECK(outside(p, kNan) == 0);
    for (const uint16_t wrong : {kLargest, uint16_t(0)}) CHECK(outside(p, wrong) == 1);
  }
  // Where scales are large, the bound allows a sum beside 0, which is infinite then.
  for (const support::Problem& p : {one_sum(NAN), scale}) CHECK(outside(p, kInfinity) == 1);
  CHECK(outside(one_sum(1), kNan) == 1);
}

TEST_CASE("a NaN scale leaves the other sums as exact as they are", "[verdict]") {
  support::Problem p = one_sum(1);
  p.a.set_scale(0, 0, 2, 0x7F);
  CHECK(support::sums_are_exact(p));
  p.a.set_scale(0, 0, 0, 0x01);
  p.a.set_scale(0, 0, 1, 0x7E);
  p.b.set_scale(0, 0, 0, 0x01);
  p.b.set_scale(0, 0, 1, 0x7E);
  CHECK_FALSE(support::sums_are_exact(p));
}
