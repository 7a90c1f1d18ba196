// SPDX-License-Identifier: MIT
// Products with packed weights on 9.0, 16-bit tokens. By wgmma D has the bits that it has without
// packing. mma.sync adds them in another order, so there exact sums are compared.
#include <cstring>

#include "test/gemm/a16_pairs.h"
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/formats.h"

using support::make_a16_problem;

namespace {

using Tile = gemm_test::HalfVariant;

Problem packed(Problem p) {
  p.b_packing = NVFP4_PACKING_SM90_1;
  return p;
}

std::vector<Tile> tiles_of(bool wgmma) {
  std::vector<Tile> tiles;
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16})
    for (const gemm_test::TileOf* tile : gemm_test::tiles_of_type(type, true))
      if ((tile->family == "sm90") == wgmma) tiles.push_back({tile->name.c_str(), type});
  return tiles;
}

std::vector<Tile> all_tiles() {
  std::vector<Tile> tiles = tiles_of(true);
  for (const Tile& tile : tiles_of(false)) tiles.push_back(tile);
  return tiles;
}

size_t number_of(const Tile& tile) {
  const std::vector<Tile> all = all_tiles();
  size_t i = 0;
  while (std::strcmp(all[i].name, tile.name) != 0) ++i;
  return i;
}

}  // namespace

#define EACH_WGMMA_TILE GENERATE(from_range(gemm_test::taken(tiles_of(true))))
#define EACH_TILE GENERATE(from_range(gemm_test::taken(all_tiles())))

// Sums that round, so that another order of K, or another K partition, has other bits.
TEST_CASE("packed: each tile and split has the bits of weights that are not packed", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_WGMMA_TILE;
  const std::string split = GENERATE("/1", "/2", "/4");
  const std::string variant = tile.name + split;
  CAPTURE(variant);
  const int64_t k = 1024 + 16 * int64_t(1 + number_of(tile));
  const Problem p =
      forced(variant.c_str(), make_a16_problem({19, 70, k}, tile.type, Data::random, 950));
  CHECK(support::run_on_device(gpu.driver, packed(p)) == support::run_on_device(gpu.driver, p));
}

TEST_CASE("packed: every tail of K and several of N give the reference's bits", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  constexpr int64_t kN[] = {9, 63, 64, 65, 128, 129, 191};
  const size_t number = number_of(tile);
  const int64_t step = gpu.small() && !gemm_test::everything() ? 5 : 1;  // each tile others
  for (int64_t i = int64_t(number) % step; i < 16; i += step) {
    const int64_t n = kN[(size_t(i) / size_t(step) + number) % std::size(kN)];
    for (const int64_t k : {16 * (i + 1), 1040 + 16 * i}) {
      CAPTURE(tile.name, n, k);
      gemm_test::require_reference_bits(
          gpu, packed(forced(tile.name, make_a16_problem({5, n, k}, tile.type, Data::exact, 951))));
    }
  }
}

TEST_CASE("packed: batches with gaps and the general epilogue have the right bits", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  const support::Gaps gaps{8, 32, 3, 40, 64, 5, 16};
  Problem p = make_a16_problem({9, 200, 336, 3}, tile.type, Data::exact, 952, gaps);
  p = packed(forced(tile.name, std::move(p)));
  support::Fields f;
  f.d_type = NVFP4_TYPE_F32, f.c_type = NVFP4_TYPE_F16, f.beta = 0.5f;
  f.bias_type = NVFP4_TYPE_BF16, f.activation = NVFP4_ACTIVATION_RELU;
  f.b_packing = NVFP4_PACKING_SM90_1;
  CHECK(difference_on_device(gpu.driver, support::with_fields(p, f, 1)) == "");
  f.c_type = NVFP4_TYPE_NONE, f.beta = 0, f.activation = NVFP4_ACTIVATION_NONE;
  CHECK(difference_on_device(gpu.driver, support::with_fields(p, f, 2)) == "");  // fast, in fp32
  gemm_test::require_reference_bits(gpu, p);
}

TEST_CASE("packed: UE8M0 scales of 16 and of 32 give the reference's bits", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_WGMMA_TILE;
  if (tile.type != NVFP4_TYPE_BF16) return;
  for (const int32_t format : support::ue8m0_formats()) {
    // MXFP4 wants multiples of 32. Scales above 1 take another way.
    for (const int64_t k : {32, 288, 1056}) {
      CAPTURE(tile.name, format, k);
      Problem p = with_format(make_problem({5, 70, k}, Data::exact, 953), format, Data::exact, 953);
      p = packed(forced(tile.name, with_a16(std::move(p), tile.type, Data::exact, 953)));
      gemm_test::require_reference_bits(gpu, p);
      std::fill(p.b.codes.begin(), p.b.codes.end(), uint8_t(0));
      p.b.set_scale(0, 33, 0, 0), p.b.set_code(0, 33, 0, 5);    // 2^-127
      p.b.set_scale(0, 5, 0, 200), p.b.set_code(0, 5, 1, 0xD);  // 2^73
      p.b.set_scale(0, 6, 0, 0xFF);                             // a NaN
      support::Fields f;
      f.d_type = NVFP4_TYPE_F32, f.b_packing = NVFP4_PACKING_SM90_1;
      CHECK(difference_on_device(gpu.driver, support::with_fields(p, f, 1)) == "");
      CHECK(support::run_on_device(gpu.driver, p) == support::reference(p));
    }
  }
}

