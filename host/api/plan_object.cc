// SPDX-License-Identifier: MIT
// nvfp4_gemm_plan: a prepared problem. It never changes after plan_create, so any number of threads
// may run it at once.
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <new>

#include "host/plan/checked.h"
#include "host/problem/fields.h"
#include "host/problem/notes.h"
#include "host/problem/rule.h"
#include "host/run/launch.h"

struct nvfp4_gemm_plan {
  nvfp4::PreparedGemm prepared;
};

namespace nvfp4 {

namespace {

// Only this function, nvfp4_set_log_callback and, until it returns, nvfp4_selftest allocate host
// memory.
nvfp4_status allocate(nvfp4_gemm_plan** plan) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(nvfp4_gemm_plan), sizeof(nvfp4_gemm_plan)) != 0) {
    return fail(NVFP4_STATUS_OUT_OF_MEMORY, "no %zu bytes of host memory for a plan",
                sizeof(nvfp4_gemm_plan));
  }
  *plan = ::new (memory) nvfp4_gemm_plan{};
  return NVFP4_SUCCESS;
}

// `prepare` does the part that needs the device, unless the problem is empty.
template <typename Prepare>
nvfp4_status make(bool empty, nvfp4_gemm_plan** plan, const Prepare& prepare) {
  nvfp4_gemm_plan* made = nullptr;
  NVFP4_TRY(allocate(&made));
  made->prepared.empty = empty;
  Site site;
  nvfp4_status status = empty ? NVFP4_SUCCESS : find_site(&site);
  if (!empty && status == NVFP4_SUCCESS) status = prepare(site, &made->prepared);
  if (status == NVFP4_SUCCESS) {
    *plan = made;
  } else {
    free(made);
  }
  return status;
}

nvfp4_status check_capability(const Site& site, const PreparedGemm& prepared) {
  if (site.capability == prepared.capability) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_UNSUPPORTED_ARCH,
              "the plan was made for compute capability %s, the current device has %s",
              capability_text(prepared.capability).text, capability_text(site.capability).text);
}

// What a run of a plan multiplies, the addresses of the run in place.
struct Run {
  nvfp4_gemm_desc desc;
  GroupArrays groups;
  bool grouped;

  const GroupArrays* of_groups() const { return grouped ? &groups : nullptr; }
};

// An empty plan keeps the sizes, and which outputs it was made with. No other field of it is read,
// so no address and no string has to outlive the call that made it.
void keep_empty(const nvfp4_gemm_desc& g, PreparedGemm* prepared) {
  if (!prepared->empty) return;
  prepared->desc = g;
  prepared->desc.variant = nullptr;
}

GroupArrays with_addresses(const GroupArrays& of_plan, const nvfp4_gemm_addresses& x) {
  GroupArrays groups = of_plan;
  if (x.rows != nullptr) groups.rows = x.rows;
  if (x.scale_rows != nullptr) groups.scale_rows = x.scale_rows;
  if (x.group_alpha != nullptr) groups.alpha = x.group_alpha;
  if (x.group_alpha2 != nullptr) groups.alpha2 = x.group_alpha2;
  if (x.group_d_tensor_scale != nullptr) groups.d_tensor_scale = x.group_d_tensor_scale;
  return groups;
}

Run run_of(const PreparedGemm& prepared, const nvfp4_gemm_addresses& x) {
  Run run{prepared.desc, {}, prepared.plan.grouped};
  replace_addresses(x, &run.desc);
  if (run.grouped) run.groups = with_addresses(group_arrays(prepared.plan, prepared.params), x);
  return run;
}

// `run` is NULL if the plan runs with its own addresses.
nvfp4_status run_on_site(const PreparedGemm& prepared, const Run* run, void* stream) {
  Site site;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(check_capability(site, prepared));
  if (prepared.desc.k > 0) {
    LoadedKernel same;  // on another device the kernel's shared memory has to be requested, too
    NVFP4_TRY(ready_kernel(site, prepared.plan, &same));
  }
  if (run == nullptr) {
    return enqueue_gemm(site, prepared, prepared.desc, prepared.params, stream);
  }
  KernelParams params = prepared.params;
  NVFP4_TRY(replace_addresses(*site.driver, prepared, run->desc, run->of_groups(), &params));
  return enqueue_gemm(site, prepared, run->desc, params, stream);
}

}  // namespace

}  // namespace nvfp4

using namespace nvfp4;

extern "C" {

nvfp4_status nvfp4_gemm_plan_create(const nvfp4_gemm_desc* desc, nvfp4_gemm_plan** plan) {
  NVFP4_TRY(rule_not_null("plan", plan));
  *plan = nullptr;
  CheckedGemm checked;
  NVFP4_TRY(check_gemm(desc, Caller::run, &checked));
  NVFP4_TRY(make(checked.empty, plan, [&](const Site& site, PreparedGemm* prepared) {
    return prepare_gemm(site, checked, prepared);
  }));
  keep_empty(checked.known, &(*plan)->prepared);
  (*plan)->prepared.gated = is_gated(checked.known);  // of an empty one, too
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_grouped_plan_create(const nvfp4_grouped_desc* desc, nvfp4_gemm_plan** plan) {
  NVFP4_TRY(rule_not_null("plan", plan));
  *plan = nullptr;
  CheckedGrouped checked;
  NVFP4_TRY(check_grouped(desc, Caller::run, &checked));
  NVFP4_TRY(make(checked.gemm.empty, plan, [&](const Site& site, PreparedGemm* prepared) {
    return prepare_grouped(site, checked, prepared);
  }));
  keep_empty(checked.gemm.known, &(*plan)->prepared);
  (*plan)->prepared.plan.grouped = true;  // an empty plan may be run with other row ends
  (*plan)->prepared.gated = is_gated(checked.gemm.known);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_gemm_plan_run(const nvfp4_gemm_plan* plan, const nvfp4_gemm_addresses* addresses,
                                 void* stream) {
  NVFP4_TRY(rule_not_null("plan", plan));
  const PreparedGemm& prepared = plan->prepared;
  nvfp4_gemm_addresses known;
  if (addresses != nullptr) {
    NVFP4_TRY(check_addresses_struct(*addresses, prepared.desc, prepared.plan.grouped,
                                     prepared.gated, &known));
    addresses = &known;
  }
  if (prepared.empty) {
    note_empty(prepared.desc);
    return NVFP4_SUCCESS;
  }
  if (addresses == nullptr) return run_on_site(prepared, nullptr, stream);
  const Run run = run_of(prepared, *addresses);
  NVFP4_TRY(check_new_addresses(run.desc, run.of_groups(), prepared.plan.workspace_bytes));
  return run_on_site(prepared, &run, stream);
}

void nvfp4_gemm_plan_destroy(nvfp4_gemm_plan* plan) { free(plan); }

}  // extern "C"
