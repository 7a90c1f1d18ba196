// SPDX-License-Identifier: MIT
// nvfp4_tuning: the rows of a table, sorted. Nothing in it changes after tuning_create.
#include <cstdlib>
#include <new>

#include "host/plan/checked.h"
#include "host/plan/plan.h"
#include "host/plan/tuning.h"
#include "host/problem/rule.h"

struct nvfp4_tuning {
  int32_t capability;
  size_t count;
  nvfp4::TuningRow* rows;  // after this, in the same allocation
};

namespace nvfp4 {

namespace {

static_assert(sizeof(nvfp4_tuning) % alignof(TuningRow) == 0, "rows lie after it");

nvfp4_status allocate(size_t rows, int32_t capability, nvfp4_tuning** tuning) {
  const size_t bytes = sizeof(nvfp4_tuning) + rows * sizeof(TuningRow);
  void* const memory = malloc(bytes);
  if (memory == nullptr) {
    return fail(NVFP4_STATUS_OUT_OF_MEMORY, "no %zu bytes of host memory for a tuning", bytes);
  }
  *tuning = ::new (memory) nvfp4_tuning{};
  (*tuning)->capability = capability;
  (*tuning)->rows = reinterpret_cast<TuningRow*>(*tuning + 1);
  return NVFP4_SUCCESS;
}

// The row's variant, if its plan can be made.
nvfp4_status try_row(const TuningRow& row, const nvfp4_gemm_desc& desc, int32_t capability) {
  nvfp4_gemm_desc with = desc;
  with.struct_size = sizeof with;  // what lies beyond was checked to be 0
  with.variant = row.variant;
  CheckedGemm checked;
  Plan plan;
  NVFP4_TRY(check_gemm(&with, Caller::question, &checked));
  return make_plan(checked, capability, &plan);
}

}  // namespace

}  // namespace nvfp4

using namespace nvfp4;

extern "C" {

nvfp4_status nvfp4_tuning_create(const char* text, size_t bytes, const char* device_name,
                                 int32_t compute_capability, int32_t sm_count,
                                 nvfp4_tuning** tuning) {
  NVFP4_TRY(rule_not_null("tuning", tuning));
  *tuning = nullptr;
  NVFP4_TRY(rule_not_null("text", text));
  const size_t lines = count_lines(text, bytes);
  if (lines > kMostTuningLines) {
    return fail(NVFP4_STATUS_LIMIT, "text has %zu lines; at most %zu are read", lines,
                kMostTuningLines);
  }
  nvfp4_tuning* made = nullptr;
  NVFP4_TRY(allocate(lines, compute_capability, &made));
  const nvfp4_status status = read_tuning(text, bytes, {device_name, compute_capability, sm_count},
                                          made->rows, &made->count);
  if (status == NVFP4_SUCCESS) {
    *tuning = made;
  } else {
    free(made);
  }
  return status;
}

nvfp4_status nvfp4_tuning_variant(const nvfp4_tuning* tuning, const nvfp4_gemm_desc* desc,
                                  const char** variant) {
  NVFP4_TRY(rule_not_null("variant", variant));
  *variant = nullptr;
  NVFP4_TRY(rule_not_null("tuning", tuning));
  CheckedGemm checked;
  NVFP4_TRY(check_gemm(desc, Caller::question, &checked));
  if (checked.empty || desc->batch_invariant != 0) return NVFP4_SUCCESS;
  const TuningRow* const row = find_row(tuning->rows, tuning->count, *desc);
  if (row == nullptr) return NVFP4_SUCCESS;
  NVFP4_TRY(try_row(*row, *desc, tuning->capability));
  *variant = row->variant;
  return NVFP4_SUCCESS;
}

void nvfp4_tuning_destroy(nvfp4_tuning* tuning) { free(tuning); }

}  // extern "C"
