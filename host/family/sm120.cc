// SPDX-License-Identifier: MIT
// Compute capability 12.x: NVFP4 tokens by mma.sync with block scales. The planner takes the tile
// and the number of K partitions with the fewest clock cycles by a count that no GPU has confirmed.
//
//     start + waves of (k-blocks + sums to D), at least the time of all bytes from DRAM, + what it
//     takes to add K partitions
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "host/base/size.h"
#include "host/family/params.h"
#include "host/plan/proof.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"
#include "kernel/sm120/params.h"
#include "kernel/sm120/tile.h"

namespace nvfp4 {

namespace {

// ---- the planner's clocks ----------------------------------------------------------------------

// An MMA occupies a quarter of an SM for 16 clock cycles, and a warp waits about 60 for the loads
// of a step from shared memory: others measured both on GPUs of 12.0 (kernel/sm120/README.md).
constexpr int64_t kMma = 16, kStep = 60;
// The rest are assumptions. Time of a launch until its first bytes arrive; of CTAs that follow
// others on their SM; of a load from DRAM. Bytes that an SM takes from L2 in a clock cycle.
constexpr int64_t kStart = 3000, kNextWave = 1500, kInFlight = 2200, kL2Bytes = 32;
// Time from the last MMA to the last store, and elements that are stored per clock cycle. Time of
// the kernel that adds K partitions, beside that of its bytes.
constexpr int64_t kEnd = 400, kElementsOfClock = 16, kAddKernel = 4000;
// The same where D needs the general epilogue: its code takes a clock cycle for a sum on an H200
// (host/family/sm90_d.cc).
constexpr int64_t kGeneralElementsOfClock = 1;
constexpr int64_t kBytesPercent = 107;  // bytes arrive at 93 % of the memory's nominal rate

// How a product is divided: its tiles, and the K partitions of each.
struct Cut {
  int64_t tiles;
  uint32_t partitions;
};

int64_t units_of_k(const nvfp4_gemm_desc& g) {
  return std::max<int64_t>(ceil_div(g.k, int64_t{kSm120UnitK}), 1);
}

// Clock cycles for so many bytes from DRAM.
int64_t clocks_of_dram(const Architecture& arch, double bytes) {
  constexpr double kMost = 4e18;
  const double clocks =
      bytes * kBytesPercent / 100 * arch.light.clock / arch.light.bytes_per_second;
  return static_cast<int64_t>(std::min(clocks, kMost));
}

// Clock cycles of a k-block when `active` CTAs run, `at_once` of them on an SM: by the tensor
// cores, by what one warp waits for, by the bytes from L2, or by a ring that is too short.
int64_t clocks_of_block(const Variant& v, int64_t at_once) {
  const int64_t steps = v.tile_k / 64;
  const int64_t mmas = int64_t{v.tile_weights} / 16 * (v.tile_tokens / 8) * steps;
  const int64_t warp = steps * kStep + mmas / (v.threads / 32 - 1) * kMma;  // one loads
  const int64_t bytes = at_once * v.stage_bytes / kL2Bytes;
  return std::max({warp, at_once * mmas / 4 * kMma, bytes, (kInFlight + warp) / v.stages});
}

int64_t clocks(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v, const Cut& cut,
               int64_t elements_of_clock) {
  const int64_t blocks =
      ceil_div(units_of_k(g), int64_t{cut.partitions}) * (kSm120UnitK / v.tile_k);
  const int64_t ctas = cut.tiles * cut.partitions, room = v.ctas_per_sm * arch.sm_count;
  const int64_t end = kEnd + int64_t{v.tile_weights} * v.tile_tokens / elements_of_clock;
  const int64_t waves = ceil_div(ctas, room), rest = ctas - (waves - 1) * room;
  const auto wave = [&](int64_t active) {
    return blocks * clocks_of_block(v, ceil_div(active, arch.sm_count)) + end;
  };
  const int64_t run = (waves - 1) * (wave(room) + kNextWave) + wave(rest);
  // 9 bytes for 16 elements. Weights come once for each group of token tiles.
  const double groups =
      static_cast<double>(ceil_div(ceil_div(g.m, int64_t{v.tile_tokens}), kSm120TokenGroup));
  const double rows = static_cast<double>(g.n) * groups + static_cast<double>(g.m);
  const double elements = static_cast<double>(g.m) * static_cast<double>(g.n);
  const auto l = static_cast<double>(g.l);
  const int64_t dram =
      clocks_of_dram(arch, l * (rows * static_cast<double>(g.k) * 9 / 16 + 2 * elements));
  int64_t sums = 0;
  if (cut.partitions > 1) {
    const double bytes = elements * l * 2 * sizeof(float) * cut.partitions;
    sums = kAddKernel + static_cast<int64_t>(bytes / double(kL2Bytes * arch.sm_count));
  }
  // Each is a lower bound, and two that are nearly equal delay each other.
  return kStart + std::max(run, dram) + std::min(run, dram) / 8 + sums;
}

int64_t elements_of_clock(const nvfp4_gemm_desc& g) {
  return make_epilogue(g).kind <= kEpilogueBf16 ? kElementsOfClock : kGeneralElementsOfClock;
}

// In a batch-invariant problem no tile is split. Without split-K the tiles are limited to the CTAs
// of a grid. Splits are compared with the fast epilogue.
bool choose_split(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  *choice = {};
  for (const uint32_t partitions : kPartitionCounts) {
    const bool may = desc.batch_invariant == 0 && partitions <= units_of_k(desc) &&
                     tiles * partitions <= v.ctas_per_sm * arch.sm_count;
    if (partitions > 1 && !may) break;
    if (!is_taken_unasked(kProofs, v.family, arch.family, v.tile_ctas, partitions)) continue;
    const Cut cut{tiles, partitions};
    const int64_t cost = clocks(desc, arch, v, cut, kElementsOfClock);
    if (choice->variant != nullptr && cost >= choice->cost) continue;
    const int64_t own = clocks(desc, arch, v, cut, elements_of_clock(desc));
    *choice = {&v, partitions, 1, false, tiles, 0, tiles * partitions, cost, own};
  }
  return true;
}

// Workspace for the sums of K partitions (kernel/sm120/params.h), and the kernel that adds them.
nvfp4_status complete(const nvfp4_gemm_desc& desc, Plan* plan) {
  plan->cluster = 1;
  if (plan->split == 1) return NVFP4_SUCCESS;
  // At most 2^31 CTAs of 2^14 elements each.
  const int64_t row = ceil_div(desc.n, 4) * 4;
  plan->workspace_bytes =
      static_cast<uint64_t>(plan->split * desc.l * desc.m * row) * sizeof(float);
  const int64_t ctas = ceil_div(desc.m, int64_t{kSm120AddRows}) *
                       ceil_div(desc.n, int64_t{kSm120AddColumns}) * desc.l;
  if (ctas > kMaxTiles) {
    return fail(
        NVFP4_STATUS_LIMIT,
        "with variant = \"%.64s\" the kernel that adds K partitions needs more than %" PRId64
        " CTAs",
        desc.variant, kMaxTiles);
  }
  plan->add_ctas = static_cast<uint32_t>(ctas);
  plan->add_threads = kSm120AddThreads;
  return NVFP4_SUCCESS;
}

void write_rule(const Architecture&, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "fewest clocks by a count that no GPU of 12.x has confirmed");
}

void write_choice(const Choice& choice, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "split %" PRIu32 ", %" PRId64 " clocks", choice.split,
           choice.own_cost());
}

