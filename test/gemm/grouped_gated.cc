// SPDX-License-Identifier: MIT
// Grouped gated products: each row has the bits of its group's single gated product.
#include "test/gemm/grouped.h"
#include "test/gemm/sizes.h"

using namespace gemm_test;

namespace {

// Variants that have an entry for grouped gated products.
std::vector<GroupedTile> tiles() {
  if (is_mma_alone()) return mma_tiles();
  if (is_blackwell()) return {{"sm100_128x128x256", NVFP4_TYPE_NONE}};
  return {{"sm90_128x32x256", NVFP4_TYPE_NONE},
          {"sm90_128x64x256", NVFP4_TYPE_NONE},
          {"sm90_128x128x256", NVFP4_TYPE_NONE},
          {"sm90_f16_128x128x256", NVFP4_TYPE_F16},
          {"sm90_bf16_128x128x256", NVFP4_TYPE_BF16},
          mma_tiles()[0],
          mma_tiles()[1]};
}

// The SwiGLU of gpt-oss, with factors that tell the two sums apart.
GroupedProblem swiglu(const GroupedSizes& sizes, std::vector<int32_t> ends, uint64_t seed,
                      support::Data data = support::Data::random) {
  GroupedProblem problem(sizes, std::move(ends), seed, data);
  support::Fields& f = problem.fields;
  f.b2 = support::kGiven, f.activation = NVFP4_ACTIVATION_SILU;
  f.alpha = 0.02f, f.alpha2 = -0.03f;
  f.gate_limit = 7, f.gate_alpha = 1.702f, f.gate_beta = 1;
  return problem;
}

}  // namespace

#define EACH_TILE GENERATE(from_range(taken(tiles())))

// Boundaries inside tiles, the first, a middle and the last group empty, one row alone; K ends in a
// stage with one step. The rings wrap.
TEST_CASE("grouped gated: rows have the bits of their group's single product", "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  if (is_blackwell()) {
    // As there (grouped.cc): a group whose rows begin in the upper half of 128, its scales not.
    const GroupedSizes sizes{141, 136, 1344, tile.a_type};
    require_bits_of_singles(gpu, tile, swiglu(sizes, {0, 69, 70, 70, 135, 135, 141, 141}, 80));
    return;
  }
  const GroupedSizes sizes{45, 70, 1344, tile.a_type};
  require_bits_of_singles(gpu, tile, swiglu(sizes, {0, 19, 20, 20, 41, 41}, 80));
}

TEST_CASE("grouped gated: divisions drawn by seed give those bits with factors of each group",
          "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  GroupedSizes sizes{gpu.sized<int64_t>(170, 23), 66, 224, tile.a_type};
  // One of the tiles of mma.sync takes UE8M0 scales, and not on 9.0.
  const bool mma = std::string(tile.variant).rfind("sm80", 0) == 0;
  const bool mma_takes = is_mma_alone() && tile.variant == std::string("sm80_bf16_64x16w4x128");
  if (mma ? mma_takes : tile.a_type == NVFP4_TYPE_BF16 || is_blackwell()) {
    sizes.format = NVFP4_OPERAND_FORMAT_MXFP4;
  }
  GroupedProblem problem = swiglu(sizes, drawn_ends(sizes.rows, 6, 81), 82);
  problem.fields.d_type = NVFP4_TYPE_BF16;
  problem.alphas = {0.5f, -0.25f, 0.125f, 3, 7, 0.01f};
  problem.alphas2 = {-0.75f, 0.02f, 2, 0.3f, -0.6f, 5};
  if (is_blackwell()) {
    problem.tokens.a.layout = NVFP4_SCALE_LAYOUT_128X4;
    problem.scales_turned = true;
  } else {
    problem.weights.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  }
  require_bits_of_singles(gpu, tile, problem);
}

