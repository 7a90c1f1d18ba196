// SPDX-License-Identifier: MIT
#include <cstdio>
#include <string>

#include "nvfp4_gemm.h"
#include "tools/harness/plan_info.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/gpus.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

namespace {

int32_t capability_of(const ExplainOptions& options) {
  if (options.capability) return parse_capability(*options.capability);
  for (const Gpu& gpu : gpus()) {
    if (options.gpu == gpu.name) return gpu.capability;
  }
  throw UsageError("--gpu: " + options.gpu + " is not one of those known");
}

const char* word_of_proof(int32_t proof) {
  switch (proof) {
    case NVFP4_PROOF_HARDWARE: return "hardware";
    case NVFP4_PROOF_PUBLISHED: return "published";
    case NVFP4_PROOF_EMULATOR: return "emulator";
    case NVFP4_PROOF_ASSEMBLED: return "assembled";
    default: return "none";
  }
}

// The fields of nvfp4_plan_info by name.
void report_plan(const nvfp4_plan_info& info, Report& report) {
  report["variant"] = info.variant == nullptr ? Json() : Json(info.variant);
  report["image"] = info.image == nullptr ? Json() : Json(info.image);
  report["variant_index"] = info.variant_index;
  report["tile"] = {
      {"m", info.tile_m}, {"n", info.tile_n}, {"k", info.tile_k}, {"ctas", info.tile_ctas}};
  report["tiles"] = info.tiles;
  report["k_partitions"] = info.k_partitions;
  report["whole_tiles"] = info.whole_tiles;
  report["cluster_ctas"] = info.cluster_ctas;
  report["grid_ctas"] = info.grid_ctas;
  report["cta_threads"] = info.cta_threads;
  report["ctas_per_sm"] = info.ctas_per_sm;
  report["stages"] = info.stages;
  report["stage_bytes"] = info.stage_bytes;
  report["shared_bytes"] = info.shared_bytes;
  report["tmem_columns"] = info.tmem_columns;
  report["workspace_bytes"] = info.workspace_bytes;
  report["a_scales_bytes"] = info.a_scales_bytes;
  report["b_scales_bytes"] = info.b_scales_bytes;
  report["predicted_ns"] = info.predicted_ns;
  report["bytes"] = info.bytes;
  report["memory_ns"] = info.memory_ns;
  report["math_ns"] = info.math_ns;
  report["proof"] = word_of_proof(info.proof);
  report["store"] = info.store == NVFP4_STORE_TMA ? "tma" : "threads";
  report["epilogue"] = info.epilogue == NVFP4_EPILOGUE_FAST ? "fast" : "general";
  report["d_apart"] = info.d_apart != 0;
}

// A grouped product, or NULL and a single one.
std::string text_of(const nvfp4_grouped_desc* grouped, const nvfp4_gemm_desc& g, int32_t capability,
                    int32_t sms) {
  char text[4096];
  const nvfp4_status status =
      grouped != nullptr ? nvfp4_grouped_explain(grouped, capability, sms, text, sizeof text)
                         : nvfp4_gemm_explain(&g, capability, sms, text, sizeof text);
  if (status != NVFP4_SUCCESS) throw UsageError(nvfp4_last_error());
  return text;
}

nvfp4_plan_info plan_of(const nvfp4_grouped_desc* grouped, const nvfp4_gemm_desc& g,
                        int32_t capability, int32_t sms) {
  if (grouped == nullptr) return support::plan_info(g, capability, sms);
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  if (nvfp4_grouped_describe(grouped, capability, sms, &info) == NVFP4_SUCCESS) return info;
  throw UsageError(nvfp4_last_error());
}

}  // namespace

int explain(const ExplainOptions& options) {
  const int32_t capability = capability_of(options), sms = options.sms.value_or(sms_of(capability));
  const RunOptions problem = with_variant(options.problem, capability);
  const bool has_groups = !problem.groups.empty();
  nvfp4_gemm_desc g{};
  nvfp4_grouped_desc groups{};
  if (has_groups) {
    groups = describe_groups(problem, &g);
  } else {
    g = describe(problem);
  }
  const nvfp4_grouped_desc* const grouped = has_groups ? &groups : nullptr;
  const std::string text = text_of(grouped, g, capability, sms);
  Report report(options.json);
  if (options.json) {
    report["shape"] = {{"m", g.m}, {"n", g.n}, {"k", g.k}, {"l", g.l}};
    report["compute_capability"] = to_capability(capability);
    report["sms"] = sms;
    report_plan(plan_of(grouped, g, capability, sms), report);
    report["text"] = text;
  } else {
    std::fputs(text.c_str(), stdout);
  }
  report.finish();
  return kPassed;
}

}  // namespace nvfp4_tool
