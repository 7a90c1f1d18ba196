// SPDX-License-Identifier: MIT
// GPUs by name and by compute capability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nvfp4_tool {

struct Gpu {
  const char* name;
  int32_t capability, sms;
};

const std::vector<Gpu>& gpus();

// 90 for "9.0" and "90"; throws UsageError for anything that is no compute capability.
int32_t parse_capability(const std::string& text);
std::string to_capability(int32_t capability);  // "9.0"

// SMs of the GPU of that compute capability, or of a B200 if there is none.
int32_t sms_of(int32_t capability);

}  // namespace nvfp4_tool
