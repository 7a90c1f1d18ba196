// SPDX-License-Identifier: MIT
// What only the kernels of compute capability 9.0 do. Every other test here runs on an H200 as
// well, an emulated one included (test/jobs.txt), there at smaller sizes.
#include <cstring>

#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

TEST_CASE("each tile of 9.0 gives the reference's bits and alone and along K in clusters",
          "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = EACH_VARIANT;
  // Tails of M, N and K, two batches; the second is cut into several CTAs along K.
  support::Shape shape = GENERATE(support::Shape{11, 130, 320, 2}, support::Shape{9, 70, 2880});
  shape.m = gemm_test::few_tokens(gpu, variant, shape.m);
  const Problem problem = forced(variant, make_problem(shape, Data::exact, 900));
  if (shape.k == 2880) {
    CHECK(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, problem).desc) > 1);
  }
  gemm_test::require_reference_bits(gpu, problem);
}

// Parts of a stage, or of a piece of one.
TEST_CASE("CTAs of 9.0 share a short K in as many parts as the caller names", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const auto [shape, variant] =
      GENERATE(table<support::Shape, const char*>({{{3, 70, 272}, "sm90_64x4x256/2"},
                                                   {{17, 136, 784}, "sm90_64x16x256/3"},
                                                   {{33, 130, 784}, "sm90_64x64x256/4"},
                                                   {{9, 70, 1808}, "sm90_64x8x256/8"}}));
  CAPTURE(variant);
  const Problem p = forced(variant, make_problem(shape, Data::exact, 978));
  const int partitions = variant[strlen(variant) - 1] - '0';
  CHECK(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc) == partitions);
  gemm_test::require_reference_bits(gpu, p);
}

TEST_CASE("off the exact grid each tile of 9.0 is inside the bound", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = EACH_VARIANT;
  const Problem problem = forced(variant, make_problem({9, 40, 1344}, Data::random, 901));
  CHECK(gemm_test::inside_bound(gpu, problem, support::run_on_device(gpu.driver, problem)));
}

// Four stages a CTA, one for each group that takes turns with them. The first two are large and add
// up to zero, the others small: a sum in another order loses bits that D has.
TEST_CASE("equal tokens give equal bits wherever they lie in a tile of 9.0", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  std::string variant = EACH_VARIANT;
  support::Shape shape{gemm_test::tile_tokens(variant), 40, 8192};  // eight CTAs
  if (gpu.small() && !gemm_test::everything()) variant += "/2", shape.k = 2048;
  Problem problem = forced(variant.c_str(), make_problem(shape, Data::random, 912));
  const auto spread = [](support::Operand& o, bool one_row, uint8_t flipped) {
    for (int64_t row = 0; row < o.rows; ++row) {
      const int64_t like = one_row ? 0 : row;
      for (int64_t k = 0; k < o.k; ++k) {
        const bool second = k / 256 % 4 == 1;
        const uint8_t code = o.code(0, like, second ? k - 256 : k);
        o.set_code(0, row, k, second ? code ^ flipped : code);
        o.set_scale(0, row, k / 16, k / 256 % 4 < 2 ? 0x60 : 0x10);  // 32 and 1/32
      }
    }
  };
  spread(problem.a, true, 0);
  spread(problem.b, false, 8);  // E2M1's sign
  problem.alpha = 1;
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, problem);
  for (int64_t row = 1; row < shape.m; ++row) {
    CAPTURE(variant, row);
    REQUIRE(std::equal(d.begin(), d.begin() + shape.n, d.begin() + row * shape.n));
  }
}

TEST_CASE("nineteen stages in three parts", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  // 32 tiles: clusters of four do not all run at once. With 16 tokens the last CTA stores four. In
  // the emulator two tiles.
  const bool few = gpu.small() && !gemm_test::everything();
  const std::string tile = GENERATE("sm90_64x1x256", "sm90_64x16x256");
  const std::string variant = few ? tile + "/3" : tile;
  const support::Shape shape{gemm_test::tile_tokens(tile), few ? 128 : 2048, 4864};
  const Problem problem = forced(variant.c_str(), make_problem(shape, Data::exact, 908));
  nvfp4_gemm_desc desc = support::DeviceGemm(gpu.driver, problem).desc;
  CHECK(gemm_test::split_of(gpu, desc) == 3);
  desc.n = desc.d_ld = 2048, desc.variant = tile.c_str();
  CHECK(gemm_test::split_of(gpu, desc) == 3);
  gemm_test::require_reference_bits(gpu, problem);
}

// A tile that is alone is cut into eight parts. In stages of each part: 5 or 6, 10, 19 and 31,
// which is twice round all rings but the longest, of 17; in the emulator two parts, by the ring's
// length.
TEST_CASE("the rings of 9.0 wrap in every part of K", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = EACH_VARIANT;
  const int64_t tokens = gemm_test::tile_tokens(variant);
  if (gpu.small() && !gemm_test::everything()) {
    const support::Shape shape{std::min<int64_t>(tokens, 7), 40, gemm_test::k_twice_round(variant)};
    gemm_test::require_reference_bits(gpu, forced((variant + std::string("/2")).c_str(),
                                                  make_problem(shape, Data::gpumode, 907)));
    return;
  }
  for (const int64_t k : {10304, 20544, 38912, 63040}) {
    gemm_test::require_reference_bits(
        gpu,
        forced(variant, make_problem({std::min<int64_t>(tokens, 7), 70, k}, Data::gpumode, 907)));
  }
}

