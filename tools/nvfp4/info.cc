// SPDX-License-Identifier: MIT
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/gpus.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

namespace {

// Why a device cannot run the kernels, or "". The library itself answers: it opens the driver and
// loads them.
std::string obstacle(const support::Driver& driver, int device) {
  try {
    const support::Context context(driver, device);
    return nvfp4_prepare() == NVFP4_SUCCESS ? "" : nvfp4_last_error();
  } catch (const support::DriverError& error) {
    return error.what();
  }
}

struct Tokens {
  int32_t type;
  const char* name;
};
constexpr Tokens kTokens[] = {
    {NVFP4_TYPE_NONE, "NVFP4"}, {NVFP4_TYPE_F16, "fp16"}, {NVFP4_TYPE_BF16, "bf16"}};

// Why the device and its driver compute no product of such tokens, or "": what the library answers
// to a plan.
std::string refusal(const support::Driver& driver, int device, int32_t a_type) {
  constexpr size_t kRoom = 4096;  // for each operand of a small product
  const support::Context context(driver, device);
  const support::DeviceBuffer memory(driver, 5 * kRoom);
  const auto at = [&](int i) { return static_cast<char*>(memory.pointer()) + i * kRoom; };
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = g.n = 16;
  g.k = 64;
  g.l = 1;
  g.alpha = 1;
  g.a = at(0), g.a_scales = a_type == NVFP4_TYPE_NONE ? at(1) : nullptr;
  g.a_type = a_type;
  g.b = at(2), g.b_scales = at(3), g.d = at(4);
  g.a_ld = g.b_ld = g.k;
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  if (a_type == NVFP4_TYPE_NONE) g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_ld = g.n;
  g.d_type = NVFP4_TYPE_F16;
  nvfp4_gemm_plan* plan = nullptr;
  if (nvfp4_gemm_plan_create(&g, &plan) != NVFP4_SUCCESS) return nvfp4_last_error();
  nvfp4_gemm_plan_destroy(plan);
  return "";
}

// The device runs kernels: for which tokens, and why not for the others.
void report_tokens(const support::Driver& driver, int index, Report& report, Json* row) {
  std::string names;
  std::vector<std::string> refusals;
  (*row)["tokens"] = Json::array();
  for (const Tokens& tokens : kTokens) {
    const std::string why_not = refusal(driver, index, tokens.type);
    if (why_not.empty()) {
      names += (names.empty() ? "" : ", ") + std::string(tokens.name);
      (*row)["tokens"].push_back(tokens.name);
    } else {
      refusals.push_back(std::string("not for ") + tokens.name + " tokens: " + why_not);
    }
  }
  report.line("", "runs the kernels for tokens in %s", names.c_str());
  for (const std::string& line : refusals) report.line("", "%s", line.c_str());
}

// Returns whether the device runs the kernels.
bool report_device(const support::Driver& driver, int index, const support::DeviceInfo& device,
                   Report& report) {
  const std::string capability = to_capability(device.compute_capability());
  const std::string why_not = obstacle(driver, index);
  report.line(("device " + std::to_string(index)).c_str(), "%s, compute capability %s, %d SMs, %s",
              device.name.c_str(), capability.c_str(), device.sms,
              to_bytes(double(device.memory)).c_str());
  Json row = {{"name", device.name},
              {"compute_capability", capability},
              {"sms", device.sms},
              {"memory_bytes", device.memory},
              {"emulated", device.emulated()},
              {"runs_the_kernels", why_not.empty()},
              {"obstacle", why_not.empty() ? Json() : Json(why_not)}};
  if (why_not.empty()) {
    report_tokens(driver, index, report, &row);
  } else {
    report.line("", "%s", why_not.c_str());
  }
  report["devices"].push_back(row);
  return why_not.empty();
}

// Returns whether device 0 runs the kernels.
bool report_driver(Report& report) {
  const support::Driver& driver = support::Driver::get();
  int version = 0;
  driver.check(driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  const std::string text =
      std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  report.line("driver", "libcuda.so.1, CUDA %s", text.c_str());
  report["driver"] = text;
  const std::vector<support::DeviceInfo> devices = support::devices(driver);
  if (devices.empty()) report.line("device", "none");
  bool first_runs = false;
  for (size_t i = 0; i < devices.size(); ++i) {
    const bool runs = report_device(driver, int(i), devices[i], report);
    if (i == 0) first_runs = runs;
  }
  return first_runs;
}

}  // namespace

int info(const InfoOptions& options) {
  Report report(options.json);
  report.line("library", "%s", nvfp4_build_info());
  report["library"] = nvfp4_build_info();
  report["driver"] = nullptr;
  report["devices"] = Json::array();
  bool answered = true, runs = false;
  try {
    runs = report_driver(report);
  } catch (const support::DriverError& error) {
    report.line("driver", "%s", error.what());
    report["obstacle"] = error.what();
    answered = false;
  }
  report.finish();
  return answered && (runs || !options.require_device) ? kPassed : kFailed;
}

}  // namespace nvfp4_tool
