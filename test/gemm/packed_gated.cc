// SPDX-License-Identifier: MIT
// Gated products of packed weights on 9.0: the bits of weights that are not packed.
#include "test/gemm/emulator.h"
#include "test/gemm/gated.h"
#include "test/gemm/gpu.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using gemm_test::swiglu;
using support::Fields;

namespace {

using Tile = gemm_test::HalfVariant;

std::vector<Tile> tiles() {
  return {{"sm90_bf16_128x64x256", NVFP4_TYPE_BF16},
          {"sm90_f16_128x128x256", NVFP4_TYPE_F16},
          {"sm90_bf16_128x128x256", NVFP4_TYPE_BF16}};
}

Problem gated(const Tile& tile, const Shape& shape, Data data, uint64_t seed,
              const Fields& f = swiglu(NVFP4_TYPE_F32)) {
  return forced(
      tile.name,
      support::with_fields(support::make_a16_problem(shape, tile.type, data, seed), f, seed + 1));
}

Problem packed(Problem p) {
  p.b_packing = NVFP4_PACKING_SM90_1;
  return p;
}

void require_bits_of_unpacked(const Gpu& gpu, const Problem& p) {
  CHECK(support::bytes_on_device(gpu.driver, packed(p)) == support::bytes_on_device(gpu.driver, p));
}

}  // namespace

#define EACH_TILE GENERATE(from_range(gemm_test::taken(tiles())))

// Sums that round, so that another order of K, or another K partition, has other bits.
TEST_CASE("packed gated: each tile and split has the bits of weights that are not packed",
          "[packed][gated]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  const std::string split = GENERATE("/1", "/2", "/4"), variant = tile.name + split;
  CAPTURE(variant);
  Problem p = gated(tile, {19, 70, 1072}, Data::random, 970);
  p.variant = variant.c_str();
  require_bits_of_unpacked(gpu, p);
}

TEST_CASE("packed gated: every tail of K and several of N give the reference's bits",
          "[packed][gated]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  constexpr int64_t kN[] = {9, 63, 64, 65, 128, 129, 191};
  const int64_t step = gpu.small() && !gemm_test::everything() ? 3 : 1;  // each tile others
  const int64_t number = tile.type == NVFP4_TYPE_F16 ? 0 : gemm_test::tile_tokens(tile.name) / 64;
  for (int64_t i = number % step; i < 16; i += step) {
    for (const int64_t k : {16 * (i + 1), 528 + 16 * i}) {
      const int64_t n = kN[size_t(i) % std::size(kN)];
      CAPTURE(tile.name, n, k);
      const Problem p = packed(gated(tile, {5, n, k}, Data::exact, 971 + uint64_t(i)));
      CHECK(difference_on_device(gpu.driver, p) == "");
    }
  }
}

// All 16 x 127 pairs of element and scale, in b and in another order in b2. Two warps join the rows
// g and g + 8 of both.
TEST_CASE("packed gated: each element and scale of b and of b2 comes to its own sum",
          "[packed][gated]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  Fields f;
  f.b2 = support::kGiven, f.d_type = NVFP4_TYPE_F32, f.alpha = 1.0f / 4096, f.alpha2 = 1.0f / 8192;
  Problem p = gated(tile, {6, 64, 2048}, Data::exact, 972, f);
  for (int64_t row = 0; row < 64; ++row) {
    for (int64_t k = 0; k < 2048; ++k) {
      p.b.set_code(0, row, k, uint8_t((row + k) % 16));
      p.b2.set_code(0, row, k, uint8_t((5 * row + 3 * k + 7) % 16));
    }
    for (int64_t block = 0; block < 128; ++block) {
      p.b.set_scale(0, row, block, uint8_t((block + row) % 127));
      p.b2.set_scale(0, row, block, uint8_t((5 * block + 3 * row + 11) % 127));
    }
  }
  require_bits_of_unpacked(gpu, p);
}

TEST_CASE("packed gated: UE8M0 scales of 16 and of 32 give those bits", "[packed][gated]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = EACH_TILE;
  if (tile.type != NVFP4_TYPE_BF16) return;
  for (const int32_t format : support::ue8m0_formats()) {
    CAPTURE(tile.name, format);
    Problem p = with_format(make_problem({9, 96, 352}, Data::exact, 973), format, Data::exact, 973);
    p = with_a16(std::move(p), tile.type, Data::exact, 973);
    require_bits_of_unpacked(
        gpu, forced(tile.name, support::with_fields(p, swiglu(NVFP4_TYPE_F32), 974)));
  }
}

