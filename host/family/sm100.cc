// SPDX-License-Identifier: MIT
// Compute capability 10.x. The planner takes the variant and the number of K partitions with the
// least time by a closed form of the timing model (docs/model.md), since no B200 has run the
// kernel. The form is fitted to the simulation of 60 shapes (`make model`, 2026-11-28), with each
// of three epilogues. The root mean square of the differences is about 5 %. docs/model.md says what
// its choices lose.
//
//     start + waves of (first k-blocks + other k-blocks + epilogue + exchange of sums)
//
// If a CTA computes one tile after the other, the time is that of one such wave plus the time that
// each further tile adds.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/driver/tensor_map.h"
#include "host/family/d_store.h"
#include "host/family/params.h"
#include "host/family/token_policy.h"
#include "host/plan/apart.h"
#include "host/plan/proof.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "kernel/common/scale_tile.h"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMaxTiledScales = int64_t{1} << 62;  // per operand, so that both fit 63 bits
constexpr int64_t kMostScaleRows = int64_t{1} << 32;   // that a kernel can name

// CTAs that share a tile along K form a cluster. The planner splits K only if all clusters run at
// once. `ctas` is the number of CTAs that can, as the model places them (36 clusters of 4).
struct Split {
  uint32_t partitions;
  int64_t ctas;
};
constexpr Split kSplits[] = {{1, 148}, {2, 148}, {4, 144}};

// Minimum k-blocks per K partition. For shorter ones the simulation credits split-K with sharing a
// full tile's epilogue, which a few tokens do not have.
constexpr int64_t kFewestStages = 4;

// Fitted times of the machine in nanoseconds: start of a launch until its first copy arrives; start
// of the next CTA on an SM; latency of k-blocks in flight; time from the last product of a k-block
// to the next load into its stage.
constexpr double kStart = 1320, kNextCta = 1235, kLatency = 1088, kRefill = 54;
// Time from a tile's last product until its sums are known to be complete.
constexpr double kProductsSeen = 3;
// Bytes per nanosecond, from tools/model/parameters.def: into one SM, from DRAM, from L2 to all
// SMs, pushed.
constexpr double kPort = 376, kDram = 7400, kFabric = 20000, kPushed = 20.7;
constexpr double kClock = 1.9;
// Time that one of the two warps of a lane band takes from sums to D for its 32 tokens: with the
// fast epilogue, for a D with scales, with the general epilogue and SiLU, and for a gated product.
// Beside it, until TMA has read the boxes of a pair.
constexpr double kFast = 244, kScaled = 522, kGeneral = 985, kGated = 1015, kBoxes = 96;
// With split-K, times for 32 rows of an output slice: to push the rows of each other CTA, and to
// add and store own rows. Last, that of the two cluster barriers.
constexpr double kPut = 190, kAdd = 91, kMeeting = 308;

// A time between the largest of them and their sum. Each is a lower bound, and two that are nearly
// equal delay each other. Uses only products, sums and square roots: IEEE fixes their results to
// the last bit.
double together(double a, double b, double c, double d) {
  return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b + c * c * c * c + d * d * d * d));
}

// Rows of a box of tokens of one CTA, as in kernel/sm100/tile.h.
uint32_t box_tokens(int64_t m, const Variant& v) {
  const int64_t tokens = ceil_div(std::min<int64_t>(m, v.tile_tokens), kTokenStep) * kTokenStep;
  return static_cast<uint32_t>(tokens / v.tile_ctas);
}

struct Work {
  int64_t token_tiles, weight_tiles;  // weight_tiles counts all batches
  int64_t k_blocks;                   // k-blocks of a CTA
  int64_t rows;                       // rows of a tile
  double box;                         // rows of tokens that a CTA loads
  double sub_tile;                    // time of the epilogue for 32 tokens
};

// Clock cycles of the matrix unit for a k-block: four steps. A step takes the longer of its
// operands and scale copies at 128 bytes per clock, and its products. Each of two CTAs has half of
// the tokens' rows.
double products(const Variant& v, const Work& work) {
  const double tokens = work.box * v.tile_ctas;
  const double rows = (v.tile_weights + tokens) / v.tile_ctas;
  const double copies = 4.0 * (1 + (v.tile_tokens + 127) / 128);
  return 4 * std::max(tokens / 2, rows / 4 + copies) / kClock;
}

