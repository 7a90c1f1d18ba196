// SPDX-License-Identifier: MIT
#include "tools/nvfp4/general.h"

#include <chrono>
#include <stdexcept>

#include "tools/harness/general_gemm.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/call_log.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

using support::DeviceGeneral;
using support::GeneralProblem;

void enqueue(const DeviceGeneral& gemm) {
  if (nvfp4_gemm_run(&gemm.desc, nullptr) != NVFP4_SUCCESS) {
    throw std::runtime_error(nvfp4_last_error());
  }
}

GeneralProblem problem_of(const RunOptions& options) {
  support::Problem operands = problem_from(options);
  if (!options.variant.empty()) operands.variant = options.variant.c_str();
  operands.pdl = options.pdl;
  operands.batch_invariant = options.batch_invariant;
  support::EpilogueFields fields = fields_of(options);
  fields.alpha = operands.alpha;
  if (!support::sums_are_exact(operands)) {
    throw UsageError(
        "the sums of this problem are rounded: with options of the epilogue D is judged by "
        "its bits; try --data exact or a smaller --k");
  }
  return GeneralProblem(operands, fields, options.seed);
}

}  // namespace

int run_general(const RunOptions& options, const support::Driver& driver,
                const support::DeviceInfo& device) {
  const GeneralProblem problem = problem_of(options);
  const std::string shape = to_string(problem.operands.shape);
  support::progress(shape + ": on the device");
  const DeviceGeneral gemm(driver, problem);
  const auto start = std::chrono::steady_clock::now();
  enqueue(gemm);
  const std::vector<uint8_t> d = gemm.d();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const CallNames names = last_call();
  const std::string damage = gemm.damage();
  if (!damage.empty()) throw std::runtime_error(damage);
  support::progress(shape + ": reference");
  const std::string difference = first_difference(problem, d, problem.reference());
  double seconds = 0;
  if (!device.emulated()) seconds = time_on_device(driver, [&] { enqueue(gemm); }).median;
  support::progress_done();

  const nvfp4_plan_info info =
      support::plan_info(gemm.desc, device.compute_capability(), device.sms);
  const char* const epilogue = info.epilogue == NVFP4_EPILOGUE_FAST ? "fast" : "general";
  Report report(options.json);
  report.line("shape", "%s", shape.c_str());
  report.line("device", "%s", device.name.c_str());
  report.line("image", "%s", names.image.c_str());
  report.line("variant", "%s", names.variant.c_str());
  report.line("epilogue", "%s", epilogue);
  report.line("time", "%.3f %s", device.emulated() ? wall : seconds * 1e6,
              device.emulated() ? "s in the emulator" : "us, median, cold caches");
  if (!difference.empty()) report.line("first", "%s", difference.c_str());
  const char* const verdict = difference.empty() ? "PASS" : "FAIL";
  report.line("verdict", "%s", verdict);
  const support::Shape& s = problem.operands.shape;
  report["shape"] = {{"m", s.m}, {"n", s.n}, {"k", s.k}, {"l", s.l}};
  report["device"] = device.name;
  report["emulated"] = device.emulated();
  report["image"] = names.image;
  report["variant"] = names.variant;
  report["epilogue"] = epilogue;
  report["wall_seconds"] = wall;
  report["device_us"] = device.emulated() ? Json() : Json(seconds * 1e6);
  if (!difference.empty()) report["first"] = difference;
  report["verdict"] = verdict;
  report.finish();
  return difference.empty() ? kPassed : kFailed;
}

}  // namespace nvfp4_tool
