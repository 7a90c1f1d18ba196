// SPDX-License-Identifier: MIT
#include "host/words/explain.h"

#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdio>

#include "host/base/formats.h"
#include "host/base/growing_text.h"
#include "host/base/operand_format.h"
#include "host/plan/family.h"
#include "host/problem/enumeration.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "host/problem/replay.h"
#include "host/problem/rule.h"
#include "host/run/empty_sum.h"
#include "host/run/image.h"
#include "host/words/describe.h"
#include "host/words/light.h"

namespace nvfp4 {

namespace {

// ---- the speed-of-light bound -------------------------------------------------------------------

void add_light(const nvfp4_gemm_desc& g, const Roofline& roof, const nvfp4_plan_info& info,
               Text* text) {
  const Traffic t = traffic(g);
  text->add("bytes     %.0f (A %.0f, B %.0f, ", t.all(), t.a, t.b);
  if (t.c > 0) text->add("C %.0f, ", t.c);
  text->add("D %.0f; scales included, each once)\n", t.d);
  text->add("bound     %.3f us: memory %.3f at %s, %s units %.3f at %s\n",
            std::max(info.memory_ns, info.math_ns) / 1e3, info.memory_ns / 1e3, roof.memory,
            is_by_fp4(g, roof) ? "FP4" : "fp16", info.math_ns / 1e3, roof.clock_text);
}

// What a shorter time would have to change first. From 80 % of the peak rates on, nothing in the
// plan can gain much.
const char* binding_limit(const Light& light, const Clocks& clocks, double ns) {
  if (std::max(light.memory_ns, light.math_ns) > 0.7 * ns) {
    return light.memory_ns > light.math_ns ? "memory" : "tensor cores";
  }
  if (clocks.stages >= std::max(clocks.sums, clocks.ctas))
    return "stages of the longest running SM";
  return clocks.sums > clocks.ctas ? "sums, stored and exchanged" : "start of a CTA";
}

// The clock cycles were fitted on the GPU of the architecture's row, for whose SMs the plan is
// made.
void add_time(const nvfp4_gemm_desc& g, const Plan& plan, const nvfp4_plan_info& info, Text* text) {
  const Architecture& arch = plan.arch();
  const Clocks clocks = predicted_clocks(g, plan);
  if (clocks.all() == 0) return;
  const Light light = light_of(g, arch.light, static_cast<int32_t>(arch.sm_count));
  text->add("time      %.2f us predicted, by clocks fitted on an H200 at %s; limit: %s\n",
            info.predicted_ns / 1e3, arch.light.clock_text,
            binding_limit(light, clocks, info.predicted_ns));
}

// ---- the epilogue -------------------------------------------------------------------------------

const char* type_text(int32_t type) {
  switch (type) {
    case NVFP4_TYPE_F16: return "fp16";
    case NVFP4_TYPE_BF16: return "bf16";
    case NVFP4_TYPE_NVFP4: return "NVFP4";
    case NVFP4_TYPE_MXFP4: return "MXFP4";
    case NVFP4_TYPE_E2M1_UE8M0: return "E2M1 with UE8M0 scales";
  }
  return "fp32";
}

// The scales of D: their format, and where they are stored.
void add_scales_of_d(const nvfp4_gemm_desc& g, Text* text) {
  const OperandFormat* const format = format_of_d(g.d_type);
  if (format == nullptr) return;
  text->add(", a scale for %" PRId64 " columns", format->block);
  if (g.d_tensor_scale != nullptr) text->add(" by d_tensor_scale");
  if (g.d_scale_rule == NVFP4_SCALE_RULE_FLOOR) text->add(", rounded down");
  text->add(g.d_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR ? ", linear" : ", in 128x4 tiles");
}

// The additional fields of a gated product.
void add_gate(const nvfp4_gemm_desc& g, Text* text) {
  if (!is_gated(g)) return;
  text->add(", times the product with b2");
  if (g.b2_tensor_scale != nullptr) text->add(", b2_tensor_scale");
  for (const GemmField& field : fields::gemm) {
    if ((field.when & fields::silu) == 0) continue;
    const auto number = fields::value<float>(&g, field);
    if (number != 0) text->add(", %s %g", field.name, f64_from_f32(number));
  }
}

// The epilogue, in the order of its operations. `bias_of_groups`: each group has its own.
void add_epilogue(const nvfp4_gemm_desc& g, bool bias_of_groups, Text* text) {
  if (make_epilogue(g).kind == kEpiloguePlain) return;
  text->add("epilogue  alpha%s", g.scalar_mode == NVFP4_SCALARS_DEVICE ? " on the device" : "");
  if (g.a_tensor_scale != nullptr || g.a_tensor_scale_rows != 0) {
    text->add(", a_tensor_scale%s", g.a_tensor_scale_rows != 0 ? " for each row" : "");
  }
  if (g.b_tensor_scale != nullptr || g.b_tensor_scale_columns != 0) {
    text->add(", b_tensor_scale");
    if (g.b_tensor_scale_columns != 0) {
      text->add(" for each %" PRId64 " columns", g.b_tensor_scale_columns);
    }
  }
  if (may_read_c(g)) {
    text->add(", C %s%s", type_text(g.c_type),
              g.scalar_mode == NVFP4_SCALARS_DEVICE ? " unless beta on the device is 0" : "");
  }
  if (g.bias_type != NVFP4_TYPE_NONE) {
    text->add(", bias %s by %s%s", type_text(g.bias_type),
              g.bias_axis == NVFP4_BIAS_AXIS_ROW ? "row" : "column",
              bias_of_groups ? " of each group" : "");
  }
  if (g.activation != NVFP4_ACTIVATION_NONE) {
    text->add(", %s", enumerator_word(Enumeration::activation, g.activation).text);
  }
  add_gate(g, text);
  text->add("; D %s%s", type_text(g.d_type),
            g.cd_order == NVFP4_CD_ORDER_COLUMN_MAJOR ? " by columns" : "");
  add_scales_of_d(g, text);
  if (g.d_amax != nullptr) text->add(", its largest magnitude to d_amax");
  if (g.d_row_amax != nullptr) text->add(", that of each row to d_row_amax");
  text->add("\n");
}

// If threads always store D there is nothing to say.
void add_store(const nvfp4_gemm_desc& g, const Plan& plan, Text* text) {
  const Family& family = *plan.variant->family;
  if (family.why_not_by_tma == nullptr) return;
  const char* const why_not = family.why_not_by_tma(g, plan);
  if (why_not == nullptr) {
    text->add("store     D by TMA, 32 x 32 elements at a time\n");
  } else {
    text->add("store     D by threads: %s\n", why_not);
  }
}

// ---- the plan -----------------------------------------------------------------------------------

// Names the architecture's images of a family. Returns the oldest driver that loads one of them,
// INT_MAX if the library has none.
int add_images(const Architecture& arch, const Family* family, Text* text) {
  const char* before = "";
  int oldest = INT_MAX;
  for (uint32_t image = 0; image < kImageCount; ++image) {
    if (!has_image(image) || !arch.takes(image, family)) continue;
    text->add("%s%s", before, image_label(image));
    before = ", else ";
    oldest = std::min(oldest, driver_for_image(image));
  }
  return oldest;
}

// `older` is the row of kArchitectures under a driver that is too old for the plan's images. Its
// kernels may add in another order.
void add_drivers(const Plan& plan, uint32_t older, Text* text) {
  text->add("image     ");
  const int needed = add_images(plan.arch(), plan.variant->family, text);
  if (needed == INT_MAX) {
    return text->add("none in this library, which was built with GPUS=\"%s\"\n", gpus_of_images());
  }
  text->add("\ndriver    CUDA %s or newer", cuda_text(needed).text);
  if (older < kArchitectureCount && driver_for_row(kArchitectures[older]) < needed) {
    text->add("; from CUDA %s on ", cuda_text(driver_for_row(kArchitectures[older])).text);
    add_images(kArchitectures[older], kArchitectures[older].family, text);
    text->add(", perhaps with other bits");
  }
  text->add("\n");
}

// The row that serves the problem under an older driver; kArchitectureCount: none.
uint32_t older_row(const CheckedGemm& checked, const Plan& plan) {
  const uint32_t row = row_for_older_driver(plan.arch_index);
  if (row == kArchitectureCount) return row;
  return is_served(checked, kArchitectures[row]) ? row : kArchitectureCount;
}

const char* proof_text(int32_t proof) {
  switch (proof) {
    case NVFP4_PROOF_HARDWARE: return "hardware: this library has run it on such a GPU";
    case NVFP4_PROOF_PUBLISHED:
      return "published: kernels that others run on such a GPU have its mechanisms; this one has "
             "run in the emulator alone";
    case NVFP4_PROOF_ASSEMBLED:
      return "assembled: ptxas takes it for such a GPU, and none has run it, so no plan takes it "
             "unasked";
    default: break;
  }
  return "emulator: it has run there alone, so no plan takes it unasked";
}

const char* ctas_text(int32_t ctas_per_sm) {
  constexpr const char* kTexts[kMostCtasPerSm] = {"one CTA", "two CTAs", "three CTAs"};
  return kTexts[ctas_per_sm - 1];
}

void add_geometry(const nvfp4_plan_info& info, const Plan& plan, int32_t sm_count, Text* text) {
  text->add("variant   %s\n", info.variant);
  text->add("tile      %" PRId32 " weights%s x %" PRId32 " tokens%s, K by %" PRId32 "\n",
            info.tile_n, plan.gated ? " of b and of b2" : "", info.tile_m,
            info.tile_ctas == 2 ? " of a pair of CTAs" : "", info.tile_k);
  text->add("stages    %" PRId32 " of %" PRId32 " bytes; %" PRId32 " bytes of shared memory",
            info.stages, info.stage_bytes, info.shared_bytes);
  if (info.tmem_columns > 0) text->add(", %" PRId32 " columns of tensor memory", info.tmem_columns);
  text->add("\n");
  text->add("grid      %" PRId32 " CTAs of %" PRId32 " threads", info.grid_ctas, info.cta_threads);
  if (static_cast<uint32_t>(info.grid_ctas) < plan.grid) {
    text->add(", %" PRId32 " tiles", info.tiles);
  }
  text->add("\n");
  text->add("waves     %.2f of %" PRId32 " SMs, %s each\n",
            static_cast<double>(plan.grid) / sm_count / info.ctas_per_sm, sm_count,
            ctas_text(info.ctas_per_sm));
  text->add("split     %" PRId32, info.k_partitions);
  if (plan.even) text->add(", even shares");
  if (info.whole_tiles > 0) text->add(", of the tiles after the first %" PRId32, info.whole_tiles);
  text->add("\n");
  text->add("proof     %s\n", proof_text(info.proof));
  text->add("workspace %" PRIu64 " bytes\n", info.workspace_bytes);
  if (plan.a_halves_bytes > 0) {
    text->add("tokens    every call first decodes A to bf16, in the workspace\n");
  }
  if (plan.add_ctas > 0) {
    text->add("sums      parts of K meet in the workspace; %" PRIu32
              " CTAs of a second kernel add "
              "them\n",
              plan.add_ctas);
  }
}

void add_apart(const nvfp4_gemm_desc& g, const Plan& plan, Text* text) {
  if (plan.apart == Apart::one) return;
  text->add("apart     the kernel stores %" PRIu64
            " bytes of sums in fp32 in the workspace%s; a second one, %s, makes D of them\n",
            plan.sums_bytes, is_gated(g) ? ", those with b2 as a second batch" : "",
            plan.apart == Apart::quantizer ? "that of nvfp4_quantize" : "for any epilogue");
}

// What the planner compared to decide who makes D.
void add_forms(const nvfp4_gemm_desc& g, const Plan& plan, bool forced, Text* text) {
  const auto costs = plan.arch().family->apart_costs;
  const Apart way = way_apart(g);
  if (forced || costs == nullptr || way == Apart::one) return;
  const ApartCosts c = costs(g, sums_product(g, way), plan.arch());
  if (c.one == 0) return text->add("launches  two for D: no kernel makes it in one\n");
  text->add("launches  %s: %" PRId64 " clocks with a second kernel for D, %" PRId64 " without%s\n",
            plan.apart == Apart::one ? "one for D" : "two for D", c.apart, c.one,
            c.by_sizes ? "; the choice may not depend on M" : "");
}

// The way in which the kernel gets packed operands, or linear scales.
void add_scales(const nvfp4_gemm_desc& g, const Plan& plan, Text* text) {
  if (has_packed_tokens(g)) {
    text->add("tokens    packed, %s: elements times their scales, in fp16\n",
              enumerator_name(Enumeration::packing, g.a_packing));
  }
  if (plan.packed) {
    text->add("weights   packed, %s: codes and scales together\n",
              enumerator_name(Enumeration::packing, g.b_packing));
  }
  const Operand operands[] = {operand_a(g), operand_b(g)};
  const uint64_t tiled[] = {plan.a_scales_bytes, plan.b_scales_bytes};
  for (int i = 0; i < 2; ++i) {
    const Operand& x = operands[i];
    if (!x.quantized() || x.packed() || x.layout != NVFP4_SCALE_LAYOUT_LINEAR) continue;
    if (tiled[i] == 0) {
      text->add("scales    %s are linear: the kernel reads them as they are\n", x.scales_name);
      continue;
    }
    text->add(
        "scales    %s are linear: every call first converts them to 128x4, %" PRIu64
        " bytes of the workspace; nvfp4_scale_convert once, or quantizing to 128x4, avoids it\n",
        x.scales_name, tiled[i]);
  }
}

void add_reason(const CheckedGemm& checked, const Plan& plan, Text* text) {
  if (checked.forced != nullptr) {
    text->add("why       desc.variant names it%s\n",
              checked.forced_split > 0 ? ", and in how many parts K is cut" : "");
    return;
  }
  char reason[kReasonBytes];
  plan.variant->family->write_rule(plan.arch(), reason);
  text->add(
      "why       %s%s:\n",
      checked.desc->batch_invariant != 0 ? "with additions along K in one order for all M, " : "",
      reason);
  const nvfp4_gemm_desc planned = planned_product(product_of(*checked.desc, plan), plan.arch());
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    Choice choice;
    if (!is_candidate(planned, plan.arch(), v)) continue;
    if (v.family->choose_split(planned, plan.arch(), v, &choice)) {
      v.family->write_choice(choice, reason);
    } else {
      snprintf(reason, sizeof reason, "more than %" PRId64 " tiles", kMaxTiles);
    }
    text->add("          %s %s: %s\n", &v == plan.variant ? "*" : "-", v.name, reason);
  }
}

void add_grouped_reason(const CheckedGrouped& checked, Text* text) {
  if (checked.gemm.forced != nullptr) {
    text->add("why       desc.variant names it\n");
  } else if (checked.known.rows_hint > 0) {
    text->add("why       the narrowest tile for rows_hint = %" PRId32 " rows, or the widest\n",
              checked.known.rows_hint);
  } else {
    text->add("why       the narrowest tile for M / L rows, or the widest: rows_hint is 0\n");
  }
}

void add_grouped_plan(const CheckedGrouped& checked, const Plan& plan, int32_t sm_count,
                      Text* text) {
  const nvfp4_gemm_desc& g = *checked.gemm.desc;
  add_drivers(plan, kArchitectureCount, text);
  add_geometry(describe_grouped(checked, plan, sm_count), plan, sm_count, text);
  text->add(
      "groups    rows are read on the device: CTAs for the most tiles that there can be, "
      "%" PRIu32 " of tokens x %" PRIu32 " of weights\n",
      plan.tiles_m, plan.tiles_n);
  add_scales(g, plan, text);
  add_epilogue(g, checked.known.bias_group_stride > 0, text);
  add_grouped_reason(checked, text);
}

nvfp4_status finish(const Text& text, size_t bytes) {
  if (text.needed() <= bytes) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "bytes = %zu is less than the %zu that the text needs",
              bytes, text.needed());
}

