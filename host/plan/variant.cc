// SPDX-License-Identifier: MIT
#include "host/plan/variant.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/plan/apart.h"
#include "host/plan/family.h"
#include "host/problem/fields.h"
#include "kernel/sm100/tile.h"
#include "kernel/sm120/tile.h"
#include "kernel/sm80/tile.h"
#include "kernel/sm90/tile.h"

namespace nvfp4 {

namespace {

template <typename Tile>
constexpr Variant variant_of(const VariantNames& one, const VariantNames& apart,
                             const Family* family, int32_t a_type, uint32_t clocks) {
  Variant v{};
  v.name = one.whole;
  v.one = one;
  v.apart = apart;
  v.family = family;
  v.tile_weights = Tile::kWeights;
  v.tile_tokens = Tile::kTokens;
  v.tile_k = Tile::kK;
  v.tile_ctas = Tile::kCtas;
  v.stages = Tile::kStages;
  v.stage_bytes = Tile::kStageBytes;
  v.threads = Tile::kThreads;
  v.shared_bytes = Tile::kSharedBytes;
  v.ctas_per_sm = Tile::kCtasPerSm;
  v.workspace_tokens = Tile::kWorkspaceTokens;
  v.batch_invariant = Tile::kBatchInvariant;
  v.d_by_tma = Tile::kStoresByTma;
  v.several_tiles = Tile::kSeveralTiles;
  v.accumulators = Tile::kAccumulators;
  v.token_warps = Tile::kDecodingWarps;
  v.max_split = Tile::kMaxSplit;
  v.a_type = a_type;
  v.ue8m0 = Tile::kUe8m0Weights && a_type != NVFP4_TYPE_F16;
  v.stage_clocks = clocks;
  return v;
}

template <typename Tile>
constexpr Entry entry_of(const char* name) {
  return {name,
          Tile::kColumnsOfD,
          Tile::kStages,
          Tile::kStageBytes,
          Tile::kSharedBytes,
          Tile::kColumnsAllocated,
          Tile::kMaxSplit};
}

// The name of a variant contains the length of its k-block.
#define NVFP4_TEXT(x) #x
#define NVFP4_TEXT_OF(x) NVFP4_TEXT(x)
#define NVFP4_NAME(family, label, k) #family "_" #label "x" #k
#define NVFP4_NAMES(name, apart)                                                          \
  {                                                                                       \
    name apart, name "/even" apart, {                                                     \
      name "/1" apart, name "/2" apart, name "/3" apart, name "/4" apart, name "/8" apart \
    }                                                                                     \
  }
#define NVFP4_SET_ENTRY(family, Family, label, operation) \
  NVFP4_SET_ENTRY_BY(family, Family, label, operation, operation)
#define NVFP4_SET_ENTRY_BY(family, Family, label, operation, by)             \
  of.variants[kVariant_##family##_##label].entries[kOperation_##operation] = \
      entry_of<Family##_##operation<Family##Tile_##label>>(                  \
          "nvfp4_gemm_" #family "_" #label NVFP4_TEXT_OF(NVFP4_SUFFIX_##by));
struct Table {
  Variant variants[kVariantCount];
};
constexpr Table make_table() {
  Table of{{
#define VARIANT(family, label, tile, a_type, clocks, k)                                    \
  variant_of<tile>(NVFP4_NAMES(NVFP4_NAME(family, label, k), ""),                          \
                   NVFP4_NAMES(NVFP4_NAME(family, label, k), "/apart"), &kFamily_##family, \
                   NVFP4_TYPE_##a_type, clocks),
#include "host/plan/variants.def"
  }};
#define ENTRY(label, operation) NVFP4_SET_ENTRY(sm100, Sm100, label, operation)
#include "kernel/sm100/entries.def"
#define ENTRY(label, operation) NVFP4_SET_ENTRY(sm90, Sm90, label, operation)
#include "kernel/sm90/entries.def"
#define ENTRY(label, operation) NVFP4_SET_ENTRY(sm80, Sm80, label, operation)
#define ALSO(label, operation, by) NVFP4_SET_ENTRY_BY(sm80, Sm80, label, operation, by)
#include "kernel/sm80/entries.def"
#define ENTRY(label, operation) NVFP4_SET_ENTRY(sm120, Sm120, label, operation)
#include "kernel/sm120/entries.def"
#define SM90_PACKED_TILE(weights, tokens, stages, consumer, loader, f16_clocks, bf16_clocks) \
  of.variants[kVariant_sm90_f16_##weights##x##tokens].packed_clocks = f16_clocks;            \
  of.variants[kVariant_sm90_bf16_##weights##x##tokens].packed_clocks = bf16_clocks;
#include "kernel/sm90/tiles.def"
  return of;
}
constexpr Table kTable = make_table();
constexpr const Variant (&kVariants)[kVariantCount] = kTable.variants;
#define VARIANT(family, label, tile, a_type, clocks, k) \
  static_assert(tile::kK == k, "as the name says");
#include "host/plan/variants.def"

// check_gemm() counts the CTAs that the variant of the last row needs, and refuses a problem that
// needs too many. This is right only if no other variant needs fewer, so the last row is the
// widest.
constexpr uint32_t kWidest = kVariantCount - 1;
#define VARIANT(family, label, tile, ...)                                          \
  static_assert(tile::kWeights / tile::kCtas <= kVariants[kWidest].tile_weights && \
                    tile::kTokens <= kVariants[kWidest].tile_tokens,               \
                "no row is wider than the last");
#include "host/plan/variants.def"

constexpr bool fits_limits(const Variant& v) {
  return wrapping_k(v) * v.tile_tokens <= kMostWrappingElements &&
         wrapping_k(v) * v.tile_weights <= kMostWrappingElements &&
         int64_t{v.tile_tokens} * v.tile_weights <= kMostTileElements;
}
constexpr bool all_fit_limits() {
  for (const Variant& v : kVariants) {
    if (!fits_limits(v)) return false;
  }
  return true;
}
static_assert(all_fit_limits(), "a tile of wrapping_k() has no room in the self test");

constexpr bool all_have_words() {
  for (const Variant& v : kVariants) {
    if (v.ctas_per_sm > kMostCtasPerSm) return false;
  }
  return true;
}
static_assert(all_have_words(), "explain has no word for so many CTAs on an SM");

constexpr bool all_take_any() {
  for (const Variant& v : kVariants) {
    if (v.entries[kOperation_any].name == nullptr) return false;
  }
  return true;
}
static_assert(all_take_any(), "a row of tiles.def has no row `any` of entries.def");

nvfp4_status refuse_variant(const char* name) {
  char names[2048] = "";
  size_t length = 0;
  for (const Variant& known : kVariants) {
    length +=
        static_cast<size_t>(snprintf(names + length, sizeof names - length, " %s", known.name));
  }
  return fail(NVFP4_STATUS_INVALID_VALUE, "variant = \"%.64s\" is not one of:%s", name, names);
}

// Whether a tensor map can describe the batches of scales.
bool scales_fit_map(const Operand& x) {
  constexpr int64_t kStrideBytes = int64_t{1} << 40;  // strides of a tensor map are shorter
  int64_t stride = x.scales_stride;
  if (x.l == 1) return true;
  if (stride < 0) return false;  // b2 before b (apart.h)
  if (x.layout == NVFP4_SCALE_LAYOUT_LINEAR &&
      !scale_bytes_of(x, NVFP4_SCALE_LAYOUT_128X4, &stride)) {
    return false;
  }
  return stride < kStrideBytes;
}

// The same for packed weights, which the kernel counts in pieces of 512 bytes by an int32_t.
bool packed_fits_map(const nvfp4_gemm_desc& g) {
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  int64_t bytes;
  if (!packed_bytes(g.n, g.k, g.b_packing, g.operand_format, &bytes)) return false;
  const int64_t stride = g.l == 1 ? 0 : packed_batch_bytes(g);
  return bytes < kMostBytes && stride < kMostBytes;
}

bool takes_even_shares(const Variant& v) {
  const auto takes = v.family->takes_even_shares;
  return takes != nullptr && takes(v);
}

nvfp4_status refuse_partitions(const char* name, const Variant& variant) {
  char partitions[64] = "";
  size_t length = 0;
  for (const uint32_t each : kPartitionCounts) {
    if (!has_split(variant, each)) continue;
    length += static_cast<size_t>(
        snprintf(partitions + length, sizeof partitions - length, " /%" PRIu32, each));
  }
  if (takes_even_shares(variant)) {
    snprintf(partitions + length, sizeof partitions - length, " /even");
  }
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%.64s\": the numbers of K partitions of %s are%s, and /apart may follow",
              name, variant.name, partitions);
}

// Whether the text is the variant's name followed by a slash.
bool is_split_of(const char* name, const Variant& variant) {
  const size_t length = strlen(variant.name);
  return strncmp(name, variant.name, length) == 0 && name[length] == '/';
}

// Whether a batch-invariant problem may take variant v on the architecture. All variants that may
// be taken must add along K in the same order, and variants of two families differ in that order.
bool is_in_order(const Variant& v, const Architecture& arch) {
  if (!v.batch_invariant || v.family == arch.family) return v.batch_invariant;
  for (const Variant& other : kVariants) {
    if (other.family == arch.family && other.a_type == v.a_type) return false;
  }
  return true;
}

// The part of the name after the variant's own that says how K is divided; false: none says so.
bool find_split(const char* name, const Variant& variant, const VariantNames& names,
                uint32_t* split) {
  *split = 0;
  if (strcmp(name, names.whole) == 0) return true;
  *split = kEvenShares;
  if (takes_even_shares(variant) && strcmp(name, names.even) == 0) return true;
  for (uint32_t i = 0; i < kPartitionCountsSize; ++i) {
    if (!has_split(variant, kPartitionCounts[i]) || strcmp(name, names.split[i]) != 0) continue;
    *split = kPartitionCounts[i];
    return true;
  }
  return false;
}

}  // namespace

bool takes_decoded(const Variant& v, const nvfp4_gemm_desc& desc) {
  return v.family->decodes_tokens && v.ue8m0 && v.a_type == NVFP4_TYPE_BF16 &&
         desc.a_type == NVFP4_TYPE_NONE && desc.operand_format != NVFP4_OPERAND_FORMAT_NVFP4;
}

bool takes_operands(const Variant& v, const Architecture& arch, const nvfp4_gemm_desc& desc) {
  if (takes_decoded(v, desc)) return true;
  if (v.a_type != desc.a_type) return false;
  if (desc.operand_format == NVFP4_OPERAND_FORMAT_NVFP4) return true;
  return v.ue8m0 && (v.family->takes_ue8m0 == nullptr || v.family->takes_ue8m0(arch));
}

bool has_packed_weights(const nvfp4_gemm_desc& desc) {
  return desc.k > 0 && desc.b_packing != NVFP4_PACKING_NONE;
}

bool takes_gate(const Variant& v, const nvfp4_gemm_desc& desc) {
  if (v.has(kOperation_gated)) return true;
  return v.has(kOperation_gated_plain) && v.family->is_plain_gate(desc);
}

bool takes_weights(const Variant& v, const Architecture& arch, const nvfp4_gemm_desc& desc,
                   bool grouped) {
  const bool packed = has_packed_weights(desc), gated = is_gated(desc);
  if (!packed && !grouped && !gated) return true;  // every tile has such a kernel
  if (!packed && !grouped) return takes_gate(v, desc);
  if (!packed) return v.has(operation_of(grouped, gated, false));
  if (arch.family->packing != desc.b_packing) return false;
  if (arch.family->every_kernel_reads_packed && v.family != arch.family) return false;
  return v.has(operation_of(grouped, gated, has_packed_entries(*arch.family)));
}

bool adds_own_parts(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v) {
  const auto adds = v.family->adds_own_parts;
  return v.family == arch.family && adds != nullptr && adds(desc, v);
}

bool takes_token_packing(const Variant& v, const Architecture& arch, const nvfp4_gemm_desc& desc) {
  return !has_packed_tokens(desc) ||
         (arch.family->token_packing == desc.a_packing && v.workspace_tokens);
}

bool is_candidate(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v) {
  return serves(v, arch) && takes_operands(v, arch, desc) && takes_weights(v, arch, desc, false) &&
         takes_token_packing(v, arch, desc) &&
         (desc.batch_invariant == 0 || is_in_order(v, arch) || adds_own_parts(desc, arch, v)) &&
         has_scale_maps(desc, v);
}

bool has_scale_maps(const nvfp4_gemm_desc& desc, const Variant& v) {
  if (v.tile_ctas == 1) return true;
  const bool b_fits =
      has_packed_weights(desc) ? packed_fits_map(desc) : scales_fit_map(operand_b(desc));
  return b_fits && scales_fit_map(operand_a(desc));
}

const Variant& variant_at(uint32_t index) { return kVariants[index]; }

uint32_t index_of(const Variant& variant) { return static_cast<uint32_t>(&variant - kVariants); }

const Variant* served_variant(const Architecture& arch, uint32_t index) {
  for (const Variant& v : kVariants) {
    if (serves(v, arch) && index-- == 0) return &v;
  }
  return nullptr;
}

nvfp4_status find_variant(const char* name, Asked* asked) {
  *asked = {};
  if (name == nullptr) return NVFP4_SUCCESS;
  for (const Variant& known : kVariants) {
    if (strcmp(name, known.name) != 0 && !is_split_of(name, known)) continue;
    asked->variant = &known;
    if (find_split(name, known, known.one, &asked->split)) return NVFP4_SUCCESS;
    asked->apart = true;
    if (find_split(name, known, known.apart, &asked->split)) return NVFP4_SUCCESS;
    return refuse_partitions(name, known);
  }
  return refuse_variant(name);
}

const char* name_of(const Asked& asked) {
  const VariantNames& names = asked.apart ? asked.variant->apart : asked.variant->one;
  if (asked.split == kEvenShares) return names.even;
  for (uint32_t i = 0; i < kPartitionCountsSize; ++i) {
    if (kPartitionCounts[i] == asked.split) return names.split[i];
  }
  return names.whole;
}

bool tokens_repeat(const nvfp4_gemm_desc& g) {
  return g.l > 1 && g.a_batch_stride == 0 &&
         (g.a_type != NVFP4_TYPE_NONE || has_packed_tokens(g) ||
          g.a_scales_batch_stride_bytes == 0);
}

int64_t tiles_of_same_tokens(const nvfp4_gemm_desc& g, const Variant& v) {
  return ceil_div(g.n, v.tile_weights) * (tokens_repeat(g) ? g.l : 1);
}

const Variant& variant_of_fewest_tiles(const Variant* forced) {
  return forced != nullptr ? *forced : kVariants[kWidest];
}

bool count_tiles(const nvfp4_gemm_desc& desc, const Variant& variant, int64_t* of_matrix,
                 int64_t* of_all) {
  // Each is below 2^31, so the product is below 2^62.
  *of_matrix = ceil_div(desc.m, variant.tile_tokens) * ceil_div(desc.n, variant.tile_weights);
  return multiply(*of_matrix, desc.l, of_all) && *of_all <= most_tiles(variant);
}

}  // namespace nvfp4