// Time from the last MMA to the last store, without the exchange between CTAs.
double epilogue(const Variant& v, const Work& work, int64_t partitions) {
  if (partitions == 1) {
    const double boxes = v.tile_ctas == 1 ? 0 : v.tile_tokens > 128 ? kBoxes : 2 * kBoxes;
    return work.sub_tile * ceil_div(v.tile_tokens, 64) + boxes;
  }
  // Each warp has half of a slice. Few tokens leave the last slices empty.
  const int64_t rows = v.tile_tokens / (2 * partitions);
  const int64_t others = std::min(partitions - 1, ceil_div(work.rows, 2 * rows));
  return double(rows) / 32 * (others * kPut + kAdd + work.sub_tile - kFast);
}

// Times of a wave, and of each further tile of its CTAs: where there are none, 0.
struct Times {
  double wave, tile;
};

Times times_of(const Variant& v, const Work& work, const Split& split, int64_t active) {
  const double in_flight = std::min<int64_t>(work.k_blocks, v.stages);
  // A row of a k-block has 128 bytes of codes and 16 of scales.
  const double weight_bytes = v.tile_weights / v.tile_ctas * 144.0;
  const double stage_bytes = v.stage_bytes - 128 * (double(v.tile_tokens) / v.tile_ctas - work.box);
  const double weights = std::min(work.weight_tiles * split.partitions * v.tile_ctas,
                                  ceil_div(active, work.token_tiles));
  const double tokens = std::min(active, work.token_tiles * split.partitions * v.tile_ctas);
  const double unique = weights * weight_bytes + tokens * (stage_bytes - weight_bytes);
  const double all = stage_bytes * active;
  const double first = together(kLatency, in_flight * stage_bytes / kPort,
                                in_flight * unique / kDram, in_flight * all / kFabric);
  const double next = std::max(products(v, work), (first + kRefill) / v.stages);
  const double pushed =
      4.0 * v.tile_weights * work.rows * (split.partitions - 1) / split.partitions;
  const double met = split.partitions * v.tile_ctas > 1 ? kMeeting + pushed / kPushed : 0;
  const double end = epilogue(v, work, split.partitions);
  const double wave = first + (work.k_blocks - in_flight) * next + end + met;
  if (!v.several_tiles) return {wave, 0};
  // Loads continue during an epilogue, and MMAs do if there is a second accumulator. In tiles
  // of 256 tokens both share columns. The first quarter of the fast epilogue reads these; any other
  // releases them at its end.
  const double multiplied = work.k_blocks * products(v, work) + kProductsSeen;
  const double reading = work.sub_tile > kFast ? end : end / 4;
  const double shared = v.tile_tokens > 128 ? reading : 0;
  const double summed = v.accumulators > 1 ? std::max(multiplied + shared, end) : multiplied + end;
  return {wave, together(work.k_blocks * next, summed, 0, 0)};
}

int64_t nanoseconds(const nvfp4_gemm_desc& desc, const Variant& v, int64_t tiles,
                    const Split& split, double sub_tile) {
  const int64_t stages = std::max<int64_t>(ceil_div(desc.k, v.tile_k), 1);
  const Work work{ceil_div(desc.m, v.tile_tokens),    tiles / ceil_div(desc.m, v.tile_tokens),
                  ceil_div(stages, split.partitions), std::min<int64_t>(desc.m, v.tile_tokens),
                  double(box_tokens(desc.m, v)),      sub_tile};
  const int64_t ctas = tiles * split.partitions * v.tile_ctas;
  const int64_t full = ctas / split.ctas, rest = ctas % split.ctas;
  if (v.several_tiles) {
    const Times times = times_of(v, work, split, std::min(ctas, split.ctas));
    const int64_t iterations = full + (rest > 0);
    return static_cast<int64_t>(kStart + times.wave + (iterations - 1) * times.tile);
  }
  double all = kStart + full * times_of(v, work, split, split.ctas).wave;
  if (rest > 0) all += times_of(v, work, split, rest).wave;
  return static_cast<int64_t>(all + (full + (rest > 0) - 1) * kNextCta);
}

// A tile that loads and multiplies weights of b and of b2.
Variant with_both(const Variant& v) {
  Variant both = v;
  both.tile_weights *= 2;
  both.stages = v.entries[kOperation_gated].stages;
  both.stage_bytes = v.entries[kOperation_gated].stage_bytes;
  return both;
}