TEST_CASE("grouped gated: as many rows of each group as a count says and no others",
          "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  const int32_t capacity = gpu.sized(70, 18);
  GroupedProblem problem =
      swiglu({5 * capacity + 3, 66, 80, tile.a_type}, {capacity, 0, 17, 1, 0}, 83);
  problem.capacity = capacity;
  require_bits_of_singles(gpu, tile, problem);
  DeviceGrouped device(gpu, problem);
  device.gemm.variant = tile.variant;
  const std::vector<uint8_t> d = run_grouped(device);
  device.clear_d();
  device.set_rows({INT32_MAX, -1, 17, 1, INT32_MIN});
  CHECK(run_grouped(device) == d);
  CHECK(device.guards_intact());
}

// Where the device has a few SMs (test/jobs.txt) a CTA computes tile after tile.
TEST_CASE("grouped gated: a CTA computes tile after tile", "[grouped][gated][tiles]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  const GroupedSizes sizes{45, 136, 336, tile.a_type};
  require_bits_of_singles(gpu, tile, swiglu(sizes, {9, 10, 10, 31, 38, 45}, 84));
}

TEST_CASE("grouped gated: both biases and tensor scales and GELU and maxima are those of the row",
          "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  GroupedProblem problem = swiglu({23, 72, 64, tile.a_type}, {2, 2, 19, 23}, 85);
  std::vector<float> values(2 * 72);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i % 37) / 16 - 1;
  const support::DeviceBuffer biases(gpu.driver, gemm_test::bytes_of(values));
  support::DeviceBuffer maxima(gpu.driver, std::vector<uint8_t>(24 * 4));
  const auto* const bias = reinterpret_cast<const float*>(biases.address());
  for (const int32_t axis : {NVFP4_BIAS_AXIS_ROW, NVFP4_BIAS_AXIS_COLUMN}) {
    const auto set = [&](nvfp4_gemm_desc& g, int64_t begin) {
      const bool rows = axis == NVFP4_BIAS_AXIS_ROW;
      g.bias = bias + (rows ? begin : 0), g.bias2 = bias + 72 + (rows ? begin : 0);
      g.bias_type = NVFP4_TYPE_F32, g.bias_axis = axis;
      g.b_tensor_scale = bias + 3, g.b2_tensor_scale = bias + 5;
      g.activation = NVFP4_ACTIVATION_GELU_TANH;
      g.gate_limit = g.gate_alpha = g.gate_beta = 0;
      auto* const first = reinterpret_cast<float*>(maxima.address());
      g.d_amax = first, g.d_row_amax = first + 1 + begin;
      take_tile(tile, g);
    };
    const std::vector<uint8_t> none(24 * 4);
    DeviceGrouped device(gpu, problem);
    set(device.gemm, 0);
    device.gemm.variant = tile.variant;
    maxima.upload(none);
    CAPTURE(axis);
    const std::vector<uint8_t> d = run_grouped(device), amax = maxima.download();
    maxima.upload(none);
    CHECK(d == single_products(gpu, problem, set));
    CHECK(amax == maxima.download());
    CHECK(amax != none);
  }
}

TEST_CASE("grouped gated: each group adds its own biases and none of those beside it",
          "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  const int32_t type = GENERATE(int32_t{NVFP4_TYPE_BF16}, int32_t{NVFP4_TYPE_F32});
  GroupedProblem problem =
      swiglu({45, 70, 80, tile.a_type}, {0, 19, 20, 20, 41, 41}, 88, support::Data::exact);
  problem.fields.d_type = type;
  const GroupBiases biases(gpu, problem, type);
  const auto set = [&](nvfp4_gemm_desc& g, const void* bias) {
    g.bias = g.bias2 = bias, g.bias_type = type, g.bias_axis = NVFP4_BIAS_AXIS_COLUMN;
  };
  DeviceGrouped device(gpu, problem);
  set(device.gemm, biases.device.pointer());
  device.grouped.bias_group_stride = biases.stride;
  device.gemm.variant = tile.variant;
  CAPTURE(tile.variant, type);
  const std::vector<uint8_t> d = run_grouped(device);
  CHECK(d == single_products(gpu, problem, [&](nvfp4_gemm_desc& g, int64_t begin) {
          set(g, biases.of_rows(begin));
          take_tile(tile, g);
        }));
  CHECK(d == grouped_reference(problem, device, &biases));
}

