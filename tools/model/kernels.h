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
  // A grouped product has the rows of each group, which has n weights of its own. m is then unused.
  std::vector<int64_t> groups = {};
};

// One operand of a stage, of one CTA.
struct Operand {
  double code_bytes = 0, scale_bytes = 0, copies = 1, row_bytes = 128;
};

// What depends on the rows of a tile of a grouped product.
struct RowsOfTile {
  Operand tokens;
  double stage_clocks = 0, latency_clocks = 0, epilogue_clocks = 0, stored_bytes = 0;
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

  // Clock cycles. For a k-block: the matrix unit's time, its thread's time to issue, and the time
  // from the last product until its stage is free.
  double stage_clocks = 0, issue_clocks = 0, latency_clocks = 0;
  double start_clocks = 0;  // until the first copy is asked for
  double map_clocks = -1;   // until the first tensor map is asked for; -1: with the first copy
  bool by_map = true;       // the first copy needs that map
  double bulk_clocks = 0;   // until the first copy is asked for, of packed weights
  int early_stages = 0;     // that are asked for before the launch before has ended; 0: all
  double epilogue_clocks = 0;
  double stored_bytes = 0;   // by a CTA, of D
  double exchange_ns = 0;    // parts of a tile meet
  double tokens_ns = 0;      // since the start, until tokens may be read
  bool persistent = false;   // units take tiles in turn, loads run ahead
  double search_clocks = 0;  // of each role, until it knows its next tile
  // Of a grouped product, for tiles of 1 to 16 rows, of 17 to 32, ..
  std::vector<RowsOfTile> by_rows;
  int accumulators = 1;
  double shared_part = 0;  // of an epilogue before the next tile, where accumulators overlap
  int64_t units = 0;       // at once; 0: as many as the machine holds
  double busy_clock = 0;   // GHz that the power leaves where busy_share of the time is products
  bool weights_fastest = false;     // neighbouring units differ in weights
  int64_t token_group = INT64_MAX;  // tiles of tokens that are taken with all weights, in turn

  int64_t token_tiles(int64_t rows) const { return (rows + tile_tokens - 1) / tile_tokens; }
  int64_t tiles(const Shape& shape) const {
    int64_t rows_of_tiles = shape.groups.empty() ? token_tiles(shape.m) : 0;
    for (const int64_t rows : shape.groups) rows_of_tiles += token_tiles(rows);
    return rows_of_tiles * ((shape.n + tile_weights - 1) / tile_weights);
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

// Clocks of a tile's end, by bytes of D.
double epilogue(const Machine& machine, double columns, double bytes);
// 148 SMs hold 74 clusters of 2 and, as seen in S (parameters.def), 36 of 4.
int64_t clusters_of(int parts);
// Parts of K in the CTAs of a cluster, each of which stores its share of the tile, its end by bytes
// of D. `clusters`: of these CTAs, how many are placed at once. `rows`: of the tile, how many there
// are.
Kernel split(const Machine& machine, Kernel kernel, int parts, int64_t clusters,
             int64_t rows = INT64_MAX);

// How a tile's end is counted. Formula: by bytes of D, as before the machine code of the tail was
// read, which is also how other people's kernels are. The others are clocks of
// tools/gates/sass.txt. Plain: fp16 of alpha times the sum. Engine: bf16 with a bias and factors on
// the device. Scaled: D with scales. The others are bf16 with C, SiLU, or the maxima of rows.
enum class Tail { kFormula, kPlain, kEngine, kScaled, kC, kSilu, kRowMaxima };

// This library's for 10.x, by tokens of a tile: kernel/sm100/tile.h, tools/gates/sass.txt,
// traced.def. `m`: tokens of the problem; of fewer than a tile has, no more are loaded and
// multiplied than Tile::box_tokens says.
std::vector<Kernel> sm100_kernels(const Machine& machine, Tail tail, int64_t m = 1 << 30);
// The same tile, whose K is cut into parts that exchange the sums of `rows` tokens and store a
// share each; `kernel` is a whole one of sm100_kernels.
Kernel sm100_split(const Machine& machine, Kernel kernel, Tail tail, int parts, int64_t rows);
// The same kernel with packed weights: one copy for codes and scales, which needs no tensor map but
// in a pair.
Kernel sm100_packed(const Machine& machine, Kernel kernel);
// The entry for gated products of a tile with so many tokens. Its weights are columns of D, each of
// which has two rows of weights.
Kernel sm100_gated(const Machine& machine, int64_t tile_tokens, int64_t m);
// The plain entries for grouped products, by tokens and then weights of a tile, D in bf16. A CTA
// makes a list of `groups` before its first load. A box of tokens has `usual_rows`, or all that a
// tile has.
std::vector<Kernel> sm100_grouped(const Machine& machine, int64_t groups, int64_t usual_rows);
// Nanoseconds to make that list, the rows of all groups being in the L2.
double list_ns(const Machine& machine, int64_t groups);
// gau-nernst/gpu-mode-kernels, nvidia/nvfp4_gemm: tiles of 128 weights, whole, or two parts whose
// sums meet in memory by atomic additions.
Kernel public_ladder(const Machine& machine, int tokens, int parts);
// gau-nernst/learn-cuda, 02e_matmul_sm100: bf16.
std::vector<Kernel> learn_cuda_ladder(const Machine& machine);
// The 2-CTA NVFP4 kernel of 256 x 256 tiles measured in F (parameters.def).
Kernel public_nvfp4(const Machine& machine);

}  // namespace model
