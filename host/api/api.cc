// SPDX-License-Identifier: MIT
// The exported functions check their arguments and call the rooms below.
#include "host/base/log.h"
#include "host/base/size.h"
#include "host/base/status.h"
#include "host/plan/checked.h"
#include "host/plan/plan.h"
#include "host/problem/check/buffers.h"
#include "host/problem/notes.h"
#include "host/reference/quantize/fused.h"
#include "host/reference/quantize/quantize.h"
#include "host/reference/quantize/quantize_typed.h"
#include "host/reference/reference.h"
#include "host/reference/scale_layout.h"
#include "host/run/launch.h"
#include "host/run/quantizer.h"
#include "host/run/selftest.h"
#include "host/words/build_info.h"
#include "host/words/describe.h"
#include "host/words/explain.h"

namespace nvfp4 {

namespace {

// What a function answers that gets a matrix without rows or columns.
nvfp4_status nothing(const char* function, int64_t rows, int64_t k) {
  note_empty_matrix(function, rows, k);
  return NVFP4_SUCCESS;
}

nvfp4_status check_and_plan(const nvfp4_gemm_desc* desc, int32_t capability, CheckedGemm* checked,
                            Plan* plan) {
  NVFP4_TRY(check_gemm(desc, Caller::question, checked));
  return make_plan(*checked, capability, plan);
}

}  // namespace

}  // namespace nvfp4

using namespace nvfp4;

