// SPDX-License-Identifier: MIT
#include "tools/nvfp4/gpus.h"

#include <cstdio>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> list = {
#define GPU(name, capability, sms) {#name, capability, sms},
#include "tools/nvfp4/gpus.def"
#undef GPU
  };
  return list;
}

int32_t parse_capability(const std::string& text) {
  int major = 0, minor = 0, end = 0;
  const auto whole = [&] { return end > 0 && size_t(end) == text.size(); };
  const bool digits = text.find_first_not_of("0123456789.") == std::string::npos;
  if (digits && std::sscanf(text.c_str(), "%2d.%1d%n", &major, &minor, &end) == 2 && whole()) {
    return 10 * major + minor;
  }
  if (digits && std::sscanf(text.c_str(), "%3d%n", &major, &end) == 1 && whole() && major >= 10) {
    return major;
  }
  throw UsageError("--compute-capability: " + text + " is none, such as 10.0 or 100");
}

std::string to_capability(int32_t capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

int32_t sms_of(int32_t capability) {
  for (const Gpu& gpu : gpus()) {
    if (gpu.capability == capability) return gpu.sms;
  }
  return gpus().front().sms;
}

}  // namespace nvfp4_tool
