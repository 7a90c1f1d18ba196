// SPDX-License-Identifier: MIT
// The variants beside each other: a tile's width decides who computes an element, not its value: on
// 9.0 up to the order of additions.
#include <set>

#include "test/gemm/gpu.h"

using gemm_test::forced;
using support::Data;
using support::make_problem;
using support::Problem;

namespace {

// The line "variant   sm90_64x4x256" of explain.
std::string planned_variant(const gemm_test::Gpu& gpu, const Problem& problem) {
  const nvfp4_gemm_desc desc = support::make_desc(problem, NVFP4_SCALE_LAYOUT_128X4);
  std::string text(8192, 0);
  REQUIRE(nvfp4_gemm_explain(&desc, gpu.info.compute_capability(), gpu.info.sms, text.data(),
                             text.size()) == NVFP4_SUCCESS);
  const std::string key = "\nvariant   ";
  const size_t at = text.find(key) + key.size();
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("each variant of 10.x gives a whole K the same bits, and the planner's choice has those",
          "[variant]") {
  USE_GPU(gpu);
  // Random scales: another order of summation would round differently.
  support::Shape shape = GENERATE(support::Shape{128, 256, 4096}, support::Shape{300, 130, 2112},
                                  support::Shape{65, 129, 640, 3}, support::Shape{1, 1, 64});
  if (gpu.small()) shape.m = (shape.m + 14) / 15;
  Problem problem = make_problem(shape, Data::random, 70);
  problem.batch_invariant = gpu.info.major == 10;  // else a cut of K, which differs by variant
  std::set<std::vector<uint16_t>> bits;
  CAPTURE(support::to_string(shape));
  if (gpu.info.major == 9) {  // a tile decides the order of additions, its split among it
    const std::string chosen = planned_variant(gpu, problem);
    CAPTURE(chosen);
    bits.insert(support::run_on_device(gpu.driver, forced(chosen.c_str(), problem)));
  } else {
    for (const char* variant : gemm_test::variants())
      bits.insert(support::run_on_device(gpu.driver, forced(variant, problem)));
    CHECK(bits.size() == 1);
  }
  CHECK(bits.count(support::run_on_device(gpu.driver, problem)) == 1);
}

TEST_CASE("a tile of 64 tokens reads its half of the scale block", "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  // Tokens 64 to 127 and 192 to 199 are odd tiles.
  const support::Shape shape = GENERATE(support::Shape{64, 128, 256}, support::Shape{128, 128, 256},
                                        support::Shape{200, 130, 576});
  gemm_test::require_reference_bits(
      gpu, forced("sm100_128x64x256", make_problem(shape, Data::exact, 71)));
}

TEST_CASE("a tile of 256 tokens reads two scale blocks, or the last one twice", "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const support::Shape shape =
      GENERATE(support::Shape{256, 128, 256}, support::Shape{300, 130, 576},
               support::Shape{128, 128, 256}, support::Shape{385, 1, 64, 2});
  gemm_test::require_reference_bits(
      gpu, forced("sm100_128x256x256", make_problem(shape, Data::exact, 72)));
}

TEST_CASE("no scale beyond the last block is read", "[variant]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  // The second block of this tile does not exist. Without guards, memory ends with the first: the
  // emulator faults on the byte after it.
  const Problem problem =
      forced("sm100_128x256x256", make_problem({100, 40, 320}, Data::exact, 73));
  support::DeviceGemm gemm(gpu.driver, problem);
  const std::vector<uint8_t> scales = problem.a.interleaved_scales(0x7F);
  CUdeviceptr exact = 0;
  gpu.driver.check(gpu.driver.cuMemAlloc(&exact, scales.size()), "cuMemAlloc");
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(exact, scales.data(), scales.size()), "cuMemcpyHtoD");
  gemm.desc.a_scales = reinterpret_cast<void*>(exact);
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(support::compare_bits(problem.shape, gemm.d(), support::reference(problem)).passed());
  gpu.driver.check(gpu.driver.cuMemFree(exact), "cuMemFree");
}
