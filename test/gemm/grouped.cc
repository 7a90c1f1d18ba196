// SPDX-License-Identifier: MIT
// Grouped products: each row has the bits of its group's single product, whatever the division.
#include "test/gemm/grouped.h"
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

using namespace gemm_test;

namespace {

// Variants that have an entry for grouped products. Elsewhere than in a long run each type of
// tokens and each way of their sums once.
std::vector<GroupedTile> tiles() {
  if (is_mma_alone()) return mma_tiles();
  if (is_blackwell()) {
    return {{"sm100_128x64x256", NVFP4_TYPE_NONE},
            {"sm100_128x128x256", NVFP4_TYPE_NONE},
            {"sm100_256x128x256", NVFP4_TYPE_NONE},
            {"sm100_256x256x256", NVFP4_TYPE_NONE}};
  }
  std::vector<GroupedTile> all = {
      {"sm90_128x32x256", NVFP4_TYPE_NONE},       {"sm90_f16_64x32x256", NVFP4_TYPE_F16},
      {"sm90_bf16_128x128x256", NVFP4_TYPE_BF16}, {"sm90_128x64x256", NVFP4_TYPE_NONE},
      {"sm90_128x128x256", NVFP4_TYPE_NONE},      {"sm90_bf16_64x32x256", NVFP4_TYPE_BF16},
      {"sm90_f16_128x128x256", NVFP4_TYPE_F16},   {"sm90_64x32x256", NVFP4_TYPE_NONE}};
  if (!everything()) all.resize(4);
  all.push_back(mma_tiles()[0]);  // in the image for 9.0 that is here
  all.push_back(mma_tiles()[1]);
  return all;
}

// Where any tile will do.
int32_t narrow_type() { return tiles()[1].a_type; }

}  // namespace

#define EACH_GROUPED_TILE GENERATE(from_range(taken(tiles())))

TEST_CASE("grouped: rows have the bits of their group's single product", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  // Boundaries inside tiles, the first, a middle and the last group empty, one row alone; K ends in
  // a stage with one step.
  if (is_blackwell()) {
    // Two tiles of scales before a group of several tiles, and a row of its own after it. That
    // group's rows begin in the upper half of 128, its scales in the lower one.
    const GroupedSizes sizes{301, 136, 1344, tile.a_type};
    require_bits_of_singles(gpu, tile, {sizes, {0, 99, 100, 100, 241, 241, 300, 300}, 50});
    return;
  }
  const GroupedSizes sizes{45, 70, 1344, tile.a_type};
  require_bits_of_singles(gpu, tile, {sizes, {0, 19, 20, 20, 41, 41}, 50});
}

TEST_CASE("grouped: D in 16 bits and linear scales of weights and every format", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const int32_t formats[] = {NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_OPERAND_FORMAT_MXFP4,
                             NVFP4_OPERAND_FORMAT_E2M1_UE8M0};
  for (const int32_t format : formats) {
    GroupedSizes sizes{75, 160, 352, is_blackwell() ? NVFP4_TYPE_NONE : NVFP4_TYPE_BF16, format};
    if (gpu.small()) sizes.rows = 19, sizes.n = 64;
    GroupedProblem problem(sizes, drawn_ends(sizes.rows, 4, 61), 61 + uint64_t(format));
    problem.fields.d_type = NVFP4_TYPE_BF16;
    problem.weights.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
    CAPTURE(format);
    const char* const variant = is_mma_alone()   ? mma_tiles().back().variant
                                : is_blackwell() ? tiles()[0].variant
                                                 : "sm90_bf16_64x32x256";
    require_bits_of_singles(gpu, {variant, sizes.a_type}, problem);
  }
}

TEST_CASE("grouped: divisions drawn by seed give those bits", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const GroupedSizes sizes{gpu.sized<int64_t>(170, 21), 66, 208, tile.a_type};
  require_bits_of_singles(gpu, tile, {sizes, drawn_ends(sizes.rows, 7, 51), 52});
}

TEST_CASE("grouped: scales of tokens in tiles where the groups' rows or scale_rows say",
          "[grouped]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const GroupedTile tile = EACH_GROUPED_TILE;
  GroupedProblem problem({240, 66, 208}, drawn_ends(240, 6, 66), 66);
  problem.tokens.a.layout = NVFP4_SCALE_LAYOUT_128X4;
  require_bits_of_singles(gpu, tile, problem);
  problem.scales_turned = true;
  require_bits_of_singles(gpu, tile, problem);
}

