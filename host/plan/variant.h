// SPDX-License-Identifier: MIT
// The kernel variants, a row of variants.def each, and how many tiles one cuts a problem into.
#pragma once

#include <cstdint>

#include "host/plan/arch.h"
#include "kernel/common/gate.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// A variant's kernels: for every product; for plain ones; for plain ones of which a CTA computes a
// single tile (kernel/sm90/tile.h). Grouped products have one or two beside those, for all of them
// and for plain ones; plain products of MXFP4 weights have two, gated ones one. D with scales has
// one: on 9.0 for plain products with such a D, on 10.x for all of them, of which the first has none.
enum Entry : uint32_t {
  kEntryAny,
  kEntryPlain,
  kEntryOnce,
  kEntryGrouped,
  kEntryGroupedPlain,
  kEntryMxfp4,
  kEntryMxfp4Once,
  kEntryGated,
  kEntryScaled,
  kEntryCount
};

// Parts that K may be cut into. No variant has code for all of them: has_split().
constexpr uint32_t kPartsOfK[] = {1, 2, 3, 4, 8};
constexpr uint32_t kPartsOfKCount = sizeof kPartsOfK / sizeof kPartsOfK[0];

struct Variant {
  const char* name;
  const char* cut_names[kPartsOfKCount];  // "sm90_64x16x256/2" for two parts
  const char* entries[kEntryCount];       // NULL where it has none
  const Family* family;
  uint32_t tile_weights, tile_tokens, tile_k;
  uint32_t
      tile_ctas;  // a cluster of so many computes it: each loads its part of weights and tokens
  uint32_t stages, stage_bytes;
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t tmem_columns;
  uint32_t ctas_per_sm;
  bool workspace_tokens;  // decoded by a kernel of their own, into the workspace
  // All of a family that are add along K in the same order, for a given split.
  bool batch_invariant;
  bool d_by_tma;          // where D's layout lets it (host/family/d_store.h)
  bool several_tiles;     // a CTA computes one tile after the other
  uint32_t accumulators;  // 2: the epilogue of a tile runs under the next one's products
  // But only where all of them have the same tokens and each part of K has a stage for each warp
  // that decodes tokens: so many; 0 where none does.
  uint32_t token_warps;
  uint32_t max_split;
  int32_t a_type;  // of the tokens it takes: NVFP4_TYPE_NONE, _F16 or _BF16
  bool ue8m0;      // it takes every operand format, else NVFP4 alone
  uint32_t stage_clocks;
  GatedNumbers gated;  // of the entry for gated products, whose stages have more of two matrices

  bool takes_gate() const { return entries[kEntryGated] != nullptr; }
  bool takes_groups() const { return entries[kEntryGrouped] != nullptr; }
};

enum VariantIndex : uint32_t {
#define VARIANT(family, label, ...) kVariant_##family##_##label,
#include "host/plan/variants.def"
  kVariantCount
};

const Variant& variant_at(uint32_t index);
uint32_t index_of(const Variant& variant);

// The variant of that index among those that serve the architecture; NULL beyond the last.
const Variant* served_variant(const Architecture& arch, uint32_t index);

// Who has 8 parts has 3 as well.
inline bool has_split(const Variant& v, uint32_t parts) {
  return parts <= v.max_split && (parts != 3 || v.max_split == 8);
}

inline bool serves(const Variant& variant, const Architecture& arch) {
  return (variant.family == arch.family || variant.family == arch.also) &&
         variant.shared_bytes <= arch.shared_bytes;
}

// Tokens with UE8M0 scales that a kernel for tokens in bf16 takes, after they have been decoded.
inline bool takes_decoded(const Variant& v, const nvfp4_gemm_desc& desc) {
  return v.ue8m0 && v.a_type == NVFP4_TYPE_BF16 && desc.a_type == NVFP4_TYPE_NONE &&
         desc.operand_format != NVFP4_OPERAND_FORMAT_NVFP4;
}
inline bool takes_operands(const Variant& v, const nvfp4_gemm_desc& desc) {
  return (v.a_type == desc.a_type &&
          (v.ue8m0 || desc.operand_format == NVFP4_OPERAND_FORMAT_NVFP4)) ||
         takes_decoded(v, desc);
}

// May the planner take it?
bool is_candidate(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v);

// A tile of two CTAs loads scales by tensor maps, whose batches are less than 2^40 bytes apart.
bool has_scale_maps(const nvfp4_gemm_desc& desc, const Variant& v);

// May a CTA compute one tile after the other, of so many in all, so many along N, the shortest part
// of which has so many stages?
inline bool takes_several_tiles(const Variant& v, int64_t tiles, int64_t tiles_n, int64_t stages) {
  return v.several_tiles && (v.token_warps == 0 || (tiles == tiles_n && stages >= v.token_warps));
}

// The name of a variant, split 0; or one of its cut_names, with that many parts. NULL stays NULL;
// refuses a name that no variant has, with the list of those that are there.
nvfp4_status find_variant(const char* name, const Variant** variant, uint32_t* split);

// The same backwards, a string of the library's.
const char* name_of(const Variant& variant, uint32_t split);

// A K that the ring of a CTA which computes a tile alone wraps over: its stages and two more. The
// self test has one tile of it; the limits say how large its operands and D are at most.
inline constexpr int64_t wrapping_k(const Variant& v) { return int64_t{v.stages + 2} * v.tile_k; }
constexpr int64_t kMostWrappingElements = 576 * 1024;
constexpr int64_t kMostTileElements = 256 * 256;

constexpr int64_t kMaxTiles = INT32_MAX;  // grid.x, where each is a CTA's
inline int64_t most_tiles(const Variant& v) { return kMaxTiles / v.tile_ctas; }

// The variant that needs the fewest tiles for a problem: the forced one, else the widest.
const Variant& variant_of_fewest_tiles(const Variant* forced);

// Tiles of one matrix and of all batches. False if they are more than it may have.
bool count_tiles(const nvfp4_gemm_desc& desc, const Variant& variant, int64_t* of_matrix,
                 int64_t* of_all);

}  // namespace nvfp4
