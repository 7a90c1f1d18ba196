// SPDX-License-Identifier: MIT
#include "host/run/launch.h"

#include <cinttypes>
#include <climits>
#include <cstdio>

#include "host/base/log.h"
#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/family/params.h"
#include "host/problem/fields.h"
#include "host/problem/notes.h"
#include "host/problem/replay.h"
#include "host/run/device.h"
#include "host/run/empty_sum.h"
#include "host/run/enqueue.h"
#include "host/run/quantizer.h"

namespace nvfp4 {

namespace {

bool tiles_scales(const Plan& plan) { return plan.a_scales_bytes + plan.b_scales_bytes > 0; }

// Decodes tokens to fp16 in the workspace: one thread per 32 elements. It never starts early.
// Starting early cost 1 to 5 us of 15 to 50 (H200, 64 and 128 tokens, static weights against pdl
// off, 2026-11-21). With K = 2048 it gained 0.5 us for 64 tokens and cost 0.1 us for 128.
nvfp4_status enqueue_tokens(const Site& site, const PreparedGemm& prepared,
                            const KernelParams& params, CUstream stream) {
  const Plan& plan = prepared.plan;
  const Grid grid{plan.prepass_ctas, 1, plan.prepass_threads, 0, 1, false};
  const LoadedKernel& loaded = prepared.loaded;
  return launch(site, plan.grouped ? loaded.group_tokens : loaded.tokens, grid, &params, stream);
}

ScaleTiling tiling_of(const nvfp4_gemm_desc& g, const Operand& x, const Scales& tiles) {
  const int64_t stride = scales_stride(g, x.scales_stride);
  const int64_t scales = x.k / find_operand_format(x.format)->block;  // scales per row
  return {x.scales, const_cast<uint8_t*>(tiles.first), x.rows, scales, stride == 0 ? 1 : g.l,
          stride};
}

nvfp4_status enqueue_token_tiling(const Site& site, const Plan& plan, const nvfp4_gemm_desc& g,
                                  const KernelParams& params, CUstream stream) {
  const ScaleTiling tiling = tiling_of(g, operand_a(g), token_scales(g, plan));
  if (!plan.grouped) return enqueue_scale_tiling(site, tiling, false, stream);
  return enqueue_group_tiling(site, tiling, *params.groups(plan), stream);
}

// Enqueues the kernels that fill the workspace. The first of them starts when all earlier work is
// done, so the old contents of the workspace have been read.
nvfp4_status enqueue_workspace(const Site& site, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& g, const KernelParams& params,
                               CUstream stream) {
  const Plan& plan = prepared.plan;
  if (plan.a_scales_bytes > 0) {
    NVFP4_TRY(enqueue_token_tiling(site, plan, g, params, stream));
  }
  if (plan.b_scales_bytes > 0) {
    const ScaleTiling tiling = tiling_of(g, operand_b(g), weight_scales(g, plan));
    NVFP4_TRY(enqueue_scale_tiling(site, tiling, plan.a_scales_bytes > 0, stream));
  }
  if (plan.a_halves_bytes > 0) {
    return plan.grouped
               ? enqueue_group_decoding(site, operand_a(g), *params.groups(plan), g.workspace,
                                        stream)
               : enqueue_decoding(site, operand_a(g), plan.a_halves_batches, g.workspace, stream);
  }
  if (plan.prepass_ctas == 0) return NVFP4_SUCCESS;
  return enqueue_tokens(site, prepared, params, stream);
}

// Any number of threads may run a plan, so a run has a copy of the parameters for its nonce.
nvfp4_status launch_with_nonce(const Site& site, const Plan& plan, CUkernel kernel,
                               const Grid& grid, const KernelParams& params, CUstream stream) {
  KernelParams own = params;
  plan.variant->family->set_nonce(&own);
  return launch(site, kernel, grid, &own, stream);
}

// `g` is the problem of the kernel.
nvfp4_status enqueue_kernel(const Site& site, const PreparedGemm& prepared,
                            const nvfp4_gemm_desc& g, uint32_t ctas, const KernelParams& params,
                            CUstream stream) {
  const Plan& plan = prepared.plan;
  NVFP4_TRY(enqueue_workspace(site, prepared, g, params, stream));
  // After a kernel that fills the workspace it always starts early: it waits for that kernel
  // itself.
  const bool follows = plan.prepass_ctas > 0 || plan.a_halves_bytes > 0 || tiles_scales(plan);
  const bool early = plan.waits && (g.pdl != NVFP4_PDL_OFF || follows);
  const auto beside = plan.variant->family->shared_bytes_beside;
  const uint32_t shared_bytes =
      early && beside != nullptr ? beside(plan, ctas, site.sm_count) : plan.shared_bytes;
  const Grid grid{ctas, 1, plan.variant->threads, shared_bytes, plan.cluster, early};
  const CUkernel kernel = prepared.loaded.kernels[plan.variant->family->operation(plan, params)];
  NVFP4_TRY(plan.even ? launch_with_nonce(site, plan, kernel, grid, params, stream)
                      : launch(site, kernel, grid, &params, stream));
  if (plan.add_ctas == 0) return NVFP4_SUCCESS;
  // Where kernels wait for the one before them, so does this one.
  const Grid add{plan.add_ctas, 1, plan.add_threads, 0, 1, plan.waits};
  return launch(site, prepared.loaded.add, add, &params, stream);
}

// The replay line divides the rows evenly: the groups' row counts are in device memory.
void log_grouped(const nvfp4_gemm_desc& g, const GroupArrays& groups, const char* image,
                 const char* variant, uint32_t grid) {
  nvfp4_grouped_desc grouped{};
  grouped.rows_kind = groups.capacity > 0 ? NVFP4_ROWS_COUNTS : NVFP4_ROWS_ENDS;
  grouped.capacity = groups.capacity;
  grouped.b_shared = g.l > 1 && g.b_batch_stride == 0;
  grouped.group_alpha = groups.alpha;
  grouped.scale_rows = groups.scale_rows;
  grouped.bias_group_stride = groups.bias_stride;
  char replay[kReplayBytes];
  write_grouped_replay(grouped, g, replay, sizeof replay);
  log_line(LogLevel::call,
           "grouped m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " groups=%" PRId64
           " image=\"%s\" variant=%s grid=%" PRIu32 " replay=\"%s\"",
           g.m, g.n, g.k, g.l, image, variant, grid, replay);
}

void log_call(const nvfp4_gemm_desc& g, const char* image, const char* variant, uint32_t grid) {
  if (!logs(LogLevel::call)) return;
  char replay[kReplayBytes];
  write_replay(g, replay, sizeof replay);
  log_line(LogLevel::call,
           "gemm m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " l=%" PRId64
           " image=\"%s\" variant=%s grid=%" PRIu32 " replay=\"%s\"",
           g.m, g.n, g.k, g.l, image, variant, grid, replay);
}

void log_product(const PreparedGemm& prepared, const nvfp4_gemm_desc& g, const KernelParams& params,
                 uint32_t grid) {
  if (!logs(LogLevel::call)) return;
  const Plan& plan = prepared.plan;
  if (plan.grouped) {
    const GroupArrays groups = group_arrays(plan, params);
    note_values(g, &groups);
    return log_grouped(g, groups, prepared.loaded.image, plan.variant->name, grid);
  }
  note_values(g, nullptr);
  log_call(g, prepared.loaded.image, plan.variant->name, grid);
}

// The caller's string may end before the plan does.
void keep_desc(const Site& site, const CheckedGemm& checked, PreparedGemm* prepared) {
  prepared->desc = *checked.desc;
  prepared->capability = site.capability;
  prepared->empty = false;
  if (checked.desc->variant == nullptr) return;
  prepared->desc.variant =
      name_of({prepared->plan.variant, checked.forced_split, checked.forced_apart});
}

void fill_groups(const nvfp4_gemm_desc& desc, const GroupArrays& from, GroupParams* groups) {
  groups->count = static_cast<uint32_t>(desc.l);
  groups->m = static_cast<uint32_t>(desc.m);
  groups->rows = from.rows;
  groups->scale_rows = from.scale_rows;
  groups->alpha = from.alpha;
  groups->alpha2 = from.alpha2;
  groups->d_tensor_scale = from.d_tensor_scale;
  groups->capacity = static_cast<uint32_t>(from.capacity);
  groups->bias_stride = from.bias_stride;
}

// Everything that can fail is done before the first launch.
nvfp4_status prepare_launch(const Site& site, const GroupArrays* groups, PreparedGemm* prepared) {
  const Plan& plan = prepared->plan;
  NVFP4_TRY(check_workspace(prepared->desc, groups, plan.workspace_bytes));
  NVFP4_TRY(ready_kernel(site, plan, &prepared->loaded));
  if (tiles_scales(plan)) NVFP4_TRY(ready_scale_tiling(site, plan.grouped));
  if (plan.a_halves_bytes > 0) NVFP4_TRY(ready_decoding(site, plan.grouped));
  const Family& family = *plan.variant->family;
  if (plan.apart != Apart::one) NVFP4_TRY(ready_finish(site, prepared->desc, plan));
  NVFP4_TRY(
      family.make_params(*site.driver, product_of(prepared->desc, plan), plan, &prepared->params));
  if (groups != nullptr) {
    fill_groups(prepared->desc, *groups, prepared->params.groups(plan));
  }
  return NVFP4_SUCCESS;
}

// Refuses what the kernels for older drivers do not compute.
nvfp4_status refuse_older_driver(const Site& site, const CheckedGemm& checked, const Plan& newer) {
  const int needed = driver_for_row(newer.arch());
  if (needed == INT_MAX) return refuse_gpu(site.capability);
  if (checked.forced == nullptr) {
    return refuse_driver(site.driver->version,
                         "with it this GPU has kernels for products of fp16 and bf16 tokens, "
                         "neither grouped nor gated; this product needs",
                         needed);
  }
  char needs[128];
  snprintf(needs, sizeof needs,
           "with it this GPU has no kernel for variant = \"%.64s\", which needs",
           checked.desc->variant);
  return refuse_driver(site.driver->version, needs, needed);
}

// The plan for the images that the driver can load.
nvfp4_status plan_gemm(const Site& site, const CheckedGemm& checked, Plan* plan) {
  NVFP4_TRY(make_plan(checked, site.capability, plan));
  if (plan->arch_index == site.arch_index) return NVFP4_SUCCESS;
  if (!is_served(checked, kArchitectures[site.arch_index])) {
    return refuse_older_driver(site, checked, *plan);
  }
  return make_plan_on(checked, site.arch_index, plan);
}

nvfp4_status plan_grouped(const Site& site, const CheckedGrouped& checked, Plan* plan) {
  NVFP4_TRY(make_grouped_plan(checked, site.capability, plan));
  if (plan->arch_index == site.arch_index) return NVFP4_SUCCESS;
  return refuse_older_driver(site, checked.gemm, *plan);
}

// The distance from b to b2 is a stride of the kernel's problem, so all of its parameters are new.
nvfp4_status replace_both_weights(const Driver& driver, const Plan& plan,
                                  const nvfp4_gemm_desc& desc, KernelParams* params) {
  if (way_apart(desc) == plan.apart) {
    return plan.variant->family->make_params(driver, product_of(desc, plan), plan, params);
  }
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "b2 = %p is 2^40 bytes or more from b = %p, and the plan takes them as two batches",
              desc.b2, desc.b);
}

nvfp4_status replace_in_params(const Driver& driver, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& desc, KernelParams* params) {
  const Plan& plan = prepared.plan;
  if (plan.apart != Apart::one && is_gated(desc)) {
    return replace_both_weights(driver, plan, desc, params);
  }
  return plan.variant->family->replace_addresses(driver, product_of(prepared.desc, plan),
                                                 product_of(desc, plan), plan, params);
}

}  // namespace

