// SPDX-License-Identifier: MIT
// Tiles of which a CTA of 9.0 computes one after the other where K is not shared, and a pair of
// CTAs on 10.x: with more tiles than SMs the rings go on from tile to tile, and on 10.x sums are
// stored while the next tile's are added up.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using gemm_test::Setting;

namespace {

// Two tiles of tokens, of which the second has nine, and `weights` of them along N, the last cut
// short: of a pair's the second CTA has a column block that is cut short, or lies beyond N.
Problem several(const char* variant, int64_t weights, int64_t k, int64_t l = 1,
                int64_t beyond = 60) {
  const int64_t m = gemm_test::tile_tokens(variant) + 9;
  const int64_t n = weights * gemm_test::tile_weights(variant) - beyond;
  return forced(variant, make_problem({m, n, k, l}, Data::exact, 950));
}

// Rows of D that only 2-byte stores reach, a gap after each batch, and tokens that may come late.
void require_batches(const gemm_test::Gpu& gpu, Problem problem) {
  gemm_test::require_reference_bits(gpu, problem);
  problem.d_ld = problem.n + 3;
  problem.d_batch_stride = problem.m * problem.d_ld + 7;
  problem.pdl = NVFP4_PDL_ON_STATIC_WEIGHTS;
  gemm_test::require_reference_bits(gpu, problem);
}

// What each column and each element has of its own.
support::Fields with_c_and_bias(support::Fields f) {
  f.bias_type = NVFP4_TYPE_F32, f.bias_axis = NVFP4_BIAS_AXIS_COLUMN;
  f.c_type = NVFP4_TYPE_F16, f.beta = 0.75f;
  return f;
}

// In the emulator the widest does what the one before it does, and takes longest: one test has it.
std::vector<const char*> of_several_tiles(const gemm_test::Gpu& gpu, bool widest) {
  std::vector<const char*> all = {"sm90_128x128x256/1", "sm90_128x192x256/1", "sm90_128x256x256/1"};
  if (gpu.small() && !gemm_test::everything() && !widest) all.pop_back();
  return gemm_test::taken(all);
}

}  // namespace

#define USE_FEW_SMS(gpu, widest)                                     \
  USE_GPU_OF_FAMILY(gpu, 9);                                         \
  if ((gpu).small() && (gpu).info.sms > 4) {                         \
    SKIP_TEST("an emulated Hopper takes few SMs for it: EMU_SMS=3"); \
  }                                                                  \
  const char* variant = GENERATE_REF(from_range(of_several_tiles(gpu, widest)))

// K of one k-block, which is less than a CTA loads in advance; of two, the second with a K tail; on
// a GPU also of so many that the rings wrap within a tile. A CTA has six or seven tiles.
TEST_CASE("a CTA of 9.0 computes one tile after the other", "[tiles]") {
  USE_FEW_SMS(gpu, true);
  for (const int64_t k : {64, 448, 2112}) {
    if (gpu.small() && k == 2112) continue;
    // So many after the last whole round that no cluster shares them.
    const Problem problem = several(variant, 3 * gpu.info.sms + gpu.sized(40, 1), k);
    REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, problem).desc) == 1);
    gemm_test::require_reference_bits(gpu, problem);
  }
}

TEST_CASE("a CTA of 9.0 goes on from batch to batch", "[tiles]") {
  USE_FEW_SMS(gpu, false);
  const Problem problem = several(variant, gpu.info.sms / 2 + 1, 320, 3);
  REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, problem).desc) == 1);
  require_batches(gpu, problem);
}

// Sums in fp32 beside the rings, which go on meanwhile.
TEST_CASE("a CTA of 9.0 computes one tile after the other with any epilogue", "[tiles][epilogue]") {
  USE_FEW_SMS(gpu, false);
  support::Random random(950);
  const int64_t sms = gpu.info.sms;
  for (const int64_t l : {1, 3}) {
    // On a GPU half of the CTAs have a second tile: the reference takes longer than all else.
    const int64_t pairs = gpu.sized(l == 1 ? sms * 3 / 4 + 1 : sms / 4 + 1, l == 1 ? sms : 2);
    REQUIRE(2 * pairs * l > sms);
    const Problem operands = several(variant, pairs, 320, l);
    support::Fields f = random_fields(operands.shape(), random);
    if (l == 1) f = with_c_and_bias(f);
    const support::Problem p = support::with_fields(operands, f, 1);
    CAPTURE(to_string(p));
    const support::DeviceGemm gemm(gpu.driver, p);
    REQUIRE(gemm_test::split_of(gpu, gemm.desc) == 1);
    REQUIRE(difference_on_device(gpu.driver, p) == "");
  }
}

