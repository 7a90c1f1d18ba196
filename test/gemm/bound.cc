// SPDX-License-Identifier: MIT
// Data whose sums are not exact: every element inside the bound that the header states, and inside
// rtol = atol = 1e-3 of the reference.
#include "test/gemm/gpu.h"
#include "tools/harness/exact.h"
#include "tools/harness/formats.h"

using support::BoundVerdict;

namespace {

void require_inside(const Problem& p, const std::vector<uint16_t>& d, int capability) {
  const BoundVerdict v = support::compare_bound(p, d, support::reference(p), capability);
  INFO(to_string(p.shape()) << ": error / bound at most " << v.largest_ratio << "; "
                            << v.first_outside);
  REQUIRE(v.passed());
  REQUIRE(v.total == p.l * p.m * p.n);
}

}  // namespace

TEST_CASE("random scales stay inside the bound", "[bound]") {
  USE_GPU(gpu);
  support::Shape shape = GENERATE(support::Shape{128, 256, 256}, support::Shape{65, 129, 2048},
                                  support::Shape{128, 136, 7168}, support::Shape{200, 136, 16384},
                                  support::Shape{7, 300, 320, 3});
  if (gpu.small()) shape.m = (shape.m + 15) / 16, shape.n = std::min<int64_t>(shape.n, 40);
  const Problem p = make_problem(shape, Data::random, 50);
  require_inside(p, support::run_on_device(gpu.driver, p), gpu.info.compute_capability());
}

TEST_CASE("sums under the smallest scales stay inside the bound", "[bound]") {
  USE_GPU(gpu);
  Problem p = make_problem({5, 70, 512}, Data::random, 54);
  for (support::Operand* operand : {&p.a, &p.b})
    for (uint8_t& scale : operand->scales) scale = uint8_t(1 + scale % 7);  // 2^-9 to 7 * 2^-9
  require_inside(p, support::run_on_device(gpu.driver, p), gpu.info.compute_capability());
}

TEST_CASE("the reference itself is inside the bound", "[bound][reference]") {
  const support::Shape shape =
      GENERATE(support::Shape{65, 129, 320}, support::Shape{16, 40, 16384, 2});
  const Problem p = make_problem(shape, Data::random, 51);
  require_inside(p, support::reference(p), GENERATE(100, 90));
}

TEST_CASE("on exact data the reference is the rounded double sum", "[bound][reference]") {
  const Problem p = make_problem({65, 129, 1024}, GENERATE(Data::exact, Data::gpumode), 52);
  REQUIRE(support::sums_are_exact(p));
  require_inside(p, support::reference(p), 100);
}

TEST_CASE("the bound sees one wrong scale", "[bound][self-test]") {
  Problem p = make_problem({16, 40, 2048}, Data::random, 53);
  const std::vector<uint16_t> wrong = [&] {
    Problem other = p;
    other.a.set_scale(0, 3, 100, uint8_t(p.a.scale(0, 3, 100) ^ 0x40));
    return support::reference(other);
  }();
  for (const int capability : {100, 90}) {
    CAPTURE(capability);
    CHECK_FALSE(support::compare_bound(p, wrong, support::reference(p), capability).passed());
  }
}

TEST_CASE("a block of zeros under large scales costs what the model in use says", "[bound]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  Problem p = make_problem({5, 70, 512}, Data::exact, 55);
  for (support::Operand* operand : {&p.a, &p.b})
    for (int64_t row = 0; row < operand->rows; ++row)
      for (int64_t i = 0; i < 512; ++i) {
        // In each step a block of zeros, and three in which one product is 2^-20.
        operand->set_code(0, row, i, i % 64 >= 16 && i % 16 == 0);
        operand->set_scale(0, row, i / 16, i % 64 < 16 ? 0x78 : 0x01);
      }
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  require_inside(p, d, gpu.info.compute_capability());
  const double ratio =
      support::compare_bound(p, d, support::reference(p), gpu.info.compute_capability())
          .largest_ratio;
  const char *model = std::getenv("EMU_MMA_MODEL"), *zero = std::getenv("EMU_MMA_ZERO_GROUP");
  const bool raises = model && model == std::string("blocks") && !(zero && *zero == '0');
  if (gpu.info.emulated())
    CHECK((raises ? ratio > 0.7 : ratio < 0.02));
  else
    WARN("error / bound " << ratio << ": blocks of zeros " << (ratio > 0.5 ? "raise" : "do not"));
}

TEST_CASE("what wgmma cuts worst stays inside the bound of 9.0 and is outside that of 10.x",
          "[bound][sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = EACH_VARIANT;
  const Problem p = forced(variant, support::worst_for_wgmma({9, 70, 256}));
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  const BoundVerdict own = support::compare_bound(p, d, support::reference(p), 90);
  INFO(own.first_outside);
  CHECK(own.total == 9 * 70);
  CHECK(own.outside_bound == 0);
  const BoundVerdict other = support::compare_bound(p, d, support::reference(p), 100);
  if (gemm_test::tile_tokens(variant) <= 4) {
    CHECK(other.outside_bound == 0);  // tiny tiles add in fp32 and cut nothing
    return;
  }
  CHECK(own.largest_ratio > 0.5);
  CHECK(other.outside_bound == own.total);
}

TEST_CASE("a result just beyond the bound is outside and one just within is not",
          "[bound][self-test]") {
  const int capability = GENERATE(100, 90);
  const Problem p = support::worst_for_wgmma({1, 1, 256});
  support::Sum sum;
  support::for_each_sum(p, [&](int64_t, int64_t, int64_t, const support::Sum& s) { sum = s; });
  const double bound = support::error_bound(sum, p.k, p.alpha, capability);
  for (const double sign : {-1.0, 1.0}) {
    const auto judge = [&](double part) {
      const uint16_t d = support::f16_bits(sum.exact + sign * part * bound);
      return support::compare_bound(p, {d}, support::reference(p), capability).outside_bound;
    };
    CHECK(judge(0.98) == 0);
    CHECK(judge(1.02) == 1);
  }
}
