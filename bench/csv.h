// SPDX-License-Identifier: MIT
// The table of nvfp4_bench gpu: what its columns are and how a row is written.
#pragma once

#include <string>

#include "bench/figures.h"
#include "tools/harness/problem.h"

namespace bench {

// Of one verified shape; 0 = not measured. pdl_us: a graph like that of `us`, each launch with
// NVFP4_PDL_ON_STATIC_WEIGHTS: it starts, and loads weights, before the one before has ended.
struct Ours {
  std::string variant;
  double a_bytes = kQuantizedBytes;  // of an element of A
  double us = 0, p10 = 0, p90 = 0, plain_us = 0, host_us = 0, pdl_us = 0, gpumode_us = 0;
  double bf16_bias_us = 0;  // as us, D in bf16 with a bias
};

// Microseconds of one GEMM by cuBLASLt: what its heuristic proposes first, and the best of its first
// proposals. 0: it does not do this one.
struct CublasTime {
  double first_us = 0, best_us = 0;
};
struct Others {
  CublasTime f16, e4m3, nvfp4;
};

std::string csv_columns();
// `node_us`: an empty node in a graph, which the roofline does not contain.
std::string csv_row(const support::Shape& shape, const Ours& ours, const Others& others,
                    const Rates& measured, double node_us);

// "%.3f" and the like; empty where there is no figure.
std::string figure(double value, const char* format);

}  // namespace bench