nvfp4_status prepare_gemm(const Site& site, const CheckedGemm& checked, PreparedGemm* prepared) {
  NVFP4_TRY(plan_gemm(site, checked, &prepared->plan));
  keep_desc(site, checked, prepared);
  return checked.desc->k == 0 ? NVFP4_SUCCESS : prepare_launch(site, nullptr, prepared);
}

nvfp4_status prepare_grouped(const Site& site, const CheckedGrouped& checked,
                             PreparedGemm* prepared) {
  NVFP4_TRY(plan_grouped(site, checked, &prepared->plan));
  keep_desc(site, checked.gemm, prepared);
  const GroupArrays groups = group_arrays(checked.known);
  if (checked.gemm.desc->k > 0) return prepare_launch(site, &groups, prepared);
  fill_groups(prepared->desc, groups, prepared->params.groups(prepared->plan));
  return NVFP4_SUCCESS;
}

GroupArrays group_arrays(const Plan& plan, const KernelParams& params) {
  const GroupParams& groups = *params.groups(plan);
  return {groups.rows,           groups.scale_rows, groups.alpha,      groups.alpha2,
          groups.d_tensor_scale, groups.capacity,   groups.bias_stride};
}

nvfp4_status replace_addresses(const Driver& driver, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& desc, const GroupArrays* groups,
                               KernelParams* params) {
  const Plan& plan = prepared.plan;
  if (desc.k > 0) NVFP4_TRY(replace_in_params(driver, prepared, desc, params));
  if (groups != nullptr) fill_groups(desc, *groups, params->groups(plan));
  return NVFP4_SUCCESS;
}

nvfp4_status enqueue_gemm(const Site& site, const PreparedGemm& prepared,
                          const nvfp4_gemm_desc& desc, const KernelParams& params, void* stream) {
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  if (desc.k == 0) {
    const char* how;
    const GroupParams* const groups =
        prepared.plan.grouped ? params.groups(prepared.plan) : nullptr;
    NVFP4_TRY(enqueue_empty_sum(site, desc, groups, static_cast<CUstream>(stream), &how));
    if (groups == nullptr) {
      log_call(desc, "none", how, 0);
    } else {
      log_grouped(desc, group_arrays(prepared.plan, params), "none", how, 0);
    }
    return NVFP4_SUCCESS;
  }
  const uint32_t ctas = count_ctas(prepared.plan, sms_at_once(site, prepared.plan));
  const nvfp4_gemm_desc product = product_of(desc, prepared.plan);
  NVFP4_TRY(enqueue_kernel(site, prepared, product, ctas, params, static_cast<CUstream>(stream)));
  if (prepared.plan.apart != Apart::one) {
    NVFP4_TRY(enqueue_finish(site, desc, prepared.plan, static_cast<CUstream>(stream)));
  }
  log_product(prepared, desc, params, ctas);
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
