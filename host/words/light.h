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
// Are the products those of FP4 units? Else of the fp16 ones.
bool is_by_fp4(const nvfp4_gemm_desc& desc, const Roofline& roof);

Light light_of(const nvfp4_gemm_desc& g, const Roofline& roof, int32_t sm_count);

}  // namespace nvfp4