// Time of D's own epilogue for 32 tokens.
double sub_tile_of(const nvfp4_gemm_desc& desc) {
  if (is_gated(desc)) return kGated;
  const uint32_t kind = make_epilogue(desc).kind;
  return kind == kEpilogueGeneral ? kGeneral : kind == kEpilogueScaled ? kScaled : kFast;
}

// In a batch-invariant problem no tile is split. Splits are compared with the fast epilogue.
bool choose_split(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  *choice = {};
  if (is_gated(desc)) {
    const int64_t cost = nanoseconds(desc, with_both(v), tiles, kSplits[0], kGated);
    *choice = {&v, 1, v.tile_ctas, false, tiles, 0, tiles * v.tile_ctas, cost, cost};
    return true;
  }
  const double own = sub_tile_of(desc);
  for (const Split& split : kSplits) {
    const int64_t ctas = tiles * split.partitions * v.tile_ctas;
    const bool runs =
        ctas <= split.ctas && split.partitions * kFewestStages <= ceil_div(desc.k, v.tile_k);
    const bool may = split.partitions <= v.max_split && desc.batch_invariant == 0 && runs;
    if (split.partitions > 1 && !may) continue;
    if (!is_taken_unasked(kProofs, v.family, arch.family, v.tile_ctas, split.partitions)) continue;
    const int64_t cost = nanoseconds(desc, v, tiles, split, kFast);
    if (choice->variant != nullptr && cost >= choice->cost) continue;
    const int64_t of_d = own == kFast ? cost : nanoseconds(desc, v, tiles, split, own);
    *choice = {&v,
               split.partitions,
               split.partitions * v.tile_ctas,
               v.several_tiles,
               tiles,
               0,
               ctas,
               cost,
               of_d};
  }
  return true;
}

// Scales in 128x4 tiles: [L, or 1 if batches share them][tiles]. For grouped products, as many
// tiles as any division of the rows can need.
bool tiled_scale_bytes(const Operand& x, bool of_groups, int64_t* bytes) {
  constexpr int32_t kTiles = NVFP4_SCALE_LAYOUT_128X4;
  if (of_groups) return grouped_scale_bytes(x.rows, x.l, x.k, kTiles, x.format, bytes);
  const int64_t matrices = x.l == 1 || x.scales_stride == 0 ? 1 : x.l;
  int64_t one;
  return scale_bytes_of(x, kTiles, &one) && multiply(one, matrices, bytes);
}

// Linear scales, converted to 128x4 tiles.
nvfp4_status count_tiled_scales(const Operand& x, bool of_groups, uint64_t* bytes) {
  if (x.packed() || x.layout != NVFP4_SCALE_LAYOUT_LINEAR) return NVFP4_SUCCESS;
  int64_t all;
  if (!tiled_scale_bytes(x, of_groups, &all) || all > kMaxTiledScales) {
    return fail(NVFP4_STATUS_LIMIT, "%s in 128x4 tiles need more than 2^62 bytes of workspace",
                x.scales_name);
  }
  *bytes = static_cast<uint64_t>(all);
  return NVFP4_SUCCESS;
}

nvfp4_status count_workspace(const nvfp4_gemm_desc& desc, Plan* plan) {
  const Operand b = operand_b(desc);
  if (is_gated(desc) && !b.packed() && b.layout == NVFP4_SCALE_LAYOUT_LINEAR) {
    return fail(NVFP4_STATUS_NOT_SUPPORTED,
                "b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR with b2 has no kernel for compute "
                "capability %s: convert the scales of both by nvfp4_scale_convert",
                capability_text(plan->arch().capability).text);
  }
  NVFP4_TRY(count_tiled_scales(operand_a(desc), plan->grouped, &plan->a_scales_bytes));
  NVFP4_TRY(count_tiled_scales(b, false, &plan->b_scales_bytes));
  plan->workspace_bytes = plan->a_scales_bytes + plan->b_scales_bytes;
  return NVFP4_SUCCESS;
}

void write_rule(const Architecture&, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "least time by the timing model of a B200, which none has confirmed");
}

