// SPDX-License-Identifier: MIT
// The part of planning that all families share: it asks every variant for its best split and takes
// the cheapest.
#include "host/plan/plan.h"

#include <algorithm>
#include <cinttypes>

#include "host/base/size.h"
#include "host/plan/family.h"
#include "host/plan/proof.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

// Refuses a product with too many CTAs. check_gemm() has let this product pass, because it counts
// one CTA per tile. It takes the tiles of the forced variant; if none is forced, those of the
// widest variant. The plan may have more CTAs per tile, or narrower tiles.
nvfp4_status refuse_ctas(const CheckedGemm& checked) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  if (checked.forced_split > 1) {
    return fail(NVFP4_STATUS_LIMIT,
                "with variant = \"%.64s\" the product needs more than %" PRId64 " CTAs",
                desc.variant, kMaxTiles);
  }
  if (desc.batch_invariant == 0) {
    return fail(NVFP4_STATUS_LIMIT, "with a_type = %s the product needs more than %" PRId64 " CTAs",
                enumerator_name(Enumeration::type, desc.a_type), kMaxTiles);
  }
  return fail(NVFP4_STATUS_LIMIT,
              "with batch_invariant = 1 the product needs more than %" PRId64 " CTAs", kMaxTiles);
}

nvfp4_status refuse_variant(const nvfp4_gemm_desc& desc, const Variant& v,
                            const Architecture& arch) {
  if (!takes_token_packing(v, arch, desc)) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "variant = \"%s\" decodes tokens itself: a_packing = %s excludes it", v.name,
                enumerator_name(Enumeration::packing, desc.a_packing));
  }
  if (!has_scale_maps(desc, v)) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "variant = \"%s\" takes scales whose batches are less than 2^40 bytes apart",
                v.name);
  }
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%s\" adds along K in another order than the batch-invariant tiles of "
              "compute capability %s: batch_invariant = 1 excludes it",
              v.name, capability_text(arch.capability).text);
}

// Whether any variant of the architecture takes such operands.
bool has_kernel(const Architecture& arch, const nvfp4_gemm_desc& desc) {
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    if (serves(variant_at(i), arch) && takes_operands(variant_at(i), arch, desc)) return true;
  }
  return false;
}

nvfp4_status check_token_packing(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  if (!has_packed_tokens(desc) || arch.family->token_packing == desc.a_packing) {
    return NVFP4_SUCCESS;
  }
  return fail(
      NVFP4_STATUS_NOT_SUPPORTED,
      "a_packing = %s: no kernel for compute capability %s reads such tokens; quantize them "
      "to codes and scales",
      enumerator_name(Enumeration::packing, desc.a_packing), capability_text(arch.capability).text);
}

// Looks at all variants that take the operands. If all of them are assembled (proof.h), so that the
// planner may not choose any, returns the first; otherwise NULL.
const Variant* first_if_all_are_assembled(const Architecture& arch, const nvfp4_gemm_desc& desc) {
  const Variant* first = nullptr;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    if (!serves(v, arch) || !takes_operands(v, arch, desc)) continue;
    if (!is_assembled(arch, v.family)) return nullptr;
    if (first == nullptr) first = &v;
  }
  return first;
}

// Refuses operands that no kernel takes. If a kernel takes this a_type with the operand format
// NVFP4, the message also names the operand format, because another format would work.
nvfp4_status refuse_operands(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  nvfp4_gemm_desc nvfp4 = desc;
  nvfp4.operand_format = NVFP4_OPERAND_FORMAT_NVFP4;
  const char* const type = enumerator_name(Enumeration::type, desc.a_type);
  const CapabilityText capability = capability_text(arch.capability);
  if (!has_kernel(arch, nvfp4)) {
    return fail(
        NVFP4_STATUS_NOT_SUPPORTED,
        "a_type = %s has no kernel for compute capability %s, which computes tokens in fp16 "
        "and bf16 (NVFP4_TYPE_F16, NVFP4_TYPE_BF16)",
        type, capability.text);
  }
  return fail(NVFP4_STATUS_NOT_SUPPORTED,
              "operand_format = %s with a_type = %s has no kernel for compute capability %s",
              enumerator_name(Enumeration::operand_format, desc.operand_format), type,
              capability.text);
}

// Whether any variant has an entry for gated products.
bool has_gated_kernel(const Architecture& arch, const nvfp4_gemm_desc& desc) {
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    if (is_candidate(desc, arch, variant_at(i))) return true;
  }
  return false;
}

