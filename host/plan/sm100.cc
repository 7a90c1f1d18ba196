// SPDX-License-Identifier: MIT
// Compute capability 10.x. The variant that keeps an SM busy for the shortest time, counted in rows
// that it fetches:
//
//     ceil(tiles / 148) * (tile weights + tile tokens)          ties: the wider
//
// 148 CTAs run at once on a B200, one per SM, since a variant's ring fills the shared memory. What
// is known (none of it measured by us):
//   * Published ladder on a B200 for this kernel's design, M = 128, weights on MMA-M (gau-nernst,
//     gpu-mode-kernels, nvfp4_gemm, v0c to v2): 64 tokens instead of 128 took 22.6 to 20.0, 12.4 to
//     10.3 and 8.25 to 7.74 us, for 56, 32 and 56 tiles that became 112, 64 and 112. Where the
//     wave is not full, more CTAs fetch more bytes at once, and each has fewer to fetch.
//   * An MMA of 64 tokens runs at 64 to 66 % of the full rate, one of 128 at all of it, so a second
//     wave of narrow tiles is worth less than one of wide ones: the rule counts 192 rows for 64
//     tokens against 256 for 128, a ratio of 0.75.
//   * With many tokens every row of tiles reads the weights again: 256 tokens halve that traffic.
#include <cinttypes>
#include <cstdio>

#include "host/plan/plan.h"
#include "host/size.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMaxTiledScales = int64_t{1} << 62;  // of an operand: both fit 63 bits

// K is never split, and no cluster launched.
bool choose_split(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  int64_t matrix;
  *choice = {&v, 1, 1, false, 0, 0, 0, 0};
  if (!count_tiles(desc, v, &matrix, &choice->tiles)) return false;
  choice->ctas = choice->tiles;
  choice->cost = ceil_div(choice->tiles, arch.sm_count) * (v.tile_weights + v.tile_tokens);
  return true;
}

// Scales that are linear, in 128x4 tiles: [L, or 1 where batches share them][tiles].
nvfp4_status count_tiled_scales(const char* name, int32_t layout, int64_t rows, int64_t stride,
                                const nvfp4_gemm_desc& desc, uint64_t* bytes) {
  if (layout != NVFP4_SCALE_LAYOUT_LINEAR) return NVFP4_SUCCESS;
  const int64_t matrices = desc.l == 1 || stride == 0 ? 1 : desc.l;
  int64_t one, all;
  if (!scale_bytes(rows, desc.k, NVFP4_SCALE_LAYOUT_128X4, &one) ||
      !multiply(one, matrices, &all) || all > kMaxTiledScales) {
    return fail(NVFP4_STATUS_LIMIT, "%s in 128x4 tiles need more than 2^62 bytes of workspace",
                name);
  }
  *bytes = static_cast<uint64_t>(all);
  return NVFP4_SUCCESS;
}

nvfp4_status count_workspace(const nvfp4_gemm_desc& desc, Plan* plan) {
  NVFP4_TRY(count_tiled_scales("a_scales", desc.a_scale_layout, desc.m,
                               desc.a_scales_batch_stride_bytes, desc, &plan->a_scales_bytes));
  NVFP4_TRY(count_tiled_scales("b_scales", desc.b_scale_layout, desc.n,
                               desc.b_scales_batch_stride_bytes, desc, &plan->b_scales_bytes));
  plan->workspace_bytes = plan->a_scales_bytes + plan->b_scales_bytes;
  return NVFP4_SUCCESS;
}

void write_rule(const Architecture& arch, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text,
           "fewest rows fetched by an SM, ceil(tiles / %" PRId64 ") * (weights + tokens)",
           arch.sm_count);
}

void write_choice(const Choice& choice, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "%" PRId64 " tiles, %" PRId64 " rows", choice.tiles, choice.cost);
}

}  // namespace

const Planner kPlannerSm100{choose_split, true, count_workspace, write_rule, write_choice, nullptr};

}  // namespace nvfp4
