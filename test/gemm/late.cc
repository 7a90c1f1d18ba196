// SPDX-License-Identifier: MIT
// Grouped products of 9.0 whose CTAs compute more tiles than they list at once, while one role of
// the CTA is slower than all others: warps that follow barriers by parity must not fall two phases
// behind. The emulator makes a role late (EMU_LATE); a GPU runs the same shapes as they come, and
// tools/gates/check_hw.sh bounds their time, since a GPU that hangs says nothing.
#include "test/gemm/emulator.h"
#include "test/gemm/grouped.h"
#include "test/gemm/sizes.h"

using namespace gemm_test;

namespace {

// A grouped entry, with the roles of its warps.
struct Entry {
  const char* variant;
  bool gated;
  uint32_t consumer_warps;
  int64_t columns;  // of D, in a tile
  bool pre_pass;    // decodes its tokens
  operator std::string() const { return variant; }
};

template <typename Tile>
void add_if_grouped(const char* variant, std::vector<Entry>* all) {
  if (!Tile::kGrouped) return;
  all->push_back(
      {variant, Tile::kGated, Tile::kConsumerWarps, Tile::kColumnsOfD, Tile::kWorkspaceTokens});
}

std::vector<Entry> entries() {
  using namespace nvfp4;
  std::vector<Entry> all;
#define ENTRY(label, operation) \
  add_if_grouped<Sm90_##operation<Sm90Tile_##label>>("sm90_" #label "x256", &all);
#include "kernel/sm90/entries.def"
  return all;
}

// The consumers, the warps that load weights and tokens, and the one that lists tiles.
enum class Role : uint32_t { consumers, weights, tokens, lister };
std::string warps_of(const Entry& entry, Role role) {
  const uint32_t first = entry.consumer_warps;
  if (role == Role::consumers) return "0-" + std::to_string(first - 1);
  return std::to_string(first + uint32_t(role) - 1);
}

// Tiles of a CTA at least, the groups, how many of them have rows, and tiles side by side on a GPU:
// the host draws each element of the tokens, which takes longer than the products, and with more
// tiles side by side there are fewer. The weights of 512 groups are the more.
struct Division {
  int64_t tiles, groups, with_rows, across;
};
constexpr Division kNine{9, 9, 9, 33}, kSeventeen{17, 17, 17, 33}, kSparse{9, 512, 26, 6};

// K of one k-block of 256 with its first step alone, of two, and of six, the last with one step.
constexpr int64_t kOne = 64, kTwo = 512, kSix = 1344;

// Every group that has rows begins a tile. A GPU gets as many token tiles as give each of its SMs
// enough; one SM gets one tile of each group.
GroupedProblem problem_of(const Gpu& gpu, const Entry& entry, const Division& division, int64_t k) {
  const TileOf& tile = tile_of(entry.variant);
  const int64_t sms = gpu.info.sms, across = sms == 1 ? 1 : division.across;
  const int64_t each = division.with_rows * across;
  const int64_t token_tiles = (division.tiles * sms + each - 1) / each;
  std::vector<int32_t> ends;
  int64_t rows = 0;
  for (int64_t i = 0, given = 0; i < division.groups; ++i) {
    const bool due = (i + 1) * division.with_rows / division.groups > given;
    if (due) rows += (token_tiles - 1) * tile.tokens + 1 + given++ % 3;
    ends.push_back(int32_t(rows));
  }
  const GroupedSizes sizes{rows, across * entry.columns, k, tile.a_type};
  GroupedProblem problem(sizes, ends, 90, support::Data::exact);
  if (entry.gated) {
    problem.fields.b2 = support::kGiven, problem.fields.activation = NVFP4_ACTIVATION_RELU;
    problem.fields.alpha2 = problem.fields.alpha;
  }
  return problem;
}

void require_division(const Gpu& gpu, const Entry& entry, const Division& division, int64_t k) {
  CAPTURE(entry.variant, entry.gated, division.groups, division.with_rows, k);
  const GroupedProblem problem = problem_of(gpu, entry, division, k);
  DeviceGrouped device(gpu, problem);
  device.take(gpu, entry.variant);
  const std::vector<uint8_t> d = run_grouped(device);
  if (gpu.info.emulated()) {
    CHECK(d == grouped_reference(problem, device));
  } else {
    const GroupedTile tile{entry.variant, problem.sizes.a_type};
    CHECK(d ==
          single_products(gpu, problem, [&](nvfp4_gemm_desc& g, int64_t) { take_tile(tile, g); }));
  }
}

void require_late(const Gpu& gpu, const Entry& entry, Role role, const Division& division,
                  int64_t k) {
  const Emulator emulator(gpu.driver);
  const std::string warps = warps_of(entry, role);
  CAPTURE(warps);
  const Setting late(emulator, "EMU_LATE", warps, "");
  require_division(gpu, entry, division, k);
}

}  // namespace

