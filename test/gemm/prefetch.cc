// SPDX-License-Identifier: MIT
// C on its way before the sums are there: the bytes that a launch asks for in advance are those of
// C, except for what shares 16 bytes with something else at either end of a tile's line; and none
// where beta is 0.
#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

using gemm_test::Emulator;
using support::Fields;
using support::Problem;

namespace {

// Bytes by bulk copies of a launch.
uint64_t copied(const Emulator& emulator, const nvfp4_gemm_desc& desc) {
  REQUIRE(nvfp4_gemm_run(&desc, nullptr) == NVFP4_SUCCESS);
  REQUIRE(support::Driver::get().cuCtxSynchronize() == CUDA_SUCCESS);
  return emulator.counter("bulk_bytes");
}

// Those of them that are C's: what comes on top of a launch with beta = 0.
uint64_t asked_for(const Gpu& gpu, const Emulator& emulator, const Problem& p) {
  INFO(to_string(p.shape()) << ", " << p.variant << ", " << to_string(p));
  const support::DeviceGemm gemm(gpu.driver, p);
  const uint64_t bytes = copied(emulator, gemm.desc);
  REQUIRE(first_difference(p, gemm.d_bytes(), p.reference()) == "");
  Problem none = p;
  none.beta = 0;
  return bytes - copied(emulator, support::DeviceGemm(gpu.driver, none).desc);
}

// Whole pieces of 16 bytes in a tile's lines of C, whose first byte lies at a multiple of 16.
uint64_t pieces_of_c(const Problem& p, int64_t tile_rows, int64_t tile_columns) {
  const Shape& s = p.shape();
  const nvfp4_gemm_desc g = make_desc(p, NVFP4_SCALE_LAYOUT_LINEAR);
  const int64_t bytes = support::bytes_of_type(g.c_type);
  const bool by_row = g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
  const int64_t tile = by_row ? tile_columns : tile_rows, length = by_row ? s.n : s.m;
  uint64_t sum = 0;
  for (int64_t batch = 0; batch < s.l; ++batch)
    for (int64_t line = 0; line < (by_row ? s.m : s.n); ++line)
      for (int64_t first = 0; first < length; first += tile) {
        const int64_t at = (batch * g.c_batch_stride + line * g.c_ld + first) * bytes;
        const int64_t end = at + std::min(tile, length - first) * bytes;
        const int64_t whole = end / 16 * 16 - (at + 15) / 16 * 16;
        sum += uint64_t(std::max<int64_t>(whole, 0));
      }
  return sum;
}

}  // namespace

TEST_CASE("each variant asks for its C in advance and for nothing beside it", "[prefetch]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = EACH_VARIANT;
  const size_t number = gemm_test::variant_number(variant);
  for (const int32_t order : {NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR}) {
    for (const int64_t gap : {0, 3}) {
      Fields f;
      f.cd_order = order, f.beta = 0.5f, f.c_ld_gap = gap, f.c_batch_gap = gap;
      f.c_type = int32_t(1 + (number + size_t(gap)) % 3);
      f.scalar_mode = gap == 0 ? NVFP4_SCALARS_HOST : NVFP4_SCALARS_DEVICE;
      const Shape shape{131, 138, 576, 2};
      const Problem p = with_fields(forced(variant, make_problem(shape, Data::exact, 31)), f, 32);
      CHECK(asked_for(gpu, emulator, p) ==
            pieces_of_c(p, gemm_test::tile_tokens(variant),
                        gemm_test::tile_weights(variant) / gemm_test::tile_ctas(variant)));
    }
  }
}

TEST_CASE("beta = 0 asks for no C wherever beta lies", "[prefetch]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = EACH_VARIANT;
  const Shape shape{5, 70, 128};
  uint64_t without = 0;
  for (const int32_t c_type : {NVFP4_TYPE_NONE, NVFP4_TYPE_F32}) {
    for (const int32_t mode : {NVFP4_SCALARS_HOST, NVFP4_SCALARS_DEVICE}) {
      Fields f;
      f.d_type = NVFP4_TYPE_BF16, f.c_type = c_type, f.scalar_mode = mode, f.beta = -0.0f;
      const Problem p = with_fields(forced(variant, make_problem(shape, Data::exact, 33)), f, 34);
      const support::DeviceGemm gemm(gpu.driver, p);
      const uint64_t bytes = copied(emulator, gemm.desc);
      if (without == 0) without = bytes;
      CHECK(bytes == without);
    }
  }
}

// beta lies on the device, and C is what the kernel before has computed: both come after the wait.
TEST_CASE("what asks for C waits for earlier grids", "[prefetch][pdl]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = EACH_VARIANT;
  Fields f;
  f.c_type = NVFP4_TYPE_F16, f.beta = 2, f.scalar_mode = NVFP4_SCALARS_DEVICE;
  support::Problem operands = forced(variant, make_problem({5, 70, 128}, Data::exact, 35));
  uint64_t early[2];
  for (const bool with_c : {false, true}) {
    operands.pdl = NVFP4_PDL_ON_STATIC_WEIGHTS;
    if (!with_c)
      f.c_type = NVFP4_TYPE_NONE, f.beta = 0;
    else
      f.c_type = NVFP4_TYPE_F16, f.beta = 2;
    const Problem p = with_fields(operands, f, 36);
    const support::DeviceGemm gemm(gpu.driver, p);
    copied(emulator, gemm.desc);
    early[with_c] = emulator.counter("early_bytes");
  }
  CHECK(early[1] == early[0]);
}
