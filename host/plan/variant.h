// SPDX-License-Identifier: MIT
// The kernel variants (variants.def has one row per variant), and the number of tiles that a
// variant needs for a problem.
#pragma once

#include <cstdint>

#include "host/plan/arch.h"
#include "kernel/common/operations.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// A kernel: a row of entries.def of its family, with the numbers by which the host plans and
// launches it.
struct Entry {
  const char* name;  // NULL: the tile has no kernel for the operation
  uint32_t columns;  // of D in a tile
  uint32_t stages, stage_bytes, shared_bytes, tmem_columns;
  uint32_t max_split;
};

// The numbers of K partitions that exist. has_split() says which of them a variant supports.
constexpr uint32_t kPartitionCounts[] = {1, 2, 3, 4, 8};
constexpr uint32_t kPartitionCountsSize = sizeof kPartitionCounts / sizeof kPartitionCounts[0];

// What a name that ends in "/even" asks for in place of a number of K partitions.
constexpr uint32_t kEvenShares = UINT32_MAX;

// The names that find_variant() takes.
struct VariantNames {
  const char* whole;
  const char* even;                         // "sm90_128x128x256/even"
  const char* split[kPartitionCountsSize];  // "sm90_64x16x256/2" for two K partitions
};

struct Variant {
  const char* name;
  VariantNames one, apart;  // D in one launch, and apart (apart.h): "sm90_64x16x256/2/apart"
  Entry entries[kOperationCount];
  const Family* family;
  uint32_t tile_weights, tile_tokens, tile_k;
  uint32_t tile_ctas;  // CTAs that compute a tile together; each loads its part of the operands
  uint32_t stages, stage_bytes;
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t tmem_columns;
  uint32_t ctas_per_sm;   // at most kMostCtasPerSm
  bool workspace_tokens;  // tokens are decoded into the workspace by the activation pre-pass
  // All variants with this flag add along K in the same order, if they have the same split.
  bool batch_invariant;
  bool d_by_tma;          // D is stored by TMA where its layout permits (host/family/d_store.h)
  bool several_tiles;     // a CTA computes one tile after the other
  uint32_t accumulators;  // 2: the epilogue of a tile overlaps the next tile's products
  // Number of token-decoding warps (0: none). With such warps, a CTA computes several tiles only
  // under two conditions: these tiles have the same tokens, and every K partition has at least as
  // many k-blocks as there are such warps.
  uint32_t token_warps;
  uint32_t max_split;
  int32_t a_type;  // type of its tokens: NVFP4_TYPE_NONE, _F16 or _BF16
  bool ue8m0;      // false: takes NVFP4 only; true: takes every operand format of its family
  uint32_t stage_clocks;
  uint32_t packed_clocks;  // the same with packed weights

  bool has(Operation operation) const { return entries[operation].name != nullptr; }
  // The kernel for gated products: the one that takes every such product, or if there is none, the
  // one that takes plain ones.
  const Entry& gated_entry() const {
    return entries[has(kOperation_gated) ? kOperation_gated : kOperation_gated_plain];
  }
};

// The operation that takes every product of a kind for which the variant has a kernel. Some
// variants have a kernel for plain gated products alone (Variant::gated_entry).
inline Operation operation_of(bool grouped, bool gated, bool packed) {
  if (packed) {
    if (grouped) return gated ? kOperation_packed_grouped_gated : kOperation_packed_grouped;
    return gated ? kOperation_packed_gated : kOperation_packed;
  }
  if (grouped) return gated ? kOperation_grouped_gated : kOperation_grouped;
  return gated ? kOperation_gated : kOperation_any;
}

constexpr uint32_t kMostCtasPerSm = 3;

enum VariantIndex : uint32_t {
#define VARIANT(family, label, ...) kVariant_##family##_##label,
#include "host/plan/variants.def"
  kVariantCount
};

const Variant& variant_at(uint32_t index);
uint32_t index_of(const Variant& variant);

// The index-th variant among those that serve the architecture; NULL beyond the last.
const Variant* served_variant(const Architecture& arch, uint32_t index);

