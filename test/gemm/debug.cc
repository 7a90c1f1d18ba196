// SPDX-License-Identifier: MIT
// This repository's kernels as a debugger's build has them: nvcc -G, where every wrapper is a call
// and every value goes through local memory, and -lineinfo, where a report names the CUDA line.
#include <regex>

#include "test/gemm/direct.h"
#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"

using gemm_test::Emulator;
using gemm_test::launch_sm100;
using gemm_test::Problem;
using gemm_test::Setting;
using gemm_test::tokens;
using gemm_test::weights;
using gemm_test::wrong_after;
using gemm_test::wrong_after_wgmma;
using support::Module;

namespace {

// What the emulator writes to stderr while `run` ends with that status.
template <class Run>
std::string report_of(CUresult status, Run run) {
  CUresult result = CUDA_SUCCESS;
  const std::string text = gemm_test::heard([&] {
    try {
      run();
    } catch (const support::DriverError& error) {
      result = error.result;
    }
  });
  INFO(text);
  CHECK(result == status);
  return text;
}

std::string without(std::string text, const std::string& part) {
  INFO(part);
  REQUIRE(text.find(part) != std::string::npos);
  for (size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  return text;
}

// How asynchronous work is ordered in one test, and what is done about formal findings.
struct Course {
  Setting order, seed, formal;
  Course(const Emulator& emulator, const char* when, const char* number, const char* reaction)
      : order(emulator, "EMU_ORDER", when, "random"),
        seed(emulator, "EMU_SEED", number, "1"),
        formal(emulator, "EMU_FORMAL", reaction, "report") {}
};

}  // namespace

TEST_CASE(
    "the kernel compiled with -G and with -lineinfo gives the right bits, without a finding") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* options = GENERATE("debug", "lineinfo");
  const char* order = GENERATE("soonest", "latest", "random");
  if (options == std::string("lineinfo") && order != std::string("random")) return;
  USE_KERNEL(gpu, ptx, options);
  CAPTURE(options, order);
  const Course course(emulator, order, "4", "stop");
  const std::string when = order;
  if (when != "latest") CHECK(wrong_after<64>(gpu.driver, ptx) == 0);
  if (when != "soonest") CHECK(wrong_after<128>(gpu.driver, ptx) == 0);
}

// Fragments go through local memory after the wgmma.fence and sums before the wgmma.wait_group:
// ptxas serialises the operations then (C7520).
TEST_CASE("the kernel of 9.0 compiled with -G gives the right bits, with formal findings alone") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  USE_KERNEL(gpu, ptx, "debug", "gemm_sm90");
  const auto check = [&](const char* order, auto run) {
    const Course course(emulator, order, "4", "report");
    report_of(CUDA_SUCCESS, [&] { CHECK(run(gpu.driver, ptx) == 0); });
    CHECK(emulator.counter("formal_hazards") > 0);
  };
  check("soonest", wrong_after_wgmma<64>);
  check("latest", wrong_after_wgmma<128>);
  check("random", wrong_after_wgmma<256>);
}

TEST_CASE("with -lineinfo a report names the line of CUDA beside that of PTX") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  USE_KERNEL(gpu, ptx, "lineinfo");
  const Course course(emulator, "latest", "1", "stop");
  const std::regex line_of_cuda(R"(\bepilogue\.cuh:\d+)");
  const std::string unwaited = without(ptx, "tcgen05.wait::ld.sync.aligned;");
  const std::string early = report_of(CUDA_ERROR_LAUNCH_FAILED, [&] {
    Problem problem(gpu.driver, 64);
    launch_sm100<64>(problem, Module::from_text(gpu.driver, unwaited));
  });
  CHECK(std::regex_search(early, line_of_cuda));
  const std::string beyond = report_of(CUDA_ERROR_ILLEGAL_ADDRESS, [&] {
    Problem problem(gpu.driver, 64, tokens * weights);
    launch_sm100<64>(problem, Module::from_text(gpu.driver, ptx));
  });
  CHECK(beyond.find("beyond the end of") != std::string::npos);
  CHECK(std::regex_search(beyond, line_of_cuda));
}