// Uses whole numbers, so that a locale's decimal comma cannot appear.
void write_choice(const Choice& choice, char (&text)[kReasonBytes]) {
  const int64_t hundredths = (choice.own_cost() + 5) / 10;
  snprintf(text, sizeof text, "%" PRId64 " tiles, split %" PRIu32 ", %" PRId64 ".%02" PRId64 " us",
           choice.tiles, choice.split, hundredths / 100, hundredths % 100);
}

// ---- launching ---------------------------------------------------------------------------------

// A tile of a grouped product takes as many boxes as its rows need, so that those of a usual group
// need one.
uint32_t log2_box_rows(const Plan& plan) {
  const Variant& v = *plan.variant;
  const uint32_t most = v.tile_tokens / v.tile_ctas;
  uint32_t rows = kTokenStep;
  while (rows < most && rows * v.tile_ctas < plan.usual_rows) rows *= 2;
  return static_cast<uint32_t>(__builtin_ctz(rows));
}

nvfp4_status encode_all_tokens(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                               Sm100Params* p) {
  const uint32_t rows =
      plan.grouped ? uint32_t{1} << log2_box_rows(plan) : box_tokens(g.m, *plan.variant);
  return encode_tokens(driver, g, plan, rows, &p->tokens);
}

// Scale maps for tiles of two CTAs.
nvfp4_status encode_scales(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                           Sm100Params* p) {
  if (plan.variant->tile_ctas == 1) return NVFP4_SUCCESS;
  const int64_t tile_k = kScaleTileScales * find_operand_format(g.operand_format)->block;
  const auto tiles = static_cast<uint32_t>(plan.variant->tile_k / tile_k);  // in a box
  const int64_t columns = ceil_div(g.k, tile_k);
  // scale_rows may place the scales of a group anywhere.
  const int64_t rows = plan.grouped ? kMostScaleRows : g.m;
  const ScaleTiles tokens{p->token_scales, rows, columns, g.l, p->token_scales_batch_bytes};
  NVFP4_TRY(encode_scale_map(driver, "a_scales", tokens, tiles, &p->token_scale_map));
  if (plan.packed) return NVFP4_SUCCESS;
  const ScaleTiles weights{p->weight_scales, g.n, columns, g.l, p->weight_scales_batch_bytes};
  return encode_scale_map(driver, "b_scales", weights, tiles, &p->weight_scale_map);
}

// Packed weights are where the kernel otherwise has scales. A CTA of a pair loads them through a
// map all the same, since its copies count on a barrier of the other CTA.
nvfp4_status set_weights(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         Sm100Params* p) {
  p->weight_unit_bytes = kScaleTileBytes;
  if (!plan.packed) return encode_weights(driver, g, plan, &p->weights);
  const Packing& packing = *find_packing(g.b_packing);
  const OperandFormat& format = *find_operand_format(g.operand_format);
  p->weight_unit_bytes = static_cast<uint32_t>(packing.unit_bytes(format));
  p->weight_scales = static_cast<const uint8_t*>(g.b);
  p->weight_scales_batch_bytes = g.l == 1 ? 0 : packed_batch_bytes(g);
  if (plan.variant->tile_ctas == 1) return NVFP4_SUCCESS;
  const int64_t units = plan.variant->tile_k / packing.k(format);
  int64_t bytes = 0;
  packed_bytes(g.n, g.k, g.b_packing, g.operand_format, &bytes);  // cannot fail: it was checked
  return encode_runs_map(driver, "b", {g.b, bytes, g.l, p->weight_scales_batch_bytes},
                         static_cast<uint32_t>(units) * p->weight_unit_bytes, &p->weights);
}

// The parameters that only a gated product has.
nvfp4_status set_b2(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                    KernelParams* params) {
  if (!plan.gated) return NVFP4_SUCCESS;
  Sm100GatedParams* const p = params->get<Sm100GatedParams>();
  p->weight_scales2 = plan.packed ? static_cast<const uint8_t*>(g.b2) : weight_scales2(g);
  p->gate = make_gate(g);
  if (plan.packed) return NVFP4_SUCCESS;
  return encode_weights2(driver, g, plan, &p->weights2);
}

// The kernel prefetches every map. Those that packed weights do not need are copies of others.
void fill_other_maps(const Plan& plan, KernelParams* params) {
  Sm100GatedParams* const p = params->get<Sm100GatedParams>();
  if (!plan.packed) return;
  if (plan.variant->tile_ctas == 1) p->gemm.weights = p->gemm.tokens;
  p->gemm.weight_scale_map = p->gemm.token_scale_map;
  if (plan.gated) p->weights2 = p->gemm.weights;
}