void add_plan(const CheckedGemm& checked, const Plan& plan, int32_t sm_count, Text* text) {
  const nvfp4_gemm_desc& g = *checked.desc;
  if (g.k == 0) {
    const bool computes = make_epilogue(g).kind != kEpiloguePlain;
    text->add("image     none\nvariant   %s\n", empty_sum_way(g, false));
    text->add("why       K is 0: %s\n",
              computes ? "D is the epilogue of sums that are 0, by a small kernel"
                       : "D is filled with round(alpha * 0), no kernel runs");
    return;
  }
  const nvfp4_plan_info info = describe_plan(checked, plan, sm_count);
  add_drivers(plan, older_row(checked, plan), text);
  const nvfp4_gemm_desc product = product_of(g, plan);
  add_geometry(info, plan, sm_count, text);
  add_apart(g, plan, text);
  add_scales(product, plan, text);
  add_epilogue(g, false, text);
  add_store(product, plan, text);
  add_light(g, plan.arch().light, info, text);
  add_time(g, plan, info, text);
  add_forms(g, plan, checked.forced != nullptr, text);
  add_reason(checked, plan, text);
}

void add_replay(const nvfp4_gemm_desc& g, Text* text) {
  char replay[kReplayBytes];
  write_replay(g, replay, sizeof replay);
  text->add("replay    %s\n", replay);
}

}  // namespace

