// SPDX-License-Identifier: MIT
#include "host/plan/plan.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "host/size.h"
#include "host/status.h"
#include "kernel/sm100/tile.h"
#include "kernel/sm90/tile.h"

namespace nvfp4 {

namespace {

#define VARIANT(name, entry, tile, capabilities, clocks) \
  {#name,                                                \
   #entry,                                               \
   tile::kWeights,                                       \
   tile::kTokens,                                        \
   tile::kK,                                             \
   tile::kStages,                                        \
   tile::kStageBytes,                                    \
   tile::kThreads,                                       \
   tile::kSharedBytes,                                   \
   tile::kColumnsAllocated,                              \
   tile::kCtasPerSm,                                     \
   tile::kWorkspaceTokens,                               \
   tile::kSeveralTiles,                                  \
   capabilities,                                         \
   clocks},
constexpr Variant kVariants[] = {
#include "host/plan/variants.def"
};
#undef VARIANT

// The checks admit whatever the last row has few enough tiles for, so no row may have fewer.
constexpr uint32_t kWidest = kVariantCount - 1;
#define VARIANT(name, entry, tile, capabilities, clocks)             \
  static_assert(tile::kWeights <= kVariants[kWidest].tile_weights && \
                    tile::kTokens <= kVariants[kWidest].tile_tokens, \
                "no row is wider than the last");
#include "host/plan/variants.def"
#undef VARIANT
static_assert(kCapabilities[0] == 100 && kServes100 == 1u << 0);
static_assert(kCapabilities[1] == 103 && kServes103 == 1u << 1);
static_assert(kCapabilities[2] == 90 && kServes90 == 1u << 2);
constexpr uint32_t kWidest100 = kVariant_sm100_128x256x256;

// fp16 tokens: [L][K, a multiple of 256][M, a multiple of the tile].
nvfp4_status count_workspace(const nvfp4_gemm_desc& desc, Plan* plan) {
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

nvfp4_status refuse_variant(const char* name) {
  char names[512] = "";
  size_t length = 0;
  for (const Variant& known : kVariants) {
    length +=
        static_cast<size_t>(snprintf(names + length, sizeof names - length, " %s", known.name));
  }
  return fail(NVFP4_STATUS_INVALID_VALUE, "variant = \"%.64s\" is none of:%s", name, names);
}

nvfp4_status refuse_capability(int32_t capability) {
  char served[64] = "";
  size_t length = 0;
  for (const int32_t c : kCapabilities) {
    length += static_cast<size_t>(
        snprintf(served + length, sizeof served - length, " %s", capability_text(c).text));
  }
  return fail(NVFP4_STATUS_UNSUPPORTED_ARCH,
              "compute capability %s has no kernel here; served are:%s",
              capability_text(capability).text, served);
}

nvfp4_status refuse_variant_of_others(const Variant& variant, int32_t capability) {
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%s\" has no kernel for compute capability %s", variant.name,
              capability_text(capability).text);
}

// ---- the rule -----------------------------------------------------------------------------------
//
// Compute capability 10.x (9.0: plan/sm90.cc). The variant that keeps an SM busy for the shortest time, counted in rows that it fetches:
//
//     ceil(tiles / 148) * (tile weights + tile tokens)          ties: the wider
//
// 148 CTAs run at once on a B200, one per SM, since a variant's ring fills the shared memory. It is
// a constant and not a question to the device: a plan is the same on every GPU. What is known (none
// of it measured by us):
//   * Published ladder on a B200 for this kernel's design, M = 128, weights on MMA-M (gau-nernst,
//     gpu-mode-kernels, nvfp4_gemm, v0c to v2): 64 tokens instead of 128 took 22.6 to 20.0, 12.4 to
//     10.3 and 8.25 to 7.74 us, for 56, 32 and 56 tiles that became 112, 64 and 112. Where the
//     wave is not full, more CTAs fetch more bytes at once, and each has fewer to fetch.
//   * An MMA of 64 tokens runs at 64 to 66 % of the full rate, one of 128 at all of it, so a second
//     wave of narrow tiles is worth less than one of wide ones: the rule counts 192 rows for 64
//     tokens against 256 for 128, a ratio of 0.75.
//   * With many tokens every row of tiles reads the weights again: 256 tokens halve that traffic.
uint32_t choose_variant(const nvfp4_gemm_desc& desc) {
  uint32_t best = kWidest100;  // always legal: the checks counted its tiles
  int64_t best_rows = INT64_MAX;
  for (uint32_t i = kVariantCount; i-- > 0;) {
    if ((kVariants[i].capabilities & kServes100) == 0) continue;
    int64_t matrix, tiles;
    if (!count_tiles(desc, kVariants[i], &matrix, &tiles)) continue;
    const int64_t rows = rows_fetched(kVariants[i], tiles);
    if (rows >= best_rows) continue;
    best = i;
    best_rows = rows;
  }
  return best;
}

}  // namespace

const Variant& variant_at(uint32_t index) { return kVariants[index]; }

int64_t rows_fetched(const Variant& v, int64_t tiles) {
  return ceil_div(tiles, kWave) * (v.tile_weights + v.tile_tokens);
}

CapabilityText capability_text(int32_t capability) {
  CapabilityText number;
  if (capability < 0) {
    snprintf(number.text, sizeof number.text, "%" PRId32, capability);
  } else {
    snprintf(number.text, sizeof number.text, "%" PRId32 ".%" PRId32, capability / 10,
             capability % 10);
  }
  return number;
}

nvfp4_status find_capability(int32_t capability, uint32_t* index) {
  for (*index = 0; *index < kCapabilityCount; ++*index) {
    if (kCapabilities[*index] == capability) return NVFP4_SUCCESS;
  }
  return refuse_capability(capability);
}

nvfp4_status find_variant(const char* name, uint32_t* index) {
  for (*index = 0; *index < kVariantCount; ++*index) {
    if (strcmp(name, kVariants[*index].name) == 0) return NVFP4_SUCCESS;
  }
  return refuse_variant(name);
}

const Variant& variant_of_fewest_tiles(const nvfp4_gemm_desc& desc) {
  uint32_t index = kWidest;
  if (desc.variant != nullptr) find_variant(desc.variant, &index);
  return kVariants[index];
}

bool count_tiles(const nvfp4_gemm_desc& desc, const Variant& variant, int64_t* of_matrix,
                 int64_t* of_all) {
  // Below 2^31 each, so below 2^62 together.
  *of_matrix = ceil_div(desc.m, variant.tile_tokens) * ceil_div(desc.n, variant.tile_weights);
  return multiply(*of_matrix, desc.l, of_all) && *of_all <= kMaxTiles;
}

uint32_t count_ctas(const Plan& plan, int32_t sm_count) {
  const bool several = plan.variant->several_tiles && plan.split == 1;
  const uint32_t at_once = static_cast<uint32_t>(sm_count) * plan.variant->ctas_per_sm;
  return several && plan.grid > at_once ? at_once : plan.grid;
}

nvfp4_status make_plan(const nvfp4_gemm_desc& desc, int32_t capability, Plan* plan) {
  NVFP4_TRY(find_capability(capability, &plan->capability_index));
  plan->split = 1;
  if (capability == 90) {
    const ChoiceSm90 choice = choose_sm90(desc);
    plan->variant_index = choice.variant_index;
    plan->split = choice.split;
  } else {
    plan->variant_index = choose_variant(desc);
  }
  if (desc.variant != nullptr) {
    NVFP4_TRY(find_variant(desc.variant, &plan->variant_index));
    const Variant& forced = kVariants[plan->variant_index];
    if (!serves(forced, plan->capability_index))
      return refuse_variant_of_others(forced, capability);
    ChoiceSm90 own;
    if (capability == 90 && choose_split_sm90(desc, plan->variant_index, &own))
      plan->split = own.split;
  }
  plan->variant = &kVariants[plan->variant_index];
  plan->tiles_m = static_cast<uint32_t>(ceil_div(desc.m, plan->variant->tile_tokens));
  plan->tiles_n = static_cast<uint32_t>(ceil_div(desc.n, plan->variant->tile_weights));
  // Below 2^31: the checks counted them.
  plan->grid = static_cast<uint32_t>(plan->tiles_m * static_cast<int64_t>(plan->tiles_n) * desc.l *
                                     plan->split);
  plan->workspace_bytes = 0;
  return plan->variant->workspace_tokens ? count_workspace(desc, plan) : NVFP4_SUCCESS;
}

}  // namespace nvfp4
