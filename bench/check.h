// SPDX-License-Identifier: MIT
// A call of the library that must succeed.
#pragma once

#include <stdexcept>

#include "nvfp4_gemm.h"

namespace bench {

inline void check(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

}  // namespace bench
