// SPDX-License-Identifier: MIT
#include "host/plan/grouped.h"

#include <algorithm>
#include <cinttypes>

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/plan/family.h"
#include "host/plan/proof.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

// The largest number of token tiles that any division of m rows among l groups can give. The worst
// division starts with one row for each group, and each group then has one tile. It adds all other
// rows to one group, which gets one more tile for every tile_tokens rows. If `capacity` is above 0,
// it is the most rows of a group. The worst division then gives every group `capacity` rows.
int64_t most_token_tiles(const nvfp4_gemm_desc& g, int64_t capacity, const Variant& v) {
  if (capacity > 0) return g.l * ceil_div(capacity, v.tile_tokens);
  const int64_t groups = std::min(g.m, g.l);
  return groups + (g.m - groups) / v.tile_tokens;
}

// Rows of groups that the workspace has a place for where a pre-pass decodes them: all that there
// may be. But with COUNTS most rows that may exist never do, so if rows_hint says how many are
// usual, four times as many. The kernel computes more rows than that, too, in longer time.
int64_t rows_in_workspace(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& g) {
  constexpr int64_t kTimesUsual = 4, kAtLeast = 256;
  if (desc.capacity == 0) return g.m;
  const int64_t most = desc.capacity * g.l;
  if (desc.rows_hint <= 0 || desc.rows_hint >= ceil_div(desc.capacity, kTimesUsual)) return most;
  return std::min(most, std::max(kTimesUsual * desc.rows_hint * g.l, kAtLeast));
}

// Whether the variant can read A's scales. If they are 128x4, each group begins a new tile of
// scales, which not every family's kernels can find.
bool takes_token_scales(const nvfp4_gemm_desc& g, const Variant& v) {
  return g.k == 0 || g.a_type != NVFP4_TYPE_NONE || g.a_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR ||
         v.family->finds_group_scales;
}

// The same for the scales that D gets.
bool makes_scales_of_d(const nvfp4_gemm_desc& g, const Variant& v) {
  return format_of_d(g.d_type) == nullptr || g.d_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR ||
         v.family->finds_group_scales;
}

bool has_kernel(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v) {
  return serves(v, arch) && takes_weights(v, arch, g, true) && takes_operands(v, arch, g) &&
         takes_token_scales(g, v) && makes_scales_of_d(g, v) && has_scale_maps(g, v);
}

// Whether v is one of the tiles that add every grouped product of that kind in one order, with K
// whole: the batch-invariant ones of its family, or if none of them has a kernel, the widest tile.
bool adds_in_one_order(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v) {
  if (v.batch_invariant) return true;
  const Variant* widest = &v;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& other = variant_at(i);
    if (other.family != v.family || !has_kernel(g, arch, other)) continue;
    if (other.batch_invariant) return false;
    widest = &other;
  }
  return widest == &v;
}

// Whether the variant's family is the first one of the architecture that has kernels.
bool is_of_first_family(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v) {
  if (v.family == arch.family) return true;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& other = variant_at(i);
    if (other.family == arch.family && has_kernel(g, arch, other)) return false;
  }
  return true;
}

bool is_grouped_candidate(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v) {
  if (!has_kernel(g, arch, v)) return false;
  return g.batch_invariant == 0 ||
         (is_of_first_family(g, arch, v) && adds_in_one_order(g, arch, v));
}

int64_t usual_rows(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& g) {
  return desc.rows_hint > 0 ? desc.rows_hint : ceil_div(g.m, g.l);
}

// The narrowest tile that holds the rows of a usual group; if no tile does, the widest. Variants
// are sorted from narrow to wide. If several tiles have the same number of tokens, the last one is
// taken, which has the most weights: a CTA then has fewer tiles, and waits less often for the end
// of a tile (docs/performance.md).
const Variant* usual_variant(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& g,
                             const Architecture& arch) {
  const int64_t usual = usual_rows(desc, g);
  const Variant* widest = nullptr;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    if (!is_grouped_candidate(g, arch, v) || !is_of_first_family(g, arch, v)) continue;
    if (widest != nullptr && widest->tile_tokens >= usual && v.tile_tokens > widest->tile_tokens) {
      break;
    }
    widest = &v;
  }
  return widest;
}

