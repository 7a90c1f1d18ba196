// SPDX-License-Identifier: MIT
// nvfp4 run with options of the epilogue.
#include "tools/nvfp4/outcome.h"

#include <chrono>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/call_log.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

using support::DeviceGemm;
using support::Problem;

Problem problem_of(const RunOptions& options) {
  Problem problem = problem_from(options);
  if (support::sums_are_exact(problem)) return problem;
  throw UsageError(
      "the sums of this problem are rounded: with options of the epilogue D is judged by its bits; "
      "try --data exact or a smaller --k");
}

}  // namespace

Outcome run_general(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device) {
  const Problem problem = problem_of(options);
  const std::string shape = to_string(problem.shape());
  support::progress(shape + ": on the device");
  const DeviceGemm gemm(driver, problem);
  const auto start = std::chrono::steady_clock::now();
  support::require(gemm.enqueue());
  const std::vector<uint8_t> d = gemm.d_bytes();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const CallNames names = last_call();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);
  support::progress(shape + ": reference");
  const std::vector<uint8_t> want = problem.reference();
  const std::string difference = first_difference(problem, d, want);
  double seconds = 0;
  if (!device.emulated())
    seconds = time_on_device(driver, [&] { support::require(gemm.enqueue()); }).median;
  support::progress_done();

  Outcome o;
  o.shape = problem.shape(), o.alpha = problem.alpha;
  o.names = names;
  o.plan = support::plan_info(gemm.desc, device.compute_capability(), device.sms);
  o.unit = "bytes", o.total = int64_t(d.size());
  for (size_t i = 0; i < d.size(); ++i) o.equal += d[i] == want[i];
  o.wall_seconds = wall, o.device_seconds = seconds;
  o.first = difference;
  return o;
}

}  // namespace nvfp4_tool
