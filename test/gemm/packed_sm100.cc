// SPDX-License-Identifier: MIT
// Products with packed weights on 10.x: D has the bits that it has without packing.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/formats.h"

namespace {

Problem packed(Problem p) {
  p.b_packing = NVFP4_PACKING_SM100_1;
  return p;
}

// The emulator notes each exception that EMU_EXCEPT makes for the tile.
bool is_slow(const Gpu& gpu, const char* tile) {
  return gpu.small() && !gemm_test::everything() && gemm_test::tile_of(tile).tokens == 256;
}

void require_bits_of_unpacked(const Gpu& gpu, const Problem& p) {
  REQUIRE(support::run_on_device(gpu.driver, packed(p)) == support::run_on_device(gpu.driver, p));
}

}  // namespace

// Sums that round, so that another order of K, or another K partition, has other bits.
TEST_CASE("packed on 10.x: each tile and split has the bits of weights that are not packed",
          "[packed_sm100]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* const tile = EACH_VARIANT;
  for (const char* split : {"", "/2", "/4"}) {
    if (*split != 0 && gemm_test::tile_of(tile).ctas == 2) continue;
    const std::string variant = std::string(tile) + split;
    for (const int64_t k : {1024 + 16, 2560 + 240}) {
      if (k > 2048 && is_slow(gpu, tile)) continue;
      CAPTURE(variant, k);
      require_bits_of_unpacked(
          gpu, forced(variant.c_str(), make_problem({150, 300, k}, Data::random, 960)));
    }
  }
}

TEST_CASE("packed on 10.x: every tail of K and several of N give the reference's bits",
          "[packed_sm100]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* const tile = EACH_VARIANT;
  constexpr int64_t kN[] = {9, 127, 128, 129, 256, 257, 391};
  const int64_t step = gpu.small() && !gemm_test::everything() ? 4 : 1;  // each tile others
  for (int64_t i = int64_t(gemm_test::variant_number(tile)) % step; i < 16; i += step) {
    for (const int64_t k : {16 * (i + 1), 272 + 16 * i}) {
      const int64_t n = kN[size_t(i + k / 256) % std::size(kN)];
      CAPTURE(tile, n, k);
      gemm_test::require_reference_bits(
          gpu, packed(forced(tile, make_problem({20, n, k}, Data::exact, 961))));
    }
  }
}

TEST_CASE("packed on 10.x: UE8M0 scales of 16 and of 32 give the reference's bits",
          "[packed_sm100]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* const tile = EACH_VARIANT;
  for (const int32_t format : support::ue8m0_formats()) {
    for (int64_t k = 32; k <= 288; k += 32) {
      CAPTURE(tile, format, k);
      gemm_test::require_reference_bits(
          gpu, packed(forced(tile, with_format(make_problem({5, 150, k}, Data::exact, 962), format,
                                               Data::exact, 962))));
    }
  }
}

TEST_CASE("packed on 10.x: batches and rings that wrap give the reference's bits whoever is late",
          "[packed_sm100]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* const tile = EACH_VARIANT;
  const int64_t k = is_slow(gpu, tile) ? 1552 : gemm_test::k_twice_round(tile);
  const Problem p = packed(forced(tile, make_problem({70, 300, k, 2}, Data::gpumode, 963)));
  gemm_test::require_reference_bits(gpu, p);
  if (!gpu.info.emulated() || is_slow(gpu, tile)) return;
  const gemm_test::Emulator emulator(gpu.driver);
  for (const char* warps : {"0", "1", "2-9"}) {
    CAPTURE(tile, warps);
    const gemm_test::Setting late(emulator, "EMU_LATE", warps, "");
    gemm_test::require_reference_bits(gpu, p);
  }
}

// A NaN scale beyond N or K does not exist in packed weights, and one inside makes its column NaN.
TEST_CASE("packed on 10.x: a NaN scale makes its own column NaN", "[packed_sm100]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* const tile = EACH_VARIANT;
  Problem p = forced(tile, make_problem({6, 200, 336}, Data::exact, 964));
  for (const auto& [row, block] : {std::pair{11, 20}, {64, 0}, {130, 17}, {199, 13}})
    p.b.set_scale(0, row, block, 0x7F);
  CHECK(support::run_on_device(gpu.driver, packed(p)) == support::reference(p));
}

// All stages that the ring holds, in a tile of one CTA or two.
TEST_CASE("packed on 10.x: static weights are loaded before earlier grids end", "[packed_sm100]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* const tile = EACH_VARIANT;
  const int64_t stages = gemm_test::ring_stages(tile), rows = gemm_test::tile_of(tile).ctas * 128;
  const std::string variant = tile + std::string("/1");
  Problem p = packed(forced(variant.c_str(), make_problem({20, rows, 256 * 9}, Data::exact, 965)));
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(tile, pdl);
    p.pdl = pdl;
    support::run_on_device(gpu.driver, p);
    const bool early = pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
    const int64_t bytes = stages * rows * (256 / 2 + 256 / 16);
    CHECK(emulator.counter("early_bytes") == (early ? uint64_t(bytes) : 0));
  }
}
