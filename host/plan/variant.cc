// SPDX-License-Identifier: MIT
#include "host/plan/variant.h"

#include <cstdio>
#include <cstring>

#include "host/size.h"
#include "kernel/sm100/tile.h"
#include "kernel/sm90/tile.h"

namespace nvfp4 {

namespace {

// Tokens are quantized but in tiles that say otherwise.
template <typename Tile>
struct TypeOfTokens {
  static constexpr int32_t kValue = NVFP4_TYPE_NONE;
};
template <uint32_t kWeights, uint32_t kTokens>
struct TypeOfTokens<Sm90WideTile<kWeights, kTokens, Sm90TokenType::f16>> {
  static constexpr int32_t kValue = NVFP4_TYPE_F16;
};
template <uint32_t kWeights, uint32_t kTokens>
struct TypeOfTokens<Sm90WideTile<kWeights, kTokens, Sm90TokenType::bf16>> {
  static constexpr int32_t kValue = NVFP4_TYPE_BF16;
};

template <typename Tile>
constexpr bool kStoresByTma = false;
template <uint32_t kTokens>
constexpr bool kStoresByTma<Sm100Tile<kTokens>> = Sm100Tile<kTokens>::kStoresByTma;

template <typename Tile>
constexpr bool kHasPlain = true;
template <uint32_t kTokens>
constexpr bool kHasPlain<Sm100Tile<kTokens>> = false;

template <typename Tile>
constexpr bool has_once() {
  if constexpr (kHasPlain<Tile>) return kHasOnceEntry<Tile>;
  return false;
}

template <typename Tile>
constexpr Variant variant_of(const char* name, const char* entry, const char* plain,
                             const char* once, Family family, uint32_t clocks) {
  Variant v{};
  v.name = name;
  v.entries[kEntryAny] = entry;
  v.entries[kEntryPlain] = kHasPlain<Tile> ? plain : nullptr;
  v.entries[kEntryOnce] = has_once<Tile>() ? once : nullptr;
  v.family = family;
  v.tile_weights = Tile::kWeights;
  v.tile_tokens = Tile::kTokens;
  v.tile_k = Tile::kK;
  v.stages = Tile::kStages;
  v.stage_bytes = Tile::kStageBytes;
  v.threads = Tile::kThreads;
  v.shared_bytes = Tile::kSharedBytes;
  v.tmem_columns = Tile::kColumnsAllocated;
  v.ctas_per_sm = Tile::kCtasPerSm;
  v.workspace_tokens = Tile::kWorkspaceTokens;
  v.batch_invariant = Tile::kBatchInvariant;
  v.d_by_tma = kStoresByTma<Tile>;
  v.several_tiles = Tile::kSeveralTiles;
  v.token_warps = Tile::kDecodingWarps;
  v.max_split = Tile::kMaxSplit;
  v.a_type = TypeOfTokens<Tile>::kValue;
  v.stage_clocks = clocks;
  return v;
}

constexpr Variant kVariants[] = {
#define VARIANT(name, entry, tile, family, clocks) \
  variant_of<tile>(#name, #entry, #entry "_plain", #entry "_once", Family::family, clocks),
#include "host/plan/variants.def"
#undef VARIANT
};

// The checks admit whatever the last row has few enough tiles for, so no row may have fewer.
constexpr uint32_t kWidest = kVariantCount - 1;
#define VARIANT(name, entry, tile, family, clocks)                   \
  static_assert(tile::kWeights <= kVariants[kWidest].tile_weights && \
                    tile::kTokens <= kVariants[kWidest].tile_tokens, \
                "no row is wider than the last");
#include "host/plan/variants.def"
#undef VARIANT

nvfp4_status refuse_variant(const char* name) {
  char names[1024] = "";
  size_t length = 0;
  for (const Variant& known : kVariants) {
    length +=
        static_cast<size_t>(snprintf(names + length, sizeof names - length, " %s", known.name));
  }
  return fail(NVFP4_STATUS_INVALID_VALUE, "variant = \"%.64s\" is none of:%s", name, names);
}

}  // namespace

const Variant& variant_at(uint32_t index) { return kVariants[index]; }

uint32_t index_of(const Variant& variant) { return static_cast<uint32_t>(&variant - kVariants); }

nvfp4_status find_variant(const char* name, const Variant** variant) {
  *variant = nullptr;
  if (name == nullptr) return NVFP4_SUCCESS;
  for (const Variant& known : kVariants) {
    if (strcmp(name, known.name) == 0) *variant = &known;
  }
  return *variant != nullptr ? NVFP4_SUCCESS : refuse_variant(name);
}

const Variant& variant_of_fewest_tiles(const Variant* forced) {
  return forced != nullptr ? *forced : kVariants[kWidest];
}

bool count_tiles(const nvfp4_gemm_desc& desc, const Variant& variant, int64_t* of_matrix,
                 int64_t* of_all) {
  // Below 2^31 each, so below 2^62 together.
  *of_matrix = ceil_div(desc.m, variant.tile_tokens) * ceil_div(desc.n, variant.tile_weights);
  return multiply(*of_matrix, desc.l, of_all) && *of_all <= kMaxTiles;
}

}  // namespace nvfp4