TEST_CASE("grouped: as many rows of each group as a count says and its alpha", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const int32_t capacity = gpu.sized(70, 18);
  GroupedProblem problem({5 * capacity + 3, 66, 80, tile.a_type}, {capacity, 0, 17, 1, 0}, 67);
  problem.capacity = capacity;
  problem.alphas = {0.5f, 1e30f, -1.25f, 3, 7};
  require_bits_of_singles(gpu, tile, problem);
  DeviceGrouped device(gpu, problem);
  device.take(gpu, tile.variant);
  const std::vector<uint8_t> d = run_grouped(device);
  device.clear_d();
  device.set_rows({INT32_MAX, -1, 17, 1, INT32_MIN});
  CHECK(run_grouped(device) == d);

  // The same by the general epilogue; on 10.x from tiles of scales.
  if (is_blackwell()) problem.tokens.a.layout = NVFP4_SCALE_LAYOUT_128X4;
  DeviceGrouped general(gpu, problem);
  const auto relu = [&](nvfp4_gemm_desc& g, int64_t) {
    g.activation = NVFP4_ACTIVATION_RELU;
    take_tile(tile, g);
  };
  relu(general.gemm, 0);
  general.take(gpu, tile.variant);
  CHECK(run_grouped(general) == single_products(gpu, problem, relu));
}

// Where the device has a few SMs (test/jobs.txt) a CTA computes ten tiles: more than are listed at
// once, which begin at every stage of the rings.
TEST_CASE("grouped: a CTA computes tile after tile", "[grouped][tiles]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const GroupedSizes sizes{67, 200, 592, tile.a_type};
  GroupedProblem problem(sizes, {9, 10, 10, 51, 60, 67}, 68);
  require_bits_of_singles(gpu, tile, problem);
  if (is_blackwell()) return;
  problem.fields.d_type = NVFP4_TYPE_F16;
  problem.weights.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  require_bits_of_singles(gpu, tile, problem);
}

// Where the device has three SMs a CTA computes nine tiles of one k-block: more than the rings of
// tokens and of the list hold, so a loader meets tiles whose memory it need not wait for.
TEST_CASE("grouped: tiles of one k-block follow each other", "[grouped][tiles]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  std::vector<int32_t> ends(27);
  for (size_t group = 0; group < ends.size(); ++group) ends[group] = int32_t(group + 1) * 2;
  require_bits_of_singles(gpu, tile, {{54, 16, 64, tile.a_type}, ends, 69});
}

TEST_CASE("grouped: all groups use one B where b_shared says so", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  GroupedProblem problem({21, 70, 208, tile.a_type}, {4, 4, 19, 21}, 69);
  problem.b_shared = true;
  require_bits_of_singles(gpu, tile, problem);
}

// A step of the walk is 32 groups.
TEST_CASE("grouped: a row finds its group among a thousand", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  std::vector<int32_t> ends(1024, 0);
  std::fill(ends.begin() + 31, ends.end(), 1);    // the last of the first 32
  std::fill(ends.begin() + 32, ends.end(), 3);    // the first of the next 32
  std::fill(ends.begin() + 1023, ends.end(), 5);  // the last of all
  require_bits_of_singles(gpu, tiles()[1], {{5, 8, 64, narrow_type()}, ends, 53});
}

// On 10.x the list has an entry for every three of these groups.
TEST_CASE("grouped: a row finds its group among thousands", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  std::vector<int32_t> counts(2100, 0);
  for (const size_t group : {0, 4, 5, 1023, 1500, 2098}) counts[group] = 1 + int32_t(group % 3);
  const int way = GENERATE(0, 1, 2, 3);
  if ((way == 1 || way == 2) && !is_blackwell()) return;
  const GroupedSizes counted{3 * 2100, 72, 64, narrow_type()};
  GroupedProblem problem(counted, counts, 70);
  if (way < 3) {
    std::vector<int32_t> ends = counts;
    for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    problem = GroupedProblem({ends.back() + 2, 72, 64, narrow_type()}, ends, 70);
  } else {
    problem.capacity = 3;
  }
  if (way >= 1 && is_blackwell()) problem.tokens.a.layout = NVFP4_SCALE_LAYOUT_128X4;
  problem.scales_turned = way == 2;
  CAPTURE(way);
  require_bits_of_singles(gpu, tiles()[1], problem);
}

TEST_CASE("grouped: ends that fall or are negative or pass M are cut", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const GroupedProblem right({20, 70, 64, tile.a_type}, {0, 9, 9, 20, 20, 20}, 54);
  DeviceGrouped device(gpu, right);
  device.take(gpu, tile.variant);
  const std::vector<uint8_t> d = run_grouped(device);
  for (const std::vector<int32_t>& wrong :
       {std::vector<int32_t>{-5, 9, 3, 1 << 30, 2, 20}, {INT32_MIN, 9, -1, INT32_MAX, 0, 0}}) {
    device.clear_d();
    device.set_rows(wrong);
    CHECK(run_grouped(device) == d);
    CHECK(device.guards_intact());
  }
}

