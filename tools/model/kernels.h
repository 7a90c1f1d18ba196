// SPDX-License-Identifier: MIT
// A kernel as the simulation sees it, and the kernels that it is asked about.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/model/machine.h"

namespace model {

struct Shape {
  int64_t m, n, k;
};

// One operand of a stage, of one CTA.
struct Operand {
  double code_bytes = 0, scale_bytes = 0, copies = 1, row_bytes = 128;
};

// A unit is what computes a tile together: a CTA, or a pair of cta_group::2.
struct Kernel {
  std::string name;
  int64_t tile_weights = 128, tile_tokens = 128;  // of a unit
  int64_t stage_k = 256;
  int width = 1;   // CTAs of a unit
  int split = 1;   // units that share a tile along K
  int stages = 1;  // of the ring
  int ahead = 0;   // stages asked for beyond those that have arrived; 0: all
  Operand weights, tokens;

  // Clocks. Of a stage: what the matrix unit takes, what its thread issues, and what is behind the
  // last product until its slot is free.
  double stage_clocks = 0, issue_clocks = 0, latency_clocks = 0;
  double start_clocks = 0, epilogue_clocks = 0;
  double stored_bytes = 0;  // by a CTA, of D
  double exchange_ns = 0;   // parts of a tile meet
  double tokens_ns = 0;     // since the start, until tokens may be read
  bool persistent = false;  // units take tiles in turn, loads run ahead
  int accumulators = 1;
  int64_t units = 0;      // at once; 0: as many as the machine holds
  double busy_clock = 0;  // GHz that the power leaves where busy_share of the time is products
  bool weights_fastest = false;  // neighbouring units differ in weights

  int64_t tiles(const Shape& shape) const {
    return ((shape.m + tile_tokens - 1) / tile_tokens) *
           ((shape.n + tile_weights - 1) / tile_weights);
  }
};

// tcgen05.mma of 32 bytes a row: clocks from one to the next, and from issue to the waiting thread.
// `m`: rows of the pair for cta_group::2. `scales`: tcgen05.cp copies beside each.
struct Mma {
  int m, n, group;
  bool from_tensor_memory = false;
  int scales = 0;
};
double interval(const Machine& machine, const Mma& mma);
double latency(const Mma& mma);

// This library's for 10.x, by tokens of a tile: kernel/sm100/tile.h, tools/gates/sass.txt,
// traced.def.
std::vector<Kernel> sm100_kernels(const Machine& machine);
// gau-nernst/learn-cuda, 02e_matmul_sm100: bf16.
std::vector<Kernel> learn_cuda_ladder(const Machine& machine);
// The 2-CTA NVFP4 kernel of 256 x 256 tiles measured in F (parameters.def).
Kernel public_nvfp4(const Machine& machine);

}  // namespace model
