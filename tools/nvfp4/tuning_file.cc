// SPDX-License-Identifier: MIT
#include "tools/nvfp4/tuning_file.h"

#include <fstream>
#include <memory>
#include <sstream>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw UsageError(path + " cannot be read");
  return text.str();
}

void require(nvfp4_status status, const std::string& path) {
  if (status != NVFP4_SUCCESS) throw UsageError(path + ": " + nvfp4_last_error());
}

}  // namespace

std::string tuned_variant(const std::string& path, const nvfp4_gemm_desc& problem,
                          const char* device, int32_t capability, int32_t sms) {
  const std::string text = read(path);
  nvfp4_tuning* made = nullptr;
  require(nvfp4_tuning_create(text.data(), text.size(), device, capability, sms, &made), path);
  const std::unique_ptr<nvfp4_tuning, decltype(&nvfp4_tuning_destroy)> tuning(made,
                                                                              nvfp4_tuning_destroy);
  const char* variant = nullptr;
  require(nvfp4_tuning_variant(tuning.get(), &problem, &variant), path);
  return variant == nullptr ? "" : variant;
}

std::string tuned_text(const std::string& path, const std::string& variant) {
  if (variant.empty()) return path + " has no row for this: the planner chooses";
  return variant + ", from " + path;
}

}  // namespace nvfp4_tool