TEST_CASE("grouped: no group has rows and nothing is written", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedProblem none({7, 70, 64, narrow_type()}, {0, 0, 0}, 55);
  DeviceGrouped device(gpu, none);
  CHECK(run_grouped(device) == std::vector<uint8_t>(7 * 70 * 4, 0xFF));
}

TEST_CASE("grouped: few rows beyond a group's are multiplied", "[grouped]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const GroupedProblem problem({41, 128, 64}, {1, 41}, 65);
  DeviceGrouped device(gpu, problem);
  run_grouped(device);
  CHECK(emulator.counter("macs") == (16 + 48) * 128 * 64);
  // A box has the 32 rows that hold 21. One group has one, the other two.
  CHECK(emulator.counter("tma_bytes") == (2 * 128 + (1 + 2) * 32) * 128);
}

TEST_CASE("grouped: a NaN in a group's rows stays there", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  GroupedProblem problem({6, 66, 64, tile.a_type}, {3, 6}, 56);
  DeviceGrouped before(gpu, problem);
  const std::vector<uint8_t> d = run_grouped(before);
  if (tile.a_type == NVFP4_TYPE_NONE) {
    problem.tokens.a.set_scale(0, 3, 0, 0x7F);
  } else {
    problem.tokens.a.set_half(0, 3, 0, 0x7FFF);
  }
  DeviceGrouped with(gpu, problem);
  const std::vector<uint8_t> nan = run_grouped(with);
  CHECK(std::equal(d.begin(), d.begin() + 3 * 66 * 4, nan.begin()));
  CHECK(std::equal(d.begin() + 4 * 66 * 4, d.end(), nan.begin() + 4 * 66 * 4));
}

