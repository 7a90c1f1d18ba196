// SPDX-License-Identifier: MIT
// The sm_90a kernel on an H200, beside what `nvfp4_bench clocks` measured of it.
#pragma once

#include "tools/model/benchmarks.h"

namespace model {

// A tile "64x16" whose K is shared by `split` CTAs. False if the model has no such tile.
bool sm90_kernel(const Machine& machine, const std::string& tile, int split, Kernel* kernel);

// Spans of the rows of a CSV of nvfp4_bench clocks, of up to 128 tokens.
std::vector<Comparison> measured_spans(const Machine& machine, const std::string& clocks);

// Launches back to back in a graph, a CSV of nvfp4_bench gpu, of up to 16 tokens, before which no
// kernel decodes them; how many CTAs share K is in the other CSV.
std::vector<Comparison> measured_launches(const Machine& machine, const std::string& gpu,
                                          const std::string& clocks, bool programmatic);

// Over many comparisons: the median of |predicted / measured - 1|, and the share of them within 20
// %.
struct Errors {
  double median = 0, within_20 = 0, bias = 0;
};
Errors errors_of(const std::vector<Comparison>& comparisons);

}  // namespace model