// On 9.0 up to 16 tokens of 16 bits take a tile of mma.sync, which multiplies no weights by tokens
// that are not there. The rule was made by the layers of bench/experts.def. Nine other layers, with
// K from 1024 to 6400, took 0.65 to 0.97 times as long in it at 4, 8 and 16 rows of bf16 tokens,
// packed 0.70 to 1.03, and of fp16 tokens 0.79 to 1.01, packed 0.72 to 1.06
// (bench/results/grouped-few-h200-2026-11-29.csv). With K = 512, where each warp has one k-block,
// they take up to 1.5. Gated products with K of 4096 and 7168 took 0.49 to 0.73 times as long
// (bench/results/gated-h200-2026-11-29.csv).
constexpr int64_t kLeastKOfMma = 768;

const Variant* few_rows_variant(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& g,
                                const Architecture& arch) {
  const int64_t usual = usual_rows(desc, g);
  if (arch.family != &kFamily_sm90 || g.batch_invariant != 0) return nullptr;
  if (g.k < kLeastKOfMma) return nullptr;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    if (v.family == &kFamily_sm80 && v.tile_tokens >= usual && is_grouped_candidate(g, arch, v)) {
      return &v;
    }
  }
  return nullptr;
}

nvfp4_status decide(const CheckedGrouped& checked, const Architecture& arch, const Variant** v) {
  const nvfp4_gemm_desc& g = *checked.gemm.desc;
  const Variant* const forced = checked.gemm.forced;
  NVFP4_TRY(check_packing(g, arch, true));
  *v = few_rows_variant(checked.known, g, arch);
  if (*v == nullptr) *v = usual_variant(checked.known, g, arch);
  if (*v == nullptr) {
    return fail(NVFP4_STATUS_NOT_SUPPORTED,
                "grouped products%s with a_type = %s, a_scale_layout = %s, operand_format = %s, "
                "d_type = %s, d_scale_layout = %s and batch_invariant = %" PRId32
                " have no kernel for compute capability %s",
                is_gated(g) ? " that are gated (b2)" : "",
                enumerator_name(Enumeration::type, g.a_type),
                enumerator_name(Enumeration::scale_layout, g.a_scale_layout),
                enumerator_name(Enumeration::operand_format, g.operand_format),
                enumerator_name(Enumeration::type, g.d_type),
                enumerator_name(Enumeration::scale_layout, g.d_scale_layout), g.batch_invariant,
                capability_text(arch.capability).text);
  }
  if (forced == nullptr) {
    return is_assembled(arch, (*v)->family) ? refuse_assembled(arch, **v) : NVFP4_SUCCESS;
  }
  if (checked.gemm.forced_apart) {
    return fail(NVFP4_STATUS_NOT_SUPPORTED,
                "variant = \"%.64s\" makes D apart, which no grouped product can have yet",
                g.variant);
  }
  *v = forced;
  if (is_grouped_candidate(g, arch, *forced)) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%s\" has no kernel for grouped products%s with a_type = %s, "
              "operand_format = %s and compute capability %s",
              forced->name, is_gated(g) ? " that are gated (b2)" : "",
              enumerator_name(Enumeration::type, g.a_type),
              enumerator_name(Enumeration::operand_format, g.operand_format),
              capability_text(arch.capability).text);
}

