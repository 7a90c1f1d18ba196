// SPDX-License-Identifier: MIT
// Programmatic dependent launch: the same bits, and nothing read too early. The emulator runs one
// grid at a time; it counts what a CTA has asked to be loaded when it waits for earlier grids.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

namespace {

Problem with_pdl(int32_t pdl, Problem problem) {
  problem.pdl = pdl;
  return problem;
}

}  // namespace

TEST_CASE("pdl changes no bit", "[pdl]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(0);
  // Shorter than the ring, as long, and longer.
  const int64_t k = GENERATE(64, 1024, 1600, 4416);
  if (gpu.small() && k > 1600) return;
  const int64_t few = gemm_test::few_tokens(gpu, variant, 9);
  support::Shape shape = gpu.sized<support::Shape>({130, 136, k, 2}, {few, 70, k});
  if (gpu.info.emulated() && !gemm_test::everything()) {
    shape.m = std::min<int64_t>(shape.m, 66), shape.l = 1;
  }
  const Problem problem = forced(variant, make_problem(shape, Data::random, 90));
  const std::vector<uint16_t> off = support::run_on_device(gpu.driver, problem);
  CAPTURE(variant, k);
  CHECK(support::run_on_device(gpu.driver, with_pdl(NVFP4_PDL_ON, problem)) == off);
  CHECK(support::run_on_device(gpu.driver, with_pdl(NVFP4_PDL_ON_STATIC_WEIGHTS, problem)) == off);
}

TEST_CASE("before the wait nothing is loaded but static weights and their scales", "[pdl][count]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  struct Row {
    const char* variant;
    uint64_t tiles;
  };
  const Row row = GENERATE(Row{"sm100_128x64x256", 3 * 2}, Row{"sm100_128x128x256", 2 * 2});
  const uint64_t k_blocks = GENERATE(1, 2, 3, 4, 8, 11);
  CAPTURE(row.variant, k_blocks);
  const support::Shape shape{130, 136, int64_t(256 * k_blocks)};
  Problem problem = forced(row.variant, make_problem(shape, Data::exact, 91));
  problem.batch_invariant = true;  // K is whole
  constexpr uint64_t kWeightBytes = 128 * 256 / 2 + 128 * 256 / 16;
  const uint64_t early = row.tiles * std::min<uint64_t>(k_blocks, 3) * kWeightBytes;

  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(pdl);
    support::run_on_device(gpu.driver, with_pdl(pdl, problem));
    CHECK(emulator.counter("dependency_waits") == row.tiles);
    CHECK(emulator.counter("early_bytes") == (pdl == NVFP4_PDL_ON_STATIC_WEIGHTS ? early : 0));
    CHECK(emulator.counter("tma_loads") == row.tiles * k_blocks * 2);
  }
}

// The second run stores D where the first may still store it: the emulator compares the two.
TEST_CASE("a run that begins before the one ahead has ended touches D after the wait", "[pdl]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(1);
  const Problem problem = forced(variant, make_problem({9, 70, 256}, Data::exact, 93));
  for (const int32_t pdl : {NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(variant, pdl);
    const support::DeviceGemm gemm(gpu.driver, with_pdl(pdl, problem));
    REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
    for (int run = 0; run < 3; ++run) REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    CHECK(gemm.d() == support::run_on_device(gpu.driver, problem));
  }
}

TEST_CASE("a plan keeps its pdl", "[pdl][plan]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const Problem problem =
      with_pdl(NVFP4_PDL_ON_STATIC_WEIGHTS, make_problem({65, 129, 320}, Data::exact, 92));
  const support::DeviceGemm gemm(gpu.driver, problem);
  nvfp4_gemm_plan* plan = nullptr;
  REQUIRE(nvfp4_gemm_plan_create(&gemm.desc, &plan) == NVFP4_SUCCESS);
  const nvfp4_status status = nvfp4_gemm_plan_run(plan, nullptr, nullptr);
  nvfp4_gemm_plan_destroy(plan);
  REQUIRE(status == NVFP4_SUCCESS);
  CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
  CHECK(emulator.counter("early_bytes") > 0);
}
