// SPDX-License-Identifier: MIT
// Which of a shape's measured variants is worth a row of a table, and the table. Pure: tests give
// it times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/problem.h"

namespace nvfp4_tool {

// As a table has it: nvfp4, f16, bf16.
const char* word_of(int32_t a_type);

struct Measured {
  std::string variant;  // a name as desc.variant has it
  std::vector<double> us;
};

struct Statistic {
  double median, p10, p90;
  double spread() const { return p90 - p10; }
};
Statistic statistic_of(std::vector<double> us);  // of at least one

constexpr double kLeastGain = 0.01;

// The fastest by median of `others`, if it is faster than the planner's choice by more than the
// wider spread of the two and by 1 percent; else nullptr. Measured in turn, so that what the clock
// does it does to all.
const Measured* choose_variant(const Measured& planned, const std::vector<Measured>& others);

// The fastest few by median, to be measured again at length.
std::vector<size_t> finalists(const std::vector<Measured>& all, size_t count);

struct TunedRow {
  support::Shape shape;
  int32_t a_type;
  std::string variant;  // as desc.variant has it
  double planned_us, us;
};

// CSV, for a table of the program that serves these shapes: after two lines that say on what it was
// measured a row for each shape that gains.
std::string write_table(const std::string& device, int32_t capability, int32_t sms, bool any_bits,
                        const std::vector<TunedRow>& rows);

}  // namespace nvfp4_tool
