// SPDX-License-Identifier: MIT
#include "tools/model/machine.h"

namespace model {

const Machine kB200{
#define PARAMETER(name, unit, b200, h200, source) b200,
#include "tools/model/parameters.def"
};

const Machine kH200{
#define PARAMETER(name, unit, b200, h200, source) h200,
#include "tools/model/parameters.def"
};

const std::vector<Parameter> kParameters{
#define PARAMETER(name, unit, b200, h200, source) {#name, unit, source, &Machine::name},
#include "tools/model/parameters.def"
};

}  // namespace model
