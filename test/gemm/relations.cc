// SPDX-License-Identifier: MIT
// Metamorphic relations: two runs of the kernel compared with each other, so that no reference can
// be wrong together with it.
#include <cstring>
#include <numeric>

#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/formats.h"

using support::Operand;

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

// On 9.0 the steps of the tensor core take others of the sixteen together, so sums are exact there.
TEST_CASE("the order inside a block of 16 does not matter", "[relation][R4]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, gpu.info.major == 9 ? Data::exact : Data::random, 46);
  const std::vector<uint16_t> before = support::run_on_device(gpu.driver, p);
  for (Operand* o : {&p.a, &p.b}) {
    const Operand from = *o;
    for (int64_t block = 0; block < shape.k / 16; ++block) {
      const std::vector<int64_t> order = permutation(16, uint64_t(block));
      for (int64_t row = 0; row < o->rows; ++row)
        for (int64_t i = 0; i < 16; ++i)
          o->set_code(0, row, block * 16 + i, from.code(0, row, block * 16 + order[size_t(i)]));
    }
  }
  CHECK(support::run_on_device(gpu.driver, p) == before);
}

namespace {

// The sums themselves.
std::vector<float> sums(const gemm_test::Gpu& gpu, const Problem& p,
                        const std::vector<float>* addend = nullptr) {
  support::Fields f;
  f.d_type = NVFP4_TYPE_F32;
  if (addend != nullptr) f.c_type = NVFP4_TYPE_F32, f.beta = 1;
  support::Problem general = support::with_fields(p, f, 1);
  if (addend != nullptr) std::memcpy(general.c.data(), addend->data(), general.c.size());
  const support::DeviceGemm gemm(gpu.driver, general);
  const nvfp4_status status = nvfp4_gemm_run(&gemm.desc, nullptr);
  INFO(nvfp4_last_error());
  REQUIRE(status == NVFP4_SUCCESS);
  const std::vector<uint8_t> bytes = gemm.d_bytes();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Columns first .. first + k of a problem, or rows of A or B.
Operand part_of(const Operand& o, int64_t row, int64_t rows, int64_t first, int64_t k) {
  const Problem shape = make_problem({rows, 1, k});
  Operand out = shape.a;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < k; ++j) out.set_code(0, i, j, o.code(0, row + i, first + j));
    for (int64_t b = 0; b < k / 16; ++b)
      out.set_scale(0, i, b, o.scale(0, row + i, first / 16 + b));
  }
  return out;
}
Problem part_of(const Problem& p, int64_t m, int64_t n, int64_t first, int64_t k) {
  Problem out = make_problem({m, n, k});
  out.a = part_of(p.a, 0, m, first, k), out.b = part_of(p.b, 0, n, first, k);
  return out;
}

}  // namespace

TEST_CASE("doubling a row's scale of one block doubles that block's part alone", "[relation][R6]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::exact, 47), block = p;
  const int64_t row = 5, at = 18;
  block.a.codes.assign(block.a.codes.size(), 0);
  for (int64_t i = 0; i < 16; ++i)
    block.a.set_code(0, row, at * 16 + i, p.a.code(0, row, at * 16 + i));
  const std::vector<float> before = sums(gpu, p), alone = sums(gpu, block);
  p.a.set_scale(0, row, at, uint8_t(p.a.scale(0, row, at) + 8));  // the next exponent
  const std::vector<float> after = sums(gpu, p);
  size_t wrong = 0, moved = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    wrong += after[i] != before[i] + alone[i];
    moved += after[i] != before[i];
  }
  CHECK(wrong == 0);
  CHECK(moved > size_t(shape.n / 2));
}

namespace {

// 36 values that no two blocks of 16 share within 576 of K: 1 or 1.5 times a power of two that is a
// scale.
struct Mark {
  int64_t number;
  uint8_t code() const { return number < 18 ? 2 : 3; }
  uint8_t scale() const {  // 2^-9 to 2^-7 are subnormal
    const int64_t i = number % 18;
    return uint8_t(i < 3 ? 1 << i : (i - 2) << 3);
  }
  double value() const { return (number < 18 ? 1 : 1.5) * std::ldexp(1.0, int(number % 18) - 9); }
};

Mark mark_of(int64_t block, int64_t row) { return {(block + 5 * row) % 36}; }

void set_block(Operand& o, int64_t row, int64_t block, Mark mark) {
  for (int64_t i = 0; i < 16; ++i) o.set_code(0, row, block * 16 + i, mark.code());
  o.set_scale(0, row, block, mark.scale());
}

}  // namespace

