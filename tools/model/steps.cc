// SPDX-License-Identifier: MIT
#include "tools/model/steps.h"

#include <algorithm>

#include "kernel/common/hardware.h"

namespace model {
namespace {

constexpr double kScaleAtom = 2048;  // of 128 rows and a stage of 256
constexpr double kRowBytes = 128;    // of a stage

int stages_in(const Kernel& k, double shared_bytes) {
  return int(shared_bytes / (k.weights.code_bytes + k.weights.scale_bytes + k.tokens.code_bytes +
                             k.tokens.scale_bytes));
}

// cta_group::2: weights of both CTAs together, tokens halved, the scales of all tokens in both.
Kernel pair(const Machine& m, const Kernel& like, int weights, int tokens) {
  Kernel k = like;
  k.name = "pair " + std::to_string(weights) + "x" + std::to_string(tokens);
  k.width = 2;
  k.tile_weights = weights;
  k.tile_tokens = tokens;
  k.weights = {weights / 2 * kRowBytes, kScaleAtom, 2};
  k.tokens = {tokens / 2 * kRowBytes, kScaleAtom * (tokens > 128 ? 2 : 1),
              tokens > 128 ? 3.0 : 2.0};
  k.stages = stages_in(k, nvfp4::kMaxSharedBytes);
  const Mma mma{weights, tokens, 2, false, tokens > 128 ? 3 : 2};
  k.stage_clocks = 4 * interval(m, mma);
  k.latency_clocks = latency(mma) - interval(m, mma);
  k.start_clocks += m.cluster_barrier * m.clock;
  k.stored_bytes = double(weights) * tokens;  // 2 bytes of half the tile
  k.epilogue_clocks = tokens / 16 * m.load_drain + k.stored_bytes / m.epilogue_rate;
  return k;
}

}  // namespace

const std::vector<Cut>& cuts() {
  static const std::vector<Cut> all{{64, 1, false},  {64, 2, false},  {64, 4, false},
                                    {128, 1, false}, {128, 2, false}, {128, 4, false},
                                    {64, 1, true},   {64, 2, true},   {64, 4, true},
                                    {128, 1, true},  {128, 2, true},  {128, 4, true}};
  return all;
}

Kernel cut_kernel(const Machine& m, const Cut& cut, const Shape& shape) {
  Kernel k = sm100_kernels(m, Tail::kFormula)[cut.tokens == 64 ? 0 : 1];
  // The second of two loads is asked for before the first is worked off.
  if (cut.ahead) k.epilogue_clocks -= cut.tokens / 32 * m.load_drain;
  return cut.parts == 1 ? k : split(m, k, cut.parts, clusters_of(cut.parts), shape.m);
}

std::vector<Step> steps(const Machine& m) {
  const std::vector<Kernel> now = sm100_kernels(m, Tail::kFormula);
  std::vector<Step> all{{now[0]}, {now[1]}};
  for (Kernel half : {now[0], now[1]}) {
    half.name += " half ring";
    half.stages = stages_in(half, nvfp4::kMaxSharedBytes / 2.0);
    all.push_back({half, 2});
  }
  all.push_back({split(m, now[0], 2, clusters_of(2))});
  all.push_back({split(m, now[1], 2, clusters_of(2))});
  all.push_back({split(m, now[1], 4, clusters_of(4))});
  all.push_back({pair(m, now[1], 128, 128)});
  all.push_back({pair(m, now[1], 256, 128)});
  all.push_back({split(m, pair(m, now[1], 128, 128), 2, 36)});
  all.push_back({split(m, pair(m, now[1], 256, 128), 2, 36)});
  return all;
}

}  // namespace model