// The largest of all.
static_assert(sizeof(Sm100GroupedGatedParams) >= sizeof(Sm100GroupedParams));

nvfp4_status make_params(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         KernelParams* params) {
  Sm100Params* const p = &params->make<Sm100GroupedGatedParams>()->gated.gemm;
  set_gemm(g, plan, p);
  p->tiles = plan.grid / plan.cluster;
  p->token_policy = token_policy(g.m, g.k, plan.grouped ? 1 : g.l);
  if (plan.grouped) p->log2_box_rows = log2_box_rows(plan);
  p->operand_format = static_cast<uint8_t>(g.operand_format);
  p->log2_steps_per_scale_tile = find_operand_format(g.operand_format)->block == 32;
  p->by_tiles_m = divisor_of(plan.tiles_m);
  p->by_tiles_n = divisor_of(plan.tiles_n);
  const uint32_t group = std::min(plan.tiles_m, kTokenGroup), rest = plan.tiles_m % kTokenGroup;
  p->by_batch = divisor_of(plan.tiles_m * plan.tiles_n);
  p->by_group = divisor_of(group * plan.tiles_n);
  p->by_last_group = divisor_of(rest == 0 ? kTokenGroup : rest);
  NVFP4_TRY(set_weights(driver, g, plan, p));
  NVFP4_TRY(encode_all_tokens(driver, g, plan, p));
  NVFP4_TRY(encode_scales(driver, g, plan, p));
  NVFP4_TRY(set_b2(driver, g, plan, params));
  fill_other_maps(plan, params);
  return set_d_store(driver, g, plan, p);
}

nvfp4_status replace_addresses(const Driver& driver, const nvfp4_gemm_desc& before,
                               const nvfp4_gemm_desc& g, const Plan& plan, KernelParams* params) {
  Sm100Params* const p = params->get<Sm100Params>();
  if (g.a != before.a) NVFP4_TRY(encode_all_tokens(driver, g, plan, p));
  set_plain_addresses(g, plan, p);
  if (g.b != before.b || plan.packed) NVFP4_TRY(set_weights(driver, g, plan, p));
  NVFP4_TRY(encode_scales(driver, g, plan, p));
  NVFP4_TRY(set_b2(driver, g, plan, params));
  fill_other_maps(plan, params);
  return g.d != before.d ? set_d_store(driver, g, plan, p) : NVFP4_SUCCESS;
}

// The plain entry has everything except the general epilogue and scales of D.
Operation operation(const Plan& plan, const KernelParams& params) {
  const EpilogueParams& e = params.get<Sm100Params>()->epilogue;
  // In groups the general epilogue makes D's scales.
  const bool general = e.kind == kEpilogueGeneral || (plan.grouped && e.kind == kEpilogueScaled);
  if (plan.gated) return operation_of(plan.grouped, true, false);
  if (plan.grouped) return general ? kOperation_grouped : kOperation_grouped_plain;
  if (e.d_scales_per_row != 0) return kOperation_scaled;
  return general ? kOperation_any : kOperation_plain;
}

bool has_fast_scales(const nvfp4_gemm_desc&, const Plan&) { return true; }

constexpr Family make_family() {
  Family f;
  f.choose_split = choose_split;
  f.complete = count_workspace;
  f.waits_for_earlier_work = true;
  f.make_params = make_params;
  f.replace_addresses = replace_addresses;
  f.operation = operation;
  f.write_rule = write_rule;
  f.write_choice = write_choice;
  f.why_not_by_tma = why_not_by_tma;
  f.last_fast_epilogue = kEpilogueF32;
  f.has_fast_scales = has_fast_scales;
  f.groups_at = offsetof(Sm100GroupedParams, groups);
  f.gated_groups_at = offsetof(Sm100GroupedGatedParams, groups);
  f.groups_iterate = true;
  f.finds_group_scales = true;
  f.packing = NVFP4_PACKING_SM100_1;
  f.every_kernel_reads_packed = true;
  return f;
}

}  // namespace

const Family kFamily_sm100 = make_family();

}  // namespace nvfp4
