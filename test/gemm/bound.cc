// SPDX-License-Identifier: MIT
// Data whose sums are not exact: every element inside the bound that the header states, and inside
// rtol = atol = 1e-3 of the reference.
#include "gemm/gpu.h"

using support::BoundVerdict;
using support::Data;
using support::make_problem;
using support::Problem;

namespace {

void require_inside(const Problem& p, const std::vector<uint16_t>& d) {
  const BoundVerdict v = support::compare_bound(p, d, support::reference(p));
  INFO(to_string(p.shape) << ": error / bound at most " << v.largest_ratio << "; "
                          << v.first_outside);
  REQUIRE(v.passed());
  REQUIRE(v.total == p.shape.l * p.shape.m * p.shape.n);
}

}  // namespace

TEST_CASE("random scales stay inside the bound", "[bound]") {
  USE_GPU(gpu);
  const support::Shape shape = GENERATE(
      support::Shape{128, 256, 256}, support::Shape{65, 129, 2048}, support::Shape{128, 512, 7168},
      support::Shape{200, 136, 16384}, support::Shape{7, 300, 320, 3});
  const Problem p = make_problem(shape, Data::random, 50);
  require_inside(p, support::run_on_device(gpu.driver, p));
}

TEST_CASE("the reference itself is inside the bound", "[bound][reference]") {
  const support::Shape shape =
      GENERATE(support::Shape{65, 129, 320}, support::Shape{16, 40, 16384, 2});
  const Problem p = make_problem(shape, Data::random, 51);
  require_inside(p, support::reference(p));
}

TEST_CASE("on exact data the reference is the double sum, rounded", "[bound][reference]") {
  const Problem p = make_problem({65, 129, 1024}, GENERATE(Data::exact, Data::gpumode), 52);
  REQUIRE(support::sums_are_exact(p));
  require_inside(p, support::reference(p));
}

TEST_CASE("the bound sees one wrong scale", "[bound][self-test]") {
  Problem p = make_problem({16, 40, 2048}, Data::random, 53);
  const std::vector<uint16_t> wrong = [&] {
    Problem other = p;
    other.a.set_scale(0, 3, 100, uint8_t(p.a.scale(0, 3, 100) ^ 0x40));
    return support::reference(other);
  }();
  CHECK_FALSE(support::compare_bound(p, wrong, support::reference(p)).passed());
}
