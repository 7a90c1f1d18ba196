// SPDX-License-Identifier: MIT
// The bound of compute capability 10.x against both published models of a block-scaled step: sums
// that come near to each of its terms, and random ones at the edges.
#include <bit>

#include "tools/harness/exact.h"
#include "tools/harness/formats.h"
#include "tools/testing/catch.h"

namespace {

using support::Operand;
using support::Problem;
using support::Random;

enum Model { groups, zero_raises, zero_rests };

// Everything is a multiple of 2^-20, so sums are integers of that unit.
constexpr int kUnit = -20;

struct Block {
  int exponent = 0;       // of the two scales together
  int64_t group[4] = {};  // sums of 4 products
  bool any = false;       // a product is not zero
  int product = 0;        // the largest exponent of one

  int64_t sum() const { return group[0] + group[1] + group[2] + group[3]; }
};

int raw_of(int twice) { return std::abs(twice) >= 8 ? 2 : std::abs(twice) >= 4; }

Block block_of(const Problem& p, int64_t index) {
  const uint8_t a = p.a.scale(0, 0, index), b = p.b.scale(0, 0, index);
  Block block;
  block.exponent = std::max(a >> 3, 1) + std::max(b >> 3, 1) - 14;
  const int eighths_a = a < 8 ? a : 8 + a % 8, eighths_b = b < 8 ? b : 8 + b % 8;
  for (int64_t i = 0; i < 16; ++i) {
    const int x = support::e2m1_twice(p.a.code(0, 0, index * 16 + i)),
              y = support::e2m1_twice(p.b.code(0, 0, index * 16 + i));
    // Quarters times 64ths of 2^exponent, which is at least -12.
    const int64_t product = int64_t(x * y * eighths_a * eighths_b) << (block.exponent + 12);
    block.group[i / 4] += product;
    if (product == 0) continue;
    const int exponent = block.exponent + raw_of(x) + raw_of(y);
    block.product = block.any ? std::max(block.product, exponent) : exponent;
    block.any = true;
  }
  return block;
}

int exponent_of(int64_t units) {
  return units == 0 ? -126 : int(std::bit_width(uint64_t(std::abs(units)))) - 1 + kUnit;
}

int64_t truncated(int64_t units, int quantum) {
  return quantum <= kUnit
             ? units
             : units / (int64_t(1) << (quantum - kUnit)) * (int64_t(1) << (quantum - kUnit));
}

int64_t add_blocks(const Block* blocks, int64_t c, Model model) {
  int largest = exponent_of(c);
  for (int g = 0; g < 4; ++g)
    if (model == zero_raises || blocks[g].sum() != 0)
      largest = std::max(largest, blocks[g].exponent);
  int64_t sum = truncated(c, largest - 35);
  for (int g = 0; g < 4; ++g) sum += truncated(blocks[g].sum(), largest - 35);
  return sum;
}

int64_t add_groups(const Block* blocks, int64_t c) {
  int product = -1000, scale = -1000;
  for (int g = 0; g < 4; ++g) {
    if (!blocks[g].any) continue;
    product = std::max(product, blocks[g].product);
    scale = std::max(scale, blocks[g].exponent);
  }
  const bool by_c = c != 0 && exponent_of(c) >= product;
  const int quantum = (by_c ? exponent_of(c) : scale) - 35;
  int64_t sum = truncated(c, quantum);
  for (int g = 0; g < 4; ++g) {
    if (by_c) sum += truncated(blocks[g].sum(), quantum);
    for (int i = 0; i < 4 && !by_c; ++i) sum += truncated(blocks[g].group[i], quantum);
  }
  return sum;
}

// The steps of one element of D, in their order.
double accumulated(const Problem& p, Model model) {
  int64_t c = 0;
  for (int64_t first = 0; first < p.k / 16; first += 4) {
    Block blocks[4];
    for (int64_t g = 0; g < 4; ++g) blocks[g] = block_of(p, first + g);
    c = model == groups ? add_groups(blocks, c) : add_blocks(blocks, c, model);
    c = truncated(c, exponent_of(c) - 23);  // fp32
  }
  return std::ldexp(double(c), kUnit);
}

struct Judged {
  double error, ratio;
};

Judged judge(const Problem& p, Model model) {
  support::Sum sum;
  support::for_each_sum(p, [&](int64_t, int64_t, int64_t, const support::Sum& s) { sum = s; });
  const double error = std::abs(accumulated(p, model) - sum.exact);
  return {error, error / support::accumulation_bound(sum, p.k, 100)};
}

Problem zeros(int64_t k) {
  Problem p = support::make_problem({1, 1, k}, support::Data::exact, 1);
  for (Operand* o : {&p.a, &p.b}) {
    for (int64_t i = 0; i < k; ++i) o->set_code(0, 0, i, 0);
    for (int64_t block = 0; block < k / 16; ++block) o->set_scale(0, 0, block, 0x38);
  }
  return p;
}

void set_both(Problem& p, int64_t k, uint8_t a, uint8_t b) {
  p.a.set_code(0, 0, k, a);
  p.b.set_code(0, 0, k, b);
}

void set_scales(Problem& p, int64_t block, uint8_t scale) {
  p.a.set_scale(0, 0, block, scale);
  p.b.set_scale(0, 0, block, scale);
}

// 2^20, whose last bit is 2^-3, and then 31.75 * 2^-8 in every step, which is lost.
Problem truncating(int64_t steps) {
  Problem p = zeros(64 * steps);
  set_both(p, 0, 6, 6);
  set_scales(p, 0, 0x78);
  for (int64_t step = 1; step < steps; ++step) {
    set_scales(p, 4 * step, 0x18);
    const uint8_t codes[4][2] = {{7, 6}, {7, 2}, {5, 1}, {1, 1}};  // 24 + 6 + 3/2 + 1/4
    for (int64_t i = 0; i < 4; ++i) set_both(p, 64 * step + i, codes[i][0], codes[i][1]);
  }
  return p;
}

// In each step three products of 2^-20, and a block of zeros under scales of 256.
Problem raised(int64_t steps) {
  Problem p = zeros(64 * steps);
  for (int64_t step = 0; step < steps; ++step) {
    set_scales(p, 4 * step, 0x78);
    for (int64_t g = 1; g < 4; ++g) {
      set_scales(p, 4 * step + g, 0x01);
      set_both(p, 64 * step + 16 * g, 1, 1);
    }
  }
  return p;
}

// Scales at both ends of their range, blocks of zeros, products that cancel.
Problem at_the_edges(Random& random) {
  const int64_t k = int64_t(64) * (1 + random.below(24));
  Problem p = support::make_problem({1, 1, k}, support::Data::random, random.next());
  for (int64_t block = 0; block < k / 16; ++block) {
    const bool large = random.below(4) == 0;
    for (Operand* o : {&p.a, &p.b})
      o->set_scale(0, 0, block, uint8_t(large ? 0x78 + random.below(7) : 1 + random.below(20)));
    const uint32_t kind = random.below(3);
    if (kind == 2 && !large) continue;
    for (int64_t i = block * 16; i < block * 16 + 16; ++i) {
      if (kind == 0) p.a.set_code(0, 0, i, 0);
      if (kind == 1) set_both(p, i, uint8_t(i % 2 ? 12 : 4), 3);
    }
  }
  return p;
}

}  // namespace

TEST_CASE("the models of 10.x stay inside their bound at the edges of the scales", "[bound]") {
  Random random(41);
  double largest = 0;
  for (int i = 0; i < 1500; ++i) {
    const Problem p = at_the_edges(random);
    for (const Model model : {groups, zero_raises, zero_rests}) {
      CAPTURE(i, int(model), p.k);
      const double ratio = judge(p, model).ratio;
      REQUIRE(ratio <= 1);
      largest = std::max(largest, ratio);
    }
  }
  CAPTURE(largest);
  CHECK(largest > 0.1);  // the sums were inexact
}

TEST_CASE("the worst sums found for 10.x are more than half of the bound in each of its terms",
          "[bound]") {
  for (const Model model : {groups, zero_raises, zero_rests}) {
    CAPTURE(int(model));
    const Judged truncated = judge(truncating(256), model);
    CHECK(truncated.ratio > 0.97);
    CHECK(truncated.ratio <= 1);
    const Judged zero = judge(raised(16), model);
    if (model == zero_raises) {
      CHECK(zero.ratio > 0.74);
      CHECK(zero.ratio <= 1);
    } else {
      CHECK(zero.error == 0);
    }
  }
}
