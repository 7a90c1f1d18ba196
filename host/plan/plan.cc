// SPDX-License-Identifier: MIT
// What the planners of all families share: every variant is asked for its best split, and the
// cheapest is taken.
#include "host/plan/plan.h"

#include <cinttypes>

#include "host/size.h"

namespace nvfp4 {

namespace {

// Variants stand in variants.def from narrow to wide.
Choice choose(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  const Planner& planner = planner_of(arch.family);
  Choice best{};
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(planner.wider_wins_ties ? kVariantCount - 1 - i : i);
    Choice choice;
    if (!is_candidate(desc, arch, v) || !planner.choose_split(desc, arch, v, &choice)) continue;
    if (best.variant == nullptr || choice.cost < best.cost) best = choice;
  }
  return best;
}

// The checks counted the tiles of the widest variant or of the forced one, each computed by one CTA.
nvfp4_status refuse_ctas() {
  return fail(NVFP4_STATUS_LIMIT,
              "with batch_invariant = 1 the product needs more than %" PRId64 " CTAs", kMaxTiles);
}

nvfp4_status refuse_variant(const Variant& v, const Architecture& arch) {
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "variant = \"%s\" adds along K in an order that no tile for all M has on compute "
              "capability %s: batch_invariant = 1 excludes it",
              v.name, capability_text(arch.capability).text);
}

nvfp4_status decide(const CheckedGemm& checked, const Architecture& arch, Choice* choice) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  if (checked.forced == nullptr) {
    *choice = choose(desc, arch);
    return choice->variant != nullptr ? NVFP4_SUCCESS : refuse_ctas();
  }
  if (!serves(*checked.forced, arch)) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "variant = \"%s\" has no kernel for compute capability %s", checked.forced->name,
                capability_text(arch.capability).text);
  }
  if (!is_candidate(desc, arch, *checked.forced)) return refuse_variant(*checked.forced, arch);
  const bool fits = planner_of(arch.family).choose_split(desc, arch, *checked.forced, choice);
  return fits ? NVFP4_SUCCESS : refuse_ctas();
}

}  // namespace

const Architecture& Plan::arch() const { return kArchitectures[arch_index]; }

const Planner& planner_of(Family family) {
  return family == Family::sm100 ? kPlannerSm100 : kPlannerSm90;
}

uint32_t count_ctas(const Plan& plan, int32_t sm_count) {
  const bool several = plan.variant->several_tiles && plan.split == 1;
  const uint32_t at_once = static_cast<uint32_t>(sm_count) * plan.variant->ctas_per_sm;
  return several && plan.grid > at_once ? at_once : plan.grid;
}

nvfp4_status make_plan(const CheckedGemm& checked, int32_t capability, Plan* plan) {
  *plan = {};
  if (checked.empty) return NVFP4_SUCCESS;
  const nvfp4_gemm_desc& desc = *checked.desc;
  NVFP4_TRY(find_architecture(capability, &plan->arch_index));
  Choice choice;
  NVFP4_TRY(decide(checked, plan->arch(), &choice));
  plan->variant = choice.variant;
  plan->split = choice.split;
  plan->cluster = choice.cluster;
  plan->tiles_m = static_cast<uint32_t>(ceil_div(desc.m, choice.variant->tile_tokens));
  plan->tiles_n = static_cast<uint32_t>(ceil_div(desc.n, choice.variant->tile_weights));
  plan->grid = static_cast<uint32_t>(choice.tiles * choice.split);
  const Planner& planner = planner_of(plan->arch().family);
  return planner.count_workspace != nullptr ? planner.count_workspace(desc, plan) : NVFP4_SUCCESS;
}

}  // namespace nvfp4
