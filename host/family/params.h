// SPDX-License-Identifier: MIT
// Parameters that all families have in common.
#pragma once

#include "host/driver/driver.h"
#include "host/plan/family.h"
#include "host/problem/epilogue.h"
#include "kernel/common/params.h"

namespace nvfp4 {

// Scales as the kernel reads them: the caller's, or 128x4 tiles made from them in the workspace.
struct Scales {
  const uint8_t* first;
  int64_t batch_bytes;
  bool linear;
};

Scales token_scales(const nvfp4_gemm_desc& desc, const Plan& plan);
Scales weight_scales(const nvfp4_gemm_desc& desc, const Plan& plan);
// The same for b2, whose scales are stored as those of b.
const uint8_t* weight_scales2(const nvfp4_gemm_desc& desc);

// With one batch the strides were not checked and may hold anything.
inline int64_t scales_stride(const nvfp4_gemm_desc& desc, int64_t stride) {
  return desc.l > 1 ? stride : 0;
}

nvfp4_status encode_weights(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                            TensorMap* map);
// The tensor map of b2. A box of a gated product has half of a tile's rows.
nvfp4_status encode_weights2(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                             TensorMap* map);

// The tensor map of tokens, with `rows` rows per box.
nvfp4_status encode_tokens(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                           uint32_t rows, TensorMap* map);

template <typename Params>
void set_plain_addresses(const nvfp4_gemm_desc& g, const Plan& plan, Params* p) {
  p->weight_scales = weight_scales(g, plan).first;
  p->token_scales = token_scales(g, plan).first;
  p->d = g.d;
  p->epilogue = make_epilogue(g);  // the addresses that are given decide what it does
}

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
  // A kernel just before makes the tiles of their scales.
  p->weights_are_static = g.pdl == NVFP4_PDL_ON_STATIC_WEIGHTS && plan.b_scales_bytes == 0;
  p->split = plan.split;
}

}  // namespace nvfp4
