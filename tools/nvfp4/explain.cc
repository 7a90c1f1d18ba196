// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/explained.h"
#include "tools/nvfp4/gpus.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/tuning_file.h"

namespace nvfp4_tool {

namespace {

int32_t capability_of(const ExplainOptions& options) {
  if (options.capability) return parse_capability(*options.capability);
  for (const Gpu& gpu : gpus()) {
    if (options.gpu == gpu.name) return gpu.capability;
  }
  throw UsageError("--gpu: " + options.gpu + " is none of those known");
}

// The lines as they are, and those numbers of theirs that programs ask for.
void report_for_programs(const Explained& explained, const nvfp4_gemm_desc& g, int32_t capability,
                         int32_t sms, Report& report) {
  report["shape"] = {{"m", g.m}, {"n", g.n}, {"k", g.k}, {"l", g.l}};
  report["compute_capability"] = to_capability(capability);
  report["sms"] = sms;
  for (const auto& [key, rest] : explained.lines()) {
    if (key.empty() || key == "problem" || key == "device") continue;
    report[key.c_str()] = rest;
  }
  Json why = Json::array();
  bool here = false;
  for (const auto& [key, rest] : explained.lines()) {
    here = key == "why" || (here && key.empty());
    if (here) why.push_back(rest);
  }
  report["why"] = why;
  for (const char* key : {"split", "workspace", "bytes"}) {
    const std::string text = explained.line(key);
    if (!text.empty()) report[key] = std::strtoull(text.c_str(), nullptr, 10);
  }
  const std::string time = explained.line("time");
  const size_t limit = time.find("limit: ");
  if (limit != std::string::npos) {
    report["time"] = {{"predicted_us", std::strtod(time.c_str(), nullptr)},
                      {"limit", time.substr(limit + std::strlen("limit: "))}};
  }
  if (explained.light_us() == 0) return;
  report["light"] = {{"us", explained.light_us()},
                     {"memory_us", explained.memory_us()},
                     {"math_us", explained.math_us()},
                     {"limit", explained.limit()}};
}

}  // namespace

int explain(const ExplainOptions& options) {
  const int32_t capability = capability_of(options), sms = options.sms.value_or(sms_of(capability));
  nvfp4_gemm_desc g = describe(options.problem);
  const std::string& table = options.problem.tuning;
  std::string tuned;
  if (!table.empty()) tuned = tuned_variant(table, g, nullptr, capability, sms);
  if (!tuned.empty()) g.variant = tuned.c_str();
  const Explained explained(g, capability, sms);
  Report report(options.json);
  if (options.json) {
    if (!table.empty()) report["tuning"] = tuned_text(table, tuned);
    report_for_programs(explained, g, capability, sms, report);
  } else {
    std::fputs(explained.text().c_str(), stdout);
    if (!table.empty()) report.line("tuning", "%s", tuned_text(table, tuned).c_str());
  }
  report.finish();
  return kPassed;
}

}  // namespace nvfp4_tool
