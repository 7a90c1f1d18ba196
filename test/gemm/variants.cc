// SPDX-License-Identifier: MIT
// The variants beside each other: a tile's width decides who computes an element, not its value: on
// 9.0 up to the order of additions.
#include <set>

#include "test/gemm/gpu.h"

// Random scales: another order of summation would round differently.
#define SOME_SHAPES                                                        \
  GENERATE(support::Shape{128, 256, 4096}, support::Shape{300, 130, 2112}, \
           support::Shape{65, 129, 640, 3}, support::Shape{1, 1, 64})

TEST_CASE("each variant of 10.x gives a whole K the same bits and the planner's choice has those",
          "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const support::Shape shape = SOME_SHAPES;
  Problem problem = make_problem(shape, Data::random, 70);
  problem.batch_invariant = true;  // else a split of K, which differs by variant
  std::set<std::vector<uint16_t>> bits;
  for (const char* variant : gemm_test::variants())
    bits.insert(support::run_on_device(gpu.driver, forced(variant, problem)));
  CAPTURE(support::to_string(shape));
  CHECK(bits.size() == 1);
  CHECK(bits.count(support::run_on_device(gpu.driver, problem)) == 1);
}

TEST_CASE("what the planner of 9.0 chooses is inside the bound and has the same bits again",
          "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  support::Shape shape = SOME_SHAPES;
  if (gpu.small()) shape.m = (shape.m + 14) / 15, shape.n = std::min<int64_t>(shape.n, 72);
  const Problem problem = make_problem(shape, Data::random, 70);
  CAPTURE(support::to_string(shape));
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, problem);
  CHECK(gemm_test::inside_bound(gpu, problem, d));
  CHECK(support::run_on_device(gpu.driver, problem) == d);
}

TEST_CASE("a tile of 64 tokens reads its half of the scale block", "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  // Tokens 64 to 127 and 192 to 199 are odd tiles.
  const support::Shape shape = GENERATE(support::Shape{64, 128, 256}, support::Shape{128, 128, 256},
                                        support::Shape{200, 130, 576});
  gemm_test::require_reference_bits(
      gpu, forced("sm100_128x64x256", make_problem(shape, Data::exact, 71)));
}

TEST_CASE("a pair of 256 tokens reads two scale blocks", "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const support::Shape shape =
      GENERATE(support::Shape{256, 128, 256}, support::Shape{300, 130, 576},
               support::Shape{128, 128, 256}, support::Shape{385, 1, 64, 2});
  gemm_test::require_reference_bits(
      gpu, forced("sm100_256x256x256", make_problem(shape, Data::exact, 72)));
}

TEST_CASE("no scale beyond the last block is read", "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  // Two tiles of tokens have their scales in one block. Without guards, memory ends with it: the
  // emulator faults on the byte after it.
  const Problem problem = forced("sm100_128x64x256", make_problem({100, 40, 320}, Data::exact, 73));
  support::DeviceGemm gemm(gpu.driver, problem);
  const std::vector<uint8_t> scales = problem.a.interleaved_scales(0x7F);
  CUdeviceptr exact = 0;
  gpu.driver.check(gpu.driver.cuMemAlloc(&exact, scales.size()), "cuMemAlloc");
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(exact, scales.data(), scales.size()), "cuMemcpyHtoD");
  gemm.desc.a_scales = reinterpret_cast<void*>(exact);
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
  gpu.driver.check(gpu.driver.cuMemFree(exact), "cuMemFree");
}