// Each tile has other columns, and its own bias and factor of B.
TEST_CASE("a CTA of 9.0 goes from tile to tile with factors and a bias of columns",
          "[tiles][epilogue]") {
  USE_FEW_SMS(gpu, false);
  support::Random random(970);
  for (const int32_t bias : {NVFP4_TYPE_NONE, NVFP4_TYPE_BF16}) {
    support::Fields f = random_column_fields(random);
    f.bias_type = bias;
    f.b_tensor_scale = support::kGiven, f.b_tensor_scale_columns = 64;
    const Problem operands = several(variant, gpu.info.sms + 1, 320);
    const support::Problem p = support::with_fields(operands, f, 1);
    CAPTURE(to_string(p));
    REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc) == 1);
    REQUIRE(difference_on_device(gpu.driver, p) == "");
  }
}

// One warp of a CTA waits for the tokens' kernel.
TEST_CASE("9.0 launches a CTA for each SM where there are more tiles", "[tiles]") {
  USE_FEW_SMS(gpu, false);
  USE_EMULATOR(gpu, emulator);
  const int64_t sms = gpu.info.sms;
  support::run_on_device(gpu.driver, several(variant, sms, 64));
  CHECK(emulator.counter("dependency_waits") == uint64_t(sms));
  support::run_on_device(gpu.driver, several(variant, 1, 64));
  CHECK(emulator.counter("dependency_waits") == uint64_t(std::min<int64_t>(sms, 2)));
}

// A plain product takes the entry for several tiles, one with another epilogue that for all
// products.
TEST_CASE("a CTA of 9.0 goes from tile to tile with few tokens", "[tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && gpu.info.sms > 4) {
    SKIP_TEST("an emulated Hopper takes few SMs for it: EMU_SMS=3");
  }
  const char* variant = GENERATE("sm90_64x1x256/1", "sm90_64x8x256/1", "sm90_128x16x256/1");
  const int64_t tiles = gpu.sized<int64_t>(132 + 67, 4 * gpu.info.sms + 1);
  const support::Shape shape{std::min<int64_t>(3, gemm_test::tile_tokens(variant)),
                             tiles * gemm_test::tile_weights(variant) - 36, 832};
  const Problem problem = forced(variant, make_problem(shape, Data::exact, 951));
  REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, problem).desc) == 1);
  gemm_test::require_reference_bits(gpu, problem);
  support::Fields f;
  f.d_type = NVFP4_TYPE_F32;
  REQUIRE(difference_on_device(gpu.driver, support::with_fields(problem, f, 1)) == "");
}

// Tokens in bf16, or in MXFP4 where they are few.
TEST_CASE("a CTA of 9.0 goes from tile to tile with MXFP4 weights", "[tiles][formats]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && gpu.info.sms > 4) {
    SKIP_TEST("an emulated Hopper takes few SMs for it: EMU_SMS=3");
  }
  const char* variant =
      GENERATE("sm90_bf16_64x16x256/1", "sm90_bf16_128x128x256/1", "sm90_64x2x256/1");
  if (!gemm_test::is_taken(variant)) return;
  const bool codes = gemm_test::tile_of(variant).a_type == NVFP4_TYPE_NONE;
  const int64_t tiles = gpu.sized<int64_t>(132 + 67, 2 * gpu.info.sms + 1);
  const support::Shape shape{codes ? 2 : 9, tiles * gemm_test::tile_weights(variant) - 36,
                             codes ? 832 : 320};
  const Problem made = with_format(make_problem(shape, Data::exact, 952),
                                   NVFP4_OPERAND_FORMAT_MXFP4, Data::exact, 952);
  const Problem problem =
      forced(variant, codes ? made : with_a16(made, NVFP4_TYPE_BF16, Data::exact, 952));
  REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, problem).desc) == 1);
  gemm_test::require_reference_bits(gpu, problem);
}

#define USE_FEW_PAIRS(gpu)                                              \
  USE_GPU_OF_FAMILY(gpu, 10);                                           \
  if ((gpu).info.emulated() && (gpu).info.sms > 5) {                    \
    SKIP_TEST("an emulated Blackwell takes few SMs for it: EMU_SMS=5"); \
  }                                                                     \
  const char* variant = GENERATE("sm100_256x128x256", "sm100_256x256x256")

