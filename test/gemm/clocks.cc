// SPDX-License-Identifier: MIT
// The kernels of a build with CLOCKS=1: right bits, and every CTA notes its points in their order.
#include <array>

#include "test/gemm/direct.h"
#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"

using gemm_test::Problem;
using support::Module;

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
  USE_KERNEL(gpu, ptx, "clocks", gpu.info.major == 9 ? "gemm_sm90" : "gemm_sm100");
  if (gpu.info.major == 9) {
    check_kernel(gpu.driver, ptx, 64, gemm_test::launch_wgmma<64>);
    check_kernel(gpu.driver, ptx, 128, gemm_test::launch_wgmma<128>);
  } else {
    check_kernel(gpu.driver, ptx, 64, gemm_test::launch_sm100<64>);
    check_kernel(gpu.driver, ptx, 128, gemm_test::launch_sm100<128>);
  }
}
