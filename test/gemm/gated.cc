// SPDX-License-Identifier: MIT
// Gated products, D = act(x) * y of two products in one launch: the bits of the reference, whatever
// the fields, by every tile that has an entry for them.
#include <algorithm>
#include <cstring>

#include "test/gemm/gated.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using gemm_test::swiglu;
using support::DeviceGemm;
using support::Fields;
using support::Problem;

namespace {

// A variant that takes b2, its type of tokens, in how many parts it may cut K, and whether it takes
// plain products alone.
struct GatedTile {
  const char* name;
  int32_t a_type;
  int64_t tokens, most_partitions;
  bool plain = false;
};
std::vector<GatedTile> tiles_of(const Gpu& gpu) {
  if (gpu.info.major == 10) {
    return {{"sm100_128x64x256", NVFP4_TYPE_NONE, 64, 1},
            {"sm100_128x128x256", NVFP4_TYPE_NONE, 128, 1}};
  }
  if (gpu.info.compute_capability() != 90) return {};
  return {{"sm90_128x16x256", NVFP4_TYPE_NONE, 16, 8},
          {"sm90_64x1x256", NVFP4_TYPE_NONE, 1, 8, true},
          {"sm90_64x2x256", NVFP4_TYPE_NONE, 2, 8, true},
          {"sm90_64x4x256", NVFP4_TYPE_NONE, 4, 8, true},
          {"sm90_128x32x256", NVFP4_TYPE_NONE, 32, 8},
          {"sm90_128x64x256", NVFP4_TYPE_NONE, 64, 8},
          {"sm90_128x128x256", NVFP4_TYPE_NONE, 128, 8},
          {"sm90_f16_128x64x256", NVFP4_TYPE_F16, 64, 4},
          {"sm90_f16_128x128x256", NVFP4_TYPE_F16, 128, 4},
          {"sm90_bf16_128x64x256", NVFP4_TYPE_BF16, 64, 4},
          {"sm90_bf16_128x128x256", NVFP4_TYPE_BF16, 128, 4}};
}

// On an emulated Hopper of each width of 16-bit tokens one type.
std::vector<GatedTile> some_tiles_of(const Gpu& gpu) {
  std::vector<GatedTile> tiles = tiles_of(gpu);
  if (!gpu.small() || gemm_test::everything()) return tiles;
  std::erase_if(tiles, [](const GatedTile& tile) {
    if (tile.a_type == NVFP4_TYPE_NONE) return tile.tokens == 2;  // as 4
    return tile.a_type == (tile.tokens == 64 ? NVFP4_TYPE_BF16 : NVFP4_TYPE_F16);
  });
  return tiles;
}

// Those that take any gated product.
std::vector<GatedTile> general(std::vector<GatedTile> tiles) {
  std::erase_if(tiles, [](const GatedTile& tile) { return tile.plain; });
  return tiles;
}

bool has_gate(const Gpu& gpu) { return !tiles_of(gpu).empty(); }

Problem operands(const GatedTile& tile, const Shape& shape, uint64_t seed) {
  const Problem problem = make_problem(shape, Data::exact, seed);
  if (tile.a_type == NVFP4_TYPE_NONE) return problem;
  return with_a16(problem, tile.a_type, Data::exact, seed);
}

std::string difference(const Gpu& gpu, const Problem& problem, const Fields& fields,
                       uint64_t seed) {
  return difference_on_device(gpu.driver, with_fields(problem, fields, seed));
}

}  // namespace

TEST_CASE("gated: each tile and split has the bits of the reference for K whole and cut",
          "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  const int32_t types[] = {NVFP4_TYPE_NVFP4, NVFP4_TYPE_F32, NVFP4_TYPE_BF16, NVFP4_TYPE_F16};
  uint64_t seed = 1;
  for (const GatedTile& tile : general(some_tiles_of(gpu))) {
    for (const int partitions : {1, 4}) {
      if (partitions > tile.most_partitions) continue;
      const std::string name = std::string(tile.name) + "/" + std::to_string(partitions);
      const Shape shape{tile.tokens - 3, 80, 256 * 4 + 48};
      Problem problem = operands(tile, shape, seed);
      problem.variant = name.c_str();
      CAPTURE(name);
      CHECK(difference(gpu, problem, swiglu(types[seed % 4]), seed) == "");
      ++seed;
    }
  }
}

