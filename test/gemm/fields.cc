// SPDX-License-Identifier: MIT
// D by rows with C, an activation or maxima, for which tiles of 9.0 have an entry of its own
// (kernel/sm90/sums/fields.cuh): every type and field against the reference's bits, where a CTA has
// several tiles, and where CTAs share K.
#include <cmath>
#include <cstring>

#include "test/gemm/shares.h"
#include "test/gemm/sizes.h"

using namespace gemm_test;
using support::DeviceGemm;
using support::Fields;
using support::Shape;

namespace {

// Tiles with such an entry.
std::vector<std::string> tiles_with_fields() {
  struct Row {
    const char *label, *operation;
  };
  constexpr Row kRows[] = {
#define ENTRY(label, operation) {#label, #operation},
#include "kernel/sm90/entries.def"
  };
  std::vector<std::string> names;
  for (const Row& row : kRows)
    if (std::strcmp(row.operation, "fields") == 0)
      names.push_back(std::string("sm90_") + row.label + "x256");
  return names;
}

bool is_whole(const std::string& variant) { return tile_tokens(variant) >= 128; }

Problem operands_of(const std::string& variant, const Shape& shape, Data data) {
  const int32_t type = a_type_of(variant);
  const auto seed = uint64_t(shape.m + shape.n + shape.k);
  return forced(variant.c_str(), type == NVFP4_TYPE_NONE
                                     ? support::make_problem(shape, data, seed)
                                     : support::make_a16_problem(shape, type, data, seed));
}

// D by rows, in fp16, bf16 or fp32, with at least one of the three.
Fields drawn_fields(const Shape& shape, support::Random& random) {
  Fields f = support::random_fields(shape, random);
  f.cd_order = NVFP4_CD_ORDER_ROW_MAJOR, f.bias_axis = NVFP4_BIAS_AXIS_COLUMN;
  if (f.d_type > NVFP4_TYPE_F32 || f.c_is_d) f.d_type = int32_t(1 + random.below(3));
  if (f.c_is_d) f.c_type = f.d_type;
  const bool some = (f.has_c() && (f.beta != 0 || f.by_pointer())) || f.d_amax != nullptr ||
                    f.d_row_amax != nullptr || f.activation != NVFP4_ACTIVATION_NONE;
  if (!some) f.activation = int32_t(1 + random.below(uint32_t(support::kActivations - 1)));
  return support::possible(f, shape);
}

void require_fast(const Gpu& gpu, const Problem& operands, const Fields& f, uint64_t seed) {
  const Problem p = support::with_fields(operands, f, seed);
  CAPTURE(p.variant, to_string(p.shape()), to_string(f));
  const DeviceGemm gemm(gpu.driver, p);
  REQUIRE(plan_of(gpu, gemm.desc).epilogue == NVFP4_EPILOGUE_FAST);
  REQUIRE(difference_on_device(gpu.driver, p) == "");
}

}  // namespace

// Tiles end with M and N inside what a lane stores of a row, and rows begin anywhere.
TEST_CASE("C and activations and maxima of D by rows have the reference's bits on 9.0",
          "[fields]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE(from_range(tiles_with_fields())) + "/1";
  const int64_t tokens = tile_tokens(variant);
  support::Random random(uint64_t(tokens + tile_weights(variant)));
  for (int i = 0; i < gpu.sized(30, everything() ? 30 : 6); ++i) {
    const Shape shape{1 + random.below(uint32_t(gpu.sized<int64_t>(300, tokens + 40))),
                      1 + random.below(gpu.sized<uint32_t>(300, 140)), 64 * (1 + random.below(3)),
                      1 + random.below(2)};
    const Fields f = drawn_fields(shape, random);
    require_fast(gpu, operands_of(variant, shape, Data::exact), f, random.next());
  }
}

// Tiles with all of their columns have C by rows, and their maxima without asking what is there.
TEST_CASE("C and maxima of tiles with all of their columns have the reference's bits on 9.0",
          "[fields]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE(from_range(tiles_with_fields())) + "/1";
  const int64_t tokens = tile_tokens(variant);
  for (int i = 0; i < 4; ++i) {
    Fields f;
    f.d_type = 1 + i % 2, f.d_ld_gap = 4 * (i % 2);
    if (i != 2) f.c_type = 2 - i % 2, f.beta = -1.25f, f.c_ld_gap = 4, f.c_batch_gap = 8;
    if (i == 1) f.bias_type = NVFP4_TYPE_F32, f.activation = NVFP4_ACTIVATION_SILU;
    if (i == 3) f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
    f.d_amax = support::Given{i != 1};
    const Shape shape{tokens + (i == 2 ? 0 : 3), 256, 128, 1 + i % 2};
    require_fast(gpu, operands_of(variant, shape, Data::exact), f, uint64_t(i));
  }
}