extern "C" {

int32_t nvfp4_version(void) { return NVFP4_VERSION; }
const char* nvfp4_build_info(void) { return build_info(); }
const char* nvfp4_status_name(nvfp4_status status) { return status_name(status); }
const char* nvfp4_status_string(nvfp4_status status) { return status_sentence(status); }
const char* nvfp4_last_error(void) { return last_error(); }

nvfp4_status nvfp4_gemm_run(const nvfp4_gemm_desc* desc, void* stream) {
  CheckedGemm checked;
  NVFP4_TRY(check_gemm(desc, Caller::run, &checked));
  if (checked.empty) {
    note_empty(*checked.desc);
    return NVFP4_SUCCESS;
  }
  Site site;
  PreparedGemm prepared{};
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(prepare_gemm(site, checked, &prepared));
  return enqueue_gemm(site, prepared, prepared.desc, prepared.params, stream);
}

nvfp4_status nvfp4_prepare(void) {
  Site site;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(ready_all_kernels(site));
  return ready_quantizer(site);
}

nvfp4_status nvfp4_selftest(void* workspace, uint64_t workspace_bytes, void* stream) {
  if (workspace_bytes > INT64_MAX) return too_far("workspace");
  Buffers buffers;
  NVFP4_TRY(buffers.add_aligned("workspace", workspace, static_cast<int64_t>(workspace_bytes), 256,
                                Use::written));
  return run_selftest(workspace, workspace_bytes, stream);
}

uint64_t nvfp4_selftest_bytes(int32_t compute_capability) {
  return selftest_bytes(compute_capability);
}

nvfp4_status nvfp4_gemm_supported(const nvfp4_gemm_desc* desc, int32_t compute_capability) {
  CheckedGemm checked;
  Plan plan;
  NVFP4_TRY(check_and_plan(desc, compute_capability, &checked, &plan));
  if (checked.sizes_alone) return NVFP4_SUCCESS;  // not allocated yet, so not too small
  return check_workspace(*checked.desc, nullptr, plan.workspace_bytes);
}

nvfp4_status nvfp4_gemm_workspace_bytes(const nvfp4_gemm_desc* desc, int32_t compute_capability,
                                        uint64_t* bytes) {
  NVFP4_TRY(rule_not_null("bytes", bytes));
  CheckedGemm checked;
  Plan plan;
  NVFP4_TRY(check_and_plan(desc, compute_capability, &checked, &plan));
  *bytes = workspace_of_question(checked, plan);  // 0 where K is 0: D is filled
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_gemm_describe(const nvfp4_gemm_desc* desc, int32_t compute_capability,
                                 int32_t sm_count, nvfp4_plan_info* info) {
  CheckedGemm checked;
  Plan plan;
  NVFP4_TRY(check_gemm(desc, Caller::question, &checked));
  NVFP4_TRY(check_describe(sm_count, info));
  NVFP4_TRY(make_plan(checked, compute_capability, &plan));
  copy_info(describe_plan(checked, plan, sm_count), info);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_gemm_explain(const nvfp4_gemm_desc* desc, int32_t compute_capability,
                                int32_t sm_count, char* buffer, size_t bytes) {
  CheckedGemm checked;
  Plan plan;
  NVFP4_TRY(check_gemm(desc, Caller::question, &checked));
  NVFP4_TRY(check_explain(sm_count, buffer));
  NVFP4_TRY(make_plan(checked, compute_capability, &plan));
  return explain_gemm(checked, plan, compute_capability, sm_count, buffer, bytes);
}

const char* nvfp4_variant_name(int32_t compute_capability, int32_t index) {
  for (const Architecture& arch : kArchitectures) {
    if (arch.capability != compute_capability || index < 0) continue;
    const Variant* const variant = served_variant(arch, static_cast<uint32_t>(index));
    return variant == nullptr ? nullptr : variant->name;
  }
  return nullptr;
}

nvfp4_status nvfp4_set_log_callback(nvfp4_log_callback callback, void* user, int32_t level) {
  return set_log_callback(callback, user, level);
}

nvfp4_status nvfp4_gemm_reference(const nvfp4_gemm_desc* desc) {
  CheckedGemm checked;
  NVFP4_TRY(check_gemm(desc, Caller::reference, &checked));
  if (checked.empty) {
    note_empty(*checked.desc);
    return NVFP4_SUCCESS;
  }
  note_values(*checked.desc, nullptr);
  reference_gemm(*checked.desc);
  return NVFP4_SUCCESS;
}

size_t nvfp4_scale_bytes(int64_t rows, int64_t k, int32_t layout) {
  int64_t bytes;
  return scale_bytes(rows, k, layout, &bytes) ? static_cast<size_t>(bytes) : 0;
}

size_t nvfp4_scale_bytes_for(int64_t rows, int64_t k, int32_t layout, int32_t format) {
  int64_t bytes;
  return scale_bytes_for(rows, k, layout, format, &bytes) ? static_cast<size_t>(bytes) : 0;
}

nvfp4_status nvfp4_scale_convert_host(const void* src, int32_t src_layout, void* dst,
                                      int32_t dst_layout, int64_t rows, int64_t k) {
  bool empty;
  NVFP4_TRY(check_scale_convert(src, src_layout, dst, dst_layout, rows, k, &empty));
  if (empty) return nothing("nvfp4_scale_convert_host", rows, k);
  convert_scales(static_cast<const uint8_t*>(src), src_layout, static_cast<uint8_t*>(dst),
                 dst_layout, rows, k / kScaleBlock);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_quantize_host(const float* x, int64_t x_ld, int64_t rows, int64_t k,
                                 float tensor_scale, void* codes, int64_t codes_ld, void* scales,
                                 int32_t scale_layout) {
  bool empty;
  NVFP4_TRY(check_quantize(x, x_ld, rows, k, tensor_scale, codes, codes_ld, scales, scale_layout,
                           &empty));
  if (empty) return nothing("nvfp4_quantize_host", rows, k);
  quantize(x, x_ld, rows, k, tensor_scale, static_cast<uint8_t*>(codes), codes_ld,
           static_cast<uint8_t*>(scales), scale_layout);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_dequantize_host(const void* codes, int64_t codes_ld, const void* scales,
                                   int32_t scale_layout, int64_t rows, int64_t k,
                                   float tensor_scale, float* x, int64_t x_ld) {
  bool empty;
  NVFP4_TRY(check_quantize(x, x_ld, rows, k, tensor_scale, codes, codes_ld, scales, scale_layout,
                           &empty));
  if (empty) return nothing("nvfp4_dequantize_host", rows, k);
  dequantize(static_cast<const uint8_t*>(codes), codes_ld, static_cast<const uint8_t*>(scales),
             scale_layout, rows, k, tensor_scale, x, x_ld);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_quantize_workspace_bytes(const nvfp4_quantize_desc* desc, uint64_t* bytes) {
  NVFP4_TRY(rule_not_null("bytes", bytes));
  bool empty;
  NVFP4_TRY(check_quantizer(desc, QuantizerCall::workspace, &empty));
  *bytes = empty ? 0 : quantizer_workspace(*desc);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_quantize(const nvfp4_quantize_desc* desc, void* stream) {
  bool empty;
  NVFP4_TRY(check_quantizer(desc, QuantizerCall::quantize, &empty));
  if (empty) return nothing("nvfp4_quantize", desc->rows, desc->k);
  return enqueue_quantize(*desc, stream);
}

nvfp4_status nvfp4_dequantize(const nvfp4_quantize_desc* desc, void* stream) {
  bool empty;
  NVFP4_TRY(check_quantizer(desc, QuantizerCall::dequantize, &empty));
  if (empty) return nothing("nvfp4_dequantize", desc->rows, desc->k);
  return enqueue_dequantize(*desc, stream);
}

nvfp4_status nvfp4_quantize_reference(const nvfp4_quantize_desc* desc) {
  bool empty;
  NVFP4_TRY(check_quantizer(desc, QuantizerCall::quantize_host, &empty));
  if (empty) return nothing("nvfp4_quantize_reference", desc->rows, desc->k);
  quantize_typed(*desc);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_dequantize_reference(const nvfp4_quantize_desc* desc) {
  bool empty;
  NVFP4_TRY(check_quantizer(desc, QuantizerCall::dequantize_host, &empty));
  if (empty) return nothing("nvfp4_dequantize_reference", desc->rows, desc->k);
  dequantize_typed(*desc);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_scale_convert(const void* src, int32_t src_layout, void* dst, int32_t dst_layout,
                                 int64_t rows, int64_t k, void* stream) {
  bool empty;
  NVFP4_TRY(check_scale_convert(src, src_layout, dst, dst_layout, rows, k, &empty));
  if (empty) return nothing("nvfp4_scale_convert", rows, k);
  return enqueue_scale_convert(src, src_layout, dst, dst_layout, rows, k, stream);
}

nvfp4_status nvfp4_fused_quantize(const nvfp4_fused_quantize_desc* desc, void* stream) {
  bool empty;
  NVFP4_TRY(check_fused(desc, &empty));
  if (empty) return nothing("nvfp4_fused_quantize", desc->rows, desc->k);
  return enqueue_fused_quantize(*desc, stream);
}

nvfp4_status nvfp4_fused_quantize_host(const nvfp4_fused_quantize_desc* desc) {
  bool empty;
  NVFP4_TRY(check_fused(desc, &empty));
  if (empty) return nothing("nvfp4_fused_quantize_host", desc->rows, desc->k);
  fused_quantize(*desc);
  return NVFP4_SUCCESS;
}

}  // extern "C"
