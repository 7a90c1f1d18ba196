// SPDX-License-Identifier: MIT
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/harness/driver.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

// What nvfp4_gemm_run would say to a plain problem on a device of that compute capability. The
// addresses are looked at, not read.
nvfp4_status supported(int compute_capability) {
  alignas(16) static unsigned char memory[8192];
  nvfp4_gemm_desc g =
      support::make_desc(support::make_problem({1, 1, 64, 1}), NVFP4_SCALE_LAYOUT_128X4);
  g.a = g.b = g.a_scales = g.b_scales = memory;
  g.d = memory + 4096;
  return nvfp4_gemm_supported(&g, compute_capability);
}

void print_device(size_t index, const support::DeviceInfo& device) {
  std::printf("device %zu  %s, compute capability %d.%d, %d SMs, %.0f GiB\n", index,
              device.name.c_str(), device.major, device.minor, device.sms,
              double(device.memory) / 0x1p30);
  const nvfp4_status status = supported(device.compute_capability());
  std::printf("          %s\n", status == NVFP4_SUCCESS ? "runs the kernels" : nvfp4_last_error());
}

}  // namespace

int info(const InfoOptions& options) {
  std::printf("library   %s\n", nvfp4_build_info());
  std::vector<support::DeviceInfo> devices;
  try {
    const support::Driver& driver = support::Driver::get();
    int version = 0;
    driver.check(driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
    std::printf("driver    libcuda.so.1, CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    devices = support::devices(driver);
    if (devices.empty()) std::printf("device    none\n");
  } catch (const support::DriverError& error) {
    std::printf("driver    %s\n", error.what());
  }
  for (size_t i = 0; i < devices.size(); ++i) print_device(i, devices[i]);
  const bool runs = !devices.empty() && supported(devices[0].compute_capability()) == NVFP4_SUCCESS;
  return options.require_device && !runs ? kFailed : kPassed;
}

}  // namespace nvfp4_tool