// Sums of the CTAs of a cluster, and of CTAs with even shares.
TEST_CASE("fields of D by rows are those of complete sums on 9.0", "[fields][shares]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string tile = GENERATE(from_range(tiles_with_fields()));
  support::Random random(uint64_t(tile_tokens(tile) + 7 * tile_weights(tile)));
  for (const std::string split : {"/2", "/3", "/4"}) {
    const std::string variant = tile + split;
    const auto most = uint32_t(std::min<int64_t>(tile_tokens(variant), gpu.sized(131, 45)));
    for (int i = 0; i < gpu.sized(4, everything() ? 4 : 1); ++i) {
      const Shape shape{most - random.below(std::min(most, 9u)), 1 + random.below(140), 1088, 1};
      const Fields f = drawn_fields(shape, random);
      require_fast(gpu, operands_of(variant, shape, Data::exact), f, random.next());
    }
  }
}

TEST_CASE("even shares have C and activations and maxima of D by rows", "[fields][shares][even]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = "sm90_128x128x256/even";
  const int64_t sms = nominal_sms(gpu);
  const Problem p = tiles_of(variant, sms * 5 / 8, 832, Data::exact);
  support::Random random(17);
  for (int i = 0; i < gpu.sized(8, 2); ++i) {
    require_fast(gpu, p, drawn_fields(p.shape(), random), random.next());
  }
}

// A CTA's next tile begins while the rows of the last one are stored, in place of C too.
TEST_CASE("a CTA with several tiles has C and activations and maxima of each", "[fields][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE(from_range(tiles_with_fields())) + "/1";
  if (!is_whole(variant)) return;
  const Shape shape{tile_tokens(variant) + 19, gpu.sized<int64_t>(128 * 200, 4 * 128 + 70), 320};
  Fields f;
  f.d_type = f.c_type = NVFP4_TYPE_BF16, f.beta = 0.75f, f.activation = NVFP4_ACTIVATION_GELU_ERF;
  f.bias_type = NVFP4_TYPE_F32, f.d_amax = f.d_row_amax = support::kGiven, f.c_is_d = true;
  require_fast(gpu, operands_of(variant, shape, Data::exact), f, 5);
}

// D is act(C): sums are +0, of codes that are all 0. Each lane has numbers of every kind.
TEST_CASE("each activation of NaN and infinity and -0 and ties by rows on 9.0", "[fields][edges]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE("sm90_64x64x256", "sm90_128x128x256");
  constexpr uint32_t kEdges[] = {0x7FC00001, 0x7F800001, 0x00000000, 0x7F7FFFFF, 0x7F800000,
                                 0x477FF000, 0x33000001, 0x387FC000, 0x00000001, 0x3F801000,
                                 0x3F808000, 0x42AE0000, 0x43000001, 0x3F800000, 0x41300001};
  const Shape shape{40, 78, 64};
  for (int32_t activation = 0; activation < support::kActivations; ++activation) {
    for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
      Fields f;
      f.d_type = type, f.activation = activation, f.c_type = NVFP4_TYPE_F32, f.beta = 1;
      f.d_amax = support::Given{type == NVFP4_TYPE_BF16};
      Problem p = support::with_fields(forced(variant.c_str(), support::make_problem(shape)), f, 1);
      for (int64_t row = 0; row < shape.m; ++row)
        for (int64_t n = 0; n < shape.n; ++n) {
          // Without NaN and infinity in some rows, whose maxima are then numbers.
          const size_t first = row % 3 == 0 ? 0 : 5;
          const uint32_t bits = kEdges[first + size_t(row + n) % (15 - first)];
          p.set_c(0, row, n, bits | uint32_t(row + n / 15) << 31);
        }
      CAPTURE(variant, to_string(f));
      REQUIRE(difference_on_device(gpu.driver, p) == "");
    }
  }
}

// C has not even memory.
TEST_CASE("beta of 0 reads no C by rows on 9.0", "[fields]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE("sm90_64x64x256", "sm90_128x128x256");
  for (const int32_t mode : {NVFP4_SCALARS_HOST, NVFP4_SCALARS_DEVICE}) {
    for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_F32}) {
      Fields f;
      f.d_type = NVFP4_TYPE_BF16, f.c_type = type, f.scalar_mode = mode, f.beta = -0.0f;
      f.activation = NVFP4_ACTIVATION_SILU;
      const Problem p = support::with_fields(operands_of(variant, {9, 70, 64}, Data::exact), f, 3);
      DeviceGemm gemm(gpu.driver, p);
      gemm.desc.c = reinterpret_cast<void*>(uint64_t{1} << 46);
      REQUIRE(nvfp4_gemm_run(&gemm.desc, nullptr) == NVFP4_SUCCESS);
      REQUIRE(first_difference(p, gemm.d_bytes(), p.reference()) == "");
    }
  }
}
