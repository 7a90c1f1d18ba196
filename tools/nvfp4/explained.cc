// SPDX-License-Identifier: MIT
#include "tools/nvfp4/explained.h"

#include <cstdlib>
#include <sstream>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

double number_after(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + word.size(), nullptr);
}

Explained::Explained(const nvfp4_gemm_desc& desc, int32_t capability, int32_t sms) {
  char text[4096];
  if (nvfp4_gemm_explain(&desc, capability, sms, text, sizeof text) != NVFP4_SUCCESS) {
    throw UsageError(nvfp4_last_error());
  }
  text_ = text;
  std::istringstream in(text_);
  for (std::string line; std::getline(in, line);) {
    const size_t word = line.find(' ');
    const size_t rest = line.find_first_not_of(' ', word);
    lines_.emplace_back(line.substr(0, word), rest == std::string::npos ? "" : line.substr(rest));
  }
  const std::string light = this->line("light");
  memory_us_ = number_after(light, "memory ");
  math_us_ = number_after(light, " units ");
}

std::string Explained::line(const std::string& key) const {
  for (const auto& [word, rest] : lines_) {
    if (word == key) return rest;
  }
  return "";
}

const char* Explained::limit() const {
  if (light_us() == 0) return "";
  return memory_us_ >= math_us_ ? "memory" : "math";
}

}  // namespace nvfp4_tool
