// SPDX-License-Identifier: MIT
// Compute capability 9.0: which tile, and how many CTAs share it along K.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/driver/tensor_map.h"
#include "host/family/nonce.h"
#include "host/family/params.h"
#include "host/family/sm90_d.h"
#include "host/plan/plan.h"
#include "host/problem/fields.h"
#include "kernel/sm90/params.h"

namespace nvfp4 {

namespace {

// The possible splits. Clusters of 3, 4 and 8 CTAs, with one CTA per SM, leave some SMs of a GPC
// empty (cuOccupancyMaxActiveClusters on an H200, 2026-11-21; for 3 it was not queried, but 108
// CTAs were seen to run at once). The last two numbers are the cost of the exchange of sums in
// clock cycles: for tiles of few tokens, whose sums are pushed, and for the others.
struct Split {
  uint32_t partitions;
  int64_t empty_sms, clocks_of_few, clocks;
};
constexpr Split kSplits[] = {
    {1, 0, 0, 0}, {2, 0, 1150, 1900}, {3, 24, 900, 1750}, {4, 12, 1050, 1600}, {8, 12, 1150, 1800}};

// All clock cycles here, those of the tiles' k-blocks (tiles.def) and those of sm80.cc were fitted
// together, on times of every plan for 24 layers of bench/layers.csv on an H200 (2026-11-29), and
// judged by 33 other layers (docs/notebook.md).
//
// Costs besides the k-blocks: start and first bytes of a CTA, and start of the activation pre-pass.
// The rest of the pre-pass is in the clock cycles of the k-blocks of its tiles.
constexpr int64_t kCtaClocks = 5050;
constexpr int64_t kTokenKernelClocks = 2050;
// Weights arrive at 83 % of the memory's rate, if all SMs wait for them.
constexpr int64_t kBytesPercent = 120;
// The kernel that makes tokens of other formats bf16.
constexpr int64_t kDecodeClocks = 3700;
// A CTA of the tile for 16 tokens with packed weights, at its start.
constexpr int64_t kPackedOfFewClocks = 400;
// A k-block of tiles of 64 weights takes so much longer for each row that the last of several tiles
// of 16-bit tokens lacks: TMA spends time on it, and all tiles then take up to half as long again.
constexpr int64_t kMissingRowClocks = 10;

// Rates of one CTA while all CTAs store, and while all CTAs read each other's sums.
constexpr int64_t kStoredBytesPerClock = 10;
constexpr int64_t kPushedBytesPerClock = 4, kExchangedBytesPerClock = 9;

// Cost of a further tile of a CTA, besides its k-blocks and stores; the second number is for tiles
// of few tokens, whose sums meet in shared memory.
constexpr int64_t kNextTileClocks = 1750;
constexpr int64_t kNextFewClocks = 2350;

// How tiles are assigned: the first `whole` to one CTA each, the others to a cluster of split.parts
// CTAs each. If there are tiles of both kinds, the grid has as many clusters as run at once.
struct Assignment {
  const Split* split;
  int64_t whole;
};

int64_t at_once(const Split& split, const Architecture& arch) {
  return (arch.sm_count - split.empty_sms) / split.partitions * split.partitions;
}

int64_t ctas_of(const Assignment& how, int64_t tiles, const Architecture& arch) {
  return how.whole > 0 ? at_once(*how.split, arch) : tiles * how.split->partitions;
}

// Sums of tiles for few tokens are pushed, so the tile of a cluster comes first
// (kernel/sm90/cta.cuh).
bool is_for_few(const Variant& v) { return v.tile_tokens <= 16; }

// What tiles of a variant take by its operands: each k-block, and once a launch.
struct Work {
  int64_t block, once;
};

int64_t missing_rows(const nvfp4_gemm_desc& desc, const Variant& v) {
  const bool by_tma = v.a_type != NVFP4_TYPE_NONE;
  if (!by_tma || v.tile_weights > 64 || desc.m <= v.tile_tokens) return 0;
  return ceil_div(desc.m, int64_t{v.tile_tokens}) * v.tile_tokens - desc.m;
}

// Packed tokens need no pre-pass.
Work work_of(const nvfp4_gemm_desc& desc, const Variant& v) {
  const bool packed = has_packed_weights(desc);
  const int64_t block = packed ? v.packed_clocks : v.stage_clocks;
  int64_t once = v.workspace_tokens && !has_packed_tokens(desc) ? kTokenKernelClocks : 0;
  if (packed && is_for_few(v)) once += kPackedOfFewClocks;
  if (takes_decoded(v, desc)) once += kDecodeClocks;
  return {block + missing_rows(desc, v) * kMissingRowClocks, once};
}

// Cost of a tile that one CTA computes alone, or of a K partition of it, besides the CTA's start.
Clocks clocks_of_partition(const Variant& v, int64_t stages, const Split& split, int64_t block) {
  const int64_t sums = int64_t{v.tile_weights} * v.tile_tokens;  // 4 bytes each, in D 2
  const int64_t stored = 2 * sums / split.partitions / kStoredBytesPerClock;
  const int64_t per_clock = is_for_few(v) ? kPushedBytesPerClock : kExchangedBytesPerClock;
  const int64_t exchanged = 4 * sums * (split.partitions - 1) / split.partitions / per_clock;
  const int64_t split_clocks = is_for_few(v) ? split.clocks_of_few : split.clocks;
  return {ceil_div(stages, split.partitions) * block, stored + split_clocks + exchanged, 0};
}

// What gated tiles of few tokens take more, once a launch, if M fills several
// (bench/results/gated-h200-2026-11-29.csv).
int64_t clocks_of_several_gated(const nvfp4_gemm_desc& desc, const Variant& v) {
  return is_gated(desc) && is_for_few(v) && desc.m > v.tile_tokens ? 1800 : 0;
}

// Clock cycles of the SM that runs longest: of the CTAs that it runs one after the other (or side
// by side, which takes as long), or of the tiles of its single CTA.
Clocks clocks(const Variant& v, const Work& work, int64_t tiles, int64_t same, int64_t stages,
              const Assignment& how, const Architecture& arch) {
  const Clocks partition = clocks_of_partition(v, stages, *how.split, work.block);
  const int64_t next = is_for_few(v) ? kNextFewClocks : kNextTileClocks;
  if (how.whole > 0) {
    const Clocks whole = clocks_of_partition(v, stages, kSplits[0], work.block);
    const int64_t each = ceil_div(how.whole, at_once(*how.split, arch));
    return {each * whole.stages + partition.stages, each * whole.sums + partition.sums,
            kCtaClocks + each * next + work.once};
  }
  const int64_t waves =
      ceil_div(tiles * how.split->partitions, arch.sm_count - how.split->empty_sms);
  const bool several = how.split->partitions == 1 && takes_several_tiles(v, tiles, same, stages);
  const int64_t ctas =
      several ? kCtaClocks + (waves - 1) * next : ceil_div(waves, v.ctas_per_sm) * kCtaClocks;
  return {waves * partition.stages, waves * partition.sums, ctas + work.once};
}

const Variant& narrow_variant(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  const Variant& in_bf16 = variant_at(kVariant_sm90_bf16_64x16);
  if (takes_operands(in_bf16, arch, desc)) return in_bf16;
  return variant_at(desc.a_type == NVFP4_TYPE_F16 ? kVariant_sm90_f16_64x16 : kVariant_sm90_64x16);
}

// For a batch-invariant problem: the split that suits one tile of a few tokens, where a split gains
// most. It depends on N and K alone.
const Split& invariant_split(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  const Variant& v = narrow_variant(desc, arch);
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  const int64_t tiles = ceil_div(desc.n, v.tile_weights);
  const Split* best = &kSplits[0];
  const Work work{v.stage_clocks, 0};
  const auto cost = [&](const Split& split) {
    return clocks(v, work, tiles, tiles, stages, {&split, 0}, arch).all();
  };
  for (const Split& split : kSplits) {
    if (!has_split(v, split.partitions)) continue;
    const bool runs = tiles * split.partitions <= arch.sm_count - split.empty_sms;
    if (split.partitions > stages || !runs) break;
    if (cost(split) < cost(*best)) best = &split;
  }
  return *best;
}

// What the CTAs of a wide tile take longer for each piece of own parts
// (kernel/sm90/sums/parts.cuh), by times of an H200 of 42 products with NVFP4 and 42 with bf16
// tokens (docs/notebook.md).
constexpr int64_t kPieceClocks = 850;

// A CTA adds the parts of all K partitions alone, in pieces of every fourth k-block.
Choice with_own_parts(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                      int64_t tiles, int64_t same, int64_t stages) {
  const int64_t pieces = std::min(stages, int64_t{4} * invariant_split(desc, arch).partitions);
  const int64_t each = ceil_div(tiles, arch.sm_count);
  const Assignment how{&kSplits[0], 0};
  const int64_t cost = clocks(v, work_of(desc, v), tiles, same, stages, how, arch).all();
  return {&v, 1, 1, true, tiles, 0, tiles, cost + each * pieces * kPieceClocks};
}

// The number of unsplit tiles. Every CTA of the machine takes equally many tiles alone; its
// clusters share the remaining tiles, at most one each. 0 if too many tiles remain, or none is
// unsplit.
int64_t whole_tiles(const Split& split, int64_t tiles, const Architecture& arch) {
  const int64_t ctas = at_once(split, arch);
  const int64_t shared = tiles % ctas;
  return shared > 0 && shared * split.partitions <= ctas ? tiles - shared : 0;
}

bool share_evenly(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice);

bool choose_split(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  const int64_t same = tiles_of_same_tokens(desc, v);
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  const Work work = work_of(desc, v);
  const auto take = [&](const Assignment& how) {
    const int64_t cost =
        clocks(v, work, tiles, same, stages, how, arch).all() + clocks_of_several_gated(desc, v);
    if (choice->variant != nullptr && cost >= choice->cost) return;
    const uint32_t partitions = how.split->partitions;
    const bool several = takes_several_tiles(v, tiles, same, stages);
    *choice = {&v,  partitions, partitions, several, tiles, how.whole, ctas_of(how, tiles, arch),
               cost};
  };
  *choice = {};
  if (adds_own_parts(desc, arch, v)) {
    *choice = with_own_parts(desc, arch, v, tiles, same, stages);
    return choice->ctas <= kMaxTiles;
  }
  if (desc.batch_invariant != 0) {
    take({&invariant_split(desc, arch), 0});
    return choice->ctas <= kMaxTiles;
  }
  for (const Split& split : kSplits) {
    if (split.partitions > std::max<int64_t>(stages, 1) || !has_split(v, split.partitions)) {
      continue;
    }
    if (at_once(split, arch) > 0) take({&split, 0});
    const bool mixes = split.partitions > 1 && split.partitions <= 4;
    if (!mixes || !takes_several_tiles(v, tiles, same, stages / split.partitions)) continue;
    const int64_t whole = whole_tiles(split, tiles, arch);
    if (whole > 0) take({&split, whole});
  }
  Choice even;
  if (share_evenly(desc, arch, v, &even) && even.cost < choice->cost) *choice = even;
  return true;
}

// ---- even shares ----

// Tiles whose sums stay in the registers of one group of warps (kWholeSums in wide/tile.h).
// With 256 tokens the entry for any product would spill.
bool takes_even_shares(const Variant& v) {
  return v.several_tiles && v.tile_tokens >= 128 && v.tile_tokens < 256;
}

// The k-blocks of the tiles after the whole ones, by CTA: `more` CTAs take one more than `each`.
struct EvenShares {
  int64_t whole, rest, ctas, each, more;  // tiles, tiles, CTAs, k-blocks, CTAs
};

// False if a tile could have more than kSm90MostEvenParts parts, or a share more k-blocks than a
// tile.
bool find_even_shares(int64_t tiles, int64_t stages, const Architecture& arch, EvenShares* even) {
  even->ctas = arch.sm_count;
  even->rest = tiles % even->ctas;
  even->whole = tiles - even->rest;
  even->each = even->rest * stages / even->ctas;
  even->more = even->rest * stages % even->ctas;
  return even->each > 0 && stages - 1 <= (kSm90MostEvenParts - 1) * even->each;
}

// Where no SM is idle, a k-block takes longer by that share; the arrivals and the last part; bytes
// of parts that a CTA stores and loads per clock.
constexpr int64_t kEvenPercent = 102;
constexpr int64_t kArrivalClocks = 12100;
constexpr int64_t kPartBytesPerClock = 18;

int64_t part_bytes(const Variant& v) { return int64_t{4} * v.tile_weights * v.tile_tokens; }

// Parts of all tiles, at most.
int64_t even_parts(const EvenShares& even) { return even.ctas + even.rest - 1; }

Clocks clocks_of_even(const Variant& v, const Work& work, int64_t stages, const EvenShares& even) {
  const int64_t each = even.whole / even.ctas, share = even.each + (even.more > 0 ? 1 : 0);
  const int64_t stored = each * clocks_of_partition(v, 0, kSplits[0], work.block).sums;
  const int64_t parts = even_parts(even) * part_bytes(v) / (even.ctas * kPartBytesPerClock);
  return {(each * stages + share) * work.block * kEvenPercent / 100,
          stored + parts + kArrivalClocks, kCtaClocks + (each + 1) * kNextTileClocks + work.once};
}

bool share_evenly(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  int64_t matrix, tiles;
  EvenShares even;
  if (!takes_even_shares(v) || is_gated(desc) || desc.batch_invariant != 0) return false;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  if (!find_even_shares(tiles, stages, arch, &even)) return false;
  const int64_t cost = clocks_of_even(v, work_of(desc, v), stages, even).all();
  *choice = {&v, 1, 1, true, tiles, even.whole, even.ctas, cost};
  choice->even = true;
  return true;
}

// The end of the workspace: sums of parts, then a word of arrivals for each shared tile.
uint8_t* parts_at(const nvfp4_gemm_desc& g, const Plan& plan) {
  const uint64_t bytes = plan.workspace_bytes - plan.sums_bytes - plan.parts_bytes;
  return static_cast<uint8_t*>(g.workspace) + bytes;
}

EvenShares even_shares_of(const nvfp4_gemm_desc& g, const Plan& plan) {
  EvenShares even;
  find_even_shares(int64_t{plan.tiles_m} * plan.tiles_n * g.l, ceil_div(g.k, kSm90StageK),
                   plan.arch(), &even);
  return even;
}

void count_parts(const nvfp4_gemm_desc& desc, Plan* plan) {
  const EvenShares even = even_shares_of(desc, *plan);
  const int64_t sums = even_parts(even) * part_bytes(*plan->variant);
  plan->parts_bytes = static_cast<uint64_t>(sums) + static_cast<uint64_t>(even.rest) * 8;
  plan->workspace_bytes = (plan->workspace_bytes + 15) / 16 * 16 + plan->parts_bytes;
}

// Where K has one partition, a CTA has the sums of its own part in registers alone.
void count_own_parts(const nvfp4_gemm_desc& desc, Plan* plan) {
  plan->own_parts = invariant_split(desc, plan->arch()).partitions;
  if (plan->own_parts == 1) return;
  const int64_t ctas = std::min<int64_t>(plan->grid, plan->arch().sm_count);
  plan->parts_bytes = static_cast<uint64_t>(ctas * part_bytes(*plan->variant));
  plan->workspace_bytes = (plan->workspace_bytes + 15) / 16 * 16 + plan->parts_bytes;
}

void set_parts(const nvfp4_gemm_desc& g, const Plan& plan, Sm90Params* p) {
  if (plan.own_parts > 1) p->parts = reinterpret_cast<float*>(parts_at(g, plan));
  if (!plan.even) return;
  uint8_t* const at = parts_at(g, plan);
  p->parts = reinterpret_cast<float*>(at);
  p->arrivals = reinterpret_cast<uint64_t*>(at + even_parts(even_shares_of(g, plan)) *
                                                     part_bytes(*plan.variant));
}

void set_even_shares(const nvfp4_gemm_desc& g, const Plan& plan, Sm90Params* p) {
  if (!plan.even) return;
  const EvenShares even = even_shares_of(g, plan);
  p->even_each = static_cast<uint32_t>(even.each);
  p->even_more = static_cast<uint32_t>(even.more);
}

void set_nonce(KernelParams* params) {
  params->get<Sm90Params>()->nonce = draw_nonce() << kSm90NonceShift;
}

// Decoded tokens in fp16: [L][K rounded up to 256][M rounded up to the tile].
nvfp4_status count_decoded(const nvfp4_gemm_desc& desc, Plan* plan) {
  const bool shared = desc.a_batch_stride == 0 && desc.a_scales_batch_stride_bytes == 0;
  plan->a_halves_batches = shared ? 1 : desc.l;
  int64_t bytes;
  if (!multiply(desc.m * desc.k, 2 * plan->a_halves_batches, &bytes)) {
    return fail(NVFP4_STATUS_LIMIT, "A in bf16 needs more than 2^63 - 1 bytes of workspace");
  }
  plan->workspace_bytes = plan->a_halves_bytes = static_cast<uint64_t>(bytes);
  return NVFP4_SUCCESS;
}

// Rows of decoded tokens. For groups it is a multiple of what a CTA of the activation pre-pass
// decodes.
int64_t decoded_rows(const nvfp4_gemm_desc& desc, const Plan& plan) {
  return plan.grouped ? ceil_div(plan.group_rows, kTokenKernelRows) * kTokenKernelRows : desc.m;
}

// The CTAs of a k-block take its units of 256 elements. Where device memory says how many rows
// there are, at most as many CTAs as run at once take them one after the other.
uint32_t token_ctas(const Plan& plan, int64_t all) {
  const int64_t at_once = int64_t{kTokenKernelCtasPerSm} * plan.arch().sm_count;
  return static_cast<uint32_t>(plan.grouped ? std::min(all, at_once) : all);
}

nvfp4_status count_tokens(const nvfp4_gemm_desc& desc, Plan* plan) {
  if (takes_decoded(*plan->variant, desc)) return count_decoded(desc, plan);
  if (!plan->variant->workspace_tokens || has_packed_tokens(desc)) return NVFP4_SUCCESS;
  const int64_t rows = decoded_rows(desc, *plan);
  const int64_t batches = plan->grouped || tokens_repeat(desc) ? 1 : desc.l;
  int64_t units, bytes;
  if (!multiply(rows, ceil_div(desc.k, kSm90StageK), &units) || !multiply(units, batches, &units) ||
      !multiply(units, kTokenUnitBytes, &bytes)) {
    return fail(NVFP4_STATUS_LIMIT,
                "the tokens in fp16 need more than 2^63 - 1 bytes of workspace");
  }
  const int64_t ctas = units / rows * ceil_div(rows, int64_t{kTokenKernelRows});
  if (ctas > kMaxTiles) {
    return fail(NVFP4_STATUS_LIMIT,
                "the pre-pass that makes fp16 of the tokens needs %" PRId64
                " CTAs; at most %" PRId64,
                ctas, kMaxTiles);
  }
  plan->workspace_bytes = static_cast<uint64_t>(bytes);
  plan->prepass_ctas = token_ctas(*plan, ctas);
  plan->prepass_threads = kTokenKernelThreads;
  return NVFP4_SUCCESS;
}

nvfp4_status count_workspace(const nvfp4_gemm_desc& desc, Plan* plan) {
  NVFP4_TRY(count_tokens(desc, plan));
  if (plan->even) count_parts(desc, plan);
  if (!plan->grouped && adds_own_parts(desc, plan->arch(), *plan->variant))
    count_own_parts(desc, plan);
  return NVFP4_SUCCESS;
}

// Until the bytes of all weights have arrived.
int64_t clocks_of_weights(const nvfp4_gemm_desc& desc, const Architecture& arch) {
  const int64_t matrices = desc.b_batch_stride == 0 ? 1 : desc.l;
  const double bytes =
      static_cast<double>(desc.n) * static_cast<double>(desc.k * matrices) * (9.0 / 16);
  const double per_clock = arch.light.bytes_per_second / arch.light.clock;
  return static_cast<int64_t>(bytes * kBytesPercent / (100 * per_clock));
}

// The bytes of weights do not tell plans apart, so the planner's choice knows nothing of them.
Clocks predict(const nvfp4_gemm_desc& desc, const Plan& plan) {
  int64_t matrix, tiles;
  const Variant& v = *plan.variant;
  count_tiles(desc, v, &matrix, &tiles);  // cannot fail, since there is a plan
  const Choice choice{&v, plan.split, plan.cluster, plan.several, tiles, plan.whole, plan.grid, 0};
  const Work work = work_of(desc, v);
  const int64_t stages = ceil_div(desc.k, kSm90StageK);
  const Split* split = kSplits;
  while (split->partitions != plan.split) ++split;
  Clocks all = plan.even ? clocks_of_even(v, work, stages, even_shares_of(desc, plan))
                         : clocks(v, work, tiles, tiles_of_same_tokens(desc, v), stages,
                                  {split, plan.whole}, plan.arch());
  all.ctas += clocks_of_several_gated(desc, v);
  all.stages += std::max<int64_t>(kCtaClocks + clocks_of_weights(desc, plan.arch()) - all.all(), 0);
  all.sums += sm90_epilogue_clocks(desc, plan.arch(), choice);
  return all;
}

void write_rule(const Architecture&, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text,
           "fewest clocks of the longest running SM, as the planner counts them");
}

void write_choice(const Choice& choice, char (&text)[kReasonBytes]) {
  char whole[48] = "";
  if (choice.whole > 0) {
    snprintf(whole, sizeof whole, " after %" PRId64 " whole tiles", choice.whole);
  }
  if (choice.even) {
    snprintf(text, sizeof text, "even shares%s, %" PRId64 " clocks", whole, choice.cost);
    return;
  }
  snprintf(text, sizeof text, "split %" PRIu32 "%s, %" PRId64 " clocks", choice.split, whole,
           choice.cost);
}

// ---- launching ---------------------------------------------------------------------------------

void set_token_addresses(const nvfp4_gemm_desc& g, Sm90Params* p) {
  p->token_codes = static_cast<const uint8_t*>(g.a);
  p->token_sub_tiles = has_packed_tokens(g) ? const_cast<void*>(g.a) : g.workspace;
}

// From a batch of tokens to the next, in fp16 as the kernel reads them.
int64_t sub_tiles_batch_bytes(const nvfp4_gemm_desc& g) {
  if (g.l == 1) return 0;
  if (has_packed_tokens(g)) {
    return find_packing(g.a_packing)->stride_bytes(g.a_batch_stride, g.operand_format);
  }
  return tokens_repeat(g) ? 0 : g.m * ceil_div(g.k, kSm90StageK) * kTokenUnitBytes;
}

// A box has only rows below M, because TMA spends as long on rows beyond it (kernel/sm90/load.cuh).
nvfp4_status encode_half_tokens(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                                Sm90Params* p) {
  const uint32_t tile = plan.variant->tile_tokens;
  const bool clipped = clips_box(tile, plan.packed) && g.m < tile;
  uint32_t rows = clipped ? static_cast<uint32_t>(g.m) : tile;
  if (plan.grouped) rows = rows_of_grouped_box(tile);
  if (plan.a_halves_bytes > 0) {
    const int64_t stride = plan.a_halves_batches == 1 ? 0 : g.m * g.k;
    return encode_tensor_map(driver, "a in bf16", MapElement::half, g.workspace, g.m, g.k, g.l, g.k,
                             stride, kSpanOfHalves, rows, &p->tokens);
  }
  if (g.a_type != NVFP4_TYPE_NONE) return encode_tokens(driver, g, plan, rows, &p->tokens);
  if (!plan.grouped || !plan.variant->workspace_tokens) return NVFP4_SUCCESS;
  const int64_t stages = ceil_div(g.k, kSm90StageK);  // each has all rows (tokens_kernel.cuh)
  return encode_tensor_map(driver, "a in fp16", MapElement::half, g.workspace, p->decoded_rows,
                           kSm90StageK, stages, kSm90StageK, int64_t{p->decoded_rows} * kSm90StageK,
                           kSpanOfHalves, rows, &p->tokens);
}

void set_token_rows(const nvfp4_gemm_desc& g, const Plan& plan, Sm90Params* p) {
  p->decoded_rows = static_cast<uint32_t>(decoded_rows(g, plan));
  if (!plan.grouped) {
    p->last_tile_rows =
        static_cast<uint32_t>(g.m - (plan.tiles_m - 1) * int64_t{plan.variant->tile_tokens});
  }
  // The rows of all groups are those of one matrix.
  p->batches = plan.grouped ? 1 : static_cast<uint32_t>(g.l);
}

// The parameters that only a gated product has.
nvfp4_status set_b2(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                    KernelParams* params) {
  Sm90GatedParams* const p = params->get<Sm90GatedParams>();
  p->weight_scales2 = weight_scales2(g);
  p->gate = make_gate(g);
  return encode_weights2(driver, g, plan, &p->weights2);
}

nvfp4_status make_params(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         KernelParams* params) {
  Sm90Params* const p = &params->make<Sm90GatedParams>()->gemm;  // no other argument is larger
  set_gemm(g, plan, p);
  set_token_addresses(g, p);
  p->token_row_bytes = g.a_ld / 2;
  p->token_batch_bytes = g.l > 1 ? g.a_batch_stride / 2 : 0;
  set_token_rows(g, plan, p);
  p->sub_tiles_batch_bytes = plan.grouped ? 0 : sub_tiles_batch_bytes(g);
  // The pre-pass starts after the grids that may write weights.
  if (plan.prepass_ctas > 0) p->weights_are_static = 1;
  p->whole_tiles = plan.whole;
  p->own_parts = plan.own_parts;
  set_parts(g, plan, p);
  set_even_shares(g, plan, p);
  p->weight_scales_linear = !plan.packed && weight_scales(g, plan).linear;
  p->token_scales_linear = plan.a_halves_bytes == 0 && token_scales(g, plan).linear;
  p->weight_format = static_cast<uint8_t>(g.operand_format);
  NVFP4_TRY(encode_weights(driver, g, plan, &p->weights));
  if (plan.gated) NVFP4_TRY(set_b2(driver, g, plan, params));
  return encode_half_tokens(driver, g, plan, p);
}

nvfp4_status replace_addresses(const Driver& driver, const nvfp4_gemm_desc& before,
                               const nvfp4_gemm_desc& g, const Plan& plan, KernelParams* params) {
  Sm90Params* const p = params->get<Sm90Params>();
  if (g.b != before.b) NVFP4_TRY(encode_weights(driver, g, plan, &p->weights));
  if (g.a != before.a || g.workspace != before.workspace) {
    NVFP4_TRY(encode_half_tokens(driver, g, plan, p));
  }
  set_plain_addresses(g, plan, p);
  set_token_addresses(g, p);
  set_parts(g, plan, p);
  return plan.gated ? set_b2(driver, g, plan, params) : NVFP4_SUCCESS;
}

bool has_linear_scales(const Sm90Params& p) {
  return p.weight_scales_linear != 0 || p.token_scales_linear != 0;
}

// Whether the plain entries have code for these operands (kernel/sm90/tile.h).
bool has_plain_operands(const Sm90Params& p) {
  return p.weight_format != kFormatE2m1Ue8m0 && !has_linear_scales(p) && p.k % kScaleTileK == 0;
}

// Whether the entry for linear scales has code for them, if the tile has such an entry.
bool has_linear_operands(const Sm90Params& p) {
  return p.weight_format == kFormatNvfp4 && has_linear_scales(p) && p.k % kScaleTileK == 0;
}

// Units need no code for linear scales, or for any K.
Operation packed_operation(const Sm90Params& p) {
  const uint32_t kind = p.epilogue.kind;
  const bool plain = kind < kEpilogueGeneral;
  if (!plain || p.weight_format == kFormatE2m1Ue8m0) return kOperation_packed;
  return p.weight_format == kFormatMxfp4 ? kOperation_packed_mxfp4 : kOperation_packed_plain;
}

Operation operation(const Plan& plan, const KernelParams& params) {
  if (plan.grouped || (plan.packed && plan.gated)) {
    return operation_of(plan.grouped, plan.gated, plan.packed);
  }
  if (plan.own_parts > 0) {
    return plan.packed ? kOperation_packed_invariant : kOperation_invariant;
  }
  const Sm90Params& p = *params.get<Sm90Params>();
  const uint32_t kind = p.epilogue.kind;
  if (plan.packed) return packed_operation(p);
  if (plan.gated) {
    const bool plain = has_plain_operands(p) && p.weight_format == kFormatNvfp4 &&
                       (kind == kEpilogueColumns || kind == kEpilogueScaled);
    return plain ? kOperation_gated_plain : kOperation_gated;
  }
  if (!has_plain_operands(p)) {
    const bool linear = has_linear_operands(p) && kind < kEpilogueGeneral;
    return linear && plan.variant->has(kOperation_linear) ? kOperation_linear : kOperation_any;
  }
  if (kind == kEpilogueScaled) {
    const bool scaled = plan.variant->has(kOperation_scaled) && p.weight_format == kFormatNvfp4;
    return scaled ? kOperation_scaled : kOperation_any;
  }
  const bool fields = is_of_fields(p.epilogue) && p.weight_format == kFormatNvfp4;
  if (fields && plan.variant->has(kOperation_fields)) return kOperation_fields;
  if (kind >= kEpilogueGeneral) return kOperation_any;
  return p.weight_format == kFormatMxfp4 ? kOperation_mxfp4 : kOperation_plain;
}

// Apart from the scales of D, the entry for such a D is a plain one.
bool has_fast_scales(const nvfp4_gemm_desc& g, const Plan& plan) {
  if (!plan.gated) return sm90_has_scaled_entry(g, *plan.variant);
  return plan.variant->has(kOperation_gated_plain) && !weight_scales(g, plan).linear &&
         !token_scales(g, plan).linear && g.k % kScaleTileK == 0;
}

bool has_fast_fields(const nvfp4_gemm_desc& g, const Plan& plan) {
  return !plan.packed && sm90_has_fast_fields(g, *plan.variant);
}

constexpr Family make_family() {
  Family f;
  f.apart_costs = sm90_apart_costs;
  f.finish_clocks = sm90_finish_clocks;
  f.choose_split = choose_split;
  f.adds_own_parts = sm90_adds_own_parts;
  f.takes_even_shares = takes_even_shares;
  f.share_evenly = share_evenly;
  f.complete = count_workspace;
  f.predict = predict;
  f.waits_for_earlier_work = true;
  f.make_params = make_params;
  f.replace_addresses = replace_addresses;
  f.set_nonce = set_nonce;
  f.operation = operation;
  f.write_rule = write_rule;
  f.write_choice = write_choice;
  f.last_fast_epilogue = kEpilogueF32;
  f.has_fast_scales = has_fast_scales;
  f.has_fast_fields = has_fast_fields;
  f.groups_at = offsetof(Sm90GroupedParams, groups);
  f.gated_groups_at = offsetof(Sm90GatedParams, groups);
  f.groups_iterate = true;
  f.gate_halves_tile = true;
  f.gates_groups = sm90_gates_groups;
  f.is_plain_gate = sm90_is_plain_gate;
  f.decodes_tokens = true;
  f.packing = NVFP4_PACKING_SM90_1;
  f.token_packing = NVFP4_PACKING_SM90_TOKENS_1;
  return f;
}

}  // namespace

const Family kFamily_sm90 = make_family();

}  // namespace nvfp4
