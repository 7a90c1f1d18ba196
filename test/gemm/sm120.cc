// SPDX-License-Identifier: MIT
// NVFP4 tokens on 12.x: what its kernel alone does. All that every family does, the other tests run
// there too: fragments and scales element by element (probes.cc), tails, layouts, epilogues.
#include <set>

#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "test/gemm/partitions.h"
#include "test/gemm/sizes.h"

namespace {

std::string cut(const char* variant, int64_t parts) {
  return std::string(variant) + "/" + std::to_string(parts);
}

}  // namespace

// Tails of M, N and K, two batches, gaps; ten parts of 256, of which the last ends in a cut step.
TEST_CASE("sm120: each tile and number of K partitions gives the reference's bits", "[sm120]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const char* variant = EACH_VARIANT;
  const int64_t parts = GENERATE(1, 2, 3, 4, 8);
  const int64_t m = gemm_test::tile_tokens(variant) + 3, n = gemm_test::tile_weights(variant) + 6;
  const support::Gaps gaps{32, 64, 3, 32, 64, 5, 16};
  Problem p = make_problem({m, n, 2320, 2}, Data::exact, 120, gaps);
  if (parts % 2 == 0) p.a.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  if (parts > 2) p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  p.pdl = int32_t(parts) % 3;
  const std::string name = cut(variant, parts);
  const Problem forced_parts = forced(name.c_str(), p);
  CHECK(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, forced_parts).desc) == parts);
  gemm_test::require_reference_bits(gpu, forced_parts);
}

// A partition has a multiple of 256 of K, and k-blocks of 128 may be more than that.
TEST_CASE("sm120: K partitions that are empty add nothing", "[sm120]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const int64_t k = GENERATE(512, 400);
  gemm_test::require_reference_bits(
      gpu, forced("sm120_128x128x128/4", make_problem({9, 70, k}, Data::exact, 121)));
}

TEST_CASE("sm120: each ring wraps twice in each K partition", "[sm120]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const char* variant = EACH_VARIANT;
  const int64_t parts = GENERATE(1, 2);
  const std::string name = cut(variant, parts);
  const int64_t k = gemm_test::k_twice_round(variant);
  for (const int32_t layout : {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR}) {
    Problem p = make_problem({7, 60, k}, Data::exact, 122);
    p.a.layout = p.b.layout = layout;
    gemm_test::require_reference_bits(gpu, forced(name.c_str(), p));
  }
}

TEST_CASE("sm120: K partitions are added in their order in fp32", "[sm120]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const char* variant = EACH_VARIANT;
  const int64_t parts = 4, all = 10;  // of 256: 3, 3, 2 and 2
  const Shape shape{11, 40, 2320};
  const std::string name = cut(variant, parts);
  const Problem p = make_problem(shape, Data::random, 123);
  CAPTURE(name);
  std::vector<uint8_t> sum;
  for (int64_t rank = 0, first = 0; rank < parts; ++rank) {
    const int64_t last = first + all / parts + (rank < all % parts);
    Problem part = forced(variant, make_problem({shape.m, shape.n, 64}));
    part.a = gemm_test::k_blocks(p.a, first, last), part.b = gemm_test::k_blocks(p.b, first, last);
    part.k = part.a.k, part.alpha = p.alpha, part.batch_invariant = true;
    sum = gemm_test::sums(gpu, part, sum);
    first = last;
  }
  CHECK(gemm_test::sums(gpu, forced(name.c_str(), p)) == sum);
  Problem whole = forced(variant, p);
  whole.batch_invariant = true;  // one sum from the first step to the last: other bits
  CHECK(gemm_test::sums(gpu, whole) != sum);
}

TEST_CASE("sm120: before the wait nothing is loaded but static weights and their scales",
          "[sm120][pdl][count]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  USE_EMULATOR(gpu, emulator);
  const char* variant = EACH_VARIANT;
  const gemm_test::TileOf& tile = gemm_test::tile_of(variant);
  const int64_t stages = gemm_test::ring_stages(variant), blocks = GENERATE(1, 3, 7);
  const Shape shape{tile.tokens + 1, tile.weights + 1, tile.k * blocks};  // four tiles
  Problem p = forced(variant, make_problem(shape, Data::exact, 128));
  p.batch_invariant = true;  // K is whole
  // A scale tile has 512 bytes for a step of 64 of K, also where a tile has half of its rows.
  const int64_t block_bytes = tile.weights * tile.k / 2 + tile.k / 64 * 512;
  const uint64_t early = uint64_t(4 * std::min(blocks, stages) * block_bytes);
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(variant, blocks, pdl);
    p.pdl = pdl;
    support::run_on_device(gpu.driver, p);
    CHECK(emulator.counter("early_bytes") == (pdl == NVFP4_PDL_ON_STATIC_WEIGHTS ? early : 0));
  }
}

// Three runs on one stream share the workspace; the emulator compares what they read and write. Two
// partitions of the last row are empty: they wait for no token.
TEST_CASE("sm120: runs that split K begin before the one ahead has ended", "[sm120][pdl]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const auto [name, k] = GENERATE(table<const char*, int64_t>(
      {{"sm120_64x8x256/2", 528}, {"sm120_64x32x256/3", 784}, {"sm120_128x128x128/4", 400}}));
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(name, pdl);
    Problem p = forced(name, make_problem({9, 70, k}, Data::exact, 124));
    p.pdl = pdl;
    const support::DeviceGemm gemm(gpu.driver, p);
    REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
    for (int run = 0; run < 3; ++run) REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    require_bits(p, gemm.d());
  }
}

TEST_CASE("sm120: the bits do not depend on which copy or CTA ends first", "[sm120][order]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  USE_EMULATOR(gpu, emulator);
  const char* variant = EACH_VARIANT;
  const std::string name = cut(variant, 3);
  const Problem p = forced(name.c_str(), make_problem({17, 72, 1360}, Data::random, 125));
  std::set<std::vector<uint16_t>> results;
  for (const char* order : {"soonest", "latest", "random"}) {
    for (const char* seed : {"1", "2"}) {
      REQUIRE(emulator.set("EMU_ORDER", order) == 0);
      REQUIRE(emulator.set("EMU_SEED", seed) == 0);
      results.insert(support::run_on_device(gpu.driver, p));
    }
  }
  emulator.set("EMU_ORDER", "random");
  emulator.set("EMU_SEED", "1");
  CHECK(results.size() == 1);
}

// The planner covers all weights of 16 token tiles before the next ones.
TEST_CASE("sm120: more token tiles than a group has", "[sm120]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const int64_t m = GENERATE(127, 130, 257);
  gemm_test::require_reference_bits(
      gpu, forced("sm120_64x8x256", make_problem({m, 130, 80, 2}, Data::exact, 126)));
}

// Built for sm_120 alone, public libraries answered with zeros here, or with a trap on 12.1.
TEST_CASE("sm120: the image is that of the family and the product is not zero", "[sm120]") {
  USE_GPU_OF_FAMILY(gpu, 12);
  const Problem p = make_problem({5, 64, 256}, Data::exact, 127);
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  CHECK(std::count(d.begin(), d.end(), 0) < int64_t(d.size() / 2));
  require_bits(p, d);
}