TEST_CASE("grouped: C and bias and activation and scalars are those of the row", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  GroupedProblem problem({23, 72, 64, tile.a_type}, {2, 2, 19, 23}, 57);
  const support::DeviceBuffer c(gpu.driver, std::vector<uint8_t>(23 * 72 * 4, 0x3C));
  std::vector<uint8_t> values(24 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = uint8_t(i % 4 == 3 ? 0x3F : i);
  const support::DeviceBuffer bias(gpu.driver, values);
  const auto set = [&](nvfp4_gemm_desc& g, int64_t begin) {
    g.c = reinterpret_cast<const float*>(c.address()) + begin * 72;
    g.c_type = NVFP4_TYPE_F32, g.c_ld = 72, g.beta = 0.75f;
    g.bias = reinterpret_cast<const float*>(bias.address()) + begin;
    g.bias_type = NVFP4_TYPE_F32, g.bias_axis = NVFP4_BIAS_AXIS_ROW;
    g.alpha_device = g.beta_device = nullptr;
    g.activation = NVFP4_ACTIVATION_SILU;
    take_tile(tile, g);
  };
  DeviceGrouped device(gpu, problem);
  set(device.gemm, 0);
  device.take(gpu, tile.variant);
  CHECK(run_grouped(device) == single_products(gpu, problem, set));
}

// D in 16 bits is stored by the fast epilogue where there is one, D in 32 bits by the general one.
TEST_CASE("grouped: each group adds its own bias and none of those beside it", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const int32_t type = GENERATE(int32_t{NVFP4_TYPE_BF16}, int32_t{NVFP4_TYPE_F32});
  GroupedProblem problem({45, 70, 80, tile.a_type}, {0, 19, 20, 20, 41, 41}, 59,
                         support::Data::exact);
  problem.fields.d_type = type;
  const GroupBiases biases(gpu, problem, type);
  const auto set = [&](nvfp4_gemm_desc& g, const void* bias) {
    g.bias = bias, g.bias_type = type, g.bias_axis = NVFP4_BIAS_AXIS_COLUMN;
    if (type == NVFP4_TYPE_F32) g.activation = NVFP4_ACTIVATION_RELU;
  };
  DeviceGrouped device(gpu, problem);
  set(device.gemm, biases.device.pointer());
  device.grouped.bias_group_stride = biases.stride;
  device.take(gpu, tile.variant);
  CAPTURE(tile.variant, type);
  const std::vector<uint8_t> d = run_grouped(device);
  CHECK(d == single_products(gpu, problem, [&](nvfp4_gemm_desc& g, int64_t begin) {
          set(g, biases.of_rows(begin));
          take_tile(tile, g);
        }));
  CHECK(d == grouped_reference(problem, device, &biases));
  const support::Plan plan(device.grouped);
  nvfp4_gemm_addresses addresses = support::no_addresses();
  addresses.bias = device.gemm.bias;
  device.clear_d();
  REQUIRE(plan.run(addresses) == NVFP4_SUCCESS);
  CHECK(device.d() == d);
  CHECK(device.guards_intact());
}

TEST_CASE("grouped: each row has its tensor scale and none of the rows of no group", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const int32_t type = GENERATE(int32_t{NVFP4_TYPE_BF16}, int32_t{NVFP4_TYPE_F32});
  GroupedProblem problem({45, 70, 80, tile.a_type}, {0, 19, 20, 20, 41, 41}, 60,
                         support::Data::exact);
  problem.fields.d_type = type;
  const RowFactors factors(gpu, problem);
  const auto set = [&](nvfp4_gemm_desc& g, int64_t begin) {
    g.a_tensor_scale = factors.of_rows(begin), g.a_tensor_scale_rows = 1;
  };
  DeviceGrouped device(gpu, problem);
  set(device.gemm, 0);
  device.take(gpu, tile.variant);
  CAPTURE(tile.variant, type);
  const std::vector<uint8_t> d = run_grouped(device);
  CHECK(d == single_products(gpu, problem, [&](nvfp4_gemm_desc& g, int64_t begin) {
          set(g, begin);
          take_tile(tile, g);
        }));
  CHECK(d == grouped_reference(problem, device, nullptr, &factors));
}

TEST_CASE("grouped: a plan runs with other ends and in a graph that reads them", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedProblem first({18, 66, 64, narrow_type()}, {5, 18}, 58);
  GroupedProblem second = first;
  second.ends = {12, 18};
  DeviceGrouped device(gpu, first);
  const DeviceGrouped other(gpu, second);
  const support::Plan plan(device.grouped);
  REQUIRE(plan.run() == NVFP4_SUCCESS);
  CHECK(device.d() == single_products(gpu, first));

  nvfp4_gemm_addresses addresses = support::no_addresses();
  addresses.rows = other.row_ends();
  const std::vector<float> alphas(2, first.fields.alpha * 2);
  const support::DeviceBuffer twice(gpu.driver, gemm_test::bytes_of(alphas));
  addresses.group_alpha = static_cast<const float*>(twice.pointer());
  second.alphas = alphas;
  REQUIRE(plan.run(addresses) == NVFP4_SUCCESS);
  CHECK(device.d() == single_products(gpu, second));
  second.alphas.clear();

  const support::Driver& driver = gpu.driver;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec instance = nullptr;
  driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  driver.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
  CHECK(plan.run(stream) == NVFP4_SUCCESS);
  driver.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  driver.check(driver.cuGraphInstantiateWithFlags(&instance, graph, 0), "instantiate");
  device.set_rows(second.ends);
  device.clear_d();
  driver.check(driver.cuGraphLaunch(instance, stream), "cuGraphLaunch");
  driver.check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
  CHECK(device.d() == single_products(gpu, second));
  driver.cuGraphExecDestroy(instance);
  driver.cuGraphDestroy(graph);
  driver.cuStreamDestroy(stream);
}

TEST_CASE("grouped: exact sums are the reference's", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  GroupedProblem problem({20, 66, 80, tile.a_type}, {4, 4, 19}, 59, support::Data::exact);
  const int way = GENERATE(0, 1, 2, 3);
  if ((way == 1 || way == 2) && !is_blackwell()) return;
  if (way >= 2) problem.alphas = {2, 3, 0.5f};
  if (way == 1 || way == 2) problem.tokens.a.layout = NVFP4_SCALE_LAYOUT_128X4;
  problem.scales_turned = way == 2;
  if (way == 3) problem.ends = {4, 0, 6}, problem.capacity = 6;
  CAPTURE(way);
  DeviceGrouped device(gpu, problem);
  device.take(gpu, tile.variant);
  const std::vector<uint8_t> d = run_grouped(device);
  CHECK(d == grouped_reference(problem, device));
}

TEST_CASE("grouped: every division of wide and long products", "[.][grouped][tiles]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = EACH_GROUPED_TILE;
  const uint64_t seed = GENERATE(range(uint64_t{0}, uint64_t{6}));
  constexpr int64_t kGroups[] = {1, 2, 8, 33, 128, 300};
  constexpr int64_t kK[] = {16, 272, 1344, 2880, 512, 48};
  const GroupedSizes sizes{150, 200, kK[seed], tile.a_type};
  require_bits_of_singles(gpu, tile, {sizes, drawn_ends(150, kGroups[seed], seed), 60 + seed});
}
