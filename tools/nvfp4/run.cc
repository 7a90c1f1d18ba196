// SPDX-License-Identifier: MIT
// nvfp4 run: one product, verified.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <new>

#include "nvfp4_gemm.h"
#include "tools/harness/formats.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/emulator.h"
#include "tools/nvfp4/general.h"
#include "tools/nvfp4/grouped.h"
#include "tools/nvfp4/headline.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/output_files.h"
#include "tools/nvfp4/product_error.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

using support::Problem;

namespace {

void save(OutputFiles& files, const std::string& path, const support::Shape& s,
          const std::vector<uint16_t>& d) {
  std::vector<float> values(d.size());
  std::transform(d.begin(), d.end(), values.begin(),
                 [](uint16_t bits) { return float(support::f16_value(bits)); });
  std::vector<size_t> shape = {size_t(s.m), size_t(s.n)};
  if (s.l != 1) shape.insert(shape.begin(), size_t(s.l));
  save_npy(files, path, shape, values);
}

void report_names(Report& report, const Problem& problem, const support::DeviceInfo& device,
                  const Verified& v) {
  const support::Shape& s = problem.shape;
  report.line("shape", "%s", to_string(s).c_str());
  report.line("device", "%s", device.name.c_str());
  report.line("image", "%s", v.names.image.c_str());
  report.line("variant", "%s", v.names.variant.c_str());
  report["shape"] = {{"m", s.m}, {"n", s.n}, {"k", s.k}, {"l", s.l}};
  report["alpha"] = problem.alpha;
  report["device"] = device.name;
  report["emulated"] = device.emulated();
  report["image"] = v.names.image;
  report["variant"] = v.names.variant;
}

void report_comparison(Report& report, const Verified& v) {
  report.line("bits", "%" PRId64 " of %" PRId64 " equal to the reference's%s", v.bits.equal,
              v.bits.total, v.exact ? "; every partial sum is exact, so all must be" : "");
  report["bits"] = {{"equal", v.bits.equal}, {"total", v.bits.total}, {"exact_sums", v.exact}};
  if (v.exact) return;
  report.line("error", "%.3g at most, bound %.3g there; error / bound %.3f at most",
              v.bound.largest_error, v.bound.bound_there, v.bound.largest_ratio);
  if (!report.for_programs()) {
    std::printf("rtol = atol = 1e-3: %" PRId64 " of %" PRId64 " outside\n",
                v.bound.outside_tolerance, v.bound.total);
  }
  report["error"] = {{"largest", v.bound.largest_error},
                     {"bound_there", v.bound.bound_there},
                     {"largest_ratio", v.bound.largest_ratio},
                     {"outside_bound", v.bound.outside_bound},
                     {"outside_tolerance", v.bound.outside_tolerance}};
}

void report_product(Report& report, const Sources& sources, const Verified& v) {
  const ProductError error = product_error(
      sources, v.d,
      support::progress_of(
          to_string(support::Shape{sources.a.rows, sources.b.rows, sources.a.columns}) +
          ": product without quantization"));
  support::progress_done();
  const bool any = error.elements != 0;
  if (any) {
    report.line("fp32", "relative error against the fp32 product %.4f (Frobenius); largest %.3g",
                error.relative, error.largest);
  } else {
    report.line("fp32", "no element is finite in both D and the fp32 product");
  }
  report["fp32_product"] = {{"relative_error", any ? Json(error.relative) : Json()},
                            {"largest_error", any ? Json(error.largest) : Json()},
                            {"elements", error.elements}};
}

void report_time(Report& report, const support::DeviceInfo& device, const Verified& v) {
  if (!report.for_programs()) std::printf("%s\n", time_legend(device));
  report.line("time", "%s", duration(v).c_str());
  report["wall_seconds"] = v.wall_seconds;
  report["device_us"] = device.emulated() ? Json() : Json(v.device_seconds * 1e6);
  if (v.light_us == 0) return;
  report.line("bound", "%.3f us at least on this GPU, the speed of light of its %s", v.light_us,
              std::string(v.limit) == "memory" ? "memory" : "tensor cores");
  report["light_us"] = v.light_us;
  report["light_limit"] = v.limit;
  report["light_percent"] = device.emulated() ? Json() : Json(v.light_percent());
}

void report_verdict(Report& report, const Verified& v) {
  const std::vector<std::string> notes = v.notes();
  for (const std::string& note : notes) report.line("note", "%s", note.c_str());
  report["notes"] = notes;
  if (!v.kept()) report.line("first", "%s", v.complaint().c_str());
  if (!v.kept()) report["first"] = v.complaint();
  report["verdict"] = v.kept() ? "PASS" : "FAIL";
}

int run_one(const RunOptions& options, const Problem& problem, const Sources* sources,
            const support::Driver& driver, const support::DeviceInfo& device) {
  OutputFiles files;
  if (options.counters) require_emulator(driver, "--counters");
  Trace trace(driver, files, options.trace_path);
  const Verified v = verify(driver, device, problem);
  trace.require_events();
  if (!options.out_path.empty()) save(files, options.out_path, problem.shape, v.d);
  files.commit();

  Report report(options.json);
  report_names(report, problem, device, v);
  report_comparison(report, v);
  if (sources) report_product(report, *sources, v);
  report_time(report, device, v);
  if (options.counters || !options.trace_path.empty()) report_counters(driver, report);
  if (!options.trace_path.empty()) report.line("trace", "%s", options.trace_path.c_str());
  report_verdict(report, v);
  report.line("verdict", "%s", v.kept() ? "PASS" : "FAIL");
  report.finish();
  return v.kept() ? kPassed : kFailed;
}

const support::DeviceInfo& device_of(const RunOptions& options,
                                     const std::vector<support::DeviceInfo>& devices) {
  if (size_t(options.device) < devices.size()) return devices[size_t(options.device)];
  throw UsageError("--device: " + std::to_string(options.device) + ", but the driver has " +
                   std::to_string(devices.size()) + " device(s)");
}

void refuse_with_epilogue(const RunOptions& options) {
  if (options.out_path.empty() && options.trace_path.empty() && !options.counters) return;
  throw UsageError("--out, --trace and --counters do not go with options of the epilogue");
}

void refuse_with_groups(const RunOptions& options) {
  if (is_general(fields_of(options))) {
    throw UsageError("options of the epilogue do not go with --groups");
  }
  if (options.out_path.empty() && options.trace_path.empty() && !options.counters) return;
  throw UsageError("--out, --trace and --counters do not go with --groups");
}

}  // namespace

