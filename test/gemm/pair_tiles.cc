// SPDX-License-Identifier: MIT
// Tiles of a pair of CTAs on 10.x, which computes one after the other: the ring goes on from tile
// to tile, and sums are stored while the next tile's are added up.
#include <algorithm>
#include <string>

#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "test/gemm/sizes.h"
#include "tools/harness/general_gemm.h"

using gemm_test::forced;
using gemm_test::Setting;
using support::Data;
using support::make_problem;
using support::Problem;

namespace {

// Two tiles of tokens, of which the second has nine, and `weights` of them along N. The last one's
// second CTA has a column block that is cut short, or lies beyond N.
Problem several(const char* variant, int64_t weights, int64_t k, int64_t beyond, int64_t l = 1) {
  const int64_t m = gemm_test::tile_tokens(variant) + 9;
  const int64_t n = weights * gemm_test::tile_weights(variant) - beyond;
  return forced(variant, make_problem({m, n, k, l}, Data::exact, 980));
}

}  // namespace

#define USE_FEW_PAIRS(gpu)                                              \
  USE_GPU_OF_FAMILY(gpu, 10);                                           \
  if ((gpu).info.emulated() && (gpu).info.sms > 5) {                    \
    SKIP_TEST("an emulated Blackwell takes few SMs for it: EMU_SMS=5"); \
  }                                                                     \
  const char* variant = GENERATE("sm100_256x128x256", "sm100_256x256x256")

// One step; a filling and a cut step; more fillings than the ring has stages, and not a multiple. A
// pair has five tiles or six: each accumulator is used twice and more.
TEST_CASE("a pair of 10.x computes one tile after the other, whenever its work completes",
          "[tiles][order]") {
  USE_FEW_PAIRS(gpu);
  USE_EMULATOR(gpu, emulator);
  const int64_t pairs = gpu.info.sms / 2;
  for (const std::string order : {"soonest", "latest", "random"}) {
    for (const std::string seed : {"1", "2"}) {
      if (seed != "1" && (order != "random" || !gemm_test::everything())) continue;
      for (const int64_t k : {64, 16, 272, 2112, 2064}) {
        INFO(order << ", seed " << seed << ", K " << k);
        const int64_t weights = k > 1000 ? pairs * 3 / 2 + 1 : pairs * 5 / 2 + 1;
        const Problem problem = several(variant, weights, k, k % 64 == 0 ? 64 : 140);
        const Setting when(emulator, "EMU_ORDER", order, "random");
        const Setting number(emulator, "EMU_SEED", seed, "1");
        gemm_test::require_reference_bits(gpu, problem);
      }
    }
  }
}

// Rows of D that only 2-byte stores reach, a gap after each batch, and tokens that may come late.
TEST_CASE("a pair of 10.x goes on from batch to batch", "[tiles][batch][pdl]") {
  USE_FEW_PAIRS(gpu);
  Problem problem = several(variant, gpu.info.sms / 4 + 1, 320, 60, 3);
  gemm_test::require_reference_bits(gpu, problem);
  problem.d_ld = problem.shape.n + 3;
  problem.d_batch_stride = problem.shape.m * problem.d_ld + 7;
  problem.pdl = NVFP4_PDL_ON_STATIC_WEIGHTS;
  gemm_test::require_reference_bits(gpu, problem);
}

// Each tile has rows and columns of its own; D leaves by boxes of 2 bytes, or by threads.
// Eight token tiles with all weights, then the last three.
TEST_CASE("pairs of 10.x compute every tile, group after group of token tiles", "[tiles][batch]") {
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
    const Problem operands = several(variant, gpu.info.sms / 2 + 1, 320, 64);
    support::EpilogueFields f = random_fields(operands.shape, random);
    f.d_type = d_type;
    f.bias_type = NVFP4_TYPE_F32, f.bias_axis = NVFP4_BIAS_AXIS_COLUMN;
    f.c_type = NVFP4_TYPE_F16, f.beta = 0.75f;
    const support::GeneralProblem p(operands, f, 1);
    CAPTURE(to_string(p.fields));
    REQUIRE(difference_on_device(gpu.driver, p) == "");
  }
}

// One thread of a CTA waits for the tokens' kernel.
TEST_CASE("10.x launches a pair for every two SMs where there are more tiles", "[tiles]") {
  USE_FEW_PAIRS(gpu);
  USE_EMULATOR(gpu, emulator);
  const int64_t pairs = gpu.info.sms / 2;
  support::run_on_device(gpu.driver, several(variant, pairs, 64, 0));
  CHECK(emulator.counter("dependency_waits") == uint64_t(2 * pairs));
  support::run_on_device(gpu.driver, several(variant, 1, 64, 0));
  CHECK(emulator.counter("dependency_waits") == uint64_t(std::min<int64_t>(2 * pairs, 4)));
}
