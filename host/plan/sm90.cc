// SPDX-License-Identifier: MIT
// Compute capability 9.0: which tile, and how many CTAs share one along K.
#include <cinttypes>
#include <cstdio>

#include "host/plan/plan.h"
#include "host/size.h"
#include "kernel/sm90/params.h"

namespace nvfp4 {

namespace {

// By split. Clusters of 3, 4 and 8 CTAs leave some of a GPC's SMs empty, one CTA to each
// (cuOccupancyMaxActiveClusters on an H200, 2026-11-21; not asked for 3, where 96 CTAs were seen to
// run at once). And what the exchange of sums takes with few tokens, in clocks (H200, 2026-11-21
// and 22, 2 and 3 parts; 4 and 8 follow the trend).
struct Split {
  uint32_t parts;
  int64_t empty_sms, clocks;
};
constexpr Split kSplits[] = {{1, 0, 0}, {2, 0, 2000}, {3, 36, 3200}, {4, 12, 3700}, {8, 12, 4300}};

// What a CTA costs beside its stages: start, first bytes; and the tokens' kernel before it, the
// rest of which is in the clocks of its tiles' stages.
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
Clocks clocks(const Variant& v, int64_t tiles, int64_t stages, const Split& split,
              int64_t ctas_at_once) {
  const int64_t waves = ceil_div(tiles * split.parts, ctas_at_once);
  const int64_t sums = int64_t{v.tile_weights} * v.tile_tokens;  // 4 bytes, in D 2
  const int64_t stored = 2 * sums / split.parts / kStoredBytesPerClock;
  const int64_t exchanged = 4 * sums * (split.parts - 1) / split.parts / kExchangedBytesPerClock;
  const int64_t ctas = v.several_tiles && split.parts == 1
                           ? kCtaClocks + (waves - 1) * kNextTileClocks
                           : ceil_div(waves, v.ctas_per_sm) * kCtaClocks;
  return {waves * ceil_div(stages, split.parts) * v.stage_clocks,
          waves * (stored + split.clocks + exchanged),
          ctas + (v.workspace_tokens ? kTokenKernelClocks : 0)};
}

// Tiles for tokens that are not quantized have no code for 3 and 8 CTAs.
bool has_split(const Variant& v, uint32_t parts) {
  return parts <= v.max_split && (parts != 3 || v.max_split == 8);
}

const Variant& narrow_variant(int32_t a_type) {
  switch (a_type) {
    case NVFP4_TYPE_F16: return variant_at(kVariant_sm90_f16_64x16x256);
    case NVFP4_TYPE_BF16: return variant_at(kVariant_sm90_bf16_64x16x256);
    default: return variant_at(kVariant_sm90_64x16x256);
  }
}

// Of a batch-invariant problem: what suits one tile of a few tokens, where a split gains most. N
// and K alone decide.
const Split& invariant_split(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  const Variant& v = narrow_variant(desc.a_type);
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  const int64_t tiles = ceil_div(desc.n, v.tile_weights);
  const Split* best = &kSplits[0];
  for (const Split& split : kSplits) {
    const int64_t at_once = arch.sm_count - split.empty_sms;
    if (!has_split(v, split.parts)) continue;
    if (split.parts > stages || tiles * split.parts > at_once) break;
    if (clocks(v, tiles, stages, split, at_once).all() <
        clocks(v, tiles, stages, *best, arch.sm_count - best->empty_sms).all()) {
      best = &split;
    }
  }
  return *best;
}

bool choose_split(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  if (desc.batch_invariant != 0) {
    const Split& split = invariant_split(desc, arch);
    const int64_t cost = clocks(v, tiles, stages, split, arch.sm_count - split.empty_sms).all();
    *choice = {&v, split.parts, split.parts, tiles, cost};
    return tiles * split.parts <= kMaxTiles;
  }
  *choice = {&v, 1, 1, tiles, INT64_MAX};
  for (const Split& split : kSplits) {
    const int64_t at_once = arch.sm_count - split.empty_sms;
    if (!has_split(v, split.parts)) continue;
    // Of more tiles than run at once none is split.
    if (split.parts > 1 && (split.parts > stages || tiles * split.parts > at_once)) break;
    const int64_t cost = clocks(v, tiles, stages, split, at_once).all();
    if (cost < choice->cost) *choice = {&v, split.parts, split.parts, tiles, cost};
  }
  return true;
}

// fp16 tokens: [L][K, a multiple of 256][M, a multiple of the tile].
nvfp4_status count_workspace(const nvfp4_gemm_desc& desc, Plan* plan) {
  if (!plan->variant->workspace_tokens) return NVFP4_SUCCESS;
  const int64_t rows = plan->tiles_m * static_cast<int64_t>(plan->variant->tile_tokens);
  const int64_t slabs = ceil_div(desc.k, kSm90StageK) * (kSm90StageK / kScaleTileK);
  int64_t bytes;
  if (!multiply(rows, slabs * kTokenRowBytes, &bytes) || !multiply(bytes, desc.l, &bytes)) {
    return fail(NVFP4_STATUS_LIMIT,
                "the tokens in fp16 need more than 2^63 - 1 bytes of workspace");
  }
  if (bytes > kMaxTokenBytes) {
    return fail(NVFP4_STATUS_LIMIT,
                "the tokens in fp16 are %" PRId64 " bytes; their kernel takes at most %" PRId64,
                bytes, kMaxTokenBytes);
  }
  plan->workspace_bytes = static_cast<uint64_t>(bytes);
  return NVFP4_SUCCESS;
}

Clocks predict(const nvfp4_gemm_desc& desc, const Plan& plan) {
  int64_t matrix, tiles;
  count_tiles(desc, *plan.variant, &matrix, &tiles);  // fit: there is a plan
  const Split* split = kSplits;
  while (split->parts != plan.split) ++split;
  return clocks(*plan.variant, tiles, ceil_div(desc.k, kSm90StageK), *split,
                plan.arch().sm_count - split->empty_sms);
}

void write_rule(const Architecture&, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text,
           "fewest clocks of the longest running SM, as the planner counts them");
}

void write_choice(const Choice& choice, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "split %" PRIu32 ", %" PRId64 " clocks", choice.split, choice.cost);
}

}  // namespace

const Planner kPlannerSm90{choose_split, false, count_workspace, write_rule, write_choice, predict};

}  // namespace nvfp4
