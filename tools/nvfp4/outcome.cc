// SPDX-License-Identifier: MIT
#include "tools/nvfp4/outcome.h"

#include <cinttypes>
#include <cstdio>

#include "tools/harness/plan_info.h"
#include "tools/nvfp4/emulator.h"

namespace nvfp4_tool {

namespace {

void report_names(Report& report, const Outcome& o, const support::DeviceInfo& device) {
  const support::Shape& s = o.shape;
  const char* const epilogue = o.plan.epilogue == NVFP4_EPILOGUE_FAST ? "fast" : "general";
  report.line("shape", "%s", to_string(s).c_str());
  report.line("device", "%s", device.name.c_str());
  report.line("image", "%s", o.names.image.c_str());
  report.line("variant", "%s", o.names.variant.c_str());
  report.line("epilogue", "%s", epilogue);
  report["shape"] = {{"m", s.m}, {"n", s.n}, {"k", s.k}, {"l", s.l}};
  report["alpha"] = o.alpha;
  report["device"] = device.name;
  report["emulated"] = device.emulated();
  report["image"] = o.names.image;
  report["variant"] = o.names.variant;
  report["epilogue"] = epilogue;
}

void report_bits(Report& report, const Outcome& o) {
  const bool elements = std::string(o.unit) == "elements";
  report.line("bits", "%" PRId64 " of %" PRId64 "%s equal to the reference's%s", o.equal, o.total,
              elements ? "" : (std::string(" ") + o.unit).c_str(),
              o.exact ? "; every partial sum is exact, so all must be" : "");
  report["bits"] = {
      {"equal", o.equal}, {"total", o.total}, {"unit", o.unit}, {"exact_sums", o.exact}};
}

void report_time(Report& report, const Outcome& o, const support::DeviceInfo& device) {
  const double light = support::light_us(o.plan);
  if (!report.for_programs()) std::printf("%s\n", time_legend(device));
  report.line("time", "%s", duration(o.wall_seconds, o.device_seconds, light).c_str());
  report["wall_seconds"] = o.wall_seconds;
  report["device_us"] = device.emulated() ? Json() : Json(o.device_seconds * 1e6);
  if (light == 0) return;
  const bool memory = o.plan.memory_ns >= o.plan.math_ns;
  report.line("bound", "%.3f us at least on this GPU, the speed of light of its %s", light,
              memory ? "memory" : "tensor cores");
  report["light_us"] = light;
  report["light_limit"] = memory ? "memory" : "math";
  report["light_percent"] = device.emulated() ? Json() : Json(1e-4 * light / o.device_seconds);
}

void report_verdict(Report& report, const Outcome& o) {
  for (const std::string& note : o.notes) report.line("note", "%s", note.c_str());
  report["notes"] = o.notes;
  if (!o.right()) {
    report.line("first", "%s", o.first.c_str());
    report["first"] = o.first;
  }
  const char* const verdict = o.right() ? "PASS" : "FAIL";
  report["verdict"] = verdict;
  report.line("verdict", "%s", verdict);
}

}  // namespace

std::string duration(double wall_seconds, double device_seconds, double light_us) {
  char text[64];
  if (device_seconds == 0) {
    std::snprintf(text, sizeof text, "%.1f s", wall_seconds);
  } else if (light_us == 0) {
    std::snprintf(text, sizeof text, "%.2f us", device_seconds * 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.2f us, %.0f %%", device_seconds * 1e6,
                  1e-4 * light_us / device_seconds);
  }
  return text;
}

const char* time_legend(const support::DeviceInfo& device) {
  return device.emulated()
             ? "time: wall clock of the emulator; a device time is not measured there"
             : "time: median of 21 with cold caches, and percent of the speed of light";
}

int run_and_report(const RunOptions& options, const support::Driver& driver,
                   const support::DeviceInfo& device,
                   const std::function<Outcome(OutputFiles&)>& compute) {
  OutputFiles files;
  if (options.counters) require_emulator(driver, "--counters");
  const Trace trace(driver, files, options.trace_path);
  const Outcome o = compute(files);
  trace.require_events();
  files.commit();

  Report report(options.json);
  report_names(report, o, device);
  report_bits(report, o);
  if (o.more) o.more(report);
  report_time(report, o, device);
  if (options.counters || !options.trace_path.empty()) report_counters(driver, report);
  if (!options.trace_path.empty()) report.line("trace", "%s", options.trace_path.c_str());
  report_verdict(report, o);
  report.finish();
  return o.right() ? kPassed : kFailed;
}

}  // namespace nvfp4_tool
