// SPDX-License-Identifier: MIT
#include "host/words/describe.h"

#include <cinttypes>
#include <cstring>

#include "host/plan/family.h"
#include "host/plan/proof.h"
#include "host/problem/epilogue.h"
#include "host/problem/rule.h"
#include "host/run/image.h"
#include "host/words/light.h"

namespace nvfp4 {

namespace {

int32_t number(uint32_t value) { return static_cast<int32_t>(value); }

// The index that nvfp4_variant_name uses.
int32_t index_in(const Architecture& arch, const Variant& variant) {
  int32_t index = 0;
  while (served_variant(arch, static_cast<uint32_t>(index)) != &variant) ++index;
  return index;
}

const char* first_image(const Plan& plan) {
  uint32_t image = 0;
  while (!plan.arch().takes(image, plan.variant->family)) ++image;
  return image_label(image);
}

int32_t proof_number(Proof proof) {
  switch (proof) {
    case Proof::hardware: return NVFP4_PROOF_HARDWARE;
    case Proof::published: return NVFP4_PROOF_PUBLISHED;
    case Proof::assembled: return NVFP4_PROOF_ASSEMBLED;
    case Proof::emulator: break;
  }
  return NVFP4_PROOF_EMULATOR;
}

// The planner's clock cycles were fitted on the GPU of the architecture's row.
double predicted_ns(const nvfp4_gemm_desc& g, const Plan& plan) {
  return static_cast<double>(predicted_clocks(g, plan).all()) / plan.arch().light.clock * 1e9;
}

int32_t store_of(const nvfp4_gemm_desc& g, const Plan& plan) {
  const Family& family = *plan.variant->family;
  const bool by_tma = family.why_not_by_tma != nullptr && family.why_not_by_tma(g, plan) == nullptr;
  return by_tma ? NVFP4_STORE_TMA : NVFP4_STORE_THREADS;
}

int32_t epilogue_of(const nvfp4_gemm_desc& g, const Plan& plan) {
  if (plan.apart == Apart::finish && !has_usual_rows(g)) return NVFP4_EPILOGUE_GENERAL;
  if (plan.apart != Apart::one) return NVFP4_EPILOGUE_FAST;
  const Family& family = *plan.variant->family;
  const EpilogueParams e = make_epilogue(g);
  const uint32_t kind = e.kind;
  const bool fields = is_of_fields(e) && !plan.grouped && !plan.gated &&
                      family.has_fast_fields != nullptr && family.has_fast_fields(g, plan);
  const bool scaled = kind == kEpilogueScaled && !plan.grouped &&
                      family.has_fast_scales != nullptr && family.has_fast_scales(g, plan);
  const bool has_entry =
      !plan.gated ||
      (plan.grouped ? family.gates_groups != nullptr && family.gates_groups(*plan.variant)
                    : !plan.packed && plan.variant->has(kOperation_gated_plain));
  const bool fast = has_entry && (scaled || fields || kind <= family.last_fast_epilogue);
  return fast ? NVFP4_EPILOGUE_FAST : NVFP4_EPILOGUE_GENERAL;
}

void describe_tiles(const nvfp4_gemm_desc& g, const Plan& plan, int32_t sm_count,
                    nvfp4_plan_info* info) {
  const Variant& v = *plan.variant;
  const VariantNames& names = plan.apart == Apart::one ? v.one : v.apart;
  info->variant = plan.even ? names.even : names.whole;
  info->variant_index = index_in(plan.arch(), v);
  info->tile_m = number(v.tile_tokens);
  info->tile_n = number(plan.entry().columns);
  info->tile_k = number(v.tile_k);
  info->tile_ctas = number(v.tile_ctas);
  info->tiles = static_cast<int32_t>(int64_t{plan.tiles_m} * plan.tiles_n * g.l);
  info->k_partitions = number(plan.split);
  info->whole_tiles = number(plan.whole);
  info->cluster_ctas = number(plan.cluster);
  info->grid_ctas = number(count_ctas(plan, sm_count));
  info->cta_threads = number(v.threads);
  info->ctas_per_sm = number(plan.ctas_per_sm);
  info->stages = number(plan.entry().stages);
  info->stage_bytes = number(plan.entry().stage_bytes);
  info->shared_bytes = number(plan.shared_bytes);
  info->tmem_columns = number(plan.entry().tmem_columns);
}

}  // namespace

Clocks predicted_clocks(const nvfp4_gemm_desc& g, const Plan& plan) {
  const Family& family = *plan.variant->family;
  const Family& first = *plan.arch().family;  // it decides who makes D
  if (family.predict == nullptr) return {};
  Clocks clocks = family.predict(planned_product(product_of(g, plan), plan.arch()), plan);
  const bool apart = plan.apart != Apart::one && clocks.all() > 0;
  if (apart && first.finish_clocks != nullptr) clocks.sums += first.finish_clocks(g, plan.apart);
  return clocks;
}

nvfp4_status rule_sm_count(int32_t sm_count) {
  if (sm_count >= 1) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "sm_count = %" PRId32 " is less than 1", sm_count);
}

nvfp4_status check_describe(int32_t sm_count, const nvfp4_plan_info* info) {
  NVFP4_TRY(rule_sm_count(sm_count));
  NVFP4_TRY(rule_not_null("info", info));
  return rule_result_size(info->struct_size, sizeof *info, "nvfp4_plan_info");
}

nvfp4_plan_info describe_plan(const CheckedGemm& checked, const Plan& plan, int32_t sm_count) {
  const nvfp4_gemm_desc& g = *checked.desc;
  nvfp4_plan_info info{};
  info.variant_index = -1;
  if (checked.empty || g.k == 0) return info;
  const nvfp4_gemm_desc product = product_of(g, plan);
  describe_tiles(product, plan, sm_count, &info);
  info.image = first_image(plan);
  info.workspace_bytes = plan.workspace_bytes;
  info.a_scales_bytes = plan.a_scales_bytes;
  info.b_scales_bytes = plan.b_scales_bytes;
  info.predicted_ns = predicted_ns(g, plan);
  info.bytes = traffic(g).all();
  const Light light = light_of(g, plan.arch().light, sm_count);
  info.memory_ns = light.memory_ns;
  info.math_ns = light.math_ns;
  info.proof = proof_number(
      proof_on(plan.arch(), plan.variant->family, plan.variant->tile_ctas, plan.split));
  info.store = store_of(product, plan);
  info.epilogue = epilogue_of(g, plan);
  info.d_apart = plan.apart != Apart::one;
  return info;
}

nvfp4_plan_info describe_grouped(const CheckedGrouped& checked, const Plan& plan,
                                 int32_t sm_count) {
  CheckedGemm one = checked.gemm;  // A, C and D of all rows, and the weights of one group
  one.desc = &one.known;
  one.known.l = 1;
  nvfp4_plan_info info = describe_plan(one, plan, sm_count);
  if (checked.gemm.empty || one.known.k == 0) return info;
  const double matrices =
      checked.known.b_shared != 0 ? 1 : static_cast<double>(checked.gemm.desc->l);
  const double bytes = info.bytes + (matrices - 1) * traffic(one.known).b;
  info.memory_ns *= bytes / info.bytes;
  info.bytes = bytes;
  info.predicted_ns = 0;
  return info;
}

void copy_info(const nvfp4_plan_info& from, nvfp4_plan_info* info) {
  const uint64_t bytes = info->struct_size;
  memset(reinterpret_cast<unsigned char*>(info), 0, bytes);
  *info = from;
  info->struct_size = bytes;
}

}  // namespace nvfp4