TEST_CASE("packed: all 16 x 127 pairs of element and scale are decoded exactly", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  const Problem p = packed(forced(tile.name, gemm_test::a16_pairs(tile.type)));
  CHECK(support::run_on_device(gpu.driver, p) == support::reference(p));
}

TEST_CASE("packed: a NaN scale makes its own row NaN", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  Problem p = forced(tile.name, make_a16_problem({6, 150, 336}, tile.type, Data::exact, 954));
  for (const auto& [row, block] : {std::pair{11, 20}, {64, 0}, {72, 7}, {149, 13}})
    p.b.set_scale(0, row, block, 0x7F);
  CHECK(support::run_on_device(gpu.driver, packed(p)) == support::reference(p));
}

TEST_CASE("packed: mma.sync is inside the bound off the exact grid", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = GENERATE(from_range(gemm_test::taken(tiles_of(false))));
  for (const char* split : {"/1", "/3"}) {
    const std::string variant = tile.name + std::string(split);
    const Problem p = packed(
        forced(variant.c_str(), make_a16_problem({9, 40, 1344}, tile.type, Data::random, 955)));
    CHECK(gemm_test::inside_bound(gpu, p, support::run_on_device(gpu.driver, p)));
  }
}

TEST_CASE("packed: the planner takes packed weights for any number of tokens",
          "[packed][planner]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  constexpr int64_t kM[] = {1, 9, 16, 17, 64, 100};
  for (size_t i = 0; i < std::size(kM); ++i) {
    const int32_t type = i % 2 == 0 ? NVFP4_TYPE_F16 : NVFP4_TYPE_BF16;
    CAPTURE(kM[i]);
    gemm_test::require_reference_bits(
        gpu, packed(make_a16_problem({kM[i], 200, 592}, type, Data::exact, 956)));
  }
}

// A CTA of the tiles with whole sums computes one after the other, and each role may be late.
TEST_CASE("packed: several tiles of a CTA give the reference's bits whoever is late",
          "[packed][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && gpu.info.sms > 4) SKIP_TEST("it takes few SMs in the emulator: EMU_SMS=3");
  const Tile tile = GENERATE(from_range(gemm_test::taken(std::vector<Tile>{
      {"sm90_f16_128x128x256/1", NVFP4_TYPE_F16}, {"sm90_bf16_128x192x256/1", NVFP4_TYPE_BF16}})));
  const int64_t n = gpu.info.sms * 128 * 3 - 60;
  const Problem p =
      packed(forced(tile.name, make_a16_problem({20, n, 592}, tile.type, Data::exact, 957)));
  gemm_test::require_reference_bits(gpu, p);
  if (!gpu.info.emulated()) return;
  const gemm_test::Emulator emulator(gpu.driver);
  for (const char* warps : {"0-7", "8", "9"}) {
    CAPTURE(warps);
    const gemm_test::Setting late(emulator, "EMU_LATE", warps, "");
    gemm_test::require_reference_bits(gpu, p);
  }
}

// Groups of consumer warps share the ring, whose stages are not a multiple of their number.
TEST_CASE("packed: rings wrap whoever is late", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_WGMMA_TILE;
  if (gemm_test::tile_weights(tile.name) != 64) return;
  const std::string variant = std::string(tile.name) + "/1";
  const Shape shape{7, 40, gemm_test::k_twice_round(tile.name)};
  const Problem p =
      packed(forced(variant.c_str(), make_a16_problem(shape, tile.type, Data::gpumode, 958)));
  gemm_test::require_reference_bits(gpu, p);
  if (!gpu.info.emulated() || number_of(tile) % 2 == 0) return;
  const gemm_test::Emulator emulator(gpu.driver);
  const uint32_t consumers = gemm_test::tile_tokens(tile.name) <= 64 ? 16 : 8;
  for (const std::string& warps :
       {std::string("0-3"), std::to_string(consumers), std::to_string(consumers + 1)}) {
    CAPTURE(tile.name, warps);
    const gemm_test::Setting late(emulator, "EMU_LATE", warps, "");
    gemm_test::require_reference_bits(gpu, p);
  }
}

// The weights of all k-blocks that are requested at first.
TEST_CASE("packed: static weights are loaded before earlier grids end", "[packed]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  const Tile tile = EACH_WGMMA_TILE;
  Problem p =
      packed(forced(tile.name, make_a16_problem({20, 128, 512}, tile.type, Data::exact, 959)));
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(tile.name, pdl);
    p.pdl = pdl;
    support::run_on_device(gpu.driver, p);
    const bool early = pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
    const int64_t tokens = gemm_test::tile_tokens(tile.name);
    const int64_t weights = (20 + tokens - 1) / tokens * 128 * (512 / 2 + 512 / 16);
    CHECK(emulator.counter("early_bytes") == (early ? uint64_t(weights) : 0));
  }
}
