// SPDX-License-Identifier: MIT
// Plans on the device: the bits of a run, other addresses, many threads.
#include <sstream>
#include <thread>

#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

TEST_CASE("a plan gives the bits of a run again and again", "[plan]") {
  USE_GPU(gpu);
  const support::Shape shape{gpu.sized(130, 9), gpu.sized(136, 40), 640, 2};
  const Problem problem = gemm_test::forced(SOME_VARIANTS(0), make_problem(shape, Data::exact, 80));
  const support::DeviceGemm gemm(gpu.driver, problem);
  const support::Plan plan(gemm.desc);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(plan.run() == NVFP4_SUCCESS);
    require_bits(problem, gemm);
  }
}

TEST_CASE("a plan serves other operands at other addresses", "[plan]") {
  USE_GPU(gpu);
  const Problem first = make_problem({gpu.sized(130, 17), 136, 640}, Data::exact, 81);
  const Problem second = make_problem({gpu.sized(130, 17), 136, 640}, Data::exact, 82);
  const support::DeviceGemm one(gpu.driver, first), two(gpu.driver, second);
  const support::Plan plan(one.desc);
  const nvfp4_gemm_addresses others = support::addresses_of(two.desc);
  REQUIRE(plan.run(others) == NVFP4_SUCCESS);
  require_bits(second, two);
  REQUIRE(plan.run() == NVFP4_SUCCESS);
  require_bits(first, one);

  // Only the weights of the other, then only its tokens.
  Problem mixed = first;
  mixed.b = second.b;
  nvfp4_gemm_addresses weights = support::no_addresses();
  weights.b = two.desc.b, weights.b_scales = two.desc.b_scales;
  REQUIRE(plan.run(weights) == NVFP4_SUCCESS);
  require_bits(mixed, one);
  mixed = first;
  mixed.a = second.a;
  nvfp4_gemm_addresses tokens = support::no_addresses();
  tokens.a = two.desc.a, tokens.a_scales = two.desc.a_scales;
  REQUIRE(plan.run(tokens) == NVFP4_SUCCESS);
  require_bits(mixed, one);
}

TEST_CASE("threads run one plan at once each with a D of its own", "[plan][threads]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({gpu.sized(65, 9), 129, 320}, Data::exact, 83);
  const support::DeviceGemm gemm(gpu.driver, problem);
  const support::Plan plan(gemm.desc);
  CUcontext context = nullptr;
  gpu.driver.check(gpu.driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  std::vector<std::unique_ptr<support::DeviceGemm>> outputs;
  for (int i = 0; i < 8; ++i) {
    outputs.push_back(std::make_unique<support::DeviceGemm>(gpu.driver, problem));
  }
  std::vector<nvfp4_status> statuses(outputs.size(), NVFP4_STATUS_INTERNAL);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&, i] {
      nvfp4_gemm_addresses x = support::no_addresses();
      x.d = outputs[i]->desc.d;
      x.workspace = outputs[i]->desc.workspace,
      x.workspace_bytes = outputs[i]->desc.workspace_bytes;
      gpu.driver.cuCtxSetCurrent(context);
      statuses[i] = plan.run(x);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < outputs.size(); ++i) {
    CAPTURE(i);
    REQUIRE(statuses[i] == NVFP4_SUCCESS);
    require_bits(problem, *outputs[i]);
  }
}

TEST_CASE("a run of a plan may bring its own workspace and one that will not do is refused",
          "[plan][sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Problem problem =
      gemm_test::forced("sm90_128x64x256", make_problem({20, 70, 320}, Data::exact, 86));
  const support::DeviceGemm one(gpu.driver, problem), two(gpu.driver, problem);
  const support::Plan plan(one.desc);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.workspace = two.desc.workspace, x.workspace_bytes = two.desc.workspace_bytes - 1;
  CHECK(plan.run(x) == NVFP4_STATUS_INVALID_VALUE);
  x.workspace_bytes += 1;
  x.workspace = static_cast<char*>(two.desc.workspace) + 8;
  CHECK(plan.run(x) == NVFP4_STATUS_MISALIGNED);
  x.workspace = one.desc.d;
  CHECK(plan.run(x) == NVFP4_STATUS_OVERLAP);
  for (const uint16_t element : one.d()) REQUIRE(element == 0xFFFF);
  // The plan's own stays as it was filled; the other holds the tokens.
  const auto first_word = [&](void* workspace) {
    uint64_t word = 0;
    gpu.driver.check(
        gpu.driver.cuMemcpyDtoH(&word, reinterpret_cast<CUdeviceptr>(workspace), sizeof word),
        "cuMemcpyDtoH");
    return word;
  };
  x.workspace = two.desc.workspace;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  require_bits(problem, one);
  CHECK(first_word(one.desc.workspace) == ~uint64_t(0));
  CHECK(first_word(two.desc.workspace) != ~uint64_t(0));
}

TEST_CASE("running a plan is one launch and new operands cost two tensor maps more",
          "[plan][calls]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const Problem problem = make_problem({65, 129, 64}, Data::exact, 84);
  const support::DeviceGemm one(gpu.driver, problem), two(gpu.driver, problem);
  const support::Plan plan(one.desc);
  const std::string where = "cuCtxGetCurrent\ncuCtxGetDevice\n";
  emulator.reset_calls();
  REQUIRE(plan.run() == NVFP4_SUCCESS);
  CHECK(emulator.recorded() == where + "cuLaunchKernelEx\n");
  const nvfp4_gemm_addresses others = support::addresses_of(two.desc);
  emulator.reset_calls();
  REQUIRE(plan.run(others) == NVFP4_SUCCESS);
  CHECK(emulator.recorded() ==
        where + "cuTensorMapEncodeTiled\ncuTensorMapEncodeTiled\ncuLaunchKernelEx\n");
}

TEST_CASE("after prepare a first run loads nothing", "[plan][calls]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  const char* variant = SOME_VARIANTS(1);
  const support::DeviceGemm gemm(
      gpu.driver, gemm_test::forced(variant, make_problem({65, 129, 64}, Data::exact, 85)));
  emulator.reset_calls();
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  std::string maps = "cuTensorMapEncodeTiled\ncuTensorMapEncodeTiled\n";
  if (gemm_test::tile_ctas(variant) == 2) maps += maps;  // of scales, too
  CHECK(emulator.recorded() == "cuCtxGetCurrent\ncuCtxGetDevice\n" + maps + "cuLaunchKernelEx\n");
}
