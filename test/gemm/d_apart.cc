// SPDX-License-Identifier: MIT
// D that is made apart from its product: the product stores its sums in fp32 in the workspace, and
// a second kernel makes D of them. The bits are the reference's, and, of sums that are rounded,
// those of one launch by the same variant with as many K partitions.
#include <cstring>

#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using namespace gemm_test;
using support::DeviceGemm;
using support::Fields;
using support::Problem;

namespace {

std::string apart(const std::string& variant) { return variant + "/apart"; }

// Variants of every kind of tokens that serve the GPU.
std::vector<std::string> names(const Gpu& gpu, size_t turn) {
  std::vector<std::string> all;
  for (const char* name : gemm_test::some_variants(turn)) all.push_back(name);
  if (gpu.info.compute_capability() != 90) return all;
  for (const HalfVariant& each : gemm_test::some_half_variants(turn)) all.push_back(each.name);
  return all;
}

Problem operands(const std::string& variant, const Shape& shape, Data data, uint64_t seed) {
  const int32_t type = tile_of(variant).a_type;
  const Problem problem = make_problem(shape, data, seed);
  return type == NVFP4_TYPE_NONE ? problem : with_a16(problem, type, data, seed);
}

std::vector<uint8_t> bytes_by(const Gpu& gpu, Problem problem, const std::string& variant) {
  problem.variant = variant.c_str();
  return bytes_on_device(gpu.driver, problem);
}

// Whether D of a gated product can be made apart; on a GPU, where addresses are near each other.
bool is_made_apart(const Problem& p) {
  return p.cd_order == NVFP4_CD_ORDER_ROW_MAJOR && !p.d_amax && !p.d_row_amax &&
         (p.bias_type == NVFP4_TYPE_NONE || p.bias_axis == NVFP4_BIAS_AXIS_COLUMN);
}

Fields gate() {
  Fields f;
  f.b2 = support::kGiven, f.activation = NVFP4_ACTIVATION_SILU, f.d_type = NVFP4_TYPE_BF16;
  f.alpha = 0.02f, f.alpha2 = -0.03f, f.bias_type = NVFP4_TYPE_BF16;
  return f;
}

}  // namespace

TEST_CASE("apart: any fields by every tile", "[apart]") {
  const Gpu gpu;
  support::Random random(11);
  uint64_t seed = 1;
  size_t made = 0;
  for (const std::string& name : names(gpu, 0)) {
    const TileOf& tile = tile_of(name);
    for (const bool gated : {false, true}) {
      const Shape shape{1 + random.below(uint32_t(tile.tokens + 4)), 16 * (1 + random.below(10)),
                        16 * (1 + random.below(40)), gated ? 1 : 1 + random.below(2)};
      Fields f = gated ? random_gated_fields(shape, random) : random_fields(shape, random);
      if (gated && seed % 4 != 0)
        f.cd_order = NVFP4_CD_ORDER_ROW_MAJOR, f.d_amax = f.d_row_amax = {};
      if (!gated) f.activation = NVFP4_ACTIVATION_SILU;  // no fast epilogue has it
      const std::string variant = apart(name);
      Problem problem =
          with_fields(operands(name, shape, Data::exact, seed), support::possible(f, shape), seed);
      problem.variant = variant.c_str();
      CAPTURE(variant, to_string(shape), to_string(f));
      ++seed;
      if (gated && !is_made_apart(problem)) continue;
      CHECK(difference_on_device(gpu.driver, problem) == "");
      ++made;
    }
  }
  CHECK(made > names(gpu, 0).size());
}

TEST_CASE("apart: rounded sums give the bits of one launch", "[apart]") {
  const Gpu gpu;
  uint64_t seed = 1;
  for (const std::string& name : names(gpu, 1)) {
    const TileOf& tile = tile_of(name);
    for (const char* split : {"/1", "/2"}) {
      const Shape shape{tile.tokens + 1, 160, 3 * 256 + 64};
      Fields f;
      switch (seed++ % 4) {
        case 0:
          f.activation = NVFP4_ACTIVATION_GELU_ERF, f.c_type = NVFP4_TYPE_F32, f.beta = 0.5f;
          break;
        case 1: f.d_type = NVFP4_TYPE_NVFP4, f.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4; break;
        case 2: f.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR, f.d_type = NVFP4_TYPE_BF16; break;
        case 3: f.d_type = NVFP4_TYPE_MXFP4, f.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR; break;
      }
      const Problem problem =
          with_fields(operands(name, shape, Data::random, seed), support::possible(f, shape), seed);
      Problem one = problem;
      const std::string whole = name + split;
      one.variant = whole.c_str();
      const DeviceGemm gemm(gpu.driver, one);
      uint64_t bytes;  // of a variant that has such a split
      if (nvfp4_gemm_workspace_bytes(&gemm.desc, gpu.info.compute_capability(), &bytes) != 0) {
        continue;
      }
      CAPTURE(whole, to_string(f));
      CHECK(bytes_by(gpu, problem, whole) == bytes_by(gpu, problem, apart(whole)));
    }
  }
}

