// SPDX-License-Identifier: MIT
#include "tools/model/kernels.h"

#include <algorithm>

#include "kernel/sm100/tile.h"

namespace model {

// Operands come from shared memory at its rate, and 8192 multiplications of 8 bits' worth a clock
// bound the rest. A pair halves what each CTA reads of B; with 256 rows it does not quite.
double interval(const Machine& machine, const Mma& mma) {
  const double rows_a = mma.from_tensor_memory ? 0 : mma.group == 2 ? mma.m / 2.0 : mma.m;
  const double share = mma.group == 1 ? 1 : mma.m == 256 ? 0.75 : 0.5;
  const double operands = (rows_a + share * mma.n) * 32 / machine.shared_rate;
  const double math = mma.n * (mma.group == 2 ? mma.m / 2.0 : mma.m) / 256;
  const double copies = mma.scales * machine.scale_copy;
  return std::max(math, operands + copies) + machine.mma_gap;
}

double latency(const Mma& mma) {
  if (mma.group == 1) return (mma.from_tensor_memory ? 104 : 137) + mma.n / 2.0;
  return mma.m == 256 ? 173 + mma.n / 2.0 : 168 + mma.n / 4.0;
}

namespace {

double epilogue(const Machine& m, double columns, double bytes) {
  return columns / 16 * m.load_drain + bytes / m.epilogue_rate;
}

struct Issued {
  const char* kernel;
  double first_load, filling;
};
// Stall clocks of tools/gates/sass.txt, which model.mk turns into rows.
const Issued kIssued[] = {
#define ISSUED(kernel, first_load, filling) {#kernel, first_load, filling},
#include SASS_DEF
};

// Bytes and ring from kernel/sm100/tile.h; that they are what the emulator counts is a test.
template <typename Tile>
Kernel sm100_kernel(const Machine& m) {
  Kernel k;
  k.name = "sm100_" + std::to_string(Tile::kWeights) + "x" + std::to_string(Tile::kTokens);
  k.width = Tile::kCtas;
  k.tile_weights = Tile::kWeights;
  k.tile_tokens = Tile::kTokens;
  k.stage_k = Tile::kK;
  k.busy_clock = m.busy_clock;
  k.stages = Tile::kStages;
  k.weights = {double(Tile::kWeightBytes), double(Tile::kWeightScaleBytes), 2};
  k.tokens = {double(Tile::kTokenBytes), double(Tile::kTokenScaleBytes),
              1.0 + Tile::kTokenScaleBlocks};
  const Mma mma{int(Tile::kWeights), int(Tile::kTokens), int(Tile::kCtas), false,
                1 + int(Tile::kTokenScaleBlocks)};
  k.stage_clocks = Tile::kSteps * interval(m, mma);
  k.latency_clocks = latency(mma) - interval(m, mma);
  for (const Issued& issued : kIssued) {
    if (k.name != issued.kernel) continue;
    k.issue_clocks = issued.filling;
    k.start_clocks = issued.first_load;
  }
  if (Tile::kCtas == 2) k.start_clocks += m.cluster_barrier * m.clock;
  k.persistent = Tile::kSeveralTiles;
  k.accumulators = Tile::kAccumulators;
  k.stored_bytes = 2.0 * Tile::kCtaWeights * Tile::kTokens;
  k.epilogue_clocks = epilogue(m, Tile::kTokens, k.stored_bytes);
  return k;
}

}  // namespace

std::vector<Kernel> sm100_kernels(const Machine& m) {
  return {
#define SM100_TILE(weights, tokens) sm100_kernel<nvfp4::Sm100Tile##weights##x##tokens>(m),
#include "kernel/sm100/tiles.def"
  };
}

namespace {

// bf16, K-major; rows of A as weights, of B as tokens.
Kernel bf16_kernel(const Machine& m, const char* name, int rows_b, int stage_k, int stages,
                   int group) {
  Kernel k;
  k.name = name;
  k.tile_weights = 128 * group;
  k.tile_tokens = rows_b;
  k.stage_k = stage_k;
  k.stages = stages;
  k.width = group;
  k.weights = {128.0 * stage_k * 2};
  k.tokens = {double(rows_b / group) * stage_k * 2};
  k.busy_clock = m.bf16_busy_clock;
  const Mma mma{128 * group, rows_b, group};
  k.stage_clocks = stage_k / 16 * interval(m, mma);
  k.issue_clocks = stage_k / 16 * 12;
  k.latency_clocks = latency(mma) - interval(m, mma);
  k.start_clocks = group == 2 ? m.cluster_barrier * m.clock : 0;
  k.stored_bytes = 2.0 * 128 * rows_b;
  k.epilogue_clocks = epilogue(m, rows_b, k.stored_bytes);
  return k;
}

}  // namespace

std::vector<Kernel> learn_cuda_ladder(const Machine& m) {
  Kernel v1a = bf16_kernel(m, "v1a", 256, 256, 1, 1);
  v1a.weights.copies = v1a.tokens.copies = 32;
  v1a.weights.row_bytes = v1a.tokens.row_bytes = 16;
  Kernel v2a = bf16_kernel(m, "v2a", 256, 256, 1, 1);
  v2a.weights.copies = v2a.tokens.copies = 4;
  Kernel v6 = bf16_kernel(m, "v6", 256, 64, 7, 2);
  v6.persistent = true;
  v6.accumulators = 2;
  Kernel v7c = v6;
  v7c.name = "v7c";
  v7c.units = 64;
  return {v1a,
          v2a,
          bf16_kernel(m, "v3", 256, 128, 2, 1),
          bf16_kernel(m, "v4", 128, 64, 7, 1),
          bf16_kernel(m, "v5", 256, 64, 7, 2),
          v6,
          v7c};
}

Kernel public_nvfp4(const Machine& m) {
  Kernel k;
  k.name = "2-CTA 256x256";
  k.tile_weights = k.tile_tokens = 256;
  k.stage_k = 256;
  k.stages = 5;
  k.width = 2;
  k.weights = {128 * 128, 2048, 2};
  k.tokens = {128 * 128, 4096, 3};
  k.busy_clock = m.busy_clock;
  const Mma mma{256, 256, 2, false, 3};
  k.stage_clocks = 4 * interval(m, mma);
  k.issue_clocks = 4 * 40;
  k.latency_clocks = latency(mma) - interval(m, mma);
  k.start_clocks = m.cluster_barrier * m.clock;
  k.stored_bytes = 2.0 * 128 * 256;
  k.epilogue_clocks = epilogue(m, 256, k.stored_bytes);
  k.persistent = true;
  k.accumulators = 2;
  return k;
}

}  // namespace model
