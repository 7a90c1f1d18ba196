// SPDX-License-Identifier: MIT
// 16-bit tokens by mma.sync on every architecture. On 9.0 the planner takes it if few tokens make
// it faster than the other tiles; elsewhere it is the only kernel. The tile and the number of K
// partitions depend only on the sizes and the architecture's row.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/family/params.h"
#include "host/plan/apart.h"
#include "host/problem/fields.h"
#include "kernel/sm80/params.h"
#include "kernel/sm80/tile.h"

namespace nvfp4 {

namespace {

// The image for 9.0 has the K partitions of a tile as a cluster, and itself waits for the kernel
// before it. In the other images the partitions meet in the workspace (kernel/sm80/README.md).
bool has_clusters(const Architecture& arch) { return arch.takes(kImage_mma_sm_90a); }

// 9.0 under a driver that is too old for that image. nvfp4_gemm_workspace_bytes, which asks no
// driver, counts no K partitions there, so a tile has one.
bool splits_k(const Architecture& arch) {
  return arch.capability != 90 || arch.family != &kFamily_sm80;
}

// 9.0 has kernels of its own for UE8M0 scales.
bool takes_ue8m0(const Architecture& arch) { return !has_clusters(arch); }

// ---- the planner's clocks ----------------------------------------------------------------------

// The clock cycles of bf16 tokens were fitted together with those of sm90.cc, on times of every
// plan on an H200 (docs/notebook.md); those of fp16 are as much lower as by earlier times. On other
// GPUs the planner takes their bytes and SMs, and assumes the same clock cycles.
//
// With weights as a checkpoint has them, or packed.
struct Weights {
  int64_t start;             // of a launch, until its first bytes arrive
  int64_t trip, trip_of_16;  // shortest time of a warp for one k-block, whose bytes then arrive
  int64_t issue_f16, issue_bf16;  // time for an SM to issue a k-block of a warp
};
constexpr Weights kPlain{6050, 1850, 2400, 295, 315}, kPacked{5000, 1450, 2010, 270, 260};
// CTAs that follow others on their SM.
constexpr int64_t kNextWave = 750;
// The share of each token in what is issued, and the second half of a tile's tokens. CTAs of eight
// warps take a sixteenth more.
constexpr int64_t kIssueToken = 4, kIssueHalf = 80;
// Bytes arrive at 83 % of the memory's rate.
constexpr int64_t kBytesPercent = 120;
// Partial sums go to the first CTA of a cluster: a cost per cluster and per partition. Otherwise a
// kernel of its own adds them, at a cost per byte stored and loaded for a token.
constexpr int64_t kCluster = 900, kPartition = 240, kAddKernel = 2600;
// The general epilogue, once for all tiles of a CTA.
constexpr int64_t kGeneral = 2700;
constexpr int64_t kBlockBytes = kSm80CodeBytes + kSm80ScaleBytes;
constexpr int64_t kPartitionBytes = 2 * kSm80Weights * sizeof(float);

// SMs that clusters of this size leave empty on 9.0, the same as in sm90.cc.
int64_t empty_sms(uint32_t cluster) { return cluster < 3 ? 0 : cluster == 3 ? 24 : 12; }

uint32_t shared_bytes_of(const Variant& v, int64_t m, uint32_t cluster) {
  return sm80_shared_bytes(v.tile_tokens, v.threads / 32, static_cast<uint32_t>(m), cluster);
}

constexpr uint32_t kReserved = 1024;  // bytes of shared memory per CTA, by the system

// CTAs that run on an SM at the same time.
int64_t ctas_of_sm(const Variant& v, uint32_t shared_bytes, const Architecture& arch) {
  const uint32_t room = (arch.shared_bytes + kReserved) / (shared_bytes + kReserved);
  return std::max<int64_t>(1, std::min(v.ctas_per_sm, room));
}

// Clock cycles of each SM when all SMs load or store that many bytes together.
int64_t clocks_of_bytes(const Architecture& arch, int64_t bytes) {
  const double per_clock =
      arch.light.bytes_per_second / arch.light.clock / static_cast<double>(arch.sm_count);
  return static_cast<int64_t>(static_cast<double>(bytes * kBytesPercent) / (100 * per_clock));
}

// Time for an SM to issue a k-block of one of its warps, when it has many.
int64_t clocks_of_block(const Variant& v, int64_t rows, const Weights& weights) {
  const int64_t alone = v.a_type == NVFP4_TYPE_F16 ? weights.issue_f16 : weights.issue_bf16;
  const int64_t issue = alone + rows * kIssueToken + (v.tile_tokens > 8 ? kIssueHalf : 0);
  return v.threads > 128 ? issue + issue / 16 : issue;
}

// How a product of m tokens is divided: its tiles, and the K partitions of each.
struct Division {
  int64_t tiles, m;
  uint32_t partitions;
};

int64_t blocks_of(const nvfp4_gemm_desc& g) {
  return std::max<int64_t>(ceil_div(g.k, int64_t{kSm80BlockK}), 1);
}

// K-blocks of weights that one SM loads if all SMs load equally many and each weight is loaded
// once.
int64_t blocks_of_sm(const nvfp4_gemm_desc& g, const Architecture& arch) {
  return ceil_div(ceil_div(g.n, int64_t{kSm80Weights}) * blocks_of(g) * g.l, arch.sm_count);
}

// Clock cycles of the SM that runs longest: waves of CTAs side by side. A wave takes as long as one
// warp needs for its k-blocks, or as the SM needs to issue those of all warps, but no less than all
// weights need to arrive.
Clocks clocks(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v,
              const Division& how) {
  const int64_t warps = v.threads / 32;
  const int64_t trips = ceil_div(ceil_div(blocks_of(g), int64_t{how.partitions}), warps);
  const int64_t rows = sm80_token_rows(static_cast<uint32_t>(how.m), v.tile_tokens);
  const uint32_t cluster = has_clusters(arch) ? how.partitions : 1;
  const int64_t room = ctas_of_sm(v, shared_bytes_of(v, how.m, cluster), arch);
  const int64_t ctas = ceil_div(how.tiles * how.partitions, arch.sm_count - empty_sms(cluster));
  const int64_t waves = ceil_div(ctas, room), last = ctas - (waves - 1) * room;
  const Weights& weights = has_packed_weights(g) ? kPacked : kPlain;
  const int64_t block = clocks_of_block(v, rows, weights);
  const int64_t least = v.tile_tokens > 8 ? weights.trip_of_16 : weights.trip;
  const auto trip = [&](int64_t at_once) { return std::max(least, at_once * warps * block); };
  const int64_t issued = trips * ((waves - 1) * trip(room) + trip(last));
  const int64_t loaded = clocks_of_bytes(arch, blocks_of_sm(g, arch) * kBlockBytes);
  int64_t sums = 0;
  if (cluster > 1) sums = waves * (kCluster + how.partitions * kPartition);
  if (cluster < how.partitions) {
    sums = kAddKernel + clocks_of_bytes(arch, ctas * rows * kPartitionBytes);
  }
  return {std::max(issued, loaded), sums, weights.start + (waves - 1) * kNextWave};
}

// The number of K partitions with the fewest clock cycles. The unsplit tiles are limited to the
// CTAs of a grid.
uint32_t best_partitions(const nvfp4_gemm_desc& g, const Architecture& arch, const Variant& v,
                         int64_t tiles, int64_t m) {
  if (!splits_k(arch)) return 1;
  uint32_t best = 1;
  int64_t least = clocks(g, arch, v, {tiles, m, 1}).all();
  for (const uint32_t partitions : kPartitionCounts) {
    if (partitions > blocks_of(g) || tiles * partitions > kMaxTiles) break;
    const int64_t cost = clocks(g, arch, v, {tiles, m, partitions}).all();
    if (cost >= least) continue;
    least = cost;
    best = partitions;
  }
  return best;
}

// For a batch-invariant problem: the number that suits one token with the tile of four warps, so
// that it depends on N and K alone.
uint32_t invariant_partitions(const nvfp4_gemm_desc& g, const Architecture& arch) {
  const bool f16 = g.a_type == NVFP4_TYPE_F16;
  const Variant& v = variant_at(f16 ? kVariant_sm80_f16_64x8w4 : kVariant_sm80_bf16_64x8w4);
  return best_partitions(g, arch, v, ceil_div(g.n, int64_t{kSm80Weights}), 1);
}

// What D's own epilogue takes beyond the fast one. It is the same for every tile.
int64_t clocks_of_d(const nvfp4_gemm_desc& g) {
  return make_epilogue(g).kind <= kEpilogueF32 ? 0 : kGeneral;
}

bool choose_split(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant& v,
                  Choice* choice) {
  int64_t matrix, tiles;
  if (!count_tiles(desc, v, &matrix, &tiles)) return false;
  const uint32_t partitions = desc.batch_invariant != 0
                                  ? invariant_partitions(desc, arch)
                                  : best_partitions(desc, arch, v, tiles, desc.m);
  const int64_t cost = clocks(desc, arch, v, {tiles, desc.m, partitions}).all();
  *choice = {
      &v, partitions, 1, false, tiles, 0, tiles * partitions, cost, cost + clocks_of_d(desc)};
  return choice->ctas <= kMaxTiles;
}

// Workspace for the sums of K partitions: [tile][K partition][token][weight], in fp32.
nvfp4_status complete(const nvfp4_gemm_desc& desc, Plan* plan) {
  const Variant& v = *plan->variant;
  const bool clusters = has_clusters(plan->arch());
  plan->cluster = clusters ? plan->split : 1;
  plan->shared_bytes = shared_bytes_of(v, desc.m, plan->cluster);
  plan->waits = clusters;
  if (plan->grouped) {  // as many CTAs as run at once
    plan->ctas_per_sm = static_cast<uint32_t>(ctas_of_sm(v, plan->shared_bytes, plan->arch()));
  }
  if (clusters || plan->split == 1) return NVFP4_SUCCESS;
  const uint64_t tile_bytes = uint64_t{v.tile_tokens} * v.tile_weights * sizeof(float);
  plan->workspace_bytes = plan->grid * tile_bytes;  // for fewer than 2^31 CTAs
  plan->add_ctas = plan->grid / plan->split;
  plan->add_threads = kSm80AddThreads;
  return NVFP4_SUCCESS;
}

// The clock cycles were fitted only on GPUs of 9.0.
Clocks predict(const nvfp4_gemm_desc& desc, const Plan& plan) {
  if (!has_clusters(plan.arch())) return {};
  const Division how{plan.grid / plan.split, desc.m, plan.split};
  Clocks all = clocks(desc, plan.arch(), *plan.variant, how);
  all.sums += clocks_of_d(desc);
  return all;
}

void write_rule(const Architecture& arch, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "fewest clocks, as the planner counts them%s",
           has_clusters(arch) ? "" : " by what was fitted on an H200 and an H100");
}

void write_choice(const Choice& choice, char (&text)[kReasonBytes]) {
  snprintf(text, sizeof text, "split %" PRIu32 ", %" PRId64 " clocks", choice.split,
           choice.own_cost());
}

// ---- launching ---------------------------------------------------------------------------------

void set_addresses(const nvfp4_gemm_desc& g, Sm80Params* p) {
  p->weights = static_cast<const uint8_t*>(g.b);
  p->weight_scales = static_cast<const uint8_t*>(g.b_scales);
  p->tokens = static_cast<const uint8_t*>(g.a);
  p->d = g.d;
  p->partitions = static_cast<float*>(g.workspace);
  p->epilogue = make_epilogue(g);
}

uint32_t log2_of_ue8m0(int32_t format) {
  const OperandFormat& row = *find_operand_format(format);
  return row.scale == ScaleType::ue4m3 ? 0 : row.block == 32 ? 5 : 4;
}

// Bytes from the first row of a tile to the 33rd, of an array of weights. 32 rows of a tile of a
// gated product are b2's.
int64_t half_of(const Plan& plan, const void* of_b, const void* of_b2, int64_t rows_bytes) {
  if (!plan.gated) return rows_bytes;
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(of_b2) -
                              reinterpret_cast<uintptr_t>(of_b));
}