// Called if kernels exist for the operands: refuses b2 if none of them is for gated products.
nvfp4_status check_gate(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  if (!is_gated(desc)) return NVFP4_SUCCESS;
  if (desc.k == 0) return fail(NVFP4_STATUS_NOT_SUPPORTED, "b2 with k = 0 has no kernel");
  if (has_gated_kernel(arch, desc)) return NVFP4_SUCCESS;
  return fail(
      NVFP4_STATUS_NOT_SUPPORTED,
      "gated products (b2) with a_type = %s, operand_format = %s, batch_invariant = %" PRId32
      " have no kernel for compute capability %s",
      enumerator_name(Enumeration::type, desc.a_type),
      enumerator_name(Enumeration::operand_format, desc.operand_format), desc.batch_invariant,
      capability_text(arch.capability).text);
}

nvfp4_status refuse_split(const nvfp4_gemm_desc& desc, const char* why) {
  return fail(NVFP4_STATUS_INVALID_VALUE, "variant = \"%.64s\" %s", desc.variant, why);
}

nvfp4_status force_even_shares(const CheckedGemm& checked, const Architecture& arch,
                               Choice* choice) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  if (is_gated(desc)) {
    return refuse_split(desc, "has even shares, which a gated product cannot have");
  }
  if (desc.batch_invariant != 0) {
    return refuse_split(desc, "has even shares, which batch_invariant = 1 excludes");
  }
  if (checked.forced->family->share_evenly(desc, arch, *checked.forced, choice)) {
    return NVFP4_SUCCESS;
  }
  return refuse_split(desc, "has no even shares of this product: they would be too short");
}

nvfp4_status refuse_gate(const Variant& forced) {
  if (!forced.has(kOperation_gated_plain)) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "variant = \"%s\" has no kernel for gated products (b2)", forced.name);
  }
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%s\" takes gated products (b2) with operand_format = NVFP4, 128x4 "
              "scales, K a multiple of 64, and a row-major D in fp16, bf16 or E2M1 without C, "
              "maxima or a bias for each row",
              forced.name);
}

// Uses as many K partitions as the caller asks for, even if that is slow or a cluster has to wait
// for room. Every tile is split.
nvfp4_status force_split(const CheckedGemm& checked, const Architecture& arch, Choice* choice) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  const Variant& v = *checked.forced;
  const uint32_t partitions = checked.forced_split, ctas = partitions * v.tile_ctas;
  const int64_t stages = std::max<int64_t>(ceil_div(desc.k, v.tile_k), 1);
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles) || tiles * ctas > kMaxTiles) {
    return refuse_ctas(checked);
  }
  if (is_gated(desc) && partitions > v.gated_entry().max_split) {
    return refuse_split(desc, "has more K partitions than a gated product can have");
  }
  if (partitions > stages) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "variant = \"%.64s\" has more parts than K has stages of %" PRIu32, desc.variant,
                v.tile_k);
  }
  if (desc.batch_invariant != 0) {
    const bool fits = v.family->choose_split(desc, arch, v, choice);
    if (!fits || choice->split != partitions) {
      return refuse_split(desc,
                          "has another number of K partitions than batch_invariant = 1 requires");
    }
  }
  const bool several = takes_several_tiles(v, tiles, tiles_of_same_tokens(desc, v), stages);
  *choice = {&v, partitions, ctas, several, tiles, 0, tiles * ctas, 0};
  return NVFP4_SUCCESS;
}

nvfp4_status decide(const CheckedGemm& checked, const Architecture& arch, Choice* choice) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  if (!has_kernel(arch, desc)) return refuse_operands(desc, arch);
  NVFP4_TRY(check_packing(desc, arch, false));
  NVFP4_TRY(check_token_packing(desc, arch));
  NVFP4_TRY(check_gate(desc, arch));
  if (checked.forced == nullptr) {
    const Variant* const assembled = first_if_all_are_assembled(arch, desc);
    if (assembled != nullptr) return refuse_assembled(arch, *assembled);
    *choice = cheapest(desc, arch, &variant_at(0), kVariantCount);
    return choice->variant != nullptr ? NVFP4_SUCCESS : refuse_ctas(checked);
  }
  const Variant& forced = *checked.forced;
  if (!serves(forced, arch)) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "variant = \"%s\" has no kernel for compute capability %s", forced.name,
                capability_text(arch.capability).text);
  }
  if (forced.a_type != desc.a_type && !takes_decoded(forced, desc)) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "variant = \"%s\" takes a_type = %s; it is %s",
                forced.name, enumerator_name(Enumeration::type, forced.a_type),
                enumerator_name(Enumeration::type, desc.a_type));
  }
  if (!takes_operands(forced, arch, desc)) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "variant = \"%s\" does not take operand_format = %s",
                forced.name, enumerator_name(Enumeration::operand_format, desc.operand_format));
  }
  if (is_gated(desc) && !takes_gate(forced, desc)) return refuse_gate(forced);
  if (!is_candidate(desc, arch, forced)) return refuse_variant(desc, forced, arch);
  if (checked.forced_split == kEvenShares) return force_even_shares(checked, arch, choice);
  if (checked.forced_split > 0) return force_split(checked, arch, choice);
  const bool fits = forced.family->choose_split(desc, arch, forced, choice);
  return fits ? NVFP4_SUCCESS : refuse_ctas(checked);
}

}  // namespace

