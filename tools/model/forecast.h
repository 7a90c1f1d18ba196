// SPDX-License-Identifier: MIT
// What the model says of this library's kernels on a B200: 60 shapes; grouped products, beside
// published times of other kernels; and kernels that do not exist yet, what a step would be worth.
#pragma once

#include "tools/model/simulate.h"

namespace model {

struct Forecast {
  Shape shape{};
  std::string kernel;      // the way that takes least
  std::vector<double> us;  // by each of ways(), 0 where it cannot be taken
  double best_us = 0, clock = 0;
  double engine_us = 0;        // the least of all ways for bf16 with a bias and factors
  double formula_us = 0;       // the least with a tile's end counted by its bytes, as before
  double programmatic_us = 0;  // of launches back to back, each; 0 where they are long
  double light_us = 0;  // bytes at 7.68 TB/s or products at the clock above, whichever takes longer
  std::string binds;    // what shortens the time most if it is a fifth faster
};

// Variants, narrow to wide, then those whose K is cut: "sm100_128x64/2".
struct Way {
  std::string name;
  size_t variant;
  int parts;
};
std::vector<Way> ways();

std::vector<Shape> forecast_shapes();
Forecast forecast(const Machine& machine, const Shape& shape);

// Weights as given and packed: the least times of a launch alone, and from the end of one to that
// of the next of programmatic launches of the same way; 0 where that computes several tiles.
struct PackedForecast {
  std::string kernel[2];
  double us[2], interval_us[2];
};
PackedForecast packed_forecast(const Machine& machine, const Shape& shape);

// The resource that binds a kernel and shape.
std::string binding(const Machine& machine, const Kernel& kernel, const Shape& shape);

struct Groups {
  std::vector<int64_t> rows;  // of each group
  int64_t n, k;
  int64_t hint;  // rows of a usual group; 0: the mean
  double published_us;
};
Groups even_groups(int64_t count, int64_t rows, int64_t n, int64_t k, double published_us);

// NVFP4 products, B200 class, three sources that are named there.
const std::vector<Groups>& published_groups();

// The layers of bench/experts.def.
struct Layer {
  std::string name;
  int64_t experts, n, k;
};
const std::vector<Layer>& expert_layers();

struct GroupedForecast {
  std::string kernel;     // the entry that takes least
  double us = 1e300;      // scales of tokens in 128x4 tiles
  double linear_us = 0;   // beside `us`: a kernel that tiles linear scales of the tokens
  double reading_us = 0;  // of all weights and their scales, at the rate of DRAM
  int64_t ctas = 0;       // of the launch, however many rows there could be
  std::vector<std::pair<std::string, double>> each;  // of every entry
};
GroupedForecast grouped_forecast(const Machine& machine, const Groups& groups);

// Microseconds of a kernel before the product that puts linear scales into 128x4 tiles.
double tiling_us(const Machine& machine, const std::vector<int64_t>& groups, int64_t k);

// Gated products: shape.n columns of D, each of two rows of weights.
struct GatedForecast {
  std::string kernel;
  double us = 1e300;
  double product_us = 0;  // of the rows of both matrices as one product, D in bf16
};
GatedForecast gated_forecast(const Machine& machine, const Shape& shape);

// The least time for another kind of epilogue, by each of ways().
struct KindForecast {
  std::string kernel;
  std::vector<double> us;
  double best_us = 0;
};
KindForecast kind_forecast(const Machine& machine, const Shape& shape, Tail tail);

// Kernels for 10.x that do not exist yet.
struct Step {
  Kernel kernel;
  int grids = 1;  // whose CTAs fit an SM
};

// The first is the kernel as it is, with tiles of 64 tokens.
std::vector<Step> steps(const Machine& machine);

// What a product of few tokens takes with tiles of 64 or 128 tokens whose K is cut into parts for
// the CTAs of a cluster, only the sums of tokens that exist being exchanged. `ahead`: two loads of
// tensor memory are under way in the epilogue.
struct Cut {
  int tokens, parts;
  bool ahead;
};
const std::vector<Cut>& cuts();
Kernel cut_kernel(const Machine& machine, const Cut& cut, const Shape& shape);

}  // namespace model
