// SPDX-License-Identifier: MIT
// What the model knows of a GPU: parameters.def.
#pragma once

#include <string>
#include <vector>

namespace model {

struct Machine {
#define PARAMETER(name, unit, b200, h200, source) double name;
#include "tools/model/parameters.def"
};

struct Parameter {
  const char *name, *unit, *source;
  double Machine::*field;
};

extern const Machine kB200, kH200;
extern const std::vector<Parameter> kParameters;

}  // namespace model
