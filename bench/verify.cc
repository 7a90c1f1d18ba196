// SPDX-License-Identifier: MIT
#include <cinttypes>
#include <cstdio>

#include "bench/commands.h"
#include "tools/harness/compare.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/driver.h"

namespace bench {

const std::vector<support::Shape> kHostShapes = {
    {128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}, {1, 4096, 4096}, {100, 1000, 192, 4},
};

bool verify() {
  const support::Driver& driver = support::Driver::get();
  const support::Context context(driver);
  const std::string device = support::devices(driver).at(0).name;
  bool good = true;
  for (const support::Shape& shape : kHostShapes) {
    const support::Problem problem = support::make_problem(shape, support::Data::gpumode, 1);
    const std::vector<uint16_t> d = support::run_on_device(driver, problem);
    const auto verdict = support::compare_bits(shape, d, support::reference(problem));
    good &= verdict.passed() && support::sums_are_exact(problem);
    printf("# %s: %" PRId64 " of %" PRId64 " elements equal the reference on %s\n",
           support::to_string(shape).c_str(), verdict.equal, verdict.total, device.c_str());
  }
  return good;
}

}  // namespace bench
