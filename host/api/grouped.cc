// SPDX-License-Identifier: MIT
// The functions of grouped products. There is no kernel for them yet: each says so.
#include "host/base/size.h"
#include "host/problem/check.h"
#include "host/problem/rule.h"

using namespace nvfp4;

extern "C" {

nvfp4_status nvfp4_grouped_run(const nvfp4_grouped_desc* desc, void*) {
  return check_grouped(desc, __func__);
}

nvfp4_status nvfp4_grouped_plan_create(const nvfp4_grouped_desc* desc, nvfp4_gemm_plan** plan) {
  NVFP4_TRY(rule_not_null("plan", plan));
  *plan = nullptr;
  return check_grouped(desc, __func__);
}

nvfp4_status nvfp4_grouped_supported(const nvfp4_grouped_desc* desc, int32_t) {
  return check_grouped(desc, __func__);
}

nvfp4_status nvfp4_grouped_workspace_bytes(const nvfp4_grouped_desc* desc, int32_t,
                                           uint64_t* bytes) {
  NVFP4_TRY(rule_not_null("bytes", bytes));
  return check_grouped(desc, __func__);
}

nvfp4_status nvfp4_grouped_describe(const nvfp4_grouped_desc* desc, int32_t, int32_t,
                                    nvfp4_plan_info* info) {
  NVFP4_TRY(rule_not_null("info", info));
  return check_grouped(desc, __func__);
}

nvfp4_status nvfp4_grouped_explain(const nvfp4_grouped_desc* desc, int32_t, int32_t, char* buffer,
                                   size_t) {
  NVFP4_TRY(rule_not_null("buffer", buffer));
  return check_grouped(desc, __func__);
}

nvfp4_status nvfp4_grouped_reference(const nvfp4_grouped_desc* desc) {
  return check_grouped(desc, __func__);
}

size_t nvfp4_grouped_scale_bytes(int64_t rows, int64_t groups, int64_t k, int32_t layout,
                                 int32_t format) {
  int64_t bytes;
  if (!grouped_scale_bytes(rows, groups, k, layout, format, &bytes)) return 0;
  return static_cast<size_t>(bytes);
}

}  // extern "C"
