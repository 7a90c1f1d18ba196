// SPDX-License-Identifier: MIT
// Compute capability 9.0: which tile, and how many CTAs share one along K.
#include "host/plan/plan.h"
#include "host/size.h"
#include "kernel/params.h"

namespace nvfp4 {

namespace {

// By split. CTAs that run at once on an H200, for kernels of one CTA per SM: 132 SMs, and clusters
// of 3, 4 and 8 leave some of a GPC's SMs empty (cuOccupancyMaxActiveClusters, 2026-11-21; not
// asked for 3, where 96 were seen to run at once). Constants and no questions to the device: a plan
// is the same on every GPU. And what the exchange of sums takes with few tokens, in clocks (H200,
// 2026-11-21 and 22, 2 and 3 parts; 4 and 8 follow the trend).
struct Split {
  uint32_t parts;
  int64_t ctas, clocks;
};
constexpr Split kSplits[] = {
    {1, 132, 0}, {2, 132, 2000}, {3, 96, 3200}, {4, 120, 3700}, {8, 120, 4300}};

// What a CTA costs beside its stages: start, first bytes; and the tokens' kernel before it, the rest
// of which is in the clocks of its tiles' stages.
constexpr int64_t kCtaClocks = 5000;
constexpr int64_t kTokenKernelClocks = 3300;

// Of a CTA, all of which store at once and read each other's sums at once: fitted together with
// kCtaClocks and the stages' clocks (docs/performance.md).
constexpr int64_t kStoredBytesPerClock = 12;
constexpr int64_t kExchangedBytesPerClock = 9;

// A further tile of a CTA that computes several, beside its stages and what it stores: it takes 4,750
// clocks less than a further CTA did (H200, 2026-11-22, (N, K) = (7168, 2048), from 512 to 1,024
// tokens 22.7 us against 25.1).
constexpr int64_t kNextTileClocks = kCtaClocks - 4750;

// The longest running SM's clocks: the CTAs that it runs one after the other, or side by side,
// which takes as long.
int64_t clocks(const Variant& v, int64_t tiles, int64_t stages, const Split& split) {
  const int64_t waves = ceil_div(tiles * split.parts, split.ctas);
  const int64_t sums = int64_t{v.tile_weights} * v.tile_tokens;  // 4 bytes, in D 2
  const int64_t each = ceil_div(stages, split.parts) * v.stage_clocks +
                       2 * sums / split.parts / kStoredBytesPerClock + split.clocks +
                       4 * sums * (split.parts - 1) / split.parts / kExchangedBytesPerClock;
  const int64_t rest = v.several_tiles && split.parts == 1
                           ? kCtaClocks + (waves - 1) * kNextTileClocks
                           : ceil_div(waves, v.ctas_per_sm) * kCtaClocks;
  return waves * each + rest + (v.workspace_tokens ? kTokenKernelClocks : 0);
}

}  // namespace

bool choose_split_sm90(const nvfp4_gemm_desc& desc, uint32_t variant_index, ChoiceSm90* choice) {
  const Variant& v = variant_at(variant_index);
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  *choice = {variant_index, 1, INT64_MAX};
  for (const Split& split : kSplits) {
    // Of more tiles than run at once none is split.
    if (split.parts > 1 && (split.parts > stages || tiles * split.parts > split.ctas)) break;
    const int64_t cost = clocks(v, tiles, stages, split);
    if (cost < choice->clocks) *choice = {variant_index, split.parts, cost};
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
