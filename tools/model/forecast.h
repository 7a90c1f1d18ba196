// SPDX-License-Identifier: MIT
// What the model says of this library's kernel on a B200: 60 shapes.
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

// The resource that binds a kernel and shape.
std::string binding(const Machine& machine, const Kernel& kernel, const Shape& shape);

}  // namespace model
