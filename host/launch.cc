// SPDX-License-Identifier: MIT
#include "host/launch.h"

#include <cinttypes>

#include "host/check/check.h"
#include "host/empty_sum.h"
#include "host/enqueue.h"
#include "host/epilogue.h"
#include "host/explain.h"
#include "host/log.h"
#include "host/size.h"
#include "host/tensor_map.h"

namespace nvfp4 {

namespace {

nvfp4_status encode_weights(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                            TensorMap* map) {
  return encode_tensor_map(driver, "b", MapElement::e2m1, g.b, g.n, g.k, g.l, g.b_ld,
                           g.b_batch_stride, plan.variant->tile_weights, map);
}

nvfp4_status encode_tokens(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                           TensorMap* map) {
  const MapElement element = g.a_type == NVFP4_TYPE_NONE ? MapElement::e2m1 : MapElement::half;
  return encode_tensor_map(driver, "a", element, g.a, g.m, g.k, g.l, g.a_ld, g.a_batch_stride,
                           plan.variant->tile_tokens, map);
}

bool tokens_by_tma(const Plan& plan) { return plan.arch().tokens_by_tma; }

template <typename Params>
void set_plain_addresses(const nvfp4_gemm_desc& g, Params* p) {
  p->weight_scales = static_cast<const uint8_t*>(g.b_scales);
  p->token_scales = static_cast<const uint8_t*>(g.a_scales);
  p->d = g.d;
  p->epilogue = make_epilogue(g);  // which of its addresses are there decides what it does
}

void set_token_addresses(const nvfp4_gemm_desc& g, Sm90Params* p) {
  p->token_codes = static_cast<const uint8_t*>(g.a);
  p->token_slabs = g.workspace;
}

// What both families are told.
template <typename Params>
void set_gemm(const nvfp4_gemm_desc& g, const Plan& plan, Params* p) {
  set_plain_addresses(g, p);
  const bool batches = g.l > 1;  // else the strides were not looked at and may hold anything
  p->weight_scales_batch_bytes = batches ? g.b_scales_batch_stride_bytes : 0;
  p->token_scales_batch_bytes = batches ? g.a_scales_batch_stride_bytes : 0;
  p->d_ld = g.d_ld;
  p->d_batch_stride = batches ? g.d_batch_stride : 0;
  p->m = static_cast<uint32_t>(g.m);
  p->n = static_cast<uint32_t>(g.n);
  p->k = static_cast<uint32_t>(g.k);
  p->tiles_m = plan.tiles_m;
  p->tiles_n = plan.tiles_n;
  p->alpha = g.alpha;
  p->weights_are_static = g.pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
  p->split = plan.split;
}

void set_sm90(const nvfp4_gemm_desc& g, const Plan& plan, Sm90Params* p) {
  set_gemm(g, plan, p);
  set_token_addresses(g, p);
  p->token_row_bytes = g.a_ld / 2;
  p->token_batch_bytes = g.l > 1 ? g.a_batch_stride / 2 : 0;
  p->m_padded = plan.tiles_m * plan.variant->tile_tokens;
  p->batches = static_cast<uint32_t>(g.l);
}

void set_sm100(const nvfp4_gemm_desc& g, const Plan& plan, Sm100Params* p) {
  set_gemm(g, plan, p);
  p->by_tiles_m = divisor_of(plan.tiles_m);
  p->by_tiles_n = divisor_of(plan.tiles_n);
}

nvfp4_status make_params(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         KernelParams* p) {
  if (tokens_by_tma(plan)) {
    p->sm100 = {};
    set_sm100(g, plan, &p->sm100);
    NVFP4_TRY(encode_weights(driver, g, plan, &p->sm100.weights));
    return encode_tokens(driver, g, plan, &p->sm100.tokens);
  }
  p->sm90 = {};
  set_sm90(g, plan, &p->sm90);
  NVFP4_TRY(encode_weights(driver, g, plan, &p->sm90.weights));
  return g.a_type == NVFP4_TYPE_NONE ? NVFP4_SUCCESS
                                     : encode_tokens(driver, g, plan, &p->sm90.tokens);
}

// Tokens to fp16 in the workspace: one thread per 32 elements. Never early, which cost 1 to 5 us of
// 15 to 50 (H200, 64 and 128 tokens, static weights against pdl off, 2026-11-21); with K = 2048 it
// gained 0.5 us with 64 tokens and cost 0.1 with 128.
nvfp4_status enqueue_tokens(const Site& site, const PreparedGemm& prepared,
                            const KernelParams& params, CUstream stream) {
  const int64_t threads =
      static_cast<int64_t>(prepared.plan.workspace_bytes / kTokenBytesPerThread);
  const uint32_t ctas = static_cast<uint32_t>(ceil_div(threads, kTokenKernelThreads));
  const Grid grid{ctas, 1, kTokenKernelThreads, 0, 1, false};
  return launch(site, prepared.loaded.tokens, grid, &params, stream);
}

nvfp4_status enqueue_kernel(const Site& site, const PreparedGemm& prepared, uint32_t ctas,
                            const KernelParams& params, CUstream stream) {
  const Variant& variant = *prepared.plan.variant;
  if (variant.workspace_tokens) {
    NVFP4_TRY(enqueue_tokens(site, prepared, params, stream));
  }
  // Behind the tokens' kernel, which starts when all before it is done, always early.
  const bool early = prepared.desc.pdl != NVFP4_PDL_OFF || variant.workspace_tokens;
  const Grid grid{ctas, 1, variant.threads, variant.shared_bytes, prepared.plan.cluster, early};
  return launch(site, prepared.loaded.kernel, grid, &params, stream);
}

void log_call(const nvfp4_gemm_desc& g, const char* image, const char* variant, uint32_t grid) {
  if (!logs(LogLevel::call)) return;
  char replay[kReplayBytes] = "";
  if (g.k > 0) write_replay(g, replay, sizeof replay);
  log_line(LogLevel::call,
           "gemm m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " l=%" PRId64
           " image=\"%s\" variant=%s grid=%" PRIu32 " replay=\"%s\"",
           g.m, g.n, g.k, g.l, image, variant, grid, replay);
}

}  // namespace

nvfp4_status prepare_gemm(const Site& site, const CheckedGemm& checked, PreparedGemm* prepared) {
  const nvfp4_gemm_desc& desc = *checked.desc;
  prepared->desc = desc;
  prepared->capability = site.capability;
  prepared->empty = false;
  NVFP4_TRY(make_plan(checked, site.capability, &prepared->plan));
  // The caller's string need not live as long as a plan does.
  if (desc.variant != nullptr) prepared->desc.variant = prepared->plan.variant->name;
  if (desc.k == 0) return NVFP4_SUCCESS;
  NVFP4_TRY(check_workspace(desc, prepared->plan.workspace_bytes));
  NVFP4_TRY(ready_kernel(site, prepared->plan, &prepared->loaded));
  return make_params(*site.driver, desc, prepared->plan, &prepared->params);
}

nvfp4_status replace_addresses(const Driver& driver, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& desc, KernelParams* params) {
  const bool by_tma = tokens_by_tma(prepared.plan);
  if (desc.b != prepared.desc.b) {
    TensorMap* map = by_tma ? &params->sm100.weights : &params->sm90.weights;
    NVFP4_TRY(encode_weights(driver, desc, prepared.plan, map));
  }
  NVFP4_TRY(check_workspace(desc, prepared.plan.workspace_bytes));
  if ((by_tma || desc.a_type != NVFP4_TYPE_NONE) && desc.a != prepared.desc.a) {
    TensorMap* map = by_tma ? &params->sm100.tokens : &params->sm90.tokens;
    NVFP4_TRY(encode_tokens(driver, desc, prepared.plan, map));
  }
  if (by_tma) {
    set_plain_addresses(desc, &params->sm100);
  } else {
    set_plain_addresses(desc, &params->sm90);
    set_token_addresses(desc, &params->sm90);
  }
  return NVFP4_SUCCESS;
}

nvfp4_status enqueue_gemm(const Site& site, const PreparedGemm& prepared,
                          const nvfp4_gemm_desc& desc, const KernelParams& params, void* stream) {
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  if (desc.k == 0) {
    const char* how;
    NVFP4_TRY(enqueue_empty_sum(site, desc, static_cast<CUstream>(stream), &how));
    log_call(desc, "none", how, 0);
    return NVFP4_SUCCESS;
  }
  const uint32_t ctas = count_ctas(prepared.plan, site.sm_count);
  NVFP4_TRY(enqueue_kernel(site, prepared, ctas, params, static_cast<CUstream>(stream)));
  log_call(desc, prepared.loaded.image, prepared.plan.variant->name, ctas);
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