TEST_CASE("packed gated: batches and any fields and D with scales give the reference's bits",
          "[packed][gated]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  support::Random random(975);
  const std::vector<Tile> all = gemm_test::taken(tiles());
  for (size_t i = 0; i < 3 * all.size(); ++i) {
    const Tile& tile = all[i % all.size()];
    const int64_t tokens = gemm_test::tile_tokens(tile.name);
    const Shape shape{1 + random.below(uint32_t(2 * tokens)), 16 * (1 + random.below(10)),
                      16 * (1 + random.below(20)), 1 + random.below(2)};
    const Fields f = random_gated_fields(shape, random);
    CAPTURE(tile.name, to_string(shape), to_string(f));
    const Problem p = packed(gated(tile, shape, Data::exact, 976 + i, f));
    CHECK(difference_on_device(gpu.driver, p) == "");
  }
}

// The last tiles are shared, and with one partition each CTA has several.
TEST_CASE("packed gated: several tiles of a CTA whoever is late", "[packed][gated][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && gpu.info.sms > 4) SKIP_TEST("it takes few SMs in the emulator: EMU_SMS=3");
  const Tile tile = EACH_TILE;
  if (gemm_test::tile_tokens(tile.name) == 64) return;  // one tile a CTA
  for (const char* split : {"", "/1"}) {
    const std::string variant = std::string(tile.name) + split;
    Problem p = gated(tile, {20, 64 * (2 * gpu.info.sms + 1) - 20, 592}, Data::random, 977,
                      swiglu(NVFP4_TYPE_F32));
    p.variant = variant.c_str();
    const std::vector<uint8_t> d = support::bytes_on_device(gpu.driver, p);
    CHECK(support::bytes_on_device(gpu.driver, packed(p)) == d);
    if (!gpu.info.emulated()) continue;
    const gemm_test::Emulator emulator(gpu.driver);
    for (const char* warps : {"0-3", "4-7", "8", "9"}) {
      CAPTURE(variant, warps);
      const gemm_test::Setting late(emulator, "EMU_LATE", warps, "");
      CHECK(support::bytes_on_device(gpu.driver, packed(p)) == d);
    }
  }
}

// D is made apart, and by one launch, wherever b2 is, and a plan's run may have it elsewhere.
TEST_CASE("packed gated: b2 is anywhere behind b or before it in each run of a plan",
          "[packed][gated]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Problem p = packed(
      gated({nullptr, NVFP4_TYPE_BF16}, {40, 100, 208}, Data::exact, 978, swiglu(NVFP4_TYPE_BF16)));
  const std::vector<uint8_t> b = p.b.packed(p.b_packing), b2 = p.b2.packed(p.b_packing);
  const auto joined = [](std::vector<uint8_t> all, size_t gap, const std::vector<uint8_t>& more) {
    all.resize(all.size() + gap, 0xFF);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<uint8_t> expected = p.reference();
  for (const char* variant : {static_cast<const char*>(nullptr), "sm90_bf16_64x64x256/1/apart"}) {
    support::DeviceGemm gemm(gpu.driver, p);
    const support::DeviceBuffer whole_units(gpu.driver, joined(b, 0, b2));
    gemm.desc.b = whole_units.pointer();
    gemm.desc.b2 = static_cast<const uint8_t*>(whole_units.pointer()) + b.size();
    gemm.desc.variant = variant;
    gemm.fit_workspace();
    const support::Plan plan(gemm.desc);
    for (const size_t gap : {0, 2304, 128, 16}) {
      for (const bool swapped : {false, true}) {
        CAPTURE(variant != nullptr, gap, swapped);
        support::DeviceBuffer both(gpu.driver, swapped ? joined(b2, gap, b) : joined(b, gap, b2));
        const auto* const first = static_cast<const uint8_t*>(both.pointer());
        const uint8_t* const second = first + b.size() + gap;
        nvfp4_gemm_addresses x = support::no_addresses();
        gemm.desc.b = x.b = swapped ? second : first;
        gemm.desc.b2 = x.b2 = swapped ? first : second;
        support::require(plan.run(x));
        CHECK(first_difference(p, gemm.d_bytes(), expected) == "");
        support::require(gemm.enqueue());
        CHECK(first_difference(p, gemm.d_bytes(), expected) == "");
      }
    }
  }
}