// ---- launching ---------------------------------------------------------------------------------

nvfp4_status encode_all_tokens(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                               Sm120Params* p) {
  return encode_tokens(driver, g, plan, plan.variant->tile_tokens, &p->tokens);
}

nvfp4_status make_params(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         KernelParams* params) {
  Sm120Params* const p = params->make<Sm120Params>();
  set_gemm(g, plan, p);
  p->partitions = static_cast<float*>(g.workspace);
  p->batches = static_cast<uint32_t>(g.l);
  p->weight_scales_linear = weight_scales(g, plan).linear;
  p->token_scales_linear = token_scales(g, plan).linear;
  NVFP4_TRY(encode_weights(driver, g, plan, &p->weights));
  return encode_all_tokens(driver, g, plan, p);
}

nvfp4_status replace_addresses(const Driver& driver, const nvfp4_gemm_desc& before,
                               const nvfp4_gemm_desc& g, const Plan& plan, KernelParams* params) {
  Sm120Params* const p = params->get<Sm120Params>();
  if (g.b != before.b) NVFP4_TRY(encode_weights(driver, g, plan, &p->weights));
  if (g.a != before.a) NVFP4_TRY(encode_all_tokens(driver, g, plan, p));
  set_plain_addresses(g, plan, p);
  p->partitions = static_cast<float*>(g.workspace);
  return NVFP4_SUCCESS;
}

// One kernel computes everything.
Operation operation(const Plan&, const KernelParams&) { return kOperation_any; }

const char* add_entry(const Architecture&, const Variant&) { return "nvfp4_add_sm120"; }

constexpr Family make_family() {
  Family f;
  f.choose_split = choose_split;
  f.complete = complete;
  f.waits_for_earlier_work = true;
  f.make_params = make_params;
  f.replace_addresses = replace_addresses;
  f.operation = operation;
  f.add_entry = add_entry;
  f.write_rule = write_rule;
  f.write_choice = write_choice;
  f.last_fast_epilogue = kEpilogueBf16;
  return f;
}

}  // namespace

const Family kFamily_sm120 = make_family();

}  // namespace nvfp4
