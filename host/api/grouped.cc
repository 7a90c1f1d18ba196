// SPDX-License-Identifier: MIT
// The functions of grouped products check and hand over; plan_object.cc has those of plans.
#include "host/plan/grouped.h"
#include "host/base/size.h"
#include "host/problem/notes.h"
#include "host/problem/rule.h"
#include "host/reference/grouped.h"
#include "host/run/launch.h"
#include "host/words/describe.h"
#include "host/words/explain.h"

namespace nvfp4 {

namespace {

nvfp4_status check_and_plan(const nvfp4_grouped_desc* desc, int32_t capability,
                            CheckedGrouped* checked, Plan* plan) {
  NVFP4_TRY(check_grouped(desc, Caller::question, checked));
  return make_grouped_plan(*checked, capability, plan);
}

}  // namespace

}  // namespace nvfp4

using namespace nvfp4;

extern "C" {

nvfp4_status nvfp4_grouped_run(const nvfp4_grouped_desc* desc, void* stream) {
  CheckedGrouped checked;
  NVFP4_TRY(check_grouped(desc, Caller::run, &checked));
  if (checked.gemm.empty) {
    note_empty(*checked.gemm.desc);
    return NVFP4_SUCCESS;
  }
  Site site;
  PreparedGemm prepared{};
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(prepare_grouped(site, checked, &prepared));
  return enqueue_gemm(site, prepared, prepared.desc, prepared.params, stream);
}

nvfp4_status nvfp4_grouped_supported(const nvfp4_grouped_desc* desc, int32_t compute_capability) {
  CheckedGrouped checked;
  Plan plan;
  NVFP4_TRY(check_and_plan(desc, compute_capability, &checked, &plan));
  if (checked.gemm.sizes_alone) return NVFP4_SUCCESS;  // not allocated yet, so not too small
  const GroupArrays groups = group_arrays(checked.known);
  return check_workspace(*checked.gemm.desc, &groups, plan.workspace_bytes);
}

nvfp4_status nvfp4_grouped_workspace_bytes(const nvfp4_grouped_desc* desc,
                                           int32_t compute_capability, uint64_t* bytes) {
  NVFP4_TRY(rule_not_null("bytes", bytes));
  CheckedGrouped checked;
  Plan plan;
  NVFP4_TRY(check_and_plan(desc, compute_capability, &checked, &plan));
  *bytes = plan.workspace_bytes;
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_grouped_describe(const nvfp4_grouped_desc* desc, int32_t compute_capability,
                                    int32_t sm_count, nvfp4_plan_info* info) {
  CheckedGrouped checked;
  Plan plan;
  NVFP4_TRY(check_grouped(desc, Caller::question, &checked));
  NVFP4_TRY(check_describe(sm_count, info));
  NVFP4_TRY(make_grouped_plan(checked, compute_capability, &plan));
  copy_info(describe_grouped(checked, plan, sm_count), info);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_grouped_explain(const nvfp4_grouped_desc* desc, int32_t compute_capability,
                                   int32_t sm_count, char* buffer, size_t bytes) {
  CheckedGrouped checked;
  Plan plan;
  NVFP4_TRY(check_grouped(desc, Caller::question, &checked));
  NVFP4_TRY(check_explain(sm_count, buffer));
  NVFP4_TRY(make_grouped_plan(checked, compute_capability, &plan));
  return explain_grouped(checked, plan, compute_capability, sm_count, buffer, bytes);
}

nvfp4_status nvfp4_grouped_reference(const nvfp4_grouped_desc* desc) {
  CheckedGrouped checked;
  NVFP4_TRY(check_grouped(desc, Caller::reference, &checked));
  if (checked.gemm.empty) {
    note_empty(*checked.gemm.desc);
    return NVFP4_SUCCESS;
  }
  const GroupArrays groups = group_arrays(checked.known);
  note_values(*checked.gemm.desc, &groups);
  reference_grouped(checked.known, *checked.gemm.desc);
  return NVFP4_SUCCESS;
}

size_t nvfp4_grouped_scale_bytes(int64_t rows, int64_t groups, int64_t k, int32_t layout,
                                 int32_t format) {
  int64_t bytes;
  if (!grouped_scale_bytes(rows, groups, k, layout, format, &bytes)) return 0;
  return static_cast<size_t>(bytes);
}

}  // extern "C"
