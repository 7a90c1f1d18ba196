// SPDX-License-Identifier: MIT
// Several contexts, one after the other and at once: the library asks at each call which is
// current, and keeps nothing of one that is gone.
#include <thread>

#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"

namespace {

// A context of its own, current on the constructing thread.
class Made {
 public:
  explicit Made(const support::Driver& driver) : driver_(driver) {
    REQUIRE(driver.cuCtxCreate != nullptr);  // CUDA 12.5
    driver.check(driver.cuCtxCreate(&context, nullptr, 0, 0), "cuCtxCreate");
  }
  ~Made() { driver_.cuCtxDestroy(context); }
  Made(const Made&) = delete;
  CUcontext context = nullptr;

 private:
  const support::Driver& driver_;
};

}  // namespace

TEST_CASE("a context destroyed and made again serves as the first did", "[context]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 110);
  for (int i = 0; i < 3; ++i) {
    const Made made(gpu.driver);
    require_bits(problem, support::run_on_device(gpu.driver, problem));
  }
  require_bits(problem, support::run_on_device(gpu.driver, problem));
}

TEST_CASE("a plan outlives its context and serves the next", "[context][plan]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 111);
  nvfp4_gemm_plan* plan = nullptr;
  {
    const Made made(gpu.driver);
    const support::DeviceGemm gemm(gpu.driver, problem);
    REQUIRE(nvfp4_gemm_plan_create(&gemm.desc, &plan) == NVFP4_SUCCESS);
  }
  const Made made(gpu.driver);
  const support::DeviceGemm gemm(gpu.driver, problem);
  const nvfp4_gemm_addresses x = support::addresses_of(gemm.desc);
  REQUIRE(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_SUCCESS);
  nvfp4_gemm_plan_destroy(plan);
  CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
}

TEST_CASE("threads with contexts of their own run at once", "[context][threads]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 112);
  const std::vector<uint16_t> expected = support::reference(problem);
  std::vector<std::string> errors(6);
  std::vector<std::thread> threads;
  for (std::string& error : errors) {
    threads.emplace_back([&] {
      try {
        const Made made(gpu.driver);
        for (int i = 0; i < 3; ++i) {
          if (support::run_on_device(gpu.driver, problem) != expected) error = "other bits";
        }
      } catch (const std::exception& e) {
        error = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error == "");
}

TEST_CASE("a thread without a context is refused while another's works", "[context][threads]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 113);
  const support::DeviceGemm gemm(gpu.driver, problem);
  nvfp4_status there = NVFP4_SUCCESS;
  std::thread([&] { there = gemm.enqueue(); }).join();
  CHECK(there == NVFP4_STATUS_NO_CONTEXT);
  CHECK(gemm.enqueue() == NVFP4_SUCCESS);
}

TEST_CASE("a context that another thread destroys is reported as none", "[context][threads]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 114);
  Made made(gpu.driver);
  const support::DeviceGemm elsewhere(gpu.driver, problem);
  std::thread([&] { gpu.driver.cuCtxDestroy(made.context); }).join();
  CHECK(elsewhere.enqueue() == NVFP4_STATUS_NO_CONTEXT);
  CHECK(std::string(nvfp4_last_error()).find("CONTEXT_IS_DESTROYED") != std::string::npos);
  gpu.driver.cuCtxPopCurrent(nullptr);
  require_bits(problem, support::run_on_device(gpu.driver, problem));
}

// The driver itself takes both, a launch and the fill that K = 0 is (H200, driver 580).
TEST_CASE("a stream of another context is refused in one sentence with any K",
          "[context][stream]") {
  USE_GPU(gpu);
  const Made other(gpu.driver);
  CUstream stream = nullptr;
  gpu.driver.check(gpu.driver.cuStreamCreate(&stream, 0), "cuStreamCreate");
  const Made made(gpu.driver);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 117);
  support::DeviceGemm gemm(gpu.driver, problem);
  const std::vector<uint16_t> untouched = gemm.d();
  const int64_t k = gemm.desc.k;
  for (const int64_t k_of_call : {k, int64_t{0}}) {
    CAPTURE(k_of_call);
    gemm.desc.k = k_of_call;
    CHECK(gemm.enqueue(stream) == NVFP4_STATUS_INVALID_VALUE);
    const std::string sentence = nvfp4_last_error();
    CHECK(sentence.rfind("stream = 0x", 0) == 0);
    CHECK(sentence.find(" belongs to another CUDA context than the current one") !=
          std::string::npos);
  }
  CHECK((gemm.d() == untouched));
  gemm.desc.k = 0;
  CHECK(gemm.enqueue() == NVFP4_SUCCESS);
  gemm.desc.k = k;
  CHECK(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
}

// On a device the error would end the process; in the emulator it ends the context.
TEST_CASE("an error of earlier work is reported as that by every function and nothing is lost",
          "[context]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 116);
  {
    const Made made(gpu.driver);
    const support::DeviceGemm gemm(gpu.driver, problem);
    nvfp4_gemm_plan* plan = nullptr;
    REQUIRE(nvfp4_gemm_plan_create(&gemm.desc, &plan) == NVFP4_SUCCESS);
    nvfp4_gemm_desc astray = gemm.desc;
    astray.a_scales = reinterpret_cast<void*>(1ull << 50);
    REQUIRE(nvfp4_gemm_run(&astray, nullptr) == NVFP4_SUCCESS);
    const auto prior = [](nvfp4_status status) {
      return status == NVFP4_STATUS_PRIOR_ERROR &&
             std::string(nvfp4_last_error()).find("CUDA_ERROR_ILLEGAL_ADDRESS") !=
                 std::string::npos;
    };
    CHECK(prior(gemm.enqueue()));
    CHECK(prior(gemm.enqueue()));
    CHECK(prior(nvfp4_gemm_plan_run(plan, nullptr, nullptr)));
    CHECK(prior(nvfp4_prepare()));
    nvfp4_gemm_plan_destroy(plan);
  }
  require_bits(problem, support::run_on_device(gpu.driver, problem));
}

// Last in this file: what other tests keep in the primary context is gone afterwards.
TEST_CASE("after a reset of the primary context everything is loaded anew", "[context]") {
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 115);
  {
    USE_GPU(gpu);
    require_bits(problem, support::run_on_device(gpu.driver, problem));
    gemm_test::kept_context().reset();
    gpu.driver.check(gpu.driver.cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
  }
  USE_GPU(gpu);
  require_bits(problem, support::run_on_device(gpu.driver, problem));
}