#define USE_ONE_SM(gpu)                                           \
  USE_GPU_OF_FAMILY(gpu, 9);                                      \
  if ((gpu).info.emulated() && (gpu).info.sms > 1) {              \
    SKIP_TEST("an emulated Hopper has one SM for it: EMU_SMS=1"); \
  }                                                               \
  const Entry entry = GENERATE(from_range(taken(entries())))
#define USE_LATE_ROLES(gpu) \
  if (!(gpu).info.emulated()) SKIP_TEST("a GPU has no EMU_LATE")

// Two divisions of each, where a long run takes every division with every K.
TEST_CASE("grouped: each role of a CTA may be late", "[grouped][late]") {
  USE_ONE_SM(gpu);
  USE_LATE_ROLES(gpu);
  for (const Role role : {Role::consumers, Role::weights, Role::tokens, Role::lister}) {
    if (everything()) {
      for (const Division& division : {kNine, kSeventeen, kSparse})
        for (const int64_t k : {kOne, kTwo, kSix}) require_late(gpu, entry, role, division, k);
    } else {
      require_late(gpu, entry, role, role == Role::consumers ? kNine : kSeventeen, kOne);
      require_late(gpu, entry, role, kNine, kSix);
    }
  }
}

// A search among many empty groups takes longer than the k-blocks of a tile.
TEST_CASE("grouped: with two k-blocks the search for tiles or the loader of tokens may be late",
          "[grouped][late]") {
  USE_ONE_SM(gpu);
  USE_LATE_ROLES(gpu);
  require_late(gpu, entry, Role::lister, kSparse, kTwo);
  require_late(gpu, entry, Role::tokens, kNine, kTwo);
}

// With COUNTS the workspace has a place for the first tiles alone. The warp that decodes the eight
// others has another role than the thread that loads tokens.
TEST_CASE("grouped: each role of a CTA that decodes tokens may be late", "[grouped][late]") {
  USE_ONE_SM(gpu);
  USE_LATE_ROLES(gpu);
  if (!entry.pre_pass) return;
  const TileOf& tile = tile_of(entry.variant);
  const int32_t of_group = int32_t(tile.tokens), groups = 256 / of_group + 8;
  GroupedProblem problem({groups * (of_group + 1), entry.columns, kTwo, tile.a_type},
                         std::vector<int32_t>(size_t(groups), of_group), 98, support::Data::exact);
  problem.capacity = of_group + 1, problem.rows_hint = 1;
  if (entry.gated) {
    problem.fields.b2 = support::kGiven, problem.fields.activation = NVFP4_ACTIVATION_RELU;
    problem.fields.alpha2 = problem.fields.alpha;
  }
  DeviceGrouped device(gpu, problem);
  device.take(gpu, entry.variant);
  const std::vector<uint8_t> right = grouped_reference(problem, device);
  const Emulator emulator(gpu.driver);
  for (const Role role : {Role::consumers, Role::weights, Role::tokens, Role::lister}) {
    const std::string warps = warps_of(entry, role);
    CAPTURE(entry.variant, entry.gated, warps);
    const Setting late(emulator, "EMU_LATE", warps, "");
    device.clear_d();
    CHECK(run_grouped(device) == right);
  }
}

// Who is late on a GPU is not ours to say, so each division and each K runs once: two rounds of the
// list and more, four, and with many empty groups.
TEST_CASE("grouped: a CTA computes more tiles than it lists at once", "[grouped][late]") {
  USE_ONE_SM(gpu);
  if (gpu.info.emulated()) SKIP_TEST("with a late role there");
  if (everything()) {
    for (const Division& division : {kNine, kSeventeen, kSparse})
      for (const int64_t k : {kOne, kTwo, kSix}) require_division(gpu, entry, division, k);
  } else {
    require_division(gpu, entry, kSeventeen, kOne);
    require_division(gpu, entry, kSparse, kTwo);
    require_division(gpu, entry, kNine, kSix);
  }
}
