// SPDX-License-Identifier: MIT
// What the model knows of a GPU: parameters.def.
#pragma once

namespace model {

struct Machine {
#define PARAMETER(name, unit, b200, h200, source) double name;
#include "tools/model/parameters.def"
};

struct Parameter {
  const char *name, *unit, *source;
  double Machine::*field;
};

inline constexpr Machine kB200{
#define PARAMETER(name, unit, b200, h200, source) b200,
#include "tools/model/parameters.def"
};

inline constexpr Machine kH200{
#define PARAMETER(name, unit, b200, h200, source) h200,
#include "tools/model/parameters.def"
};

inline constexpr Parameter kParameters[] = {
#define PARAMETER(name, unit, b200, h200, source) {#name, unit, source, &Machine::name},
#include "tools/model/parameters.def"
};

}  // namespace model
