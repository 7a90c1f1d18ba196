// SPDX-License-Identifier: MIT
// Which of a shape's measured variants deserves a row in a table, and the table. Pure functions,
// which tests call with times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/problem.h"

namespace nvfp4_tool {

// Word used in a table: nvfp4, f16, bf16.
const char* word_of(int32_t a_type);

struct Measured {
  std::string variant;  // a name for desc.variant
  std::vector<double> us;
};

struct Statistic {
  double median, p10, p90;
  double spread() const { return p90 - p10; }
};
Statistic statistic_of(const std::vector<double>& us);  // needs at least one

constexpr double kLeastGain = 0.01;

// The fastest of `others` by median, if it is faster than the planner's choice by more than 1
// percent and more than the wider spread of the two; otherwise nullptr. They are measured
// interleaved, so that the clock affects all equally.
const Measured* choose_variant(const Measured& planned, const std::vector<Measured>& others);

// The fastest few by median, to be measured again for longer.
std::vector<size_t> finalists(const std::vector<Measured>& all, size_t count);

struct TunedRow {
  support::Shape shape;
  int32_t a_type;
  std::string variant;  // name for desc.variant
  double planned_us, us;
};

// CSV for the table of a program that serves these shapes: two lines that say where it was
// measured, then a row for each shape that gains.
std::string write_table(const std::string& device, int32_t capability, int32_t sms, bool any_bits,
                        const std::vector<TunedRow>& rows);

}  // namespace nvfp4_tool
