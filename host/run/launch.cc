// SPDX-License-Identifier: MIT
#include "host/run/launch.h"

#include <cinttypes>

#include "host/base/log.h"
#include "host/base/size.h"
#include "host/driver/tensor_map.h"
#include "host/family/d_store.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "host/problem/replay.h"
#include "host/run/empty_sum.h"
#include "host/run/enqueue.h"
#include "host/run/quantizer.h"

namespace nvfp4 {

namespace {

nvfp4_status encode_weights(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                            TensorMap* map) {
  return encode_tensor_map(driver, "b", MapElement::e2m1, g.b, g.n, g.k, g.l, g.b_ld,
                           g.b_batch_stride, plan.variant->tile_weights / plan.variant->tile_ctas,
                           map);
}

nvfp4_status encode_tokens(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                           TensorMap* map) {
  const uint32_t tile = plan.variant->tile_tokens / plan.variant->tile_ctas;
  if (g.a_type == NVFP4_TYPE_NONE) {
    return encode_tensor_map(driver, "a", MapElement::e2m1, g.a, g.m, g.k, g.l, g.a_ld,
                             g.a_batch_stride, tile, map);
  }
  // Rows that are there alone: those beyond M take TMA as long (kernel/sm90/load.cuh).
  const bool cut = tile >= kTokensOfCutBox && g.m < tile;
  const uint32_t rows = cut ? static_cast<uint32_t>(g.m) : tile;
  return encode_tensor_map(driver, "a", MapElement::half, g.a, g.m, g.k, g.l, g.a_ld,
                           g.a_batch_stride, rows, map);
}

// For tiles of two CTAs.
nvfp4_status encode_scales(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                           Sm100Params* p) {
  if (plan.variant->tile_ctas == 1) return NVFP4_SUCCESS;
  const uint32_t tiles = plan.variant->tile_k / kScaleTileK;
  const ScaleTiles weights{p->weight_scales, g.n, g.k, g.l, p->weight_scales_batch_bytes};
  const ScaleTiles tokens{p->token_scales, g.m, g.k, g.l, p->token_scales_batch_bytes};
  NVFP4_TRY(encode_scale_map(driver, "b_scales", weights, tiles, &p->weight_scale_map));
  return encode_scale_map(driver, "a_scales", tokens, tiles, &p->token_scale_map);
}

bool tokens_by_tma(const Plan& plan) { return plan.arch().tokens_by_tma; }
bool tiles_scales(const Plan& plan) { return plan.a_scales_bytes + plan.b_scales_bytes > 0; }

// Scales as the kernel finds them: the caller's, or tiles that were made of them in the workspace.
struct Scales {
  const uint8_t* first;
  int64_t batch_bytes;
  bool linear;
};

// The strides of one batch were not looked at and may hold anything.
int64_t scales_stride(const nvfp4_gemm_desc& g, int64_t stride) { return g.l > 1 ? stride : 0; }

Scales scales_of(const nvfp4_gemm_desc& g, const Operand& x, uint64_t tiled_bytes, uint64_t at) {
  const int64_t stride = scales_stride(g, x.scales_stride);
  if (tiled_bytes == 0) {
    const bool linear = x.quantized() && x.layout == NVFP4_SCALE_LAYOUT_LINEAR;
    return {static_cast<const uint8_t*>(x.scales), stride, linear};
  }
  int64_t matrix = 0;
  scale_bytes(x.rows, x.k, NVFP4_SCALE_LAYOUT_128X4, &matrix);  // fits: the plan counted it
  return {static_cast<const uint8_t*>(g.workspace) + at, stride == 0 ? 0 : matrix, false};
}
Scales token_scales(const nvfp4_gemm_desc& g, const Plan& plan) {
  return scales_of(g, operand_a(g), plan.a_scales_bytes, 0);
}
Scales weight_scales(const nvfp4_gemm_desc& g, const Plan& plan) {
  return scales_of(g, operand_b(g), plan.b_scales_bytes, plan.a_scales_bytes);
}

template <typename Params>
void set_plain_addresses(const nvfp4_gemm_desc& g, const Plan& plan, Params* p) {
  p->weight_scales = weight_scales(g, plan).first;
  p->token_scales = token_scales(g, plan).first;
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
  set_plain_addresses(g, plan, p);
  p->weight_scales_batch_bytes = weight_scales(g, plan).batch_bytes;
  p->token_scales_batch_bytes = token_scales(g, plan).batch_bytes;
  p->d_ld = g.d_ld;
  p->d_batch_stride = g.l > 1 ? g.d_batch_stride : 0;
  p->m = static_cast<uint32_t>(g.m);
  p->n = static_cast<uint32_t>(g.n);
  p->k = static_cast<uint32_t>(g.k);
  p->tiles_m = plan.tiles_m;
  p->tiles_n = plan.tiles_n;
  p->alpha = g.alpha;
  // Tiles of their scales come from a kernel just before.
  p->weights_are_static = g.pdl == NVFP4_PDL_ON_STATIC_WEIGHTS && plan.b_scales_bytes == 0;
  p->split = plan.split;
}

void set_sm90(const nvfp4_gemm_desc& g, const Plan& plan, Sm90Params* p) {
  set_gemm(g, plan, p);
  set_token_addresses(g, p);
  p->token_row_bytes = g.a_ld / 2;
  p->token_batch_bytes = g.l > 1 ? g.a_batch_stride / 2 : 0;
  p->m_padded = plan.tiles_m * plan.variant->tile_tokens;
  p->batches = static_cast<uint32_t>(g.l);
  p->whole_tiles = plan.whole;
  p->weight_scales_linear = weight_scales(g, plan).linear;
  p->token_scales_linear = token_scales(g, plan).linear;
}

void set_sm100(const nvfp4_gemm_desc& g, const Plan& plan, Sm100Params* p) {
  set_gemm(g, plan, p);
  p->tiles = plan.grid / plan.cluster;
  p->by_tiles_m = divisor_of(plan.tiles_m);
  p->by_tiles_n = divisor_of(plan.tiles_n);
}

nvfp4_status make_params(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         KernelParams* p) {
  if (tokens_by_tma(plan)) {
    p->sm100 = {};
    set_sm100(g, plan, &p->sm100);
    NVFP4_TRY(encode_weights(driver, g, plan, &p->sm100.weights));
    NVFP4_TRY(encode_tokens(driver, g, plan, &p->sm100.tokens));
    NVFP4_TRY(encode_scales(driver, g, plan, &p->sm100));
    return set_d_store(driver, g, plan, &p->sm100);
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

nvfp4_status enqueue_tiling(const Site& site, const nvfp4_gemm_desc& g, const Operand& x,
                            const Scales& tiles, bool early, CUstream stream) {
  const int64_t stride = scales_stride(g, x.scales_stride);
  const ScaleTiling tiling{
      x.scales, const_cast<uint8_t*>(tiles.first), x.rows, x.k, stride == 0 ? 1 : g.l, stride};
  return enqueue_scale_tiling(site, tiling, early, stream);
}

// The kernels that fill the workspace. The first of them starts when all before it is done: what
// was in the workspace has been read.
nvfp4_status enqueue_workspace(const Site& site, const PreparedGemm& prepared,
                               const nvfp4_gemm_desc& g, const KernelParams& params,
                               CUstream stream) {
  const Plan& plan = prepared.plan;
  if (plan.a_scales_bytes > 0) {
    NVFP4_TRY(enqueue_tiling(site, g, operand_a(g), token_scales(g, plan), false, stream));
  }
  if (plan.b_scales_bytes > 0) {
    const bool early = plan.a_scales_bytes > 0;
    NVFP4_TRY(enqueue_tiling(site, g, operand_b(g), weight_scales(g, plan), early, stream));
  }
  if (!plan.variant->workspace_tokens) return NVFP4_SUCCESS;
  return enqueue_tokens(site, prepared, params, stream);
}

// What the plain entry of a tile has no code for (kernel/sm90/tile.h).
bool is_plain(const Sm90Params& p) {
  return p.epilogue.kind != kEpilogueGeneral && p.weight_scales_linear == 0 &&
         p.token_scales_linear == 0 && p.k % kScaleTileK == 0;
}

Entry entry_of(const PreparedGemm& prepared, uint32_t ctas, const KernelParams& params) {
  const Plan& plan = prepared.plan;
  const auto& kernels = prepared.loaded.kernels;
  if (kernels[kEntryPlain] == nullptr || !is_plain(params.sm90)) return kEntryAny;
  const bool once = plan.whole == 0 && ctas == plan.grid;
  return once && kernels[kEntryOnce] != nullptr ? kEntryOnce : kEntryPlain;
}

nvfp4_status enqueue_kernel(const Site& site, const PreparedGemm& prepared,
                            const nvfp4_gemm_desc& g, uint32_t ctas, const KernelParams& params,
                            CUstream stream) {
  const Variant& variant = *prepared.plan.variant;
  NVFP4_TRY(enqueue_workspace(site, prepared, g, params, stream));
  // After a kernel that fills the workspace, always early: it waits for it by itself.
  const bool early = g.pdl != NVFP4_PDL_OFF || prepared.plan.workspace_bytes > 0;
  const Grid grid{ctas, 1, variant.threads, variant.shared_bytes, prepared.plan.cluster, early};
  const CUkernel kernel = prepared.loaded.kernels[entry_of(prepared, ctas, params)];
  return launch(site, kernel, grid, &params, stream);
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
  if (desc.variant != nullptr) {
    prepared->desc.variant = name_of(*prepared->plan.variant, checked.forced_split);
  }
  if (desc.k == 0) return NVFP4_SUCCESS;
  NVFP4_TRY(check_workspace(desc, prepared->plan.workspace_bytes));
  NVFP4_TRY(ready_kernel(site, prepared->plan, &prepared->loaded));
  if (tiles_scales(prepared->plan)) NVFP4_TRY(ready_scale_tiling(site));
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
    set_plain_addresses(desc, prepared.plan, &params->sm100);
    NVFP4_TRY(encode_scales(driver, desc, prepared.plan, &params->sm100));
    if (desc.d != prepared.desc.d) {
      NVFP4_TRY(set_d_store(driver, desc, prepared.plan, &params->sm100));
    }
  } else {
    set_plain_addresses(desc, prepared.plan, &params->sm90);
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
  NVFP4_TRY(enqueue_kernel(site, prepared, desc, ctas, params, static_cast<CUstream>(stream)));
  log_call(desc, prepared.loaded.image, prepared.plan.variant->name, ctas);
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
