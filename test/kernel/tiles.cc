// SPDX-License-Identifier: MIT
// Kernel tiles of 64 and 256 tokens, launched without the library: an odd 64-token tile starts two
// scale columns into its block of 128 rows, a 256-token tile reads two blocks, the second of which
// may not exist.
#include <cuda.h>

#include <cstring>

#include "../../kernel/gemm_params.h"
#include "../../kernel/gemm_sm100.h"
#include "support/catch.h"
#include "support/driver.h"
#include "support/module.h"
#include "support/problem.h"

namespace {

using support::DeviceBuffer;
using support::Driver;

nvfp4::TensorMap operand_map(const Driver& driver, CUdeviceptr codes,
                             const support::Operand& operand, uint32_t tile_rows) {
  const cuuint64_t dims[] = {cuuint64_t(operand.k / 2), cuuint64_t(operand.rows),
                             cuuint64_t(operand.l)};
  const cuuint64_t strides[] = {cuuint64_t(operand.ld / 2), cuuint64_t(operand.batch_stride / 2)};
  const cuuint32_t box[] = {128, tile_rows, 1}, steps[] = {1, 1, 1};
  CUtensorMap map;
  driver.check(driver.cuTensorMapEncodeTiled(
                   &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, reinterpret_cast<void*>(codes), dims,
                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               "cuTensorMapEncodeTiled");
  nvfp4::TensorMap out;
  std::memcpy(&out, &map, sizeof out);
  return out;
}

uint32_t tiles(int64_t size, uint32_t tile) { return uint32_t((size + tile - 1) / tile); }

template <uint32_t kTokens>
void run_tile(const char* entry, const support::Shape& shape) {
  using Tile = nvfp4::Sm100Tile<kTokens>;
  CAPTURE(entry, support::to_string(shape));
  const Driver& driver = Driver::get();
  support::Context context(driver);
  support::Module module(driver, NVFP4_TEST_PTX_DIR "/gemm_sm100_tiles.ptx");

  const support::Problem problem = support::make_problem(shape, support::Data::exact, 7);
  REQUIRE(support::sums_are_exact(problem));
  DeviceBuffer a(driver, problem.a.codes), b(driver, problem.b.codes);
  DeviceBuffer sfa(driver, problem.a.interleaved_scales(0x7F));
  DeviceBuffer sfb(driver, problem.b.interleaved_scales(0x7F));
  DeviceBuffer d(driver, size_t(problem.d_elements()) * 2);

  nvfp4::GemmParams p{};
  p.weights = operand_map(driver, b.address(), problem.b, Tile::kWeights);
  p.tokens = operand_map(driver, a.address(), problem.a, Tile::kTokens);
  p.weight_scales = static_cast<const uint8_t*>(sfb.pointer());
  p.token_scales = static_cast<const uint8_t*>(sfa.pointer());
  p.d = d.pointer();
  p.d_ld = problem.d_ld;
  p.d_batch_stride = problem.d_batch_stride;
  p.m = uint32_t(shape.m);
  p.n = uint32_t(shape.n);
  p.k = uint32_t(shape.k);
  p.tiles_m = tiles(shape.m, Tile::kTokens);
  p.tiles_n = tiles(shape.n, Tile::kWeights);
  p.alpha = problem.alpha;

  void* arguments[] = {&p};
  module.launch(entry, p.tiles_m * p.tiles_n, Tile::kThreads, Tile::kSharedBytes, arguments);

  const std::vector<uint8_t> bytes = d.download();
  const std::vector<uint16_t> expected = support::reference(problem);
  REQUIRE(bytes.size() == expected.size() * 2);
  CHECK(std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0);
  CHECK(d.guards_intact());
}

}  // namespace

TEST_CASE("a tile of 64 tokens reads its half of the scale block", "[kernel][sm100]") {
  run_tile<64>("test_gemm_sm100_128x64", {64, 128, 256});
  run_tile<64>("test_gemm_sm100_128x64", {200, 130, 576});
}

TEST_CASE("a tile of 256 tokens reads two scale blocks, or the last one twice", "[kernel][sm100]") {
  run_tile<256>("test_gemm_sm100_128x256", {256, 128, 256});
  run_tile<256>("test_gemm_sm100_128x256", {300, 130, 576});
}