nvfp4_status check_explain(int32_t sm_count, const char* buffer) {
  NVFP4_TRY(rule_sm_count(sm_count));
  return rule_not_null("buffer", buffer);
}

nvfp4_status explain_gemm(const CheckedGemm& checked, const Plan& plan, int32_t capability,
                          int32_t sm_count, char* buffer, size_t bytes) {
  const nvfp4_gemm_desc& g = *checked.desc;
  Text text(buffer, bytes);
  text.add("problem   M %" PRId64 ", N %" PRId64 ", K %" PRId64 ", L %" PRId64 ", D %s\n", g.m, g.n,
           g.k, g.l, type_text(g.d_type));
  text.add("device    compute capability %s, %" PRId32 " SMs\n", capability_text(capability).text,
           sm_count);
  if (checked.empty) {
    text.add("why       M, N or L is 0: nothing is read, written or enqueued\n");
  } else {
    add_plan(checked, plan, sm_count, &text);
    add_replay(g, &text);
  }
  return finish(text, bytes);
}

nvfp4_status explain_grouped(const CheckedGrouped& checked, const Plan& plan, int32_t capability,
                             int32_t sm_count, char* buffer, size_t bytes) {
  const nvfp4_gemm_desc& g = *checked.gemm.desc;
  Text text(buffer, bytes);
  text.add("problem   %" PRId64 " groups of M %" PRId64 " rows in all%s, N %" PRId64 ", K %" PRId64
           ", D %s\n",
           g.l, g.m, checked.known.b_shared != 0 ? ", that use one B" : "", g.n, g.k,
           type_text(g.d_type));
  text.add("device    compute capability %s, %" PRId32 " SMs\n", capability_text(capability).text,
           sm_count);
  if (checked.gemm.empty) {
    text.add("why       M, N or L is 0: nothing is read, written or enqueued\n");
    return finish(text, bytes);
  }
  if (g.k == 0) {
    text.add("image     none\nvariant   %s\n", empty_sum_way(g, true));
    text.add("why       K is 0: D is the epilogue of sums that are 0, by a small kernel\n");
  } else {
    add_grouped_plan(checked, plan, sm_count, &text);
  }
  char replay[kReplayBytes];
  write_grouped_replay(checked.known, g, replay, sizeof replay);
  text.add("replay    %s\n          (the rows divided evenly, since they are in device memory)\n",
           replay);
  return finish(text, bytes);
}

}  // namespace nvfp4