// One step; a k-block and a cut step; more k-blocks than the ring has stages, and not a multiple. A
// pair has five tiles or six: each accumulator is used twice and more.
TEST_CASE("a pair of 10.x computes one tile after the other whenever its work completes",
          "[tiles][order]") {
  USE_FEW_PAIRS(gpu);
  USE_EMULATOR(gpu, emulator);
  const int64_t pairs = gpu.info.sms / 2;
  for (const std::string order : {"soonest", "latest", "random"}) {
    for (const std::string seed : {"1", "2"}) {
      if (seed != "1" && (order != "random" || !gemm_test::everything())) continue;
      for (const int64_t k : {64, 16, 272, 2112, 2064}) {
        // The late order takes both K that go round the ring, each other order one of them.
        const int64_t left_out = order == "soonest" ? 2064 : order == "random" ? 2112 : 0;
        if (k == left_out && !gemm_test::everything()) continue;
        INFO(order << ", seed " << seed << ", K " << k);
        const int64_t weights = k > 1000 ? pairs * 3 / 2 + 1 : pairs * 5 / 2 + 1;
        const Problem problem = several(variant, weights, k, 1, k % 64 == 0 ? 64 : 140);
        const Setting when(emulator, "EMU_ORDER", order, "random");
        const Setting number(emulator, "EMU_SEED", seed, "1");
        gemm_test::require_reference_bits(gpu, problem);
      }
    }
  }
}

TEST_CASE("a pair of 10.x goes on from batch to batch", "[tiles][batch][pdl]") {
  USE_FEW_PAIRS(gpu);
  require_batches(gpu, several(variant, gpu.info.sms / 4 + 1, 320, 3));
}

// Each tile has rows and columns of its own; D leaves by boxes of 2 bytes, or by threads.
// Eight token tiles with all weights, then the last three.
TEST_CASE("pairs of 10.x compute every tile by group after group of token tiles",
          "[tiles][batch]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const support::Shape shape{10 * 128 + 9, 2 * 256 + 17, 64, 2};
  const Problem p = forced("sm100_256x128x256", make_problem(shape, Data::exact, 981));
  gemm_test::require_reference_bits(gpu, p);
}

TEST_CASE("a pair of 10.x computes one tile after the other with any epilogue",
          "[tiles][epilogue]") {
  USE_FEW_PAIRS(gpu);
  support::Random random(980);
  for (const int32_t d_type : {NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    const Problem operands = several(variant, gpu.info.sms / 2 + 1, 320, 1, 64);
    support::Fields f = with_c_and_bias(random_fields(operands.shape(), random));
    f.d_type = d_type;
    const support::Problem p = support::with_fields(operands, f, 1);
    CAPTURE(to_string(p));
    REQUIRE(difference_on_device(gpu.driver, p) == "");
  }
}

// One thread of a CTA waits for the tokens' kernel.
TEST_CASE("10.x launches a pair for every two SMs where there are more tiles", "[tiles]") {
  USE_FEW_PAIRS(gpu);
  USE_EMULATOR(gpu, emulator);
  const int64_t pairs = gpu.info.sms / 2;
  support::run_on_device(gpu.driver, several(variant, pairs, 64, 1, 0));
  CHECK(emulator.counter("dependency_waits") == uint64_t(2 * pairs));
  support::run_on_device(gpu.driver, several(variant, 1, 64, 1, 0));
  CHECK(emulator.counter("dependency_waits") == uint64_t(std::min<int64_t>(2 * pairs, 4)));
}

// The exception that kernel/sm100/tile.h names. Any other finding stops a launch of these tests.
TEST_CASE(
    "one formal rule is broken where accumulators of 10.x overlap and no other tile breaks it",
    "[tiles][order]") {
  USE_FEW_PAIRS(gpu);
  USE_EMULATOR(gpu, emulator);
  const bool overlaps = gemm_test::tile_tokens(variant) == 256;
  const Setting formal(emulator, "EMU_FORMAL", "report", "report");
  const Setting none(emulator, "EMU_EXCEPT", "", "");
  const Problem problem = several(variant, gpu.info.sms / 2 * 3, 576, 1, 140);
  gemm_test::require_reference_bits(gpu, problem);
  CHECK((emulator.broken("reused_columns") > 0) == overlaps);
  CHECK(emulator.counter("formal_hazards") == emulator.broken("reused_columns"));
}

// What the order of copy and MMA is for: on a GPU without it 256x256 needs NVFP4_MMA_BEFORE_CP=0.
TEST_CASE("256x256 is wrong where a cp overtakes an mma", "[tiles][order]") {
  USE_FEW_PAIRS(gpu);
  USE_EMULATOR(gpu, emulator);
  if (gemm_test::tile_tokens(variant) != 256) return;
  const Setting when(emulator, "EMU_ORDER", "latest", "random");
  const Problem problem = several(variant, gpu.info.sms / 2 * 3, 576, 1, 140);
  const std::vector<uint16_t> reference = support::reference(problem);
  for (const std::string overtakes : {"0", "1"}) {
    const Setting cp(emulator, "EMU_CP_OVERTAKES", overtakes, "0");
    const support::BitVerdict bits = support::compare_bits(
        problem.shape(), support::run_on_device(gpu.driver, problem), reference);
    CHECK((bits.equal == bits.total) == (overtakes == "0"));
  }
}
