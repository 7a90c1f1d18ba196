// SPDX-License-Identifier: MIT
// What a launch of the task's shapes does, counted by the emulator and worked out here by hand. A
// kernel that loads, multiplies or stores anything twice shows here, although D is right.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

namespace {

// The planner gives all three a tile of 128 weights x 64 tokens, 8 stages of 256 along K.
struct Expected {
  support::Shape shape;
  uint64_t tiles, k_blocks;  // of the ring, per tile
  uint64_t macs, weight_bytes, d_bytes;
};
const Expected kRows[] = {
    {{128, 7168, 2048}, 2 * 56, 8, 1879048192, 7168 * 2048 / 2, 128 * 7168 * 2},
    {{128, 4096, 7168}, 2 * 32, 28, 3758096384, 4096 * 7168 / 2, 128 * 4096 * 2},
    {{128, 7168, 16384}, 2 * 56, 64, 15032385536, 7168ull * 16384 / 2, 128 * 7168 * 2},
};

}  // namespace

TEST_CASE("a launch of the task's shapes moves each byte and multiplies each product once",
          "[count]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const int row = GENERATE(0, 1, 2);
  if (row == 2 && !gemm_test::everything()) return;  // takes longer than the others
  Expected e = kRows[row];
  // The second shape, whose ring is filled again, has an eighth of its weights here.
  if (row == 1 && !gemm_test::everything()) {
    for (uint64_t* part : {&e.tiles, &e.macs, &e.weight_bytes, &e.d_bytes}) *part /= 8;
    e.shape.n /= 8;
  }
  CAPTURE(support::to_string(e.shape));
  // The narrowest tiles, K whole: what a cluster moves beyond this stands in split_sm100.cc.
  support::Problem problem = make_problem(e.shape, Data::gpumode, 80);
  problem.variant = "sm100_128x64x256", problem.batch_invariant = true;
  support::run_on_device(gpu.driver, problem);
  const auto count = [&](const char* name) { return emulator.counter(name); };
  const uint64_t steps = e.tiles * e.k_blocks * 4;  // of 64 along K

  CHECK(count("macs") == e.macs);
  CHECK(count("mmas") == steps);
  CHECK(count("scale_copies") == 2 * steps);  // weights, tokens
  CHECK(count("tma_loads") == 2 * e.tiles * e.k_blocks);
  // Both token tiles of 64 read every weight; each of the weight tiles reads all 128 tokens.
  CHECK(count("tma_bytes") == 2 * e.weight_bytes + e.tiles * 64 * uint64_t(e.shape.k) / 2);
  CHECK(count("bulk_copies") == 2 * e.tiles * e.k_blocks);
  CHECK(count("bulk_bytes") == 2 * steps * 512);
  // Every refilled stage is committed for, and the accumulator once.
  CHECK(count("commits") == e.tiles * (e.k_blocks - 8 + 1));
  CHECK(count("tensor_load_bytes") == e.tiles * 128 * 64 * 4);
  CHECK(count("global_store_bytes") == e.d_bytes);
  CHECK(count("cta_barriers") == e.tiles * 10 * 2);  // ten warps, before and after the main loop
  CHECK(count("dependency_waits") == e.tiles);
  // One wait for each k-block, one before each refilling, one by each of the eight epilogue warps.
  CHECK(count("barrier_tries") >= e.tiles * (2 * e.k_blocks - 8 + 8));
  for (const char* none :
       {"global_load_bytes", "cluster_bytes", "atomics", "tma_stores", "tma_store_bytes",
        "copy_bytes", "tensor_store_bytes", "cluster_barriers", "early_bytes"}) {
    CAPTURE(none);
    CHECK(count(none) == 0);
  }
}

// A box of 16 rows and N = 16 of a CTA alone; in a pair 8 rows of each.
TEST_CASE("of few tokens few rows beyond them are loaded and multiplied", "[count]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  struct Row {
    const char* variant;
    int64_t m;
    uint64_t multiplied;
    uint64_t scale_blocks;  // by tensor maps, of 128 rows
  };
  const Row rows[] = {{"sm100_128x64x256", 1, 16, 0},   {"sm100_128x64x256", 33, 48, 0},
                      {"sm100_128x64x256", 64, 64, 0},  {"sm100_128x128x256", 65, 80, 0},
                      {"sm100_256x128x256", 5, 16, 4},  {"sm100_256x128x256", 113, 128, 4},
                      {"sm100_256x256x256", 17, 32, 6}, {"sm100_256x256x256", 241, 256, 6}};
  for (const Row& row : rows) {
    CAPTURE(row.variant, row.m);
    constexpr uint64_t k = 512, n = 256;
    support::Problem problem = make_problem({row.m, n, k}, Data::exact, 81);
    problem.variant = row.variant, problem.batch_invariant = true;
    support::run_on_device(gpu.driver, problem);
    const uint64_t weight_tiles = row.scale_blocks == 0 ? 2 : 1;
    CHECK(emulator.counter("macs") == n * row.multiplied * k);
    CHECK(emulator.counter("tma_bytes") ==
          (n + weight_tiles * row.multiplied) * k / 2 + row.scale_blocks * k / 64 * 512);
  }
}