nvfp4_gemm_desc planned_product(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  nvfp4_gemm_desc all = desc;
  if (is_gated(desc) && arch.family->gate_halves_tile) all.n *= 2;
  return all;
}

nvfp4_status check_packing(const nvfp4_gemm_desc& desc, const Architecture& arch, bool grouped) {
  if (!has_packed_weights(desc)) return NVFP4_SUCCESS;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    if (serves(v, arch) && takes_operands(v, arch, desc) && takes_weights(v, arch, desc, grouped)) {
      return NVFP4_SUCCESS;
    }
  }
  return fail(
      NVFP4_STATUS_NOT_SUPPORTED,
      "b_packing = %s: no kernel for compute capability %s reads such weights in %sproducts%s with "
      "a_type = %s; nvfp4_unpack_weights() returns the order of a checkpoint",
      enumerator_name(Enumeration::packing, desc.b_packing), capability_text(arch.capability).text,
      grouped ? "grouped " : "", is_gated(desc) ? " that are gated (b2)" : "",
      enumerator_name(Enumeration::type, desc.a_type));
}

nvfp4_status refuse_assembled(const Architecture& arch, const Variant& such) {
  return fail(NVFP4_STATUS_NOT_SUPPORTED,
              "the kernels for compute capability %s are assembled, and no GPU has run them: they "
              "are taken where desc.variant names one, such as \"%s\"",
              capability_text(arch.capability).text, such.name);
}

const Architecture& Plan::arch() const { return kArchitectures[arch_index]; }

const Entry& Plan::entry() const {
  const bool own = packed && has_packed_entries(*arch().family);
  if (gated && !grouped && !own) return variant->gated_entry();
  return variant->entries[operation_of(grouped, gated, own)];
}

// D's epilogue decides between tiles of unsplit K alone. So products that differ in their epilogue
// alone have the same partial sums.
Choice cheapest(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant* variants,
                uint32_t count) {
  Choice best{}, unsplit{};
  for (uint32_t i = 0; i < count; ++i) {
    const Variant& v = variants[i];
    Choice choice;
    if (!is_candidate(desc, arch, v) || !v.family->choose_split(desc, arch, v, &choice)) continue;
    if (best.variant == nullptr || choice.cost < best.cost) best = choice;
    if (choice.split > 1) continue;
    if (unsplit.variant == nullptr || choice.own_cost() < unsplit.own_cost()) unsplit = choice;
  }
  return best.split == 1 ? unsplit : best;
}

uint32_t count_ctas(const Plan& plan, int32_t sm_count) {
  // The workspace has a place for the parts of one CTA on each SM of the architecture.
  const int32_t most_sms = plan.own_parts > 1 ? plan.arch().sm_count : INT32_MAX;
  const uint32_t at_once = static_cast<uint32_t>(std::min(sm_count, most_sms)) * plan.ctas_per_sm;
  if (!plan.several || plan.grid <= at_once) return plan.grid;
  return std::max(at_once / plan.cluster, 1u) * plan.cluster;
}

bool is_served(const CheckedGemm& checked, const Architecture& arch) {
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    if (checked.forced != nullptr && checked.forced != &v) continue;
    const auto splits = v.family->splits_k;
    if (checked.forced_split > 1 && splits != nullptr && !splits(arch)) continue;
    if (is_candidate(*checked.desc, arch, v)) return true;
  }
  return false;
}

nvfp4_status make_plan(const CheckedGemm& checked, int32_t capability, Plan* plan) {
  *plan = {};
  if (checked.empty) return NVFP4_SUCCESS;
  uint32_t index;
  NVFP4_TRY(find_architecture(capability, &index));
  return make_plan_on(checked, index, plan);
}