TEST_CASE("apart: a gated product of rounded sums has the bits of one launch", "[apart]") {
  const Gpu gpu;
  if (gpu.info.compute_capability() != 90) return;
  uint64_t seed = 5;
  for (const char* const name : {"sm90_128x16x256/1", "sm90_128x16x256/4", "sm90_128x128x256/1",
                                 "sm90_bf16_128x64x256/2", "sm90_f16_128x128x256/1"}) {
    // 64 columns are a tile of the one form, 128 of the other.
    const std::string tile = std::string(name).substr(0, std::string(name).find('/'));
    const Shape shape{tile_of(tile).tokens + 3, 192, 5 * 256 + 128};
    Fields f = gate();
    if (seed % 2) f.d_type = NVFP4_TYPE_NVFP4, f.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    const Problem problem =
        with_fields(operands(tile, shape, Data::random, seed), support::possible(f, shape), seed);
    CAPTURE(name, to_string(f));
    CHECK(bytes_by(gpu, problem, name) == bytes_by(gpu, problem, apart(name)));
    ++seed;
  }
}

// The product takes the matrix with the lower addresses first.
TEST_CASE("apart: b2 before b in memory and behind it and the same", "[apart]") {
  const Gpu gpu;
  if (gpu.info.compute_capability() != 90) return;
  const Shape shape{5, 128, 512};
  const Problem problem = with_fields(make_problem(shape, Data::exact, 3), gate(), 3);
  const std::string variant = "sm90_64x8x256/apart";
  DeviceGemm gemm(gpu.driver, problem);
  // Reads gemm.desc, in which addresses are exchanged.
  const auto d_by = [&](const char* name) {
    gemm.desc.variant = name;
    gemm.fit_workspace();
    REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    return gemm.d_bytes();
  };
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 1) {
      std::swap(gemm.desc.b, gemm.desc.b2);
      std::swap(gemm.desc.b_scales, gemm.desc.b2_scales);
    }
    if (turn == 2) gemm.desc.b2 = gemm.desc.b, gemm.desc.b2_scales = gemm.desc.b_scales;
    CAPTURE(turn);
    const std::vector<uint8_t> one = d_by("sm90_128x16x256");
    CHECK(one == d_by(variant.c_str()));
  }
}

TEST_CASE("apart: a plan takes other addresses and refuses b2 too far from b", "[apart]") {
  const Gpu gpu;
  if (gpu.info.compute_capability() != 90) return;
  const Shape shape{17, 128, 512};
  const std::string variant = "sm90_64x32x256/apart";
  Problem problem = with_fields(make_problem(shape, Data::exact, 3), gate(), 3);
  problem.variant = variant.c_str();
  const DeviceGemm first(gpu.driver, problem);
  Problem other = with_fields(make_problem(shape, Data::exact, 8), gate(), 8);
  other.variant = variant.c_str();
  const DeviceGemm second(gpu.driver, other);
  const support::Plan plan(first.desc);
  nvfp4_gemm_addresses x = support::addresses_of(second.desc);
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(first_difference(other, second.d_bytes(), other.reference()) == "");
  // The other way round the distance from b to b2 is another one.
  std::swap(x.b, x.b2), std::swap(x.b_scales, x.b2_scales);
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  std::swap(other.b, other.b2);
  CHECK(first_difference(other, second.d_bytes(), other.reference()) == "");
  x.b2 = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(x.b) ^ (uintptr_t{1} << 41));
  CHECK(plan.run(x) == NVFP4_STATUS_INVALID_VALUE);
}

// Each run's kernels begin before the one ahead has ended, and all use one workspace.
TEST_CASE("apart: runs that begin early find the sums of the run ahead read", "[apart][pdl]") {
  const Gpu gpu;
  for (const std::string& name : names(gpu, 2)) {
    Fields f;
    f.activation = NVFP4_ACTIVATION_RELU, f.d_type = NVFP4_TYPE_BF16;
    Problem problem = with_fields(operands(name, {9, 70, 256}, Data::exact, 93), f, 93);
    const std::string variant = apart(name);
    problem.variant = variant.c_str();
    problem.pdl = NVFP4_PDL_ON_STATIC_WEIGHTS;
    CAPTURE(variant);
    const DeviceGemm gemm(gpu.driver, problem);
    REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
    for (int run = 0; run < 3; ++run) REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    CHECK(first_difference(problem, gemm.d_bytes(), problem.reference()) == "");
    CHECK(gemm.damage() == "");
  }
}
