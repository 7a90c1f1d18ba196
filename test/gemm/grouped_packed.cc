// SPDX-License-Identifier: MIT
// Grouped products with packed weights on 9.0, gated ones, too: each row has the bits that it has
// without packing, and by wgmma those of its group's single product with packed weights.
#include <cstring>

#include "test/gemm/grouped_packed.h"
#include "test/gemm/sizes.h"

using namespace gemm_test;

namespace {

// Variants of wgmma that have an entry for packed weights in groups.
std::vector<PackedTile> tiles() {
  return {{"sm90_f16_64x32x256", NVFP4_TYPE_F16, false},
          {"sm90_bf16_128x128x256", NVFP4_TYPE_BF16, true},
          {"sm90_bf16_64x32x256", NVFP4_TYPE_BF16, false},
          {"sm90_f16_128x128x256", NVFP4_TYPE_F16, true},
          {"sm90_bf16_128x128x256", NVFP4_TYPE_BF16, false},
          {"sm90_f16_128x128x256", NVFP4_TYPE_F16, false}};
}

GroupedProblem problem_of(const PackedTile& tile, GroupedSizes sizes, std::vector<int32_t> ends,
                          uint64_t seed, support::Data data = support::Data::random) {
  sizes.a_type = tile.a_type;
  GroupedProblem problem(sizes, std::move(ends), seed, data);
  support::Fields& f = problem.fields;
  if (tile.gated) {
    f.b2 = support::kGiven, f.activation = NVFP4_ACTIVATION_SILU;
    f.alpha = 0.02f, f.alpha2 = -0.03f;
    f.gate_limit = 7, f.gate_alpha = 1.702f, f.gate_beta = 1;
  }
  return problem;
}

std::vector<GroupedTile> packed_mma_tiles() {
  std::vector<GroupedTile> tiles = gemm_test::mma_tiles();
  tiles.push_back({"sm80_f16_64x8w4x128", NVFP4_TYPE_F16});
  return tiles;
}

}  // namespace

#define EACH_PACKED_TILE GENERATE(from_range(taken(tiles())))

// mma.sync adds K in another order than of weights that are not packed.
TEST_CASE("grouped packed: rows by mma.sync have the bits of singles", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const GroupedTile tile = GENERATE(from_range(packed_mma_tiles()));
  CAPTURE(tile.variant);
  GroupedProblem problem =
      problem_of({tile.variant, tile.a_type, false}, {45, 70, 1344}, {0, 19, 20, 20, 41, 41}, 958);
  require_bits_of_singles(gpu, tile, packed(problem));
  problem.b_shared = true;
  require_bits_of_singles(gpu, tile, packed(problem));
  const GroupedProblem exact = packed(problem_of({tile.variant, tile.a_type, false}, {20, 66, 208},
                                                 {4, 4, 19}, 959, support::Data::exact));
  DeviceGrouped device(gpu, exact);
  device.take(gpu, tile.variant);
  CHECK(run_grouped(device) == grouped_reference(exact, device));
}

// Boundaries inside tiles, the first, a middle and the last group empty, one row alone. K ends in a
// stage with one step, and N in a unit.
TEST_CASE("grouped packed: rows have the bits of weights that are not packed and of singles",
          "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  const GroupedProblem problem = problem_of(tile, {45, 70, 1344}, {0, 19, 20, 20, 41, 41}, 960);
  require_bits_of_unpacked(gpu, tile, problem);
  require_bits_of_singles(gpu, {tile.variant, tile.a_type}, packed(problem));
}

TEST_CASE("grouped packed: every tail of K and several of N give those bits", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  constexpr int64_t kN[] = {9, 63, 64, 65, 128, 129, 191};
  const std::vector<PackedTile> all = tiles();
  size_t number = 0;
  while (all[number].gated != tile.gated || std::strcmp(all[number].variant, tile.variant) != 0)
    ++number;
  const int64_t step = gpu.small() && !everything() ? 6 : 1;  // each tile others
  for (int64_t i = int64_t(number); i < 16; i += step) {
    for (const int64_t k : {16 * (i + 1), 528 + 16 * i}) {
      const int64_t n = kN[size_t(i + int64_t(number)) % std::size(kN)];
      CAPTURE(n, k);
      require_bits_of_unpacked(gpu, tile,
                               problem_of(tile, {9, n, k}, {2, 3, 9}, 961 + uint64_t(i)));
    }
  }
}

