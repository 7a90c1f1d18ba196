// SPDX-License-Identifier: MIT
// Verdicts on a result D: equal bits, or inside the error bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/problem.h"

namespace support {

struct BitVerdict {
  int64_t equal = 0, total = 0, non_zero = 0;
  std::string first_difference;  // "" if none

  // A result that is mostly zeros proves nothing and does not count as equal.
  bool trusted() const { return 10 * non_zero >= 9 * total; }
  bool passed() const { return equal == total && trusted(); }
};

BitVerdict compare_bits(const Shape& shape, const std::vector<uint16_t>& got,
                        const std::vector<uint16_t>& want);

struct BoundVerdict {
  int64_t total = 0;
  int64_t outside_bound = 0;      // of the header's NUMERICS, against the sum in double
  int64_t outside_tolerance = 0;  // |got - want| > 1e-3 + 1e-3 * |want|, want from the reference
  double largest_error = 0;       // |got - alpha * sum|, of what is finite
  double bound_there = 0;
  double largest_ratio = 0;  // error / bound over all elements
  std::string first_outside;

  bool passed() const { return total > 0 && outside_bound == 0 && outside_tolerance == 0; }
};

// Infinity and NaN are inside where a sum inside the bound may become them.
// `got` is from a device of that compute capability, or a sum at least as exact.
BoundVerdict compare_bound(const Problem& problem, const std::vector<uint16_t>& got,
                           const std::vector<uint16_t>& want, int capability,
                           const Progress& progress = {});

}  // namespace support