// 128x4 scales, whole steps of K and D in 16 bits by rows: what has entries of its own on 9.0.
TEST_CASE("gated: each tile and split by the fast epilogue with all that it takes", "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  support::Random random(7);
  uint64_t seed = 60;
  int limited = 0;
  for (const GatedTile& tile : some_tiles_of(gpu)) {
    for (const int partitions : {1, 2, 3, 4, 8}) {
      if (partitions > tile.most_partitions || (partitions == 3 && tile.most_partitions < 8))
        continue;
      const std::string name = std::string(tile.name) + "/" + std::to_string(partitions);
      const int64_t rows = tile.tokens + (partitions == 1 ? 5 : -7);
      const Shape shape{std::max<int64_t>(rows, 1), 80, 256 * (partitions + 1) + 64};
      Fields f = random_column_fields(random);
      if (partitions == 1 || partitions == 4)
        f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
      f.b2 = support::kGiven, f.activation = int32_t((seed + 3) % support::kActivations);
      f.b2_tensor_scale = f.b_tensor_scale, f.alpha2 = -0.3f;
      if (f.activation == NVFP4_ACTIVATION_SILU && partitions < 4) {
        f.gate_limit = 7, f.gate_alpha = 1.702f, f.gate_beta = 1;
        ++limited;
      }
      Problem problem = operands(tile, shape, seed);
      problem.variant = name.c_str();
      CAPTURE(name, to_string(f));
      CHECK(difference(gpu, problem, f, seed) == "");
      ++seed;
    }
  }
  CHECK(limited > 0);
}

// The same of a D with scales: blocks of 16 and of 32 columns, which several warps have on 9.0.
TEST_CASE("gated: each tile and split writes D with scales from registers on 9.0", "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  const int32_t types[] = {NVFP4_TYPE_NVFP4, NVFP4_TYPE_MXFP4, NVFP4_TYPE_E2M1_UE8M0};
  support::Random random(17);
  uint64_t seed = 70;
  for (const GatedTile& tile : some_tiles_of(gpu)) {
    for (const int partitions : {1, 2, 4}) {
      if (partitions > tile.most_partitions) continue;
      const std::string name = std::string(tile.name) + "/" + std::to_string(partitions);
      // 64 columns are a tile of 9.0, so that the last one ends in its middle.
      const int64_t rows = tile.tokens + (partitions == 1 ? 5 : -7);
      const Shape shape{std::max<int64_t>(rows, 2), 96, 256 * partitions + 64,
                        1 + int64_t(seed % 2)};
      Fields f = random_column_fields(random);
      f.b2 = support::kGiven, f.activation = NVFP4_ACTIVATION_SILU;
      f.b2_tensor_scale = f.b_tensor_scale, f.alpha2 = -0.3f;
      f.d_type = types[seed % 3], f.d_ld_gap = 16, f.d_batch_gap = 16;
      f.d_tensor_scale = support::Given{f.d_type == NVFP4_TYPE_NVFP4};
      f.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4 + int32_t(seed / 2 % 2);
      Problem problem = operands(tile, shape, seed);
      // A row of NaN, whose codes are 0.
      if (problem.a.quantized()) {
        problem.a.set_scale(0, 1, 0, 0x7F);
      } else {
        problem.a.set_half(0, 1, 0, 0x7FFF);
      }
      problem.variant = name.c_str();
      CAPTURE(name, to_string(f));
      CHECK(difference(gpu, problem, f, seed) == "");
      ++seed;
    }
  }
}

TEST_CASE("gated: any fields and K and layouts of scales and several tiles and batches",
          "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  support::Random random(31);
  const int count = 12;
  const std::vector<GatedTile> tiles = general(tiles_of(gpu));
  for (int i = 0; i < count; ++i) {
    const GatedTile& tile = tiles[size_t(i) % tiles.size()];
    const Shape shape{1 + random.below(uint32_t(2 * tile.tokens)), 16 * (1 + random.below(10)),
                      16 * (1 + random.below(20)), 1 + random.below(2)};
    Problem problem = operands(tile, shape, uint64_t(40 + i));
    const bool linear = random.below(2) != 0 && gpu.info.major == 9;
    if (linear) problem.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
    if (problem.a.quantized()) {
      problem.a.layout = NVFP4_SCALE_LAYOUT_128X4 + int32_t(random.below(2));
    }
    problem.variant = tile.name;
    const Fields fields = random_gated_fields(shape, random);
    CAPTURE(to_string(shape), to_string(fields), tile.name, problem.a.layout, problem.b.layout);
    CHECK(difference(gpu, problem, fields, uint64_t(80 + i)) == "");
  }
}

