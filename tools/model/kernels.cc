// SPDX-License-Identifier: MIT
#include "tools/model/kernels.h"

#include <algorithm>

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

double epilogue(const Machine& machine, double columns, double bytes) {
  return columns / 16 * machine.load_drain + bytes / machine.epilogue_rate;
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
  k.token_group = 8;
  return k;
}

int64_t clusters_of(int parts) { return parts == 2 ? 74 : 36; }

Kernel split(const Machine& m, Kernel k, int parts, int64_t clusters, int64_t rows) {
  k.name += " split " + std::to_string(parts);
  const double sums =
      4.0 * double(k.tile_weights / k.width) * double(std::min(k.tile_tokens, rows));
  k.split = parts;
  k.units = clusters * parts;
  k.exchange_ns = 2 * m.cluster_barrier + sums * (parts - 1) / parts / m.push_rate;
  k.stored_bytes /= parts;
  k.epilogue_clocks /= parts;
  return k;
}

Kernel public_ladder(const Machine& m, int tokens, int parts) {
  Kernel k = sm100_kernels(m, Tail::kFormula)[tokens == 64 ? 0 : 1];
  k.name = "128x" + std::to_string(tokens);
  k.map_clocks = -1;  // nobody has counted theirs
  if (parts == 1) return k;
  k = split(m, k, parts, clusters_of(parts), tokens);
  k.stored_bytes = 4.0 * 128 * tokens;
  k.epilogue_clocks = epilogue(m, tokens, k.stored_bytes);
  k.exchange_ns = 0;
  return k;
}

}  // namespace model