// A column of D has one block of K of its own. What came from another stage, or one k-block too
// early or too late, would be of another block's mark.
TEST_CASE("each block of K meets itself by the fingerprint in D", "[relation][R9]") {
  USE_GPU(gpu);
  const int64_t m = 9, blocks = 148, n = blocks;  // 37 steps of 64: rings wrap
  Problem p = make_problem({m, n, 16 * blocks});
  p.variant = gpu.small() ? nullptr : EACH_VARIANT;
  p.b.codes.assign(p.b.codes.size(), 0);
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t row = 0; row < m; ++row) set_block(p.a, row, block, mark_of(block, row));
    set_block(p.b, block, block, mark_of(block, 1));
  }
  const std::vector<float> d = sums(gpu, p);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t block = 0; block < blocks; ++block) {
      CAPTURE(row, block);
      REQUIRE(double(d[size_t(row * n + block)]) ==
              16 * mark_of(block, row).value() * mark_of(block, 1).value());
    }
  }
}

TEST_CASE("a product in two halves of K with the first as C of the second is the whole",
          "[relation][R11]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  const Problem p = make_problem(shape, Data::exact, 48);
  const int64_t first = 272;
  const std::vector<float> half = sums(gpu, part_of(p, shape.m, shape.n, 0, first));
  CHECK(sums(gpu, part_of(p, shape.m, shape.n, first, shape.k - first), &half) == sums(gpu, p));
}

TEST_CASE("a problem is its first rows and columns with others beside them", "[relation][R11]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  const Problem p = make_problem(shape, Data::exact, 49);
  const int64_t m = shape.m - 3, n = 70;
  const std::vector<float> whole = sums(gpu, p), part = sums(gpu, part_of(p, m, n, 0, shape.k));
  size_t wrong = 0;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column)
      wrong += whole[size_t(row * shape.n + column)] != part[size_t(row * n + column)];
  CHECK(wrong == 0);
}

TEST_CASE("a block under a scale of 0 is as if it were not there", "[relation][R12]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  Problem p = make_problem(shape, Data::exact, 50);
  for (int64_t row = 0; row < shape.m; ++row)
    for (int64_t block = 28; block < 36; ++block) p.a.set_scale(0, row, block, 0);
  CHECK(sums(gpu, p) == sums(gpu, part_of(p, shape.m, shape.n, 0, 448)));
}

TEST_CASE("B times A is D by columns", "[relation][R13]") {
  USE_GPU(gpu);
  const support::Shape shape = shape_on(gpu);
  const Problem p = make_problem(shape, Data::exact, 51);
  Problem turned = make_problem({shape.n, shape.m, shape.k});
  turned.a = p.b, turned.b = p.a;
  const std::vector<float> d = sums(gpu, p), transposed = sums(gpu, turned);
  size_t wrong = 0;
  for (int64_t row = 0; row < shape.m; ++row)
    for (int64_t column = 0; column < shape.n; ++column)
      wrong += d[size_t(row * shape.n + column)] != transposed[size_t(column * shape.m + row)];
  CHECK(wrong == 0);
}

TEST_CASE("batches have the bits of their problems one by one with gaps and without",
          "[relation][R15][R16]") {
  USE_GPU(gpu);
  support::Shape shape = shape_on(gpu);
  shape.m = 17, shape.l = 3;
  support::Gaps gaps;
  gaps.a_ld = 64, gaps.b_ld = 32, gaps.a_batch = 32, gaps.scales_batch_bytes = 48;
  const Problem p = make_problem(shape, Data::random, 52, gaps);
  const std::vector<float> d = sums(gpu, p);
  for (int64_t batch = 0; batch < shape.l; ++batch) {
    Problem one = make_problem({shape.m, shape.n, shape.k});
    for (const bool of_a : {true, false}) {
      const Operand& from = of_a ? p.a : p.b;
      Operand& to = of_a ? one.a : one.b;
      for (int64_t row = 0; row < from.rows; ++row) {
        for (int64_t k = 0; k < shape.k; ++k) to.set_code(0, row, k, from.code(batch, row, k));
        for (int64_t b = 0; b < shape.k / 16; ++b)
          to.set_scale(0, row, b, from.scale(batch, row, b));
      }
    }
    // The planner might split another number of CTAs along K for a third of the tiles.
    if (gpu.info.major == 9) one.variant = "sm90_64x32x256";
    Problem all = p;
    all.variant = one.variant;
    const std::vector<float> of_all = one.variant == nullptr ? d : sums(gpu, all);
    const auto first = of_all.begin() + batch * shape.m * shape.n;
    const std::vector<float> alone = sums(gpu, one);
    CAPTURE(batch);
    if (gpu.info.major == 9) {
      CHECK(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, one).desc) ==
            gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, all).desc));
    }
    CHECK(std::equal(alone.begin(), alone.end(), first));
  }
}
