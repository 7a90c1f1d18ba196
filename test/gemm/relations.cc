// SPDX-License-Identifier: MIT
// Metamorphic relations: two runs of the kernel compared with each other, so that no reference can
// be wrong together with it.
#include <numeric>

#include "test/gemm/gpu.h"
#include "tools/harness/formats.h"

using support::Data;
using support::make_problem;
using support::Operand;
using support::Problem;

namespace {

support::Shape shape_on(const gemm_test::Gpu& gpu) { return {gpu.sized(200, 50), 136, 576}; }

std::vector<int64_t> permutation(int64_t count, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  support::Random random(seed);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(uint32_t(i))]);
  return order;
}

Operand permute_rows(const Operand& o, const std::vector<int64_t>& order) {
  Operand out = o;
  for (int64_t row = 0; row < o.rows; ++row) {
    const int64_t from = order[size_t(row)];
    for (int64_t k = 0; k < o.k; ++k) out.set_code(0, row, k, o.code(0, from, k));
    for (int64_t b = 0; b < o.k / 16; ++b) out.set_scale(0, row, b, o.scale(0, from, b));
  }
  return out;
}

// Steps of 64 along K change places; both operands take the same order.
Operand permute_steps(const Operand& o, const std::vector<int64_t>& order) {
  Operand out = o;
  for (int64_t row = 0; row < o.rows; ++row) {
    for (int64_t k = 0; k < o.k; ++k) {
      out.set_code(0, row, k, o.code(0, row, order[size_t(k / 64)] * 64 + k % 64));
    }
    for (int64_t b = 0; b < o.k / 16; ++b) {
      out.set_scale(0, row, b, o.scale(0, row, order[size_t(b / 4)] * 4 + b % 4));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("permuting the rows of A permutes the rows of D", "[relation][R1]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::random, 40);
  const std::vector<uint16_t> before = support::run_on_device(gpu.driver, p);
  const std::vector<int64_t> order = permutation(shape.m, 1);
  p.a = permute_rows(p.a, order);
  const std::vector<uint16_t> after = support::run_on_device(gpu.driver, p);
  for (int64_t row = 0; row < shape.m; ++row) {
    const auto want = before.begin() + order[size_t(row)] * shape.n;
    CAPTURE(row);
    REQUIRE(std::equal(want, want + shape.n, after.begin() + row * shape.n));
  }
}

TEST_CASE("permuting the rows of B permutes the columns of D", "[relation][R2]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::random, 41);
  const std::vector<uint16_t> before = support::run_on_device(gpu.driver, p);
  const std::vector<int64_t> order = permutation(shape.n, 2);
  p.b = permute_rows(p.b, order);
  const std::vector<uint16_t> after = support::run_on_device(gpu.driver, p);
  for (int64_t row = 0; row < shape.m; ++row) {
    for (int64_t column = 0; column < shape.n; ++column) {
      CAPTURE(row, column);
      const size_t first = size_t(row * shape.n);
      REQUIRE(after[first + size_t(column)] == before[first + size_t(order[size_t(column)])]);
    }
  }
}

TEST_CASE("the order of the 64-steps does not matter where sums are exact", "[relation][R3]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::exact, 42);
  const std::vector<uint16_t> before = support::run_on_device(gpu.driver, p);
  const std::vector<int64_t> order = permutation(shape.k / 64, 3);
  p.a = permute_steps(p.a, order);
  p.b = permute_steps(p.b, order);
  CHECK(support::run_on_device(gpu.driver, p) == before);
}

TEST_CASE("doubling every scale of one operand doubles D", "[relation][R5]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::exact, 43);
  const bool of_a = GENERATE(true, false);
  const std::vector<uint16_t> before = support::run_on_device(gpu.driver, p);
  for (uint8_t& byte : (of_a ? p.a : p.b).scales) {
    if (byte) byte = uint8_t(byte + 8);  // the next exponent
  }
  const std::vector<uint16_t> after = support::run_on_device(gpu.driver, p);
  for (size_t i = 0; i < before.size(); ++i) {
    CAPTURE(i);
    REQUIRE(support::f16_value(after[i]) == 2 * support::f16_value(before[i]));
  }
}

TEST_CASE("results of disjoint halves of A add up", "[relation][R10]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  // Small enough that D itself is exact in fp16: scales 1, codes +-1, |sum| <= K.
  Problem whole = make_problem(shape);
  support::Random random(44);
  for (Operand* o : {&whole.a, &whole.b}) {
    for (uint8_t& byte : o->codes)
      byte = uint8_t(0x22 | random.below(2) << 3 | random.below(2) << 7);
    o->scales.assign(o->scales.size(), 0x38);
  }
  Problem even = whole, odd = whole;
  for (int64_t row = 0; row < shape.m; ++row) {
    for (int64_t k = 0; k < shape.k; ++k) ((k / 64 + k) % 2 ? even : odd).a.set_code(0, row, k, 0);
  }
  const std::vector<uint16_t> sum = support::run_on_device(gpu.driver, whole);
  const std::vector<uint16_t> first = support::run_on_device(gpu.driver, even);
  const std::vector<uint16_t> second = support::run_on_device(gpu.driver, odd);
  for (size_t i = 0; i < sum.size(); ++i) {
    CAPTURE(i);
    REQUIRE(support::f16_value(sum[i]) ==
            support::f16_value(first[i]) + support::f16_value(second[i]));
  }
}

TEST_CASE("flipping the sign of A flips the sign of D", "[relation][R14]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::random, 45);
  const std::vector<uint16_t> before = support::run_on_device(gpu.driver, p);
  for (uint8_t& byte : p.a.codes) byte ^= 0x88;
  const std::vector<uint16_t> after = support::run_on_device(gpu.driver, p);
  for (size_t i = 0; i < before.size(); ++i) {
    CAPTURE(i);
    const bool zero = (before[i] & 0x7FFF) == 0;  // a sum that cancels is +0 either way
    REQUIRE((zero ? after[i] & 0x7FFF : after[i]) == (zero ? 0 : before[i] ^ 0x8000));
  }
}
