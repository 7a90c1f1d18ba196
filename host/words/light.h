// SPDX-License-Identifier: MIT
// The least time that a GPU's memory and tensor cores allow a problem.
#pragma once

#include "host/plan/arch.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// Bytes, each read or written once; scales with their operand, without padding.
struct Traffic {
  double a, b, c, d;
  double all() const { return a + b + c + d; }
};
Traffic traffic(const nvfp4_gemm_desc& g);

struct Light {
  double memory_ns, math_ns;
};
Light light_of(const nvfp4_gemm_desc& g, const Roofline& roof, int32_t sm_count);

}  // namespace nvfp4
