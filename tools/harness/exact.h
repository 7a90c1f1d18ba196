// SPDX-License-Identifier: MIT
// The sum of one element of D in double precision, and how far a correct kernel may be from it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/harness/parallel.h"
#include "tools/harness/problem.h"

namespace support {

// One element of D, before alpha.
struct Sum {
  double exact = 0;      // sum of a * scale_a * b * scale_b
  double magnitude = 0;  // S: the same sum over absolute values
  // Compute capability 10.x: what blocks of zeros under large scales may cost, of all 64-steps; and
  // what each step may lose of a sum that is subnormal, as UE8M0 scales can make it.
  double raised = 0, least = 0;
  bool halves = false;  // A is not quantized
  // By units of fp16 and bf16: 2^E, E the largest exponent of two factors together, an element *
  // scale counted as at least 2^-7, with UE8M0 scales 2^-124, and one that is not quantized as a
  // normal number of its type.
  double factors = 0;
};

// How far the tensor core's sum may be from `exact`: the bound of the header's NUMERICS for that
// compute capability, 10 * major + minor.
double accumulation_bound(const Sum& sum, int64_t k, int capability);

// What a GEMM result may be away from alpha * exact: that bound, then 2^-24 for the multiplication
// by alpha and half an ulp for the rounding to fp16.
double error_bound(const Sum& sum, int64_t k, float alpha, int capability);

// Calls visit(batch, row, column, sum) for every element, from several threads, each row from one.
void for_each_sum(const Problem& problem,
                  const std::function<void(int64_t, int64_t, int64_t, const Sum&)>& visit,
                  const Progress& progress = {});

}  // namespace support
