// SPDX-License-Identifier: MIT
// The bound of compute capability 9.0 against the published model of wgmma, whichever 16 elements
// of a stage of 256 a step takes and however many parts K has.
#include <numeric>

#include "tools/harness/exact.h"
#include "tools/harness/formats.h"
#include "tools/testing/catch.h"

namespace {

using support::Operand;
using support::Problem;
using support::Random;

constexpr int64_t kStage = 256, kDepth = 16;

// Element times scale as fp16 in units of 2^-7, 0 beyond K.
uint16_t factor(const Operand& o, int64_t k) {
  if (k >= o.k) return 0;
  const double value =
      support::e2m1_value(o.code(0, 0, k)) * support::e4m3_value(o.scale(0, 0, k / 16));
  return support::f16_bits(value * 0x1p-7);
}

int leading_bit(double value, int smallest) {
  return value == 0 ? -126 : std::max(std::ilogb(value), smallest);
}

// One wgmma of fp16 by the published model of Hopper (arXiv 2511.10909): the exact products and the
// sum so far are aligned to the largest exponent among them, cut toward zero to 25 fractional bits
// and added exactly; what comes out is cut to fp32. Doubles hold every step.
float wgmma(const uint16_t* a, const uint16_t* b, float sum) {
  constexpr int kKept = 25;
  double terms[kDepth + 1] = {double(sum)}, total = 0;
  int largest = leading_bit(double(sum), -126);
  for (int64_t i = 0; i < kDepth; ++i) {
    const double x = support::f16_value(a[i]), y = support::f16_value(b[i]);
    terms[i + 1] = x * y;
    largest = std::max(largest, leading_bit(x, -14) + leading_bit(y, -14));
  }
  for (const double term : terms) total += std::trunc(std::ldexp(term, kKept - largest));
  if (total == 0) return 0;
  const double exact = std::ldexp(total, largest - kKept);
  const int last_bit = leading_bit(exact, -126) - 23;
  return float(std::ldexp(std::trunc(std::ldexp(exact, -last_bit)), last_bit));
}

// Stages [first, last): each in 16 steps, its elements shared out at random.
float k_partition(const Problem& p, int64_t first, int64_t last, Random& random) {
  float sum = 0;
  std::vector<int64_t> order(kStage);
  for (int64_t stage = first; stage < last; ++stage) {
    std::iota(order.begin(), order.end(), stage * kStage);
    // The first and the last stay in place: an accumulator is largest between them.
    for (size_t i = kStage - 2; i > 1; --i)
      std::swap(order[i], order[1 + random.below(uint32_t(i))]);
    for (int64_t at = 0; at < kStage; at += kDepth) {
      uint16_t a[kDepth], b[kDepth];
      for (int64_t i = 0; i < kDepth; ++i) {
        a[i] = factor(p.a, order[size_t(at + i)]);
        b[i] = factor(p.b, order[size_t(at + i)]);
      }
      sum = wgmma(a, b, sum);
    }
  }
  return sum;
}

// The parts of K added in their order, in fp32.
double modelled(const Problem& p, int64_t partitions, Random& random) {
  const int64_t stages = (p.k + kStage - 1) / kStage;
  float sum = 0;
  for (int64_t i = 0; i < partitions; ++i) {
    const float partial =
        k_partition(p, i * stages / partitions, (i + 1) * stages / partitions, random);
    sum = i == 0 ? partial : sum + partial;
  }
  return double(sum) * 0x1p14;
}

double ratio(const Problem& p, int64_t partitions, Random& random) {
  support::Sum sum;
  support::for_each_sum(p, [&](int64_t, int64_t, int64_t, const support::Sum& s) { sum = s; });
  const double bound = support::accumulation_bound(sum, p.k, 90);
  return std::abs(modelled(p, partitions, random) - sum.exact) / bound;
}

// Large products that cancel, and between them products around the last bit that is kept beside
// them.
Problem cancelling(int64_t k, uint64_t seed) {
  Problem p = support::make_problem({1, 1, k}, support::Data::random, seed);
  Random random(seed);
  const int64_t last = k / 16 - 1;
  for (Operand* o : {&p.a, &p.b}) {
    for (int64_t block = 0; block <= last; ++block)
      o->set_scale(0, 0, block, uint8_t(0x0E + random.below(0x16)));
    for (const int64_t block : {int64_t(0), last}) {
      o->set_scale(0, 0, block, uint8_t(0x70 + random.below(15)));
      for (int64_t i = 0; i < 16; ++i) o->set_code(0, 0, block * 16 + i, 0);
    }
    o->set_code(0, 0, 0, 7);
    o->set_code(0, 0, k - 1, o == &p.a ? 7 : 15);
    // All values have one sign, as truncation errors do.
    for (int64_t i = 16; i < last * 16; ++i) o->set_code(0, 0, i, uint8_t(o->code(0, 0, i) & 7));
  }
  return p;
}

}  // namespace

TEST_CASE("wgmma's model stays inside the bound of 9.0 whatever a step takes", "[bound]") {
  Random random(31);
  double largest = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const int64_t k = int64_t(64) * (1 + random.below(32));
    const int64_t stages = (k + kStage - 1) / kStage,
                  partitions = 1 + random.below(uint32_t(std::min<int64_t>(8, stages)));
    const Problem p = seed % 2 ? cancelling(k, seed)
                               : support::make_problem({1, 1, k}, support::Data::random, seed);
    CAPTURE(seed, k, partitions);
    const double r = ratio(p, partitions, random);
    REQUIRE(r <= 1);
    largest = std::max(largest, r);
  }
  CAPTURE(largest);
  CHECK(largest > 0.1);  // the sums were inexact
}

TEST_CASE("the worst sum found for wgmma is more than half of the bound", "[bound]") {
  Random random(32);
  const Problem p = support::worst_for_wgmma({1, 1, 256});
  double least = 1, largest = 0;
  for (int i = 0; i < 50; ++i) {
    const double r = ratio(p, 1, random);
    least = std::min(least, r), largest = std::max(largest, r);
  }
  CAPTURE(least, largest);
  CHECK(largest <= 1);
  CHECK(least > 0.5);
}
