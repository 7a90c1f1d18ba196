// SPDX-License-Identifier: MIT
// What nvfp4_gemm_explain says about a problem, line by line. The roofline of every command comes
// from here, so that there is one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvfp4_gemm.h"

namespace nvfp4_tool {

// The number after a word: "memory 8.800 at 7.68 TB/s" has 8.8 after "memory "; 0 without the word.
double number_after(const std::string& text, const std::string& word);

class Explained {
 public:
  // Throws UsageError with the library's sentence where it refuses.
  Explained(const nvfp4_gemm_desc& desc, int32_t capability, int32_t sms);

  const std::string& text() const { return text_; }
  // First word and the rest. What continues a line follows it with an empty first word.
  const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }
  std::string line(const std::string& key) const;  // "" if there is none

  // The least time that the GPU's memory and tensor cores allow; 0 where no kernel runs.
  double light_us() const { return std::max(memory_us_, math_us_); }
  double memory_us() const { return memory_us_; }
  double math_us() const { return math_us_; }
  // Which of the two it is, "" where neither.
  const char* limit() const;

 private:
  std::string text_;
  std::vector<std::pair<std::string, std::string>> lines_;
  double memory_us_ = 0, math_us_ = 0;
};

}  // namespace nvfp4_tool