int run(const RunOptions& given) {
  RunOptions options = given;
  const int64_t block = options.format == NVFP4_OPERAND_FORMAT_MXFP4 ? 32 : 16;
  if (options.shape.k % block != 0) {
    throw UsageError("--k: " + std::to_string(options.shape.k) + " is not a multiple of " +
                     std::to_string(block));
  }
  // Arguments and files come first: they are wrong with or without a driver.
  const support::Gaps gaps = gaps_of(options);
  const bool own = !options.a_path.empty();
  if (is_general(fields_of(options))) refuse_with_epilogue(options);
  if (!options.groups.empty()) refuse_with_groups(options);
  const Sources sources = own ? load_sources(options) : Sources{};
  const support::Driver& driver = support::Driver::get();
  const std::vector<support::DeviceInfo> devices = support::devices(driver);
  const support::DeviceInfo& device = device_of(options, devices);
  const support::Context context(driver, options.device);
  options = with_variant(options, device.compute_capability());
  if (options.headline) return headline(options, driver, device);
  if (!options.groups.empty()) return run_grouped(options, driver, device);
  if (!own) require_memory(options.shape, gaps, device);
  if (is_general(fields_of(options))) return run_general(options, driver, device);
  Problem problem = own ? problem_from(sources, options) : problem_from(options);
  if (!options.variant.empty()) problem.variant = options.variant.c_str();
  problem.pdl = options.pdl;
  problem.batch_invariant = options.batch_invariant;
  return run_one(options, problem, own ? &sources : nullptr, driver, device);
}

}  // namespace nvfp4_tool
