// SPDX-License-Identifier: MIT
// A table of `nvfp4 tune` for another command: the library opens no file, this program does.
#pragma once

#include <string>

#include "nvfp4_gemm.h"

namespace nvfp4_tool {

// The variant that the table has for the problem, "" where it has none. Throws UsageError with the
// library's sentence. `device` as the driver calls it; nullptr: any.
std::string tuned_variant(const std::string& path, const nvfp4_gemm_desc& problem,
                          const char* device, int32_t capability, int32_t sms);

// For people: "sm90_64x64x256, from tuning.csv", or that the planner's choice stays.
std::string tuned_text(const std::string& path, const std::string& variant);

}  // namespace nvfp4_tool