namespace {

// Each block has all codes, in each row from another one on, and a scale of its own.
void fill_with_pairs(support::Operand& operand) {
  for (int64_t row = 0; row < operand.rows; ++row) {
    for (int64_t k = 0; k < operand.k; ++k) operand.set_code(0, row, k, uint8_t((k + row) % 16));
    for (int64_t block = 0; block < operand.k / 16; ++block)
      operand.set_scale(0, row, block, uint8_t((row * operand.k / 16 + block) % 127));
  }
}

// Row r takes element r of the other operand.
void fill_with_units(support::Operand& operand) {
  for (int64_t row = 0; row < operand.rows; ++row) {
    for (int64_t k = 0; k < operand.k; ++k) operand.set_code(0, row, k, k == row ? 2 : 0);
    for (int64_t block = 0; block < operand.k / 16; ++block) operand.set_scale(0, row, block, 0x38);
  }
}

}  // namespace

TEST_CASE("all 16 x 127 pairs of element and scale are decoded exactly on 9.0", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = GENERATE("sm90_64x4x256", "sm90_64x8x256",
                                 "sm90_128x64x256");  // tokens decoded here, before
  constexpr int64_t kK = 64, kRows = 128 / (kK / 16);
  Problem weights = forced(variant, make_problem({kK, kRows, kK}, Data::exact, 904));
  fill_with_units(weights.a);
  fill_with_pairs(weights.b);
  CHECK(support::run_on_device(gpu.driver, weights) == support::reference(weights));
  Problem tokens = forced(variant, make_problem({kRows, kK, kK}, Data::exact, 905));
  fill_with_pairs(tokens.a);
  fill_with_units(tokens.b);
  CHECK(support::run_on_device(gpu.driver, tokens) == support::reference(tokens));
}

TEST_CASE("a NaN scale on 9.0 makes NaN of its row or column alone", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant =
      GENERATE("sm90_64x1x256", "sm90_64x4x256", "sm90_64x8x256", "sm90_128x64x256");
  Problem problem = forced(variant, make_problem({5, 20, 320}, Data::exact, 902));
  problem.a.set_scale(0, 3, 7, 0x7F);
  problem.b.set_scale(0, 11, 19, 0x7F);
  CHECK(support::run_on_device(gpu.driver, problem) == support::reference(problem));
}

// After the kernel that puts tokens into the workspace weights are always loaded ahead of the
// wait.
TEST_CASE("9.0 waits for earlier grids before tokens and before weights that they may write",
          "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  struct Tile {
    const char* variant;
    bool workspace;
    uint64_t tiles, stage_bytes;
  };
  constexpr uint64_t kScales = 128 * 256 / 16;
  const Tile tile = GENERATE(Tile{"sm90_64x4x256", false, 15, 64 * 256 / 2 + kScales},
                             Tile{"sm90_64x8x256", false, 9, 64 * 256 / 2 + kScales},
                             Tile{"sm90_128x64x256", true, 2, 128 * 256 / 2 + kScales});
  // Two stages: no tile asks for fewer before any has arrived.
  constexpr uint64_t kStages = 2;
  Problem problem = forced(tile.variant, make_problem({20, 130, 512}, Data::exact, 904));
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(tile.variant, pdl);
    problem.pdl = pdl;
    support::run_on_device(gpu.driver, problem);
    const bool early = tile.workspace || pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
    CHECK(emulator.counter("dependency_waits") >= tile.tiles);
    CHECK(emulator.counter("early_bytes") == (early ? tile.tiles * kStages * tile.stage_bytes : 0));
  }
}

// Without guards memory ends with A: the emulator faults on the byte after it, and a GPU may.
TEST_CASE("no token beyond M is read on 9.0", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = EACH_VARIANT;
  const Problem problem = forced(variant, make_problem({1, 20, 320}, Data::exact, 909));
  support::DeviceGemm gemm(gpu.driver, problem);
  const size_t row_bytes = size_t(problem.k / 2);
  CUdeviceptr exact = 0;
  gpu.driver.check(gpu.driver.cuMemAlloc(&exact, row_bytes), "cuMemAlloc");
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(exact, problem.a.codes.data(), row_bytes),
                   "cuMemcpyHtoD");
  gemm.desc.a = reinterpret_cast<void*>(exact);
  CHECK(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
  gpu.driver.check(gpu.driver.cuMemFree(exact), "cuMemFree");
}

TEST_CASE("without the workspace that 9.0 needs a run is refused and D stays", "[sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  support::DeviceGemm gemm(gpu.driver,
                           forced("sm90_128x64x256", make_problem({5, 20, 320}, Data::exact, 903)));
  gemm.desc.workspace = nullptr;
  CHECK(gemm.enqueue() == NVFP4_STATUS_NULL_POINTER);
  gemm.desc.workspace = reinterpret_cast<char*>(gemm.desc.d) + (1 << 20);
  gemm.desc.workspace_bytes -= 1;
  CHECK(gemm.enqueue() == NVFP4_STATUS_INVALID_VALUE);
  for (const uint16_t element : gemm.d()) REQUIRE(element == 0xFFFF);
}