// A variant that supports 8 K partitions also supports 3.
inline bool has_split(const Variant& v, uint32_t partitions) {
  return partitions <= v.max_split && (partitions != 3 || v.max_split == 8);
}

inline bool serves(const Variant& variant, const Architecture& arch) {
  return (variant.family == arch.family || variant.family == arch.also) &&
         variant.shared_bytes <= arch.shared_bytes;
}

// Whether tokens with UE8M0 scales are decoded to bf16 first, so that a kernel for bf16 tokens
// takes them.
bool takes_decoded(const Variant& v, const nvfp4_gemm_desc& desc);
bool takes_operands(const Variant& v, const Architecture& arch, const nvfp4_gemm_desc& desc);

// Whether the product reads packed weights; with K = 0 it reads none.
bool has_packed_weights(const nvfp4_gemm_desc& desc);

// Whether a variant has a kernel for such a product, single or grouped, that reads the weights in
// the order that they have.
bool takes_weights(const Variant& v, const Architecture& arch, const nvfp4_gemm_desc& desc,
                   bool grouped);
// Whether it reads the tokens in the order that they have.
bool takes_token_packing(const Variant& v, const Architecture& arch, const nvfp4_gemm_desc& desc);

// Whether each CTA of variant v adds the parts of all K partitions of the batch-invariant problem
// alone, in the order of the variants that have the flag batch_invariant.
bool adds_own_parts(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v);

// Whether the variant has a kernel for this gated product.
bool takes_gate(const Variant& v, const nvfp4_gemm_desc& desc);

// Whether the planner may choose the variant.
bool is_candidate(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v);

// Whether tensor maps can describe the scales, if the variant loads scales through tensor maps (its
// tiles then have two CTAs). The batches of scales, or of packed weights, must be less than 2^40
// bytes apart.
bool has_scale_maps(const nvfp4_gemm_desc& desc, const Variant& v);

// Whether all batches have the same tokens.
bool tokens_repeat(const nvfp4_gemm_desc& desc);

// The number of tiles that have the same tokens.
int64_t tiles_of_same_tokens(const nvfp4_gemm_desc& desc, const Variant& v);

// Whether a CTA may compute several tiles, given the number of tiles, the number of those with the
// same tokens, and the k-blocks of the shortest K partition.
inline bool takes_several_tiles(const Variant& v, int64_t tiles, int64_t same, int64_t stages) {
  return v.several_tiles && (v.token_warps == 0 || (tiles == same && stages >= v.token_warps));
}

// What desc.variant asks for.
struct Asked {
  const Variant* variant;  // NULL: the planner chooses
  uint32_t split;          // the number of K partitions in the name, kEvenShares, or 0: none
  bool apart;              // D is made apart (apart.h)
};

// Finds a variant by one of its names. If `name` is NULL, the result is {}. An unknown name is
// refused with the list of names.
nvfp4_status find_variant(const char* name, Asked* asked);

// The name that find_variant() takes for it. The library owns the string.
const char* name_of(const Asked& asked);

// A K for which a CTA with a single tile fills its ring and wraps around: two k-blocks more than
// the ring has stages. The self test computes one tile with this K. In this tile, an operand has at
// most kMostWrappingElements elements, and D has at most kMostTileElements.
inline constexpr int64_t wrapping_k(const Variant& v) { return int64_t{v.stages + 2} * v.tile_k; }
constexpr int64_t kMostWrappingElements = 576 * 1024;
constexpr int64_t kMostTileElements = 256 * 256;

constexpr int64_t kMaxTiles = INT32_MAX;  // grid.x, with one CTA per tile
inline int64_t most_tiles(const Variant& v) { return kMaxTiles / v.tile_ctas; }

// The variant that needs the fewest tiles for a problem. If a variant is forced, no other may be
// taken, so it is the forced one. Otherwise it is the widest.
const Variant& variant_of_fewest_tiles(const Variant* forced);

// Tiles of one matrix and of all batches. False if there are more than allowed.
bool count_tiles(const nvfp4_gemm_desc& desc, const Variant& variant, int64_t* of_matrix,
                 int64_t* of_all);

}  // namespace nvfp4