TEST_CASE("grouped gated: each row has its tensor scale and none of the rows of no group",
          "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  const int32_t type = GENERATE(int32_t{NVFP4_TYPE_BF16}, int32_t{NVFP4_TYPE_F32});
  GroupedProblem problem =
      swiglu({45, 70, 80, tile.a_type}, {0, 19, 20, 20, 41, 41}, 89, support::Data::exact);
  problem.fields.d_type = type;
  const RowFactors factors(gpu, problem);
  const auto set = [&](nvfp4_gemm_desc& g, int64_t begin) {
    g.a_tensor_scale = factors.of_rows(begin), g.a_tensor_scale_rows = 1;
  };
  DeviceGrouped device(gpu, problem);
  set(device.gemm, 0);
  device.gemm.variant = tile.variant;
  CAPTURE(tile.variant, type);
  const std::vector<uint8_t> d = run_grouped(device);
  CHECK(d == single_products(gpu, problem, [&](nvfp4_gemm_desc& g, int64_t begin) {
          set(g, begin);
          take_tile(tile, g);
        }));
  CHECK(d == grouped_reference(problem, device, nullptr, &factors));
}

TEST_CASE("grouped gated: a plan runs with other ends and matrices and factors",
          "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = tiles().back();
  GroupedProblem problem = swiglu({18, 66, 64, tile.a_type}, {5, 18}, 86);
  DeviceGrouped device(gpu, problem);
  device.gemm.variant = tile.variant;
  const support::Plan plan(device.grouped);
  const auto alike = [&](nvfp4_gemm_desc& g, int64_t) { take_tile(tile, g); };
  REQUIRE(plan.run() == NVFP4_SUCCESS);
  CHECK(device.d() == single_products(gpu, problem, alike));

  problem.ends = {12, 18};
  problem.alphas = {2, -3}, problem.alphas2 = {0.5f, 0.25f};
  problem.weights.b = support::with_rows_reversed(problem.weights.b);
  const DeviceGrouped other(gpu, problem);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.rows = other.grouped.rows;
  x.b = other.gemm.b, x.b_scales = other.gemm.b_scales;
  x.b2 = other.gemm.b2, x.b2_scales = other.gemm.b2_scales;
  x.group_alpha = other.grouped.group_alpha, x.group_alpha2 = other.grouped.group_alpha2;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(device.d() == single_products(gpu, problem, alike));
}

TEST_CASE("grouped gated: exact sums are the reference's", "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  GroupedProblem problem = swiglu({20, 66, 80, tile.a_type}, {4, 4, 19}, 87, support::Data::exact);
  problem.alphas2 = {2, 3, 0.5f};
  DeviceGrouped device(gpu, problem);
  device.gemm.variant = tile.variant;
  const std::vector<uint8_t> d = run_grouped(device);
  CHECK(d == grouped_reference(problem, device));
}

TEST_CASE("grouped gated: every division of wide and long products", "[.][grouped][gated][tiles]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_TILE;
  const uint64_t seed = GENERATE(range(uint64_t{0}, uint64_t{6}));
  constexpr int64_t kGroups[] = {1, 2, 8, 33, 128, 300};
  constexpr int64_t kK[] = {16, 272, 1344, 2880, 512, 48};
  const GroupedSizes sizes{150, 200, kK[seed], tile.a_type};
  require_bits_of_singles(gpu, tile,
                          swiglu(sizes, drawn_ends(150, kGroups[seed], seed), 90 + seed));
}
