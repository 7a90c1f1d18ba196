// SPDX-License-Identifier: MIT
// The rules of nvfp4_gemm_desc, in the order of the header's list; check_gemm at the end is that
// list.
#include <cinttypes>

#include "host/problem/fields.h"
#include "host/plan/variant.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMaxSize = INT32_MAX;
constexpr int64_t kMaxReferenceK = 1 << 20;  // its sums then fit 63 bits

// ---- m, n, k, l --------------------------------------------------------------------------------

nvfp4_status check_k(int64_t k, Caller caller) {
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", k, kScaleBlock, ""));
  return caller == Caller::reference ? rule_range("k", k, kMaxReferenceK) : NVFP4_SUCCESS;
}

nvfp4_status check_sizes(const nvfp4_gemm_desc& g, Caller caller) {
  NVFP4_TRY(rule_range("m", g.m, kMaxSize));
  NVFP4_TRY(rule_range("n", g.n, kMaxSize));
  NVFP4_TRY(rule_range("k", g.k, kMaxSize));
  NVFP4_TRY(rule_range("l", g.l, kMaxSize));
  return check_k(g.k, caller);
}

// ---- tiles --------------------------------------------------------------------------------------

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

nvfp4_status check_gemm(const nvfp4_gemm_desc* desc, Caller caller, CheckedGemm* checked) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(rule_struct_size(desc, desc->struct_size, sizeof *desc, "nvfp4_gemm_desc"));
  const nvfp4_gemm_desc& g = *desc;
  NVFP4_TRY(check_sizes(g, caller));
  NVFP4_TRY(check_enums(g, caller));
  NVFP4_TRY(check_switches(g));
  NVFP4_TRY(check_absent(g));
  checked->desc = desc;
  NVFP4_TRY(find_variant(g.variant, &checked->forced, &checked->forced_split));
  checked->sizes_alone = caller == Caller::question && has_no_address(g);
  checked->empty = g.m == 0 || g.n == 0 || g.l == 0;
  if (checked->empty) return NVFP4_SUCCESS;
  NVFP4_TRY(check_tiles(g, checked->forced));
  NVFP4_TRY(check_companions(g, checked->sizes_alone));
  if (!checked->sizes_alone) NVFP4_TRY(check_addresses(g, caller));
  NVFP4_TRY(check_leading_dimensions(g, checked->sizes_alone));
  NVFP4_TRY(check_strides(g, checked->sizes_alone));
  return checked->sizes_alone ? check_extents(g) : check_overlap(g);
}

nvfp4_status check_addresses_struct(const nvfp4_gemm_addresses& addresses) {
  NVFP4_TRY(rule_struct_size(&addresses, addresses.struct_size, sizeof addresses,
                             "nvfp4_gemm_addresses"));
  return check_absent_addresses(addresses);
}

nvfp4_status check_new_addresses(const nvfp4_gemm_desc& desc) {
  NVFP4_TRY(check_companions(desc, false));
  NVFP4_TRY(check_addresses(desc, Caller::run));
  return check_overlap(desc);
}

}  // namespace nvfp4
