// SPDX-License-Identifier: MIT
// The table of nvfp4_bench gpu: what its columns are and how a row is written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "tools/harness/problem.h"

namespace bench {

// Times of one verified shape; 0 = not measured. pdl_us: a graph like that of `us`, whose launches
// have NVFP4_PDL_ON_STATIC_WEIGHTS, so each starts and loads weights before the previous one has
// ended.
struct Ours {
  std::string variant;
  double a_bytes = kQuantizedBytes;  // of an element of A
  double us = 0, p10 = 0, p90 = 0, plain_us = 0, host_us = 0, pdl_us = 0, gpumode_us = 0;
  double bf16_bias_us = 0;  // as us, D in bf16 with a bias
  double silu_us = 0;       // the same through SiLU
  double c_us = 0;          // as us, with C in fp16
};

// The same weights with tokens that are not quantized.
struct HalfTokens {
  double us = 0, pdl_us = 0;
};

// Microseconds of one GEMM by cuBLASLt: what its heuristic proposes first, and the best of its
// first proposals, timed again beside ours. 0: it does not do this one.
struct CublasTime {
  double first_us = 0, best_us = 0;
};
struct Others {
  CublasTime f16, bf16, e4m3, nvfp4;
};

struct Row {
  support::Shape shape;
  Ours ours;
  HalfTokens f16_tokens, bf16_tokens;
  Others others;
  double peer_us = 0;     // of another program's kernel, bf16 tokens
  int sm_mhz = 0;         // right after the replays
  std::string slowed_by;  // what kept the clock down then
};

// What holds for all rows.
struct Yardstick {
  Rates rates;
  double node_us = 0;  // an empty node in a graph, which the roofline does not contain
};

// The names of the columns and a row's cells, empty where there is no figure.
std::vector<std::pair<const char*, std::string>> csv_cells(const Row& row, const Yardstick& by);
std::string csv_columns();
std::string csv_row(const Row& row, const Yardstick& by);

// "%.3f" and the like; empty where there is no figure.
std::string figure(double value, const char* format);

}  // namespace bench
