// SPDX-License-Identifier: MIT
// Checks all rules of the header, in its order. Most of them are in problem/. The rules about the
// variant and its tiles need the planner's tables, so they are here.
#include "host/plan/checked.h"

#include <cinttypes>

namespace nvfp4 {

namespace {

nvfp4_status check_tiles(const nvfp4_gemm_desc& g, const Variant* forced) {
  const Variant& v = variant_of_fewest_tiles(forced);
  int64_t matrix, all;
  if (count_tiles(g, v, &matrix, &all)) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_LIMIT,
              "ceil(m/%" PRIu32 ") * ceil(n/%" PRIu32 ") * l = %" PRId64 " * %" PRId64
              " tiles; at most %" PRId64,
              v.tile_tokens, v.tile_weights, matrix, g.l, most_tiles(v));
}

}  // namespace

nvfp4_status take_variant(const nvfp4_gemm_desc& desc, CheckedGemm* checked) {
  Asked asked;
  NVFP4_TRY(find_variant(desc.variant, &asked));
  checked->forced = asked.variant;
  checked->forced_split = asked.split;
  checked->forced_apart = asked.apart;
  return NVFP4_SUCCESS;
}

nvfp4_status check_gemm(const nvfp4_gemm_desc* desc, Caller caller, CheckedGemm* checked) {
  NVFP4_TRY(check_kind(desc, caller, &checked->known));
  const nvfp4_gemm_desc& g = checked->known;
  checked->desc = &g;
  NVFP4_TRY(take_variant(g, checked));
  checked->sizes_alone = asks_about_sizes(g, caller);
  checked->empty = g.m == 0 || g.n == 0 || g.l == 0;
  if (checked->empty) return NVFP4_SUCCESS;
  NVFP4_TRY(check_tiles(g, checked->forced));
  return check_operands(g, caller, checked->sizes_alone);
}

}  // namespace nvfp4