// What only a grouped product has, apart from its groups.
void set_grouped(const nvfp4_gemm_desc& g, const Plan& plan, Sm80GroupedParams* p) {
  // In 128x4 tiles 32 rows are a band, 4 bytes behind the one before (kernel/common/scale_tile.h).
  const int64_t linear = kSm80HalfWeights * (g.k / find_operand_format(g.operand_format)->block);
  const bool is_linear = p->gemm.scales_are_linear != 0;
  p->half_bytes = half_of(plan, g.b, g.b2, kSm80HalfWeights * p->gemm.weight_row_bytes);
  p->half_scales_bytes = half_of(plan, g.b_scales, g.b2_scales, is_linear ? linear : 4);
  p->columns = plan.entry().columns;
  if (plan.gated) p->gate = make_gate(g);
}

int64_t weight_batch_bytes(const nvfp4_gemm_desc& g, const Plan& plan) {
  if (!plan.packed) return g.b_batch_stride / 2;
  return packed_batch_bytes(g);
}

nvfp4_status make_params(const Driver&, const nvfp4_gemm_desc& g, const Plan& plan,
                         KernelParams* params) {
  Sm80GroupedParams* const grouped = params->make<Sm80GroupedParams>();
  Sm80Params* const p = &grouped->gemm;
  set_addresses(g, p);
  const bool batches = g.l > 1;
  p->weight_row_bytes = g.b_ld / 2;
  p->weight_batch_bytes = batches ? weight_batch_bytes(g, plan) : 0;
  p->weight_scales_batch_bytes = weight_scales(g, plan).batch_bytes;
  p->token_row_bytes = g.a_ld * 2;
  p->token_batch_bytes = batches ? g.a_batch_stride * 2 : 0;
  p->d_batch_stride = batches ? g.d_batch_stride : 0;
  p->m = static_cast<uint32_t>(g.m);
  p->n = static_cast<uint32_t>(g.n);
  p->k = static_cast<uint32_t>(g.k);
  p->tiles_m = plan.tiles_m;
  p->tiles_n = plan.tiles_n;
  p->batches = static_cast<uint32_t>(g.l);
  p->split = plan.split;
  p->alpha = g.alpha;
  p->weights_are_static = g.pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
  p->scales_are_linear = weight_scales(g, plan).linear;
  p->log2_of_ue8m0 = log2_of_ue8m0(g.operand_format);
  if (plan.grouped) set_grouped(g, plan, grouped);
  return NVFP4_SUCCESS;
}

