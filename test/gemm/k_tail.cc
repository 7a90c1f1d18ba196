// SPDX-License-Identifier: MIT
// K that is a multiple of 16 and not of 64: the last step of 64 ends early, and what the caller
// keeps beside it, codes and scales, takes no part.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

namespace {

// One k-block and several, an incomplete one of one step and of four, more than the ring has
// stages.
const int64_t kWithTail[] = {16, 32, 48, 80, 112, 144, 208, 240, 272, 304, 496, 528, 1040, 2288};

// Codes of the gap are 0xFF: two elements of -6.
Problem with_codes_beyond_k(const Shape& shape, Data data, uint64_t seed) {
  support::Gaps gaps;
  gaps.a_ld = gaps.b_ld = 64;
  return make_problem(shape, data, seed, gaps);
}

}  // namespace

TEST_CASE("K is any multiple of 16 whatever lies beyond it", "[shapes][poison]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  size_t number = 0;
  for (const int64_t k : kWithTail) {
    if (gpu.small() && k > 528) return;
    if (!gemm_test::takes(gpu, variant, number++, 2)) continue;
    CAPTURE(variant, k);
    const Shape shape = gpu.sized<Shape>({69, 131, k}, {5, 70, k});
    for (const int poison : {0x7F, 0xFF, 0x7E}) {
      if (poison != 0x7F && k != 48 && k != 272) continue;
      gemm_test::require_reference_bits(
          gpu, forced(variant, with_codes_beyond_k(shape, Data::exact, uint64_t(k))),
          uint8_t(poison));
    }
  }
}

TEST_CASE("batches and tiles and parts of K that end in a cut step", "[shapes][poison]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(1);
  const int64_t k = GENERATE(176, 1072, 4112);
  if (gpu.small() && k > 1072) return;
  CAPTURE(variant, k);
  const Shape shape = gpu.sized<Shape>({130, 136, k, 2}, {9, 70, k, 2});
  gemm_test::require_reference_bits(
      gpu, forced(variant, with_codes_beyond_k(shape, Data::exact, 7)), 0x7F);
}

TEST_CASE("the planner's choice takes a cut K with early weights or without", "[shapes][pdl]") {
  USE_GPU(gpu);
  const int64_t m = GENERATE(1, 2, 4, 8, 16, 33);
  const int32_t pdl = GENERATE(int32_t(NVFP4_PDL_OFF), int32_t(NVFP4_PDL_ON_STATIC_WEIGHTS));
  for (const int64_t k : {48, 528, 1200}) {
    // On an emulated Hopper each K both ways, with other M.
    const bool turn = (m % 3 + k % 7) % 2 == (pdl == NVFP4_PDL_OFF);
    if (gpu.small() && !gemm_test::everything() && turn) continue;
    CAPTURE(m, k, pdl);
    Problem problem = with_codes_beyond_k({m, gpu.sized(192, 72), k}, Data::exact, 3);
    problem.pdl = pdl;
    gemm_test::require_reference_bits(gpu, problem, 0xFF);
  }
}

// The NaN of a scale within K is one, also of the last block.
TEST_CASE("a NaN scale of a cut step makes NaN of its row and of nothing else", "[layout][nan]") {
  USE_GPU(gpu);
  const int64_t k = GENERATE(16, 48, 304);
  Problem p = forced(SOME_VARIANTS(2), with_codes_beyond_k({7, 67, k}, Data::exact, 9));
  const std::vector<uint16_t> clean = support::reference(p);
  p.a.set_scale(0, 5, k / 16 - 1, 0x7F);
  p.b.set_scale(0, 66, k / 16 - 1, 0x7F);
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p, 0xFF);
  for (int64_t row = 0; row < 7; ++row) {
    for (int64_t column = 0; column < 67; ++column) {
      CAPTURE(k, row, column);
      const size_t i = size_t(row * 67 + column);
      REQUIRE(d[i] == (row == 5 || column == 66 ? 0x7FFF : clean[i]));
    }
  }
}
