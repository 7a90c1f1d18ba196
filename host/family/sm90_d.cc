// SPDX-License-Identifier: MIT
#include "host/family/sm90_d.h"

#include <algorithm>

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "kernel/common/scale_tile.h"

namespace nvfp4 {

namespace {

// Clock cycles of an epilogue beyond those of the fast one, fitted on times of an H200
// (bench/results/apart-h200-2026-11-29.csv; gated D in 16 bits: gated-h200-2026-11-29.csv; D with
// scales by its own entries: docs/notebook.md): once, for each tile of a CTA, and for a hundred of
// the tile's sums.
struct Epilogue {
  int64_t once, tile, sums;
};
constexpr Epilogue kNone{0, 0, 0}, kOfFew{2700, 0, 0};
constexpr Epilogue kGated{300, 400, 23}, kGatedOfFew{1000, 350, 0};
constexpr Epilogue kScaled{0, 500, 24}, kGatedScaled{0, 1500, 50};
// SiLU; C and maxima take less (bench/results/fields-h200-2026-11-29.csv).
constexpr Epilogue kFields{1000, 300, 50}, kFieldsOfFew{2000, 300, 0};
constexpr Epilogue kGeneral{3000, 1200, 100}, kGeneralScaled{3000, 1200, 200};
constexpr Epilogue kByColumns{3000, 1200, 340}, kGatedGeneral{500, 1250, 85};

// Scales in 128x4 tiles, in NVFP4, and whole steps of K: what the plain entries of gated products
// take.
bool has_plain_operands(const nvfp4_gemm_desc& g) {
  const auto plain = [&](const Operand& x) {
    return !x.quantized() || x.packed() || x.layout == NVFP4_SCALE_LAYOUT_128X4;
  };
  return plain(operand_a(g)) && plain(operand_b(g)) && g.k % kScaleTileK == 0 &&
         g.operand_format == NVFP4_OPERAND_FORMAT_NVFP4;
}

const Epilogue& epilogue_of(const nvfp4_gemm_desc& g, const Variant& v) {
  const uint32_t kind = make_epilogue(g).kind;
  if (is_gated(g)) {
    const bool plain = sm90_is_plain_gate(g) && !has_packed_weights(g);
    if (!plain) return kGatedGeneral;
    if (kind == kEpilogueScaled) return kGatedScaled;
    return v.has(kOperation_gated) ? kGated : kGatedOfFew;
  }
  if (kind <= kEpilogueF32) return kNone;
  if (v.family != &kFamily_sm90) return kOfFew;
  if (kind == kEpilogueScaled && sm90_has_scaled_entry(g, v)) return kScaled;
  if (format_of_d(g.d_type) != nullptr) return kGeneralScaled;
  if (!has_packed_weights(g) && sm90_has_fast_fields(g, v)) {
    return v.tile_tokens <= 16 ? kFieldsOfFew : kFields;
  }
  return g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR ? kGeneral : kByColumns;
}

// Tiles that the CTA with most of them has, one after the other.
int64_t tiles_of_cta(const Choice& choice, const Architecture& arch) {
  const int64_t shared = (choice.tiles - choice.whole) * choice.split;
  return ceil_div(choice.whole, int64_t{arch.sm_count}) +
         ceil_div(shared, int64_t{arch.sm_count} * choice.variant->ctas_per_sm);
}

// The second kernel, with what storing fp32 adds to the first: once, and for a thousand elements
// of D on all SMs together.
struct Finish {
  int64_t once, elements;
};
constexpr Finish kQuantizer{2700, 4}, kFinish{4200, 6}, kFinishGated{5000, 8};

const Finish& finish_of(const nvfp4_gemm_desc& g, Apart way) {
  if (way == Apart::quantizer) return kQuantizer;
  if (is_gated(g)) return kFinishGated;
  return kFinish;
}

}  // namespace

bool sm90_adds_own_parts(const nvfp4_gemm_desc& g, const Variant& v) {
  const bool packed = has_packed_weights(g);
  if (!v.has(packed ? kOperation_packed_invariant : kOperation_invariant)) return false;
  if (g.batch_invariant == 0 || is_gated(g) || g.k == 0 || !has_plain_operands(g)) return false;
  return make_epilogue(g).kind < kEpilogueGeneral;
}

bool sm90_has_scaled_entry(const nvfp4_gemm_desc& g, const Variant& v) {
  return v.has(kOperation_scaled) && has_plain_operands(g) && !has_packed_weights(g);
}

bool sm90_gates_groups(const Variant& v) { return v.tile_tokens < 128; }

bool sm90_is_plain_gate(const nvfp4_gemm_desc& g) {
  const uint32_t kind = make_epilogue(g).kind;
  return has_plain_operands(g) && (kind == kEpilogueColumns || kind == kEpilogueScaled);
}

bool sm90_has_fast_fields(const nvfp4_gemm_desc& g, const Variant& v) {
  return v.has(kOperation_fields) && has_plain_operands(g) && is_of_fields(make_epilogue(g));
}

int64_t sm90_epilogue_clocks(const nvfp4_gemm_desc& g, const Architecture& arch,
                             const Choice& choice) {
  const Variant& v = *choice.variant;
  const Epilogue& of = epilogue_of(g, v);
  const int64_t sums = int64_t{v.tile_weights} * v.tile_tokens / choice.split;
  return of.once + tiles_of_cta(choice, arch) * (of.tile + sums * of.sums / 100);
}

int64_t sm90_finish_clocks(const nvfp4_gemm_desc& g, Apart way) {
  const Finish& of = finish_of(g, way);
  const double elements =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.l);
  return of.once + static_cast<int64_t>(elements * static_cast<double>(of.elements) / 1000);
}

ApartCosts sm90_apart_costs(const nvfp4_gemm_desc& g, const nvfp4_gemm_desc& sums,
                            const Architecture& arch) {
  ApartCosts costs{};
  const Choice one = cheapest(planned_product(g, arch), arch, &variant_at(0), kVariantCount);
  const Choice apart = cheapest(sums, arch, &variant_at(0), kVariantCount);
  if (one.variant != nullptr) costs.one = one.cost + sm90_epilogue_clocks(g, arch, one);
  if (apart.variant != nullptr) costs.apart = apart.cost + sm90_finish_clocks(g, way_apart(g));
  costs.by_sizes = is_gated(g) && g.batch_invariant != 0;
  return costs;
}

}  // namespace nvfp4
