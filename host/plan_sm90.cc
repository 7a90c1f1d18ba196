// SPDX-License-Identifier: MIT
// Compute capability 9.0: which tile, and how many CTAs share one along K.
#include "host/plan.h"
#include "host/size.h"
#include "kernel/gemm_params.h"

namespace nvfp4 {

namespace {

// CTAs that run at once on an H200, by split, for kernels of one CTA per SM: 132 SMs, and clusters
// of 3, 4 and 8 leave some of a GPC's SMs empty (cuOccupancyMaxActiveClusters, 2026-11-21; not asked
// for 3, where 96 were seen to run at once). Constants
// and no questions to the device: a plan is the same on every GPU.
constexpr struct {
  uint32_t split;
  int64_t ctas;
} kSplits[] = {{1, 132}, {2, 132}, {3, 96}, {4, 120}, {8, 120}};

// What a CTA costs beside its stages: start, first bytes, sums to D; and an exchange of sums, for
// which 256 tokens took longer than four stages (M = 256, N = 7168, K = 2048: 18.7 us with them in two
// parts, 16.0 with tiles of 128 in one; H200, 2026-11-21).
constexpr int64_t kCtaClocks = 5000;
constexpr int64_t kSplitClocks = 900;
constexpr int64_t kSplitTokenClocks = 12;

// The longest running SM's clocks: the CTAs that it runs one after the other, or side by side, which
// takes as long.
int64_t clocks(const Variant& v, int64_t tiles, int64_t stages, uint32_t split, int64_t ctas) {
  const int64_t waves = ceil_div(tiles * split, ctas);
  const int64_t each = ceil_div(stages, split) * v.stage_clocks +
                       (split > 1 ? kSplitClocks + kSplitTokenClocks * v.tile_tokens : 0);
  return waves * each + ceil_div(waves, v.ctas_per_sm) * kCtaClocks;
}

}  // namespace

bool choose_split_sm90(const nvfp4_gemm_desc& desc, uint32_t variant_index, ChoiceSm90* choice) {
  const Variant& v = variant_at(variant_index);
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  *choice = {variant_index, 1, INT64_MAX};
  for (const auto& row : kSplits) {
    // Of more tiles than run at once none is split.
    if (row.split > 1 && (row.split > stages || tiles * row.split > row.ctas)) break;
    const int64_t cost = clocks(v, tiles, stages, row.split, row.ctas);
    if (cost < choice->clocks) *choice = {variant_index, row.split, cost};
  }
  return true;
}

ChoiceSm90 choose_sm90(const nvfp4_gemm_desc& desc) {
  ChoiceSm90 best{kVariant_sm90_128x256x256, 1, INT64_MAX};  // always legal: the checks counted it
  for (uint32_t i = kVariant_sm90_64x1x256; i <= kVariant_sm90_128x256x256; ++i) {
    ChoiceSm90 choice;
    if (choose_split_sm90(desc, i, &choice) && choice.clocks < best.clocks) best = choice;
  }
  return best;
}

}  // namespace nvfp4