// If the family's CTAs compute several tiles of groups (on 9.0 and 10.x), K is not split. Otherwise
// K is split as for a batch-invariant product with a single row.
nvfp4_status decide_split(const CheckedGrouped& checked, const Architecture& arch, const Variant& v,
                          Choice* choice) {
  nvfp4_gemm_desc one = *checked.gemm.desc;
  one.batch_invariant = 1;
  one.m = one.l = 1;
  if (v.family->groups_iterate) {
    choice->split = 1;
    choice->cluster = v.tile_ctas;
  } else {
    v.family->choose_split(one, arch, v, choice);
  }
  const uint32_t forced = checked.gemm.forced_split;
  if (forced == 0 || forced == choice->split) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%.64s\" has another number of K partitions than this grouped product, "
              "which has %" PRIu32,
              one.variant, choice->split);
}

}  // namespace

nvfp4_status check_grouped(const nvfp4_grouped_desc* desc, Caller caller, CheckedGrouped* checked) {
  CheckedGemm& gemm = checked->gemm;
  NVFP4_TRY(check_grouped_kind(desc, caller, &checked->known, &gemm.known));
  const nvfp4_gemm_desc& g = gemm.known;
  gemm.desc = &g;
  NVFP4_TRY(take_variant(g, &gemm));
  const nvfp4_grouped_desc& x = checked->known;
  gemm.sizes_alone = asks_about_sizes(g, caller) && x.rows == nullptr && x.scale_rows == nullptr &&
                     x.group_alpha == nullptr && x.group_alpha2 == nullptr &&
                     x.group_d_tensor_scale == nullptr;
  gemm.empty = g.m == 0 || g.n == 0 || g.l == 0;
  if (gemm.empty) return NVFP4_SUCCESS;
  return check_grouped_operands(checked->known, g, caller, gemm.sizes_alone);
}

nvfp4_status make_grouped_plan(const CheckedGrouped& checked, int32_t capability, Plan* plan) {
  *plan = {};
  if (checked.gemm.empty) return NVFP4_SUCCESS;
  const nvfp4_gemm_desc& g = *checked.gemm.desc;
  NVFP4_TRY(find_architecture(capability, &plan->arch_index));
  NVFP4_TRY(decide(checked, plan->arch(), &plan->variant));
  Choice choice{};
  NVFP4_TRY(decide_split(checked, plan->arch(), *plan->variant, &choice));
  const int64_t tiles_m = most_token_tiles(g, checked.known.capacity, *plan->variant);
  const bool halves = is_gated(g) && plan->variant->family->gate_halves_tile;
  const int64_t n = halves ? 2 * g.n : g.n;
  const int64_t tiles_n = ceil_div(n, plan->variant->tile_weights);
  const uint32_t tile_ctas = plan->variant->tile_ctas;
  int64_t ctas;  // or pairs
  if (!multiply(tiles_m, tiles_n * choice.split, &ctas) || ctas > kMaxTiles) {
    return fail(NVFP4_STATUS_LIMIT,
                "the groups may have %" PRId64 " * %" PRId64 " tiles, of %" PRIu32
                " CTAs each; at most %" PRId64 " CTAs",
                tiles_m, tiles_n, choice.split, kMaxTiles);
  }
  plan->split = choice.split;
  plan->cluster = choice.cluster;
  plan->tiles_m = static_cast<uint32_t>(tiles_m);
  plan->tiles_n = static_cast<uint32_t>(tiles_n);
  plan->grid = static_cast<uint32_t>(ctas) * tile_ctas;
  plan->usual_rows = static_cast<uint32_t>(usual_rows(checked.known, g));
  plan->several = plan->variant->family->groups_iterate;
  plan->ctas_per_sm = plan->variant->ctas_per_sm;
  plan->gated = is_gated(g);
  plan->grouped = true;
  plan->packed = has_packed_weights(g);
  plan->group_rows = rows_in_workspace(checked.known, g);
  plan->shared_bytes = plan->entry().shared_bytes;
  plan->waits = true;
  if (g.k == 0) return NVFP4_SUCCESS;  // nothing is multiplied
  return plan->variant->family->complete(g, plan);
}

}  // namespace nvfp4
