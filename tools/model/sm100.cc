// SPDX-License-Identifier: MIT
// This library's kernel for 10.x as the model sees it.
#include <algorithm>
#include <stdexcept>

#include "kernel/sm100/tile.h"
#include "tools/model/kernels.h"

namespace model {
namespace {

constexpr int kEarlyStages = 3;  // of weights that are not packed (kernel/sm100/load.cuh)
constexpr int kSubTile = 32;     // tokens of a load of tensor memory
constexpr int kHalves = nvfp4::Sm100Tile<64>::kHalves;  // warps of a lane band

// Clocks of the list of groups (kernel/common/group_list.cuh) by machine code of 2026-11-29: for 32
// groups, to ask for their rows; for each lane's first entry, and for every other one of it; for 16
// shuffles that add and compare over the lanes. Then those of a search: each of its steps, and all
// else.
constexpr double kListCopy = 35, kListLanes = 181, kListEntry = 83, kListSums = 480;
constexpr double kSearchStep = 66, kSearch = 190;

struct Issued {
  const char* kernel;
  double first_load, first_bulk, first_map, k_block;
};
// Stall clocks of tools/gates/sass.txt, which model.mk turns into rows.
const Issued kIssued[] = {
#define ISSUED(kernel, first_load, first_bulk, first_map, k_block) \
  {#kernel, first_load, first_bulk, first_map, k_block},
#define TAIL(kernel, what, clocks)
#include SASS_DEF
};

// Clocks of its warps from sums to D, of 32 tokens or of rows of a share.
struct TailClocks {
  const char *kernel, *what;
  double clocks;
};
const TailClocks kTailClocks[] = {
#define ISSUED(...)
#define TAIL(kernel, what, clocks) {#kernel, what, clocks},
#include SASS_DEF
};

double tail_clocks(const std::string& kernel, const std::string& what) {
  for (const TailClocks& tail : kTailClocks)
    if (kernel == tail.kernel && what == tail.what) return tail.clocks;
  throw std::invalid_argument(kernel + " has no clocks of " + what);
}

// Stalls of the entry whose name is the kernel's and this.
void take_issue(Kernel* k, const char* entry) {
  for (const Issued& issued : kIssued) {
    if (k->name + entry != issued.kernel) continue;
    k->issue_clocks = issued.k_block;
    k->start_clocks = issued.first_load;
    k->bulk_clocks = issued.first_bulk;
    k->map_clocks = issued.first_map;
  }
}

const char* type_of(Tail tail) { return tail == Tail::kPlain ? "f16" : "bf16"; }

// What the general epilogue does: its kind in tools/gates/sass.txt, "" for other epilogues.
std::string general_kind(Tail tail) {
  switch (tail) {
    case Tail::kScaled: return "scales";
    case Tail::kC: return "C";
    case Tail::kSilu: return "SiLU";
    case Tail::kRowMaxima: return "row maxima";
    default: return "";
  }
}

const char* entry_of(Tail tail) {
  if (tail == Tail::kScaled) return "_scaled";
  return general_kind(tail).empty() ? "_plain" : "";
}

// Clocks of a warp for 32 tokens. The general epilogue takes half a sub-tile at once.
double sub_tile_clocks(const std::string& tile, Tail tail) {
  const std::string kind = general_kind(tail), entry = tile + entry_of(tail);
  if (kind.empty()) return tail_clocks(entry, std::string("a sub-tile, ") + type_of(tail));
  return 2 * tail_clocks(entry, "half a sub-tile, " + kind);
}

// Each lane band of 32 weights has two warps, which go alike. A pair's warp has fewer boxes than
// sub-tiles: TMA has to have read them before those of the next tile are written, and a single one
// before the next sub-tile is.
template <typename Tile>
double tail_of_tile(const Machine& m, const Kernel& k, Tail tail) {
  if (tail == Tail::kFormula) return epilogue(m, double(k.tile_tokens), k.stored_bytes);
  constexpr uint32_t kBoxBytes = kSubTile * kSubTile * 2;
  const double boxes = k.width == 1 || tail == Tail::kScaled     ? 0
                       : Tile::kWarpStagingBytes / kBoxBytes > 1 ? m.box_read
                                                                 : 2 * m.box_read;
  const double sub_tiles = double(k.tile_tokens) / kSubTile / Tile::kHalves;
  return sub_tiles * sub_tile_clocks(k.name, tail) + boxes;
}

// Bytes and ring from kernel/sm100/tile.h; that they are what the emulator counts is a test. A
// gated tile has a second matrix of weights: more bytes, and a second product a step.
template <typename Tile>
Kernel sm100_kernel(const Machine& m, const char* entry, int64_t problem_m) {
  const auto tokens = Tile::box_tokens(uint32_t(std::min<int64_t>(problem_m, Tile::kTokens)));
  Kernel k;
  k.name = "sm100_" + std::to_string(Tile::kWeights) + "x" + std::to_string(Tile::kTokens);
  k.width = Tile::kCtas;
  k.tile_weights = Tile::kWeights;
  k.tile_tokens = Tile::kTokens;
  k.stage_k = Tile::kK;
  k.busy_clock = m.busy_clock;
  k.stages = Tile::kStages;
  k.weights = {double(Tile::kStageWeightBytes), double(Tile::kStageWeightScaleBytes),
               2.0 * Tile::kMatrices};
  k.tokens = {double(tokens) * Tile::kK / 2, double(Tile::kTokenScaleBytes),
              1.0 + Tile::kTokenScaleBlocks};
  const Mma mma{int(Tile::kWeights), int(tokens * Tile::kCtas), int(Tile::kCtas), false,
                1 + int(Tile::kTokenScaleBlocks)};
  k.stage_clocks = Tile::kSteps * interval(m, mma);
  if (Tile::kGated) {
    const Mma second{mma.m, mma.n, mma.group, false, 1};
    k.stage_clocks += Tile::kSteps * interval(m, second);
  }
  k.latency_clocks = latency(mma) - interval(m, mma);
  take_issue(&k, entry);
  k.early_stages = kEarlyStages;
  if (Tile::kCtas == 2) k.start_clocks += m.cluster_barrier * m.clock;
  k.persistent = Tile::kSeveralTiles;
  if (Tile::kSeveralTiles) k.token_group = 8;
  k.accumulators = Tile::kAccumulators;
  // Two of eight sub-tiles have columns that both accumulators share.
  if (Tile::kOverlap) k.shared_part = 2.0 / 8;
  k.stored_bytes = 2.0 * Tile::kCtaWeights * Tile::kTokens;
  return k;
}

template <typename Tile>
Kernel sm100_whole(const Machine& m, Tail tail, int64_t problem_m) {
  Kernel k = sm100_kernel<Tile>(m, entry_of(tail), problem_m);
  k.epilogue_clocks = tail_of_tile<Tile>(m, k, tail);
  // Only the fast epilogue reads the shared columns first. The others release all at their end.
  if (Tile::kOverlap && !general_kind(tail).empty()) k.shared_part = 1;
  return k;
}

template <typename Tile>
Kernel gated_kernel(const Machine& m, int64_t problem_m) {
  Kernel k = sm100_kernel<Tile>(m, "_gated", problem_m);
  k.name += "_gated";
  k.epilogue_clocks = double(Tile::kTokens) / (kSubTile / 2) / Tile::kHalves *
                      tail_clocks(k.name, "half a sub-tile, gated");
  return k;
}

double rounds(int64_t rows, int64_t at_once) { return double((rows + at_once - 1) / at_once); }

}  // namespace

std::vector<Kernel> sm100_kernels(const Machine& machine, Tail tail, int64_t m) {
  return {
#define SM100_TILE(weights, tokens) \
  sm100_whole<nvfp4::Sm100Tile_##weights##x##tokens>(machine, tail, m),
#include "kernel/sm100/tiles.def"
  };
}

Kernel sm100_gated(const Machine& machine, int64_t tile_tokens, int64_t m) {
  using namespace nvfp4;
#define ENTRY(label, operation)                                          \
  {                                                                      \
    using Tile = Sm100_##operation<Sm100Tile_##label>::Tile;             \
    if (Tile::kGated && !Tile::kGrouped && tile_tokens == Tile::kTokens) \
      return gated_kernel<Tile>(machine, m);                             \
  }
#include "kernel/sm100/entries.def"
  throw std::invalid_argument("no gated entry of this tile");
}

// The first tokens come by a tensor map, and from DRAM.
Kernel sm100_packed(const Machine& m, Kernel k) {
  k.weights.copies /= 2;
  k.early_stages = 0;
  if (k.width == 2) return k;
  k.tokens_ns = (m.setup + k.map_clocks) / m.clock + m.map_fetch + m.hit_saves;
  k.start_clocks = k.bulk_clocks;
  k.by_map = false;
  return k;
}

double list_ns(const Machine& m, int64_t groups) {
  const double entries = double((groups + 31) / 32 | 1);  // of a lane
  const double clocks =
      rounds(groups, 32) * kListCopy + kListLanes + (entries - 1) * kListEntry + kListSums;
  return m.copy_latency - m.hit_saves + clocks / m.clock;
}

// Half of the rows in a pair. The host chooses the box for usual groups (host/family/sm100.cc).
template <typename Tile>
Kernel grouped_kernel(const Machine& m, int64_t groups, int64_t usual_rows) {
  constexpr int64_t kCtas = Tile::kCtas, kStep = nvfp4::kTokenStep;
  Kernel k = sm100_kernel<Tile>(m, "_grouped_plain", Tile::kTokens);
  const std::string entry = k.name + "_grouped_plain";
  k.name += "_grouped";
  k.start_clocks += m.clock * list_ns(m, groups);
  k.search_clocks = kSearch;
  for (int64_t left = groups; left > 1; left = (left + 1) / 2) k.search_clocks += kSearchStep;
  k.start_clocks += k.search_clocks;
  int64_t box = kStep;
  while (box < Tile::kCtaTokens && box * kCtas < usual_rows) box *= 2;
  const double sub_tile = tail_clocks(entry, "a sub-tile, bf16");
  for (int64_t rows = kStep; rows <= Tile::kTokens; rows += kStep) {
    RowsOfTile of;
    const double boxes = rounds(rows / kCtas, box), blocks = rounds(rows, nvfp4::kScaleTileRows);
    of.tokens = {boxes * double(box) * Tile::kK / 2, blocks * Tile::kWeightScaleBytes,
                 boxes + blocks};
    const Mma mma{int(Tile::kWeights), int(rows), int(kCtas), false, 1 + int(blocks)};
    of.stage_clocks = Tile::kSteps * interval(m, mma);
    of.latency_clocks = latency(mma) - interval(m, mma);
    of.epilogue_clocks = rounds(rows, kSubTile * kHalves) * sub_tile;
    of.stored_bytes = 2.0 * Tile::kCtaWeights * double(rows);
    k.by_rows.push_back(of);
  }
  return k;
}

std::vector<Kernel> sm100_grouped(const Machine& machine, int64_t groups, int64_t usual_rows) {
  using namespace nvfp4;
  std::vector<Kernel> all;
#define ENTRY(label, operation)                                         \
  {                                                                     \
    using Entry = Sm100_##operation<Sm100Tile_##label>;                 \
    using Tile = Entry::Tile;                                           \
    if constexpr (Tile::kGrouped && !Tile::kGated && !Entry::kGeneral)  \
      all.push_back(grouped_kernel<Tile>(machine, groups, usual_rows)); \
  }
#include "kernel/sm100/entries.def"
  return all;
}

// The others' sums to shared memory and on their way to them; of the own rows the sum over the
// parts, and the store. Each warp has half of the rows of every slice. Few tokens leave the last
// slices empty.
Kernel sm100_split(const Machine& m, Kernel k, Tail tail, int parts, int64_t rows) {
  if (tail == Tail::kFormula) return split(m, k, parts, clusters_of(parts), rows);
  const int64_t at_once = k.tile_tokens / (parts * kHalves);
  const double slices = rounds(std::min(k.tile_tokens, rows), at_once * kHalves);
  const std::string kernel = k.name + "_plain";
  const std::string of_parts =
      std::to_string(at_once) + " rows of " + std::to_string(parts) + " parts";
  double one = tail_clocks(kernel, of_parts + ", " + type_of(tail));
  if (!general_kind(tail).empty()) {  // the same sums take longer to store
    const double more = sub_tile_clocks(k.name, tail) - sub_tile_clocks(k.name, Tail::kEngine);
    one += more * double(at_once) / kSubTile;
  }
  if (parts > 2) one += (parts - 2) * tail_clocks(kernel, of_parts + ", added");
  const double puts = std::min<double>(parts - 1, slices);
  Kernel cut = split(m, k, parts, clusters_of(parts), rows);
  cut.exchange_ns += m.gpu_fence * tail_clocks(kernel, "fences for the GPU before " + of_parts);
  cut.epilogue_clocks = puts * tail_clocks(kernel, of_parts + ", put") + one;
  return cut;
}

}  // namespace model