TEST_CASE("grouped packed: as many rows of each group as a count says and its factors",
          "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  const int32_t capacity = gpu.sized(70, 18);
  GroupedProblem problem =
      problem_of(tile, {5 * capacity + 3, 66, 80}, {capacity, 0, 17, 1, 0}, 962);
  problem.capacity = capacity;
  problem.alphas = {0.5f, 1e30f, -1.25f, 3, 7};
  if (tile.gated) problem.alphas2 = {2, 0.25f, 0.5f, -3, 1};
  const std::vector<uint8_t> d = d_of(gpu, tile, problem);
  DeviceGrouped device(gpu, packed(problem));
  device.take(gpu, tile.variant);
  CHECK(run_grouped(device) == d);
  device.clear_d();
  device.set_rows({INT32_MAX, -1, 17, 1, INT32_MIN});
  CHECK(run_grouped(device) == d);
  CHECK(device.guards_intact());
}

TEST_CASE("grouped packed: all groups use one B where b_shared says so", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  GroupedProblem problem = problem_of(tile, {21, 70, 208}, {4, 4, 19, 21}, 963);
  problem.b_shared = true;
  require_bits_of_unpacked(gpu, tile, problem);
  require_bits_of_singles(gpu, {tile.variant, tile.a_type}, packed(problem));
}

TEST_CASE("grouped packed: UE8M0 scales of 16 and of 32 give those bits", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  if (tile.a_type != NVFP4_TYPE_BF16) return;
  for (const int32_t format : support::ue8m0_formats()) {
    CAPTURE(format);
    const GroupedSizes sizes{19, 72, 352, tile.a_type, format};
    require_bits_of_unpacked(gpu, tile, problem_of(tile, sizes, {3, 3, 12, 19}, 964));
  }
}

// A stride of more than a matrix, so that a group's units begin after others that no group has.
TEST_CASE("grouped packed: units lie between the groups", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  // Every other matrix of a problem with twice as many groups, the first of each pair without rows.
  const GroupedProblem all = problem_of(tile, {11, 70, 336}, {0, 4, 4, 5, 5, 11}, 965);
  DeviceGrouped device(gpu, packed(all));
  const int64_t unit_bytes = 2304, units = device.gemm.b_batch_stride / 4096;
  const auto behind = [&](const void* b) {
    return static_cast<const uint8_t*>(b) + units * unit_bytes;
  };
  const std::vector<int32_t> ends{4, 5, 11};
  const support::DeviceBuffer rows(gpu.driver, gemm_test::bytes_of(ends));
  device.gemm.l = 3, device.gemm.b_batch_stride *= 2;
  device.gemm.b = behind(device.gemm.b);
  if (tile.gated) device.gemm.b2 = behind(device.gemm.b2);
  device.grouped.rows = static_cast<const int32_t*>(rows.pointer());
  device.take(gpu, tile.variant);
  CHECK(run_grouped(device) == d_of(gpu, tile, all));
}

TEST_CASE("grouped packed: biases and tensor scales and C and maxima are those of the row",
          "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  const int32_t d_type = GENERATE(int32_t{NVFP4_TYPE_BF16}, int32_t{NVFP4_TYPE_F32});
  GroupedProblem problem = problem_of(tile, {45, 72, 80}, {0, 19, 20, 20, 41, 41}, 966);
  problem.fields.d_type = d_type;
  const GroupBiases biases(gpu, problem, NVFP4_TYPE_F32);
  const RowFactors factors(gpu, problem);
  const support::DeviceBuffer c(gpu.driver, std::vector<uint8_t>(45 * 72 * 4, 0x3C));
  support::DeviceBuffer maxima(gpu.driver, std::vector<uint8_t>(46 * 4));
  std::vector<uint8_t> seen[2];
  for (const bool pack : {false, true}) {
    maxima.upload(std::vector<uint8_t>(46 * 4));
    const auto ask = [&](nvfp4_grouped_desc& x, nvfp4_gemm_desc& g) {
      g.bias = biases.device.pointer(), g.bias_type = NVFP4_TYPE_F32;
      g.bias_axis = NVFP4_BIAS_AXIS_COLUMN, x.bias_group_stride = biases.stride;
      g.a_tensor_scale = factors.of_rows(0), g.a_tensor_scale_rows = 1;
      g.d_amax = static_cast<float*>(maxima.pointer()), g.d_row_amax = g.d_amax + 1;
      if (tile.gated) {
        g.bias2 = biases.device.pointer();
      } else if (d_type == NVFP4_TYPE_F32) {
        g.c = c.pointer(), g.c_type = NVFP4_TYPE_F32, g.c_ld = 72, g.beta = 0.75f;
      }
    };
    seen[pack] = d_of(gpu, tile, pack ? packed(problem) : problem, ask);
    const std::vector<uint8_t> of_d = maxima.download();
    seen[pack].insert(seen[pack].end(), of_d.begin(), of_d.end());
  }
  CHECK(seen[0] == seen[1]);
}

