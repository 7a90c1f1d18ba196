// SPDX-License-Identifier: MIT
// What holds for every plan, in 128-bit arithmetic of its own.
#pragma once

#include <cstring>
#include <string>

#include "host/plan/plan.h"

namespace host_test {

__extension__ using Wide = unsigned __int128;

// Compute capability 10.x, written down here once more: what a block may use.
constexpr uint32_t kSharedBytesOfBlock = 227 * 1024;
constexpr uint32_t kTensorMemoryColumns = 512;

inline Wide tiles_of(const nvfp4_gemm_desc& g, const nvfp4::Variant& v) {
  const Wide across = (Wide(g.m) + v.tile_tokens - 1) / v.tile_tokens;
  const Wide down = (Wide(g.n) + v.tile_weights - 1) / v.tile_weights;
  return across * down * Wide(g.l);
}

// The tiles [i * tile, (i + 1) * tile) cut to the size are disjoint; so they cover every index once
// if the last of them is the first that reaches the end.
inline bool covers(uint32_t tiles, uint32_t tile, int64_t size) {
  return Wide(tiles) * tile >= Wide(size) && Wide(tiles - 1) * tile < Wide(size);
}

// "" or what is wrong. Catch2's assertions cost a microsecond each and there are millions of plans.
inline std::string complaint(const nvfp4_gemm_desc& g, const nvfp4::Plan& plan) {
  const nvfp4::Variant& v = *plan.variant;
  if (g.variant != nullptr && strcmp(g.variant, v.name) != 0) return "another variant than forced";
  if (&v != &nvfp4::variant_at(nvfp4::index_of(v))) return "variant and index differ";
  if (!covers(plan.tiles_m, v.tile_tokens, g.m)) return "tiles do not cover M once";
  if (!covers(plan.tiles_n, v.tile_weights, g.n)) return "tiles do not cover N once";
  if (plan.even && plan.grid != 132) return "even shares are not those of 132 CTAs";
  const bool mixed = plan.whole > 0 && !plan.even;  // whole tiles and shared ones
  if (!mixed && !plan.even && Wide(plan.grid) != tiles_of(g, v) * plan.split * v.tile_ctas) {
    return "the grid is not the number of tiles";
  }
  if (mixed && plan.whole % plan.grid != 0) return "CTAs have different numbers of whole tiles";
  if (mixed && (plan.split == 1 || plan.grid % plan.split != 0)) return "no clusters share tiles";
  const Wide shared = tiles_of(g, v) - plan.whole;
  if (mixed && (shared < 1 || shared > plan.grid / plan.split)) return "a cluster shares no tile";
  if (Wide(plan.grid) > INT32_MAX) return "grid.x is above 2^31 - 1";
  if (v.shared_bytes > kSharedBytesOfBlock) return "too much shared memory";
  if (v.shared_bytes * v.ctas_per_sm > kSharedBytesOfBlock) return "so many CTAs do not fit an SM";
  if (v.tmem_columns > kTensorMemoryColumns) return "too many columns of tensor memory";
  return "";
}

// A plan of a problem that the checks have let pass.
inline nvfp4_status plan_of(const nvfp4_gemm_desc& g, int32_t capability, nvfp4::Plan* plan) {
  nvfp4::CheckedGemm checked{&g, nullptr, false, false};
  NVFP4_TRY(nvfp4::take_variant(g, &checked));
  return nvfp4::make_plan(checked, capability, plan);
}

inline bool same(const nvfp4::Plan& a, const nvfp4::Plan& b) {
  return a.variant == b.variant && a.tiles_m == b.tiles_m && a.tiles_n == b.tiles_n &&
         a.split == b.split && a.whole == b.whole && a.cluster == b.cluster && a.grid == b.grid &&
         a.workspace_bytes == b.workspace_bytes && a.a_scales_bytes == b.a_scales_bytes &&
         a.b_scales_bytes == b.b_scales_bytes;
}

}  // namespace host_test
