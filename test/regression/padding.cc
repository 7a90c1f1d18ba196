// SPDX-License-Identifier: MIT
// Scale bytes that belong to no element.
#include "test/gemm/sizes.h"
#include "test/regression/regression.h"

using namespace regression;

// In batched quantization only the first batch's padding was guarded, so later batches met garbage.
TEST_CASE("flashinfer #3604: scale padding unguarded in batch > 0", "[regression]") {
  USE_GPU(gpu);
  require_deaf_to_padding(gpu,
                          forced(EACH_VARIANT, make_problem({65, 129, 320, 3}, Data::exact, 301)));
}

// Scales allocated with torch.empty: NaN and errors of 500 to 700 in rows that were real.
TEST_CASE("vllm #37564: padding scales from torch.empty reach real rows", "[regression]") {
  USE_GPU(gpu);
  // Finite garbage first: NaN is easily seen, 448 is not.
  const Problem problem = forced(EACH_VARIANT, make_problem({130, 140, 320}, Data::random, 302));
  const std::vector<uint16_t> clean = run(gpu, problem, 0x00);
  REQUIRE(gemm_test::inside_bound(gpu, problem, clean));
  for (const int poison : {0x01, 0x38, 0x7E, 0x7F, 0x80, 0xFF}) {
    CAPTURE(poison);
    CHECK(run(gpu, problem, uint8_t(poison)) == clean);
  }
}

// NaN bytes in stale rows below 128 spread through the KV cache; experts with up to 32 tokens were
// hit.
TEST_CASE("vllm #38148: stale padding rows of a batch below 128 tokens", "[regression]") {
  USE_GPU(gpu);
  const int64_t m = GENERATE(1, 8, 31, 32, 33, 96, 127);
  require_deaf_to_padding(gpu, make_problem({m, 64, 192}, Data::exact, 303));
}

// The GEMM, not the allocation, was at fault: a kernel for few tokens mapped rows of the scale tile
// differently from rows of A.
TEST_CASE("flashinfer #2861: a row's scales leak into another row", "[regression]") {
  USE_GPU(gpu);
  // One token with scales that no other has: only its row may change.
  Problem problem = forced(EACH_VARIANT, make_problem({32, 96, 256}, Data::exact, 304));
  const std::vector<uint16_t> before = run(gpu, problem);
  for (int64_t block = 0; block < 16; ++block) problem.a.set_scale(0, 9, block, 0x48);
  const std::vector<uint16_t> after = run(gpu, problem);
  int64_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    CAPTURE(i / 96, i % 96);
    if (i / 96 != 9) REQUIRE(after[i] == before[i]);
    changed += after[i] != before[i];
  }
  CHECK(changed > 80);
}

// The scales beyond the end of K were read without a mask, and NaN times zero is NaN.
TEST_CASE("triton #10772: NaN from scales beyond the end of K", "[regression]") {
  USE_GPU(gpu);
  // One to nine 64-steps: the last stage of 256 is rarely full. What lies after a row's scales in
  // memory is NaN: the next batch's room, and the guard.
  const int64_t steps = GENERATE(range(1, 10));
  const char* const variant = EACH_VARIANT;
  // Emulated, each number with another variant.
  const size_t turn = size_t(steps) + gemm_test::variant_number(variant);
  if (gpu.info.emulated() && !gemm_test::everything() && turn % 4 != 0) return;
  Gaps gaps;
  gaps.scales_batch_bytes = 512;
  require_deaf_to_padding(
      gpu, forced(variant, make_problem({40, 136, 64 * steps, 2}, Data::exact, 305, gaps)));
}

// A tensor-parallel split left K = 464; the GEMM read garbage scales up to the next multiple.
TEST_CASE("vllm #30260: K = 464 after a tensor-parallel split", "[regression]") {
  USE_GPU(gpu);
  require_right_or_refused(gpu, {33, 200, 464}, 306);
}

// Without the fill of padded scales decode lost 87 to 93 percent, since outputs became garbage.
TEST_CASE("vllm #45741: the quantizer leaves padded scales unwritten", "[regression]") {
  const int64_t rows = GENERATE(1, 100, 128, 129), k = GENERATE(16, 64, 80, 192);
  const std::vector<float> x(size_t(rows * k), 1.0f);
  std::vector<uint8_t> codes(size_t(rows * k / 2));
  const size_t bytes = nvfp4_scale_bytes(rows, k, NVFP4_SCALE_LAYOUT_128X4);
  std::vector<uint8_t> scales(bytes + 16, 0xFF);  // as stale memory, and a guard
  REQUIRE(nvfp4_quantize_host(x.data(), k, rows, k, 1.0f, codes.data(), k, scales.data(),
                              NVFP4_SCALE_LAYOUT_128X4) == NVFP4_SUCCESS);
  const auto end = scales.begin() + int64_t(bytes);
  // 1/6 as UE4M3 is 0x23; everything else has to be 0.
  CHECK(std::count(scales.begin(), end, 0x23) == rows * k / 16);
  CHECK(std::count(scales.begin(), end, 0x00) == int64_t(bytes) - rows * k / 16);
  CHECK(std::count(end, scales.end(), 0xFF) == 16);
}

// The scale tensor was smaller than what the tensor map covered: an MMU fault, Xid 13.
TEST_CASE("flashinfer #3722: more scales are read than nvfp4_scale_bytes counts", "[regression]") {
  USE_GPU(gpu);
  const Problem problem = forced(EACH_VARIANT, make_problem({140, 130, 320, 2}, Data::exact, 307));
  support::DeviceGemm gemm(gpu.driver, problem);
  // Allocations that end with the last byte: the emulator faults on the next one.
  std::vector<CUdeviceptr> exact;
  for (const support::Operand* operand : {&problem.a, &problem.b}) {
    const std::vector<uint8_t> scales = operand->interleaved_scales(0x7F);
    REQUIRE(scales.size() ==
            2 * nvfp4_scale_bytes(operand->rows, operand->k, NVFP4_SCALE_LAYOUT_128X4));
    exact.push_back(0);
    gpu.driver.check(gpu.driver.cuMemAlloc(&exact.back(), scales.size()), "cuMemAlloc");
    gpu.driver.check(gpu.driver.cuMemcpyHtoD(exact.back(), scales.data(), scales.size()),
                     "cuMemcpyHtoD");
  }
  gemm.desc.a_scales = reinterpret_cast<void*>(exact[0]);
  gemm.desc.b_scales = reinterpret_cast<void*>(exact[1]);
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
  for (const CUdeviceptr address : exact) gpu.driver.check(gpu.driver.cuMemFree(address), "free");
}
