// SPDX-License-Identifier: MIT
// This repository's kernels as a debugger's build has them: nvcc -G, where every wrapper is a call
// and every value goes through local memory, and -lineinfo, where a report names the CUDA line. And
// those of a build with CLOCKS=1: right bits, and every CTA notes its points in their order.
#include <array>
#include <regex>

#include "test/gemm/direct.h"
#include "test/gemm/emulator.h"

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

TEST_CASE("the kernel compiled with -G and with -lineinfo gives the right bits without a finding") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* options = GENERATE("debug", "lineinfo");
  USE_KERNEL(gpu, ptx, options);
  const auto check = [&](const char* order, auto run) {
    CAPTURE(options, order);
    const Course course(emulator, order, "4", "stop");
    CHECK(run(gpu.driver, ptx) == 0);
  };
  check("random", wrong_after<64>);
  check("random", wrong_after<128>);
  if (options == std::string("lineinfo")) return;
  check("soonest", wrong_after<64>);
  check("latest", wrong_after<128>);
}

// Fragments go through local memory after the wgmma.fence and sums before the wgmma.wait_group:
// ptxas serialises the operations then (C7520).
TEST_CASE("the kernel of 9.0 compiled with -G gives the right bits with formal findings alone") {
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

namespace {

enum Point : size_t {
#define CLOCK_POINT(name, text) name,
#include "kernel/common/clocks.def"
#undef CLOCK_POINT
  kPoints
};
using Cta = std::array<uint64_t, kPoints>;

std::vector<Cta> clocks_of(const support::Driver& driver, const Module& module) {
  const support::Global array = module.global("nvfp4_clocks");
  REQUIRE(array.bytes % sizeof(Cta) == 0);
  std::vector<Cta> ctas(array.bytes / sizeof(Cta));
  driver.check(driver.cuMemcpyDtoH(ctas.data(), array.address, array.bytes), "cuMemcpyDtoH");
  return ctas;
}

void check_clocks(const std::vector<Cta>& ctas, size_t grid) {
  for (size_t cta = 0; cta < grid; ++cta) {
    CAPTURE(cta, ctas[cta]);
    CHECK(ctas[cta][begin_ns] <= ctas[cta][end_ns]);
    CHECK(ctas[cta][start] > 0);
    for (size_t point = first_load; point < kPoints; ++point) {
      // Two groups of warps wait for stages in turns: one may find the last full before the other
      // looks at the first.
      const size_t before = point == last_full ? point - 2 : point - 1;
      CHECK(ctas[cta][before] <= ctas[cta][point]);
    }
    CHECK(ctas[cta][first_full] <= ctas[cta][last_commit]);
  }
  for (size_t cta = grid; cta < ctas.size(); ++cta)
    if (ctas[cta] != Cta{}) FAIL("CTA " << cta << " is beyond the grid");
}

template <class Launch>
void check_kernel(const support::Driver& driver, const std::string& ptx, uint32_t tile,
                  Launch launch) {
  Problem problem(driver, tile);
  const Module module = Module::from_text(driver, ptx);
  launch(problem, module);
  CHECK(problem.wrong() == 0);
  check_clocks(clocks_of(driver, module), problem.p.tiles_m * problem.p.tiles_n);
}

}  // namespace

TEST_CASE("every CTA of a kernel built with CLOCKS=1 notes its points in their order") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  if (gpu.info.major == 12) return support::leave_out();  // its kernel notes none
  USE_KERNEL(gpu, ptx, "clocks", gpu.info.major == 9 ? "gemm_sm90" : "gemm_sm100");
  if (gpu.info.major == 9) {
    check_kernel(gpu.driver, ptx, 64, gemm_test::launch_wgmma<64>);
    check_kernel(gpu.driver, ptx, 128, gemm_test::launch_wgmma<128>);
  } else {
    check_kernel(gpu.driver, ptx, 64, gemm_test::launch_sm100<64>);
    check_kernel(gpu.driver, ptx, 128, gemm_test::launch_sm100<128>);
  }
}