namespace {

nvfp4_status decide_apart(const CheckedGemm& asked, const Architecture& arch, Apart* way) {
  const nvfp4_gemm_desc& desc = *asked.desc;
  *way = way_apart(desc);
  // A question without addresses does not know of maxima, so they decide nothing here. Only a gated
  // product is then in one launch, and needs less workspace than it was told of.
  nvfp4_gemm_desc no_maxima = desc;
  no_maxima.d_amax = no_maxima.d_row_amax = nullptr;
  const bool known = way_apart(no_maxima) != Apart::one;
  if (asked.forced_apart && *way == Apart::one) {
    return refuse_split(desc, "makes D apart, which this product does not need or cannot have");
  }
  if (asked.forced_apart || *way == Apart::one) return NVFP4_SUCCESS;
  const auto costs = arch.family->apart_costs;
  if (asked.forced != nullptr || !known || costs == nullptr ||
      !costs(no_maxima, sums_product(no_maxima, *way), arch).pays()) {
    *way = Apart::one;
  }
  return NVFP4_SUCCESS;
}

nvfp4_status plan_product(const CheckedGemm& asked, uint32_t arch_index, Plan* plan);

}  // namespace

uint64_t workspace_of_question(const CheckedGemm& checked, const Plan& plan) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  if (plan.variant == nullptr || !is_gated(desc) || checked.forced != nullptr) {
    return plan.workspace_bytes;
  }
  float maximum = 0;
  nvfp4_gemm_desc with_maxima = desc;
  with_maxima.d_amax = &maximum;
  CheckedGemm other = checked;
  other.desc = &with_maxima;
  Plan other_plan;
  const nvfp4_status status = make_plan_on(other, plan.arch_index, &other_plan);
  if (status != NVFP4_SUCCESS) return plan.workspace_bytes;
  return std::max(plan.workspace_bytes, other_plan.workspace_bytes);
}

nvfp4_gemm_desc product_of(const nvfp4_gemm_desc& desc, const Plan& plan) {
  return plan.apart == Apart::one ? desc : sums_product(desc, plan.apart);
}

nvfp4_status make_plan_on(const CheckedGemm& asked, uint32_t arch_index, Plan* plan) {
  Apart way;
  NVFP4_TRY(decide_apart(asked, kArchitectures[arch_index], &way));
  if (way == Apart::one) return plan_product(asked, arch_index, plan);
  const nvfp4_gemm_desc sums = sums_product(*asked.desc, way);
  CheckedGemm product = asked;
  product.desc = &sums;
  const nvfp4_status status = plan_product(product, arch_index, plan);
  if (status != NVFP4_SUCCESS) {
    return asked.forced_apart ? status : plan_product(asked, arch_index, plan);
  }
  plan->apart = way;
  plan->sums_bytes = sums_bytes(*asked.desc);
  plan->workspace_bytes += plan->sums_bytes;
  return NVFP4_SUCCESS;
}

namespace {

nvfp4_status plan_product(const CheckedGemm& asked, uint32_t arch_index, Plan* plan) {
  *plan = {};
  plan->arch_index = arch_index;
  const nvfp4_gemm_desc desc = planned_product(*asked.desc, plan->arch());
  CheckedGemm checked = asked;
  checked.desc = &desc;
  Choice choice;
  NVFP4_TRY(decide(checked, plan->arch(), &choice));
  plan->variant = choice.variant;
  plan->split = choice.split;
  plan->cluster = choice.cluster;
  plan->tiles_m = static_cast<uint32_t>(ceil_div(desc.m, choice.variant->tile_tokens));
  plan->tiles_n = static_cast<uint32_t>(ceil_div(desc.n, choice.variant->tile_weights));
  plan->several = choice.several && choice.split == 1 && !choice.even;
  plan->ctas_per_sm = choice.variant->ctas_per_sm;
  plan->even = choice.even;
  plan->whole = static_cast<uint32_t>(choice.whole);
  plan->grid = static_cast<uint32_t>(choice.ctas);
  plan->gated = is_gated(desc);
  plan->packed = has_packed_weights(desc);
  plan->shared_bytes = plan->entry().shared_bytes;
  plan->waits = true;
  if (desc.k == 0) return NVFP4_SUCCESS;  // nothing is multiplied
  return choice.variant->family->complete(*asked.desc, plan);
}

}  // namespace

}  // namespace nvfp4
