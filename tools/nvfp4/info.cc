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

// Returns whether the device runs the kernels.
bool report_device(const support::Driver& driver, int index, const support::DeviceInfo& device,
                   Report& report) {
  const std::string capability = to_capability(device.compute_capability());
  const std::string why_not = obstacle(driver, index);
  report.line(("device " + std::to_string(index)).c_str(), "%s, compute capability %s, %d SMs, %s",
              device.name.c_str(), capability.c_str(), device.sms,
              to_bytes(double(device.memory)).c_str());
  report.line("", "%s", why_not.empty() ? "runs the kernels" : why_not.c_str());
  report["devices"].push_back({{"name", device.name},
                               {"compute_capability", capability},
                               {"sms", device.sms},
                               {"memory_bytes", device.memory},
                               {"emulated", device.emulated()},
                               {"runs_the_kernels", why_not.empty()},
                               {"obstacle", why_not.empty() ? Json() : Json(why_not)}});
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
