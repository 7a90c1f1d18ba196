// SPDX-License-Identifier: MIT
// The 256x256 tile of 10.x as -DNVFP4_MMA_BEFORE_CP=0 compiles it, which the library has not: with
// one accumulator, and slots of their own for its scales.
#include "test/gemm/direct.h"
#include "test/gemm/emulator.h"

using gemm_test::Setting;
using support::Module;
using Tile = nvfp4::Sm100Tile_256x256;

namespace {

constexpr int64_t kRingK = Tile::kStages * Tile::kK;

struct Map {
  CUtensorMapDataType type;
  uint64_t elements, rows;
  uint32_t bytes, box_elements, box_rows;  // of an element, then of a box
  CUtensorMapSwizzle swizzle;

  nvfp4::TensorMap of(const support::Driver& driver, const void* first) const {
    CUtensorMap made;
    const cuuint64_t dims[] = {elements, rows, 1};
    const cuuint64_t strides[] = {elements * bytes, elements * bytes * rows};
    const cuuint32_t box[] = {box_elements, box_rows, 1}, steps[] = {1, 1, 1};
    driver.check(driver.cuTensorMapEncodeTiled(&made, type, 3, const_cast<void*>(first), dims,
                                               strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                               swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "cuTensorMapEncodeTiled");
    nvfp4::TensorMap out;
    static_assert(sizeof out == sizeof made);
    std::memcpy(&out, &made, sizeof out);
    return out;
  }
};

nvfp4::Sm100Params params_of(const support::Driver& driver, const nvfp4_gemm_desc& g) {
  const auto m = uint32_t(g.m), n = uint32_t(g.n), k = uint32_t(g.k);
  REQUIRE((g.l == 1 && k % 64 == 0 && n % 8 == 0 && g.a_ld == k && g.b_ld == k && g.d_ld == n));
  nvfp4::Sm100Params p{};
  p.m = m, p.n = n, p.k = k, p.alpha = g.alpha, p.split = 1;
  p.d = g.d, p.d_ld = n;
  p.epilogue.d_type = nvfp4::kTypeF16;
  p.epilogue.d_row = n, p.epilogue.d_column = 1;
  p.epilogue.columns_a_factor = n;
  p.tiles_m = (m + Tile::kTokens - 1) / Tile::kTokens;
  p.tiles_n = (n + Tile::kWeights - 1) / Tile::kWeights;
  p.tiles = p.tiles_m * p.tiles_n;
  REQUIRE(p.tiles_m < nvfp4::kTokenGroup);
  p.by_tiles_m = p.by_last_group = nvfp4::divisor_of(p.tiles_m);
  p.by_tiles_n = nvfp4::divisor_of(p.tiles_n);
  p.by_batch = p.by_group = nvfp4::divisor_of(p.tiles);
  p.token_policy = nvfp4::kTokensEvictedLast;
  p.weight_unit_bytes = nvfp4::kScaleTileBytes;
  const auto codes = [&](uint32_t rows, uint32_t box) {
    return Map{CU_TENSOR_MAP_DATA_TYPE_UINT8, k / 2, rows, 1, Tile::kK / 2, box,
               CU_TENSOR_MAP_SWIZZLE_128B};
  };
  const auto scales = [&](uint32_t rows) {
    constexpr uint32_t kElements = nvfp4::kScaleMapElements;
    return Map{CU_TENSOR_MAP_DATA_TYPE_UINT64,
               k / 64 * kElements,
               (rows + 127) / 128,
               8,
               Tile::kSteps * kElements,
               1,
               CU_TENSOR_MAP_SWIZZLE_NONE};
  };
  p.weights = codes(n, Tile::kCtaWeights).of(driver, g.b);
  p.tokens = codes(m, Tile::box_tokens(m)).of(driver, g.a);
  p.weight_scale_map = scales(n).of(driver, g.b_scales);
  p.token_scale_map = scales(m).of(driver, g.a_scales);
  p.d_by_tma = 1;
  p.d_map = Map{CU_TENSOR_MAP_DATA_TYPE_UINT16, n, m, 2, nvfp4::kBoxSide, nvfp4::kBoxSide,
                CU_TENSOR_MAP_SWIZZLE_NONE}
                .of(driver, g.d);
  return p;
}

// One pair computes every tile.
void launch(const support::Driver& driver, const Module& module, nvfp4::Sm100Params params) {
  const CUfunction kernel = module.function("nvfp4_gemm_sm100_256x256_plain");
  driver.check(driver.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         int(Tile::kSharedBytes)),
               "cuFuncSetAttribute");
  CUlaunchAttribute pair{};
  pair.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  pair.value.clusterDim = {2, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = 2, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = Tile::kThreads, config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = Tile::kSharedBytes;
  config.attrs = &pair, config.numAttrs = 1;
  void* arguments[] = {&params};
  driver.check(driver.cuLaunchKernelEx(&config, kernel, arguments, nullptr), "cuLaunchKernelEx");
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

// A problem with the reference's bits, and what the kernel makes of it.
struct Run {
  const Problem problem;
  const std::vector<uint16_t> reference = support::reference(problem);
  std::string report = {};

  support::BitVerdict on(const support::Driver& driver, const std::string& ptx, bool by_tma) {
    REQUIRE(support::sums_are_exact(problem));
    const support::DeviceGemm gemm(driver, problem);
    nvfp4::Sm100Params params = params_of(driver, gemm.desc);
    params.d_by_tma = by_tma;
    std::string refused;
    report = gemm_test::heard([&] {
      try {
        launch(driver, Module::from_text(driver, ptx), params);
      } catch (const support::DriverError& error) {
        refused = error.what();
      }
    });
    INFO(report);
    REQUIRE(refused == "");
    CHECK(gemm.damage() == "");
    return support::compare_bits(problem.shape(), gemm.d(), reference);
  }
};

// Six tiles of a pair: the last rows of tokens end within a tile, the columns within the second
// CTA's. More k-blocks than the ring has stages, so that the ring wraps within a tile.
Run several(int64_t tokens_of_last, int64_t k) {
  return {make_problem({2 * 256 + tokens_of_last, 512 - 40, k}, Data::exact, 990)};
}

}  // namespace

TEST_CASE("256x256 whose scales have slots of their own has the reference's bits without a finding",
          "[order]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  USE_KERNEL(gpu, ptx, "apart");
  const Setting formal(emulator, "EMU_FORMAL", "report", "report");
  const Setting none(emulator, "EMU_EXCEPT", "", "");
  for (const std::string order : {"soonest", "latest", "random"}) {
    const Setting when(emulator, "EMU_ORDER", order, "random");
    Run run = several(9, kRingK + 64);
    INFO(order);
    const support::BitVerdict bits = run.on(gpu.driver, ptx, order != "soonest");
    INFO(bits.first_difference << run.report);
    CHECK(bits.passed());
    CHECK(emulator.counter("formal_hazards") == 0);
    CHECK(emulator.broken("reused_columns") == 0);
  }
  const Setting when(emulator, "EMU_ORDER", "latest", "random");
  const Setting overtakes(emulator, "EMU_CP_OVERTAKES", "1", "0");
  CHECK(several(9, 576).on(gpu.driver, ptx, true).passed());
}