TEST_CASE("gated: NaN and infinities and what is beyond the limit", "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  // Sums are 0, so that the biases are what is cut: each of these beside each.
  const uint32_t values[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x40E00001, 0xC0E00001,
                             0x80000000, 0x3F800000, 0xFF7FFFFF, 0x00000001};
  constexpr int64_t kValues = 9;
  for (const bool limited : {true, false}) {
    Fields f = swiglu(NVFP4_TYPE_F32);
    f.bias_type = NVFP4_TYPE_F32;
    if (!limited) f.gate_limit = f.gate_alpha = f.gate_beta = 0;
    const Shape shape{3, kValues * kValues, 64};
    Problem p = with_fields(make_problem(shape), f, 1);
    for (int64_t i = 0; i < shape.n; ++i) {
      p.set_bias(i, values[i / kValues]);
      p.set_bias2(i, values[i % kValues]);
    }
    CHECK(difference_on_device(gpu.driver, p) == "");
  }
}

TEST_CASE("gated: weights with UE8M0 scales", "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  for (const int32_t format : {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0}) {
    for (const bool halves : {true, false}) {
      if (halves && gpu.info.major == 10) continue;  // no kernel there that is gated
      const Shape shape{9, 96, 320};
      Problem problem = with_format(make_problem(shape, Data::exact, 7), format, Data::exact, 8);
      if (halves) problem = with_a16(problem, NVFP4_TYPE_BF16, Data::exact, 9);
      CAPTURE(format, halves);
      CHECK(difference(gpu, problem, swiglu(NVFP4_TYPE_BF16), 10) == "");
    }
  }
}

TEST_CASE("gated: more tiles than SMs with the last ones shared or several to a CTA",
          "[gated][tiles]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  for (const GatedTile& tile : tiles_of(gpu)) {
    if (tile.tokens == 64 || tile.tokens == 32 || gpu.info.major == 10) continue;  // one tile a CTA
    if (tile.a_type == NVFP4_TYPE_F16) continue;                                   // as bf16
    // Warps that decode tokens take every third k-block of a CTA's tiles.
    const int64_t tiles = 2 * gpu.info.sms + 1, columns = tile.tokens < 16 ? 32 : 64;
    const int64_t k = tile.tokens < 16 ? 768 : tile.a_type == NVFP4_TYPE_NONE ? 512 : 256;
    Problem problem = operands(tile, {tile.tokens, columns * tiles, k}, 21);
    problem.variant = tile.name;
    CAPTURE(tile.name);
    CHECK(difference(gpu, problem, swiglu(NVFP4_TYPE_F16), 22) == "");
  }
}

TEST_CASE("gated: two halves of one matrix and a plan with other addresses", "[gated]") {
  const Gpu gpu;
  if (!has_gate(gpu)) return;
  const Problem p =
      with_fields(operands(tiles_of(gpu)[0], {5, 128, 256}, 3), swiglu(NVFP4_TYPE_F32), 4);
  // b and b2 as rows 0 to 127 and 128 to 255 of one matrix, and of one matrix of scales.
  const auto joined = [](std::vector<uint8_t> first, const std::vector<uint8_t>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const support::DeviceBuffer codes(gpu.driver, joined(p.b.codes, p.b2.codes));
  const support::DeviceBuffer scales(
      gpu.driver, joined(p.b.device_scales(0xFF, 0), p.b2.device_scales(0xFF, 0)));
  const DeviceGemm gemm(gpu.driver, p);
  const auto* const first_code = static_cast<const uint8_t*>(codes.pointer());
  const auto* const first_scale = static_cast<const uint8_t*>(scales.pointer());
  const size_t half = p.b.codes.size(), half_scales = 128 * 256 / 16;
  const support::Plan plan(gemm.desc);
  REQUIRE(plan.run() == NVFP4_SUCCESS);
  const std::vector<uint8_t> d = gemm.d_bytes();
  CHECK(first_difference(p, d, p.reference()) == "");

  nvfp4_gemm_addresses x = support::no_addresses();
  x.b = first_code, x.b2 = first_code + half;
  x.b_scales = first_scale, x.b2_scales = first_scale + half_scales;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(gemm.d_bytes() == d);

  x.b = first_code + half, x.b2 = first_code;
  x.b_scales = first_scale + half_scales, x.b2_scales = first_scale;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(gemm.d_bytes() != d);
  Problem swapped = p;
  std::swap(swapped.b, swapped.b2);
  CHECK(first_difference(swapped, gemm.d_bytes(), swapped.reference()) == "");
}
