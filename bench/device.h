// SPDX-License-Identifier: MIT
// The GPU that is measured, what its driver says of it, its timer, and calls of the library, which
// must succeed.
#pragma once

#include <stdexcept>

#include "nvfp4_gemm.h"
#include "tools/harness/driver.h"
#include "tools/harness/gpu_timer.h"

namespace bench {

using support::GpuTimer;
using support::Launch;
using support::Series;

inline void check(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

struct Gpu {
  const support::Driver& driver;
  support::DeviceInfo info;
  CUdevice device{};
  double l2_bytes = 0, sm_mhz = 0, memory_mhz = 0, memory_bits = 0;

  explicit Gpu(const support::Driver& d) : driver(d), info(support::devices(d).at(0)) {
    d.check(d.cuDeviceGet(&device, 0), "cuDeviceGet");
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      d.check(d.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
      return double(value);
    };
    l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    sm_mhz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e3;
    memory_mhz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1e3;
    memory_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  }
  // Two transfers per clock; 4096 fp16 operations per SM and clock is Hopper's.
  double nominal_bytes_per_us() const { return memory_mhz * 2 * memory_bits / 8; }
  double nominal_operations_per_us() const {
    return info.major == 9 ? 4096.0 * info.sms * sm_mhz : 0;
  }
};

}  // namespace bench