// As the experts of a model that few tokens reach: 300 groups, of which every seventh has a row.
TEST_CASE("grouped packed: hundreds of groups with hardly a row", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  std::vector<int32_t> ends;
  for (int32_t group = 0; group < 300; ++group) ends.push_back((group + 4) / 7);
  require_bits_of_unpacked(gpu, tile, problem_of(tile, {ends.back(), 37, 48}, ends, 971));
}

TEST_CASE("grouped packed: exact sums are the reference's", "[packed][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  GroupedProblem problem =
      packed(problem_of(tile, {20, 66, 80}, {4, 4, 19}, 967, support::Data::exact));
  problem.b_shared = GENERATE(false, true);
  DeviceGrouped device(gpu, problem);
  device.take(gpu, tile.variant);
  CHECK(run_grouped(device) == grouped_reference(problem, device));
}

// Where the device has a few SMs (test/jobs.txt) a CTA computes ten tiles, which begin at every
// stage of the rings, and each role may be late.
TEST_CASE("grouped packed: a CTA computes tile after tile whoever is late",
          "[packed][grouped][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const PackedTile tile = EACH_PACKED_TILE;
  const GroupedProblem problem = problem_of(tile, {67, 200, 592}, {9, 10, 10, 51, 60, 67}, 968);
  const uint32_t consumers = tile_tokens(tile.variant) <= 64 ? 16 : 8;
  require_bits_whoever_is_late(
      gpu, tile, problem, 4,
      {"0-3", "4-" + std::to_string(consumers - 1), std::to_string(consumers),
       std::to_string(consumers + 1), std::to_string(consumers + 2)});
}

TEST_CASE("grouped packed: the planner takes packed weights for any number of rows",
          "[packed][grouped][planner]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int32_t types[] = {NVFP4_TYPE_F16, NVFP4_TYPE_BF16};
  for (const bool gated : {false, true}) {
    for (const int32_t hint : {1, 9, 20, 100}) {
      const int32_t a_type = types[hint % 2];
      const int64_t k = hint == 1 ? 800 : 336;  // from 768 on few rows have tiles of their own
      CAPTURE(gated, hint);
      GroupedProblem problem =
          packed(problem_of({nullptr, a_type, gated}, {24, 72, k}, {7, 8, 24}, 969, Data::exact));
      problem.rows_hint = hint;
      DeviceGrouped device(gpu, problem);
      CHECK(run_grouped(device) == grouped_reference(problem, device));
    }
  }
}

TEST_CASE("every entry for packed groups and gates at the sizes of compute-sanitizer",
          "[sanitize]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && !everything())
    SKIP_TEST("for compute-sanitizer; every emulated run is checked by the emulator");
  std::vector<PackedTile> all = tiles();
  for (const GroupedTile& tile : packed_mma_tiles())
    all.push_back({tile.variant, tile.a_type, false});
  int singles = 0;
  for (const PackedTile& tile : all) {
    const GroupedProblem problem =
        packed(problem_of(tile, {12, 72, 336}, {5, 5, 12}, 970, support::Data::exact));
    CAPTURE(tile.variant, tile.gated);
    DeviceGrouped device(gpu, problem);
    device.take(gpu, tile.variant);
    CHECK(run_grouped(device) == grouped_reference(problem, device));
    CHECK(device.guards_intact());
    if (!tile.gated) continue;
    for (const char* name : {tile.variant, "sm90_bf16_128x64x256"}) {
      if (tile.a_type == NVFP4_TYPE_F16 && name != tile.variant) continue;
      Problem one = problem.single(2);
      one.batch_invariant = false, one.variant = name;
      CHECK(difference_on_device(gpu.driver, one) == "");
      ++singles;
    }
  }
  CHECK(singles == 3);
}
