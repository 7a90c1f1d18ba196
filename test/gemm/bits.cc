// SPDX-License-Identifier: MIT
// Where sums are exact, one problem has the same bits on every device and from the reference: each
// is compared with the hash committed here, on 10.0, 10.3 and 9.0, emulated or real.
#include "test/gemm/gpu.h"

using support::Data;
using support::Shape;

namespace {

struct Row {
  Shape shape;
  Data data;
  uint64_t seed, hash;
};
const Row kRows[] = {
    {{1, 128, 256}, Data::exact, 1, 0x92450BA0C1DA3AE5},
    {{16, 200, 7168}, Data::exact, 2, 0x2751DBDA1BD1D892},
    {{64, 130, 1088}, Data::gpumode, 3, 0x2EA82AA5CF9ACF5A},
    {{128, 136, 832}, Data::exact, 4, 0xB49345290F72E7F6},
    {{33, 129, 320, 3}, Data::gpumode, 5, 0x71F276F1AD9B4D53},
    {{300, 72, 64}, Data::exact, 6, 0x6C67232E872809AF},
};

// FNV-1a of the elements' bytes, low byte first.
uint64_t hash(const std::vector<uint16_t>& d) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const uint16_t element : d) {
    h = (h ^ (element & 0xFF)) * 0x100000001B3u;
    h = (h ^ (element >> 8)) * 0x100000001B3u;
  }
  return h;
}

}  // namespace

TEST_CASE("exact sums have the committed bits on every device", "[bits]") {
  USE_GPU(gpu);
  for (const Row& row : kRows) {
    CAPTURE(support::to_string(row.shape));
    const support::Problem problem = support::make_problem(row.shape, row.data, row.seed);
    REQUIRE(support::sums_are_exact(problem));
    CHECK(hash(support::run_on_device(gpu.driver, problem)) == row.hash);
  }
}

TEST_CASE("exact sums have the committed bits from the reference", "[bits][reference]") {
  for (const Row& row : kRows) {
    CAPTURE(support::to_string(row.shape));
    CHECK(hash(support::reference(support::make_problem(row.shape, row.data, row.seed))) ==
          row.hash);
  }
}
