// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/explained.h"
#include "tools/nvfp4/gpus.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

namespace {

void* address(uint64_t i) { return reinterpret_cast<void*>(i << 60); }

void describe_epilogue(const support::EpilogueFields& f, int64_t lines, int64_t length,
                       nvfp4_gemm_desc& g) {
  const float* const scalars = static_cast<const float*>(address(15));
  g.d_type = f.d_type, g.cd_order = f.cd_order, g.activation = f.activation;
  g.alpha = f.alpha, g.beta = f.beta;
  g.c_type = f.c_type, g.c_ld = length + f.c_ld_gap;
  g.c_batch_stride = lines * g.c_ld + f.c_batch_gap;
  if (f.c_type != NVFP4_TYPE_NONE) g.c = address(11);
  g.bias_type = f.bias_type, g.bias_axis = f.bias_axis;
  if (f.bias_type != NVFP4_TYPE_NONE) g.bias = address(13);
  if (f.a_tensor_scale) g.a_tensor_scale = scalars;
  if (f.b_tensor_scale) g.b_tensor_scale = scalars;
  g.b_tensor_scale_columns = f.b_tensor_scale_columns;
  g.scalar_mode = f.scalar_mode;
  if (f.scalar_mode != NVFP4_SCALARS_DEVICE) return;
  g.alpha_device = scalars;
  if (f.c_type != NVFP4_TYPE_NONE) g.beta_device = scalars;
}

// Sizes and strides as `run` lays them out, without memory: the addresses are looked at, not read,
// and lie so far apart that nothing overlaps.
nvfp4_gemm_desc describe(const RunOptions& options) {
  const support::Shape& s = options.shape;
  const support::Gaps gaps = gaps_of(options);
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = s.m, g.n = s.n, g.k = s.k, g.l = s.l;
  g.a = address(1), g.a_scales = address(3), g.b = address(5), g.b_scales = address(7);
  g.d = address(9);
  const support::EpilogueFields f = fields_of(options);
  const bool by_row = f.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
  const int64_t lines = by_row ? s.m : s.n, length = by_row ? s.n : s.m;
  const int64_t row = support::close_ld(s.k);
  g.a_ld = row + gaps.a_ld, g.b_ld = row + gaps.b_ld, g.d_ld = length + gaps.d_ld;
  g.a_batch_stride = s.m * g.a_ld + gaps.a_batch;
  g.b_batch_stride = s.n * g.b_ld + gaps.b_batch;
  g.d_batch_stride = lines * g.d_ld + gaps.d_batch;
  describe_epilogue(f, lines, length, g);
  g.a_scale_layout = options.a_layout, g.b_scale_layout = options.b_layout;
  g.a_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(s.m, s.k, g.a_scale_layout));
  g.b_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(s.n, s.k, g.b_scale_layout));
  g.pdl = options.pdl;
  g.batch_invariant = options.batch_invariant;
  g.a_type = options.a_type;
  if (g.a_type != NVFP4_TYPE_NONE) g.a_scales = nullptr;
  g.variant = options.variant.empty() ? nullptr : options.variant.c_str();
  return g;
}

int32_t capability_of(const ExplainOptions& options) {
  if (options.capability) return parse_capability(*options.capability);
  for (const Gpu& gpu : gpus()) {
    if (options.gpu == gpu.name) return gpu.capability;
  }
  throw UsageError("--gpu: " + options.gpu + " is none of those known");
}

// The lines as they are, and those numbers of theirs that programs ask for.
void report_for_programs(const Explained& explained, const nvfp4_gemm_desc& g, int32_t capability,
                         int32_t sms, Report& report) {
  report["shape"] = {{"m", g.m}, {"n", g.n}, {"k", g.k}, {"l", g.l}};
  report["compute_capability"] = to_capability(capability);
  report["sms"] = sms;
  for (const auto& [key, rest] : explained.lines()) {
    if (key.empty() || key == "problem" || key == "device") continue;
    report[key.c_str()] = rest;
  }
  Json why = Json::array();
  bool here = false;
  for (const auto& [key, rest] : explained.lines()) {
    here = key == "why" || (here && key.empty());
    if (here) why.push_back(rest);
  }
  report["why"] = why;
  for (const char* key : {"split", "workspace", "bytes"}) {
    const std::string text = explained.line(key);
    if (!text.empty()) report[key] = std::strtoull(text.c_str(), nullptr, 10);
  }
  const std::string time = explained.line("time");
  const size_t limit = time.find("limit: ");
  if (limit != std::string::npos) {
    report["time"] = {{"predicted_us", std::strtod(time.c_str(), nullptr)},
                      {"limit", time.substr(limit + std::strlen("limit: "))}};
  }
  if (explained.light_us() == 0) return;
  report["light"] = {{"us", explained.light_us()},
                     {"memory_us", explained.memory_us()},
                     {"math_us", explained.math_us()},
                     {"limit", explained.limit()}};
}

}  // namespace

int explain(const ExplainOptions& options) {
  const nvfp4_gemm_desc g = describe(options.problem);
  const int32_t capability = capability_of(options), sms = options.sms.value_or(sms_of(capability));
  const Explained explained(g, capability, sms);
  Report report(options.json);
  if (options.json) {
    report_for_programs(explained, g, capability, sms, report);
  } else {
    std::fputs(explained.text().c_str(), stdout);
  }
  report.finish();
  return kPassed;
}

}  // namespace nvfp4_tool