nvfp4_status replace_addresses(const Driver&, const nvfp4_gemm_desc&, const nvfp4_gemm_desc& g,
                               const Plan& plan, KernelParams* params) {
  set_addresses(g, params->get<Sm80Params>());
  if (plan.grouped) set_grouped(g, plan, params->get<Sm80GroupedParams>());
  return NVFP4_SUCCESS;
}

// One kernel computes all single products, one those with packed weights, one all grouped ones.
Operation operation(const Plan& plan, const KernelParams&) {
  return operation_of(plan.grouped, plan.gated, plan.packed);
}

const char* add_entry(const Architecture& arch, const Variant& v) {
  if (has_clusters(arch)) return nullptr;
  return v.tile_tokens == 8 ? "nvfp4_add_sm80_64x8" : "nvfp4_add_sm80_64x16";
}

uint32_t most_shared_bytes(const Architecture& arch, const Variant& v) {
  return has_clusters(arch) ? arch.shared_bytes : shared_bytes_of(v, v.tile_tokens, 1);
}

// A launch that starts early finds CTAs of the previous one on the SMs, more on some than on
// others. Each of its CTAs requests so much shared memory that no SM gets more of them than it
// would if the launch ran alone.
uint32_t shared_bytes_beside(const Plan& plan, uint32_t ctas, int32_t sm_count) {
  const int64_t sms = std::max<int64_t>(1, sm_count - empty_sms(plan.cluster));
  const auto resident = static_cast<uint32_t>(ceil_div(int64_t{ctas}, sms));
  const uint32_t room = plan.arch().shared_bytes + kReserved;
  if (room / resident <= kReserved) return plan.shared_bytes;
  return std::max(plan.shared_bytes, (room / resident - kReserved) / 128 * 128);
}

constexpr Family make_family() {
  Family f;
  f.choose_split = choose_split;
  f.complete = complete;
  f.predict = predict;
  f.make_params = make_params;
  f.replace_addresses = replace_addresses;
  f.operation = operation;
  f.add_entry = add_entry;
  f.most_shared_bytes = most_shared_bytes;
  f.shared_bytes_beside = shared_bytes_beside;
  f.write_rule = write_rule;
  f.write_choice = write_choice;
  f.last_fast_epilogue = kEpilogueBf16;
  f.groups_at = f.gated_groups_at = offsetof(Sm80GroupedParams, groups);
  f.groups_iterate = true;
  f.finds_group_scales = true;
  f.gate_halves_tile = true;
  f.takes_ue8m0 = takes_ue8m0;
  f.splits_k = splits_k;
  return f;
}

}  // namespace

const Family kFamily_sm80 = make_family();

}  // namespace nvfp4
