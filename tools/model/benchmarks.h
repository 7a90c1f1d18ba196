// SPDX-License-Identifier: MIT
// What others measured, beside what the model says of it.
#pragma once

#include <string>
#include <vector>

#include "tools/model/simulate.h"

namespace model {

struct Comparison {
  std::string what;
  double measured, predicted;
  double ratio() const { return predicted / measured; }
};

// Micro-benchmarks: copies, products, what is taken as it is (launch, barriers, pushes).
std::vector<Comparison> micro_benchmarks(const Machine& machine);

// Kernels on a B200, in microseconds: the ladder of learn-cuda, then NVFP4 kernels of squares above
// 20 us.
std::vector<Comparison> public_kernels(const Machine& machine);

// The best that anybody has published for NVFP4 squares.
struct Square {
  int64_t size;
  std::string whose;
  double published_us;
};
const std::vector<Square>& public_squares();
// What the model says of them, as pairs of 256x256.
double square_us(const Machine& machine, int64_t size);

// Loops of launches below 20 us, which no parameter and no rule of the simulation was made for.
std::vector<Comparison> short_launches(const Machine& machine);

// From the smallest to the largest of predicted / measured.
struct Band {
  double low = 1, high = 1;
};
Band band_of(const std::vector<Comparison>& comparisons);

}  // namespace model
