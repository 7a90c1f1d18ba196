// SPDX-License-Identifier: MIT
// See instances.def.
#include "tools/testing/precompiled.h"

#define INSTANCE(...) template class __VA_ARGS__;
#include "tools/testing/instances.def"
