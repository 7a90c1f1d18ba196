// SPDX-License-Identifier: MIT
// Where the operands lie: leading dimensions, batches with gaps, repeated batches; and that nothing
// outside the described elements is read into the result or written. run_on_device checks guards,
// gaps and inputs every time.
#include <array>

#include "test/gemm/sizes.h"

using gemm_test::few_tokens;
using gemm_test::takes;
using support::Gaps;

TEST_CASE("odd leading dimensions of D are stored element by element", "[layout]") {
  USE_GPU(gpu);
  Gaps gaps;
  const char* variant = SOME_VARIANTS(0);
  const size_t turn = GENERATE(range(0, 8));
  if (!takes(gpu, variant, turn, 2)) return;
  gaps.d_ld = std::array{1, 3, 4, 5, 7, 8, 64, 1001}[turn];
  const int64_t m = few_tokens(gpu, variant, gpu.sized(130, 20));
  gemm_test::require_reference_bits(
      gpu, forced(variant, make_problem({m, 136, 320}, Data::exact, 3, gaps)));
}

TEST_CASE("leading dimensions of A and B may exceed K", "[layout]") {
  USE_GPU(gpu);
  Gaps gaps;
  const char* variant = SOME_VARIANTS(1);
  const size_t turn = GENERATE(range(0, 9));
  if (!takes(gpu, variant, turn / 3 + turn % 3, 3)) return;
  gaps.a_ld = std::array{32, 96, 4096}[turn / 3];
  gaps.b_ld = std::array{0, 64, 160}[turn % 3];
  const int64_t m = few_tokens(gpu, variant, 65);
  gemm_test::require_reference_bits(
      gpu, forced(variant, make_problem({m, 200, 192}, Data::exact, 4, gaps)));
}

TEST_CASE("three batches with gaps between everything", "[layout][batch]") {
  USE_GPU(gpu);
  Gaps gaps;
  gaps.a_ld = 32, gaps.b_ld = 64, gaps.d_ld = 5;
  gaps.a_batch = 96, gaps.b_batch = 32 * 101, gaps.d_batch = 13;
  gaps.scales_batch_bytes = 16 * 33;
  const char* variant = SOME_VARIANTS(2);
  support::Shape shape = GENERATE(support::Shape{128, 256, 256, 3}, support::Shape{65, 129, 320, 3},
                                  support::Shape{7, 300, 64, 3});
  shape.m = few_tokens(gpu, variant, shape.m);
  gemm_test::require_reference_bits(gpu,
                                    forced(variant, make_problem(shape, Data::exact, 5, gaps)));
}

TEST_CASE("batches of D may interleave row by row", "[layout][batch]") {
  USE_GPU(gpu);
  Problem p = make_problem({65, 40, 128, 3}, Data::exact, 6);
  p.d_batch_stride = 40;
  p.d_ld = 3 * 40;
  gemm_test::require_reference_bits(gpu, p);
}

TEST_CASE("a batch stride of 0 repeats the weights", "[layout][batch]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(3);
  const int64_t m = few_tokens(gpu, variant, 65);
  Problem p = forced(variant, make_problem({m, 129, 192, 3}, Data::exact, 7));
  support::DeviceGemm gemm(gpu.driver, p);
  gemm.desc.b_batch_stride = 0;
  gemm.desc.b_scales_batch_stride_bytes = 0;
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  for (int64_t batch = 1; batch < 3; ++batch) {
    for (int64_t row = 0; row < p.b.rows; ++row) {
      for (int64_t k = 0; k < p.b.k; ++k) p.b.set_code(batch, row, k, p.b.code(0, row, k));
      for (int64_t s = 0; s < p.b.k / 16; ++s) p.b.set_scale(batch, row, s, p.b.scale(0, row, s));
    }
  }
  require_bits(p, gemm);
}

TEST_CASE("padding of the scales never reaches D whatever it holds", "[layout][poison]") {
  USE_GPU(gpu);
  // 0x7F and 0xFF are NaN; 0x7E is 448, which would move the exponent of a sum; 0 is what a user
  // who clears the buffer has.
  const char* variant = SOME_VARIANTS(4);
  const int poison = GENERATE(0x00, 0x7E, 0x7F, 0xFF);
  support::Shape shape = GENERATE(support::Shape{1, 1, 64}, support::Shape{65, 129, 64},
                                  support::Shape{129, 200, 320});
  if (gpu.small()) shape.m = few_tokens(gpu, variant, (shape.m + 7) / 8);
  gemm_test::require_reference_bits(gpu, forced(variant, make_problem(shape, Data::exact, 8)),
                                    uint8_t(poison));
}

TEST_CASE("a NaN scale makes NaN of what uses it and of nothing else", "[layout][nan]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(5);
  const int64_t m = std::max<int64_t>(few_tokens(gpu, variant, 65), 6);
  Problem p = forced(variant, make_problem({m, 129, 320}, Data::exact, 9));
  const std::vector<uint16_t> clean = support::reference(p);
  p.a.set_scale(0, 5, 19, 0x7F);
  p.b.set_scale(0, 128, 0, 0x7F);
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < 129; ++column) {
      const size_t i = size_t(row * 129 + column);
      const bool poisoned = row == 5 || column == 128;
      CAPTURE(row, column);
      REQUIRE(d[i] == (poisoned ? 0x7FFF : clean[i]));
    }
  }
}
