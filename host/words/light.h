// SPDX-License-Identifier: MIT
// The speed-of-light bound: the least time that a GPU's memory and tensor cores allow for a
// problem.
#pragma once

#include "host/plan/arch.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// Bytes, each read or written once; scales are counted with their operand, without padding.
struct Traffic {
  double a, b, c, d;
  double all() const { return a + b + c + d; }
};
Traffic traffic(const nvfp4_gemm_desc& g);

struct Light {
  double memory_ns, math_ns;
};
// True if FP4 units form the products, false if fp16 units do.
bool is_by_fp4(const nvfp4_gemm_desc& desc, const Roofline& roof);

Light light_of(const nvfp4_gemm_desc& g, const Roofline& roof, int32_t sm_count);

}  // namespace nvfp4
