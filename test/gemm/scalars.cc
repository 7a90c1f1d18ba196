// SPDX-License-Identifier: MIT
// alpha, the empty sum, and problems without elements.
#include "test/gemm/gpu.h"
#include "tools/harness/formats.h"

TEST_CASE("alpha multiplies the sum in fp32 and is rounded with it once", "[alpha]") {
  USE_GPU(gpu);
  Problem p =
      make_problem(gpu.sized<support::Shape>({65, 129, 192}, {9, 70, 192}), Data::exact, 10);
  const float infinity = std::numeric_limits<float>::infinity();
  // 1/3 rounds in the product, 1e-7 makes fp16 subnormals, 1e3 overflows fp16, 0 keeps signs.
  p.alpha = GENERATE_COPY(values<float>(
      {1.0f, -1.0f, 0.5f, 1.0f / 3, -1e-7f, 1e3f, 0.0f, 1e-45f, infinity, std::nanf("")}));
  INFO("alpha " << p.alpha);
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  const support::BitVerdict verdict = compare_bits(p.shape(), d, support::reference(p));
  INFO(verdict.first_difference);
  CHECK(verdict.equal == verdict.total);
}

TEST_CASE("alpha times the sum is rounded to the nearest fp32 before fp16", "[alpha]") {
  USE_GPU(gpu);
  Problem p = make_problem({1, 1, 64});
  p.a.set_code(0, 0, 0, 0x6), p.a.set_code(0, 0, 1, 0x2);  // 4 and 1
  p.b.set_code(0, 0, 0, 0x2), p.b.set_code(0, 0, 1, 0x2);  // 1 and 1
  p.a.set_scale(0, 0, 0, 0x38), p.b.set_scale(0, 0, 0, 0x38);
  // The product with 5 is 2051 - 0.375 ulp: to nearest it becomes 2051, a tie that fp16 rounds to
  // 2052. Truncated, or kept exact as by an fma or a double, it would become 2050.
  p.alpha = std::nextafter(410.2f, 0.0f);
  CHECK(support::run_on_device(gpu.driver, p) == std::vector<uint16_t>({0x6802}));
}

TEST_CASE("sums beyond 65504 become infinity with their sign", "[alpha]") {
  USE_GPU(gpu);
  Problem p = make_problem({2, 3, 64});
  for (int64_t k = 0; k < 64; ++k) {
    p.a.set_code(0, 0, k, 0x7), p.a.set_code(0, 1, k, 0xF);  // 6 and -6
    for (int64_t n = 0; n < 3; ++n) p.b.set_code(0, n, k, 0x7);
  }
  for (uint8_t& scale : p.a.scales) scale = 0x58;  // 16
  for (uint8_t& scale : p.b.scales) scale = 0x58;
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  CHECK(d == std::vector<uint16_t>({0x7C00, 0x7C00, 0x7C00, 0xFC00, 0xFC00, 0xFC00}));
}

TEST_CASE("K = 0 writes alpha * 0 and nothing else", "[empty]") {
  USE_GPU(gpu);
  support::Gaps gaps;
  gaps.d_ld = 3;
  support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 64}, Data::exact, 11, gaps));
  gemm.desc.k = 0;
  gemm.desc.a = gemm.desc.b = gemm.desc.a_scales = gemm.desc.b_scales = nullptr;
  gemm.desc.alpha = -1.0f;
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(gemm.d() == std::vector<uint16_t>(65 * 129, 0x8000));
  CHECK(gemm.damage() == "");
}

TEST_CASE("a problem without elements succeeds and writes nothing", "[empty]") {
  USE_GPU(gpu);
  support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 64}, Data::exact, 12));
  int64_t nvfp4_gemm_desc::*size =
      GENERATE(&nvfp4_gemm_desc::m, &nvfp4_gemm_desc::n, &nvfp4_gemm_desc::l);
  gemm.desc.*size = 0;
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(gemm.d() == std::vector<uint16_t>(65 * 129, 0xFFFF));
}

TEST_CASE("work goes to the stream that it is given", "[stream]") {
  USE_GPU(gpu);
  const Problem p = make_problem({65, 129, 64}, Data::exact, 13);
  const support::DeviceGemm gemm(gpu.driver, p);
  CUstream stream = nullptr;
  gpu.driver.check(gpu.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  REQUIRE(gemm.enqueue(stream) == NVFP4_SUCCESS);
  gpu.driver.check(gpu.driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
  CHECK(compare_bits(p.shape(), gemm.d(), support::reference(p)).passed());
  gpu.driver.check(gpu.driver.cuStreamDestroy(stream), "cuStreamDestroy");
}

TEST_CASE("a bad argument leaves D as it was", "[refusal]") {
  USE_GPU(gpu);
  support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 64}, Data::exact, 14));
  nvfp4_status expected = NVFP4_SUCCESS;
  SECTION("K that is no multiple of 16") {
    gemm.desc.k = 40;
    expected = NVFP4_STATUS_INVALID_VALUE;
  }
  SECTION("a misaligned pointer") {
    gemm.desc.a = static_cast<const uint8_t*>(gemm.desc.a) + 8;
    expected = NVFP4_STATUS_MISALIGNED;
  }
  SECTION("D on top of B") {
    gemm.desc.d = const_cast<void*>(gemm.desc.b);
    expected = NVFP4_STATUS_OVERLAP;
  }
  SECTION("beta without a C") {
    gemm.desc.beta = 1;
    expected = NVFP4_STATUS_INVALID_VALUE;
  }
  CHECK(gemm.enqueue() == expected);
  CHECK(std::string(nvfp4_last_error()) != "");
  CHECK(gemm.d() == std::vector<uint16_t>(65 * 129, 0xFFFF));
  CHECK(gemm.damage() == "");
}

TEST_CASE("without a current context the call is refused", "[refusal]") {
  USE_GPU(gpu);
  const support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 64}, Data::exact, 15));
  CUcontext context = nullptr;
  gpu.driver.check(gpu.driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  gpu.driver.check(gpu.driver.cuCtxSetCurrent(nullptr), "cuCtxSetCurrent");
  CHECK(gemm.enqueue() == NVFP4_STATUS_NO_CONTEXT);
  gpu.driver.check(gpu.driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CHECK(gemm.d() == std::vector<uint16_t>(65 * 129, 0xFFFF));
}
