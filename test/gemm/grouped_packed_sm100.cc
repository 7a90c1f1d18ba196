// SPDX-License-Identifier: MIT
// Gated and grouped products with packed weights on 10.x: D has the bits that it has without
// packing.
#include "test/gemm/gated.h"
#include "test/gemm/grouped_packed.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using namespace gemm_test;

namespace {

// Variants with an entry for groups.
std::vector<PackedTile> tiles() {
  constexpr int32_t kQuantized = NVFP4_TYPE_NONE;
  return {{"sm100_128x64x256", kQuantized, false},
          {"sm100_128x128x256", kQuantized, false},
          {"sm100_128x128x256", kQuantized, true},
          {"sm100_256x128x256", kQuantized, false},
          {"sm100_256x256x256", kQuantized, false}};
}

GroupedProblem problem_of(const PackedTile& tile, const GroupedSizes& sizes,
                          std::vector<int32_t> ends, uint64_t seed,
                          support::Data data = support::Data::random) {
  GroupedProblem problem(sizes, std::move(ends), seed, data);
  if (tile.gated) problem.fields = swiglu(NVFP4_TYPE_F16), problem.fields.bias_type = 0;
  return problem;
}

}  // namespace

#define EACH_PACKED_TILE GENERATE(from_range(taken(tiles())))

// Boundaries inside tiles, the first, a middle and the last group empty, one row alone. K ends in a
// step of a unit, N in a block of 128 rows, of a pair the second one.
TEST_CASE("grouped packed on 10.x: rows have the bits of weights that are not packed and singles",
          "[packed_sm100][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const PackedTile tile = EACH_PACKED_TILE;
  const GroupedProblem problem =
      problem_of(tile, {141, 300, 1344 + 16}, {0, 69, 70, 70, 135, 135, 141, 141}, 970);
  require_bits_of_unpacked(gpu, tile, problem);
  require_bits_of_singles(gpu, {tile.variant, tile.a_type}, packed(problem));
}

TEST_CASE("grouped packed on 10.x: every tail of K gives those bits", "[packed_sm100][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const PackedTile tile = EACH_PACKED_TILE;
  const int64_t step = gpu.small() && !everything() ? 5 : 1;
  for (int64_t i = 1; i <= 16; i += step) {
    for (const int64_t k : {16 * i, 256 + 16 * (17 - i)}) {
      CAPTURE(k);
      require_bits_of_unpacked(gpu, tile, problem_of(tile, {9, 130, k}, {2, 3, 9}, 971));
    }
  }
}

TEST_CASE("grouped packed on 10.x: UE8M0 scales of 16 and of 32 give the reference's bits",
          "[packed_sm100][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const PackedTile tile = EACH_PACKED_TILE;
  for (const int32_t format : support::ue8m0_formats()) {
    CAPTURE(tile.variant, tile.gated, format);
    const GroupedSizes sizes{19, 136, 352, NVFP4_TYPE_NONE, format};
    GroupedProblem problem =
        packed(problem_of(tile, sizes, {3, 3, 12, 19}, 972, support::Data::exact));
    problem.b_shared = format == NVFP4_OPERAND_FORMAT_MXFP4;
    DeviceGrouped device(gpu, problem);
    device.take(gpu, tile.variant);
    CHECK(run_grouped(device) == grouped_reference(problem, device));
  }
}

TEST_CASE("grouped packed on 10.x: counts and one B for all groups give those bits",
          "[packed_sm100][grouped]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const PackedTile tile = EACH_PACKED_TILE;
  GroupedProblem problem = problem_of(tile, {5 * 18 + 3, 140, 80}, {18, 0, 17, 1, 0}, 973);
  problem.capacity = 18;
  problem.alphas = {0.5f, 1e30f, -1.25f, 3, 7};
  require_bits_of_unpacked(gpu, tile, problem);
  problem.b_shared = true;
  require_bits_of_unpacked(gpu, tile, problem);
}

// Where the device has a few SMs (test/jobs.txt) a CTA computes several tiles, and each role may be
// late.
TEST_CASE("grouped packed on 10.x: a CTA computes tile after tile whoever is late",
          "[packed_sm100][grouped][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const PackedTile tile = EACH_PACKED_TILE;
  const GroupedProblem problem =
      problem_of(tile, {67, 400, 336}, {9, 10, 10, 51, 60, 67}, 974, support::Data::exact);
  require_bits_whoever_is_late(gpu, tile, problem, 5, {"0", "1", "2-9"});
}

TEST_CASE("gated packed on 10.x: every tail of K and several of N give the reference's bits",
          "[packed_sm100][gated]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  constexpr int64_t kN[] = {9, 127, 128, 129, 200, 257};
  const char* const tile = GENERATE("sm100_128x64x256", "sm100_128x128x256");
  const int64_t step = gpu.small() && !everything() ? 3 : 1;
  for (int64_t i = tile_tokens(tile) / 64; i <= 16; i += step) {
    for (const int64_t k : {16 * i, 1024 + 16 * i}) {
      const int64_t n = kN[size_t(i) % std::size(kN)];
      CAPTURE(tile, n, k);
      Problem p = with_fields(make_problem({20, n, k, 1 + i % 2}, Data::exact, 975),
                              swiglu(NVFP4_TYPE_BF16), 975);
      p.b_packing = NVFP4_PACKING_SM100_1;
      CHECK(difference_on_device(gpu.driver, forced(tile, p)) == "");
    }
  }
}
