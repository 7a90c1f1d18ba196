// SPDX-License-Identifier: MIT
// What the library would do with a problem, by nvfp4_gemm_describe.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"

namespace support {

// Throws the library's sentence where it refuses the problem.
inline nvfp4_plan_info plan_info(const nvfp4_gemm_desc& desc, int32_t capability, int32_t sms) {
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  if (nvfp4_gemm_describe(&desc, capability, sms, &info) != NVFP4_SUCCESS) {
    throw std::runtime_error(nvfp4_last_error());
  }
  return info;
}

// The least time that the GPU's memory and tensor cores allow; 0 where no kernel multiplies.
inline double light_us(const nvfp4_plan_info& info) {
  return std::max(info.memory_ns, info.math_ns) / 1e3;
}

// The variants that a device of that capability can run.
inline std::vector<std::string> variant_names(int32_t capability) {
  std::vector<std::string> names;
  for (int32_t i = 0; const char* name = nvfp4_variant_name(capability, i); ++i) {
    names.emplace_back(name);
  }
  return names;
}

}  // namespace support
