// SPDX-License-Identifier: MIT
// How D leaves a kernel for 10.x: in boxes by TMA where its layout and the tile let it, else by
// threads. The same bits both ways, and nothing outside D.
#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

using support::Fields;
using support::Problem;

namespace {

constexpr int64_t kSide = 32;  // of a box

int64_t boxes(int64_t elements, int64_t side = kSide) { return (elements + side - 1) / side; }

// Runs it, compares D's memory with the reference's, and returns how describe says that it left.
int32_t stored(const gemm_test::Gpu& gpu, const Problem& p) {
  const support::DeviceGemm gemm(gpu.driver, p);
  INFO(to_string(p.shape()) << ", " << p.variant << ", " << to_string(p));
  REQUIRE(nvfp4_gemm_run(&gemm.desc, nullptr) == NVFP4_SUCCESS);
  REQUIRE(first_difference(p, gemm.d_bytes(), p.reference()) == "");
  REQUIRE(gemm.damage() == "");
  return gemm_test::plan_of(gpu, gemm.desc).store;
}

Fields fields(int32_t type, int32_t order) {
  Fields f;
  f.d_type = type, f.cd_order = order, f.alpha = 1.0f / 3;
  return f;
}

// Tails in M and N that are multiples of 16 bytes in each type, three batches, gaps between lines
// and batches.
Problem aligned(const char* variant, int32_t type, int32_t order) {
  Fields f = fields(type, order);
  f.d_ld_gap = 8, f.d_batch_gap = 16;
  const bool by_row = order == NVFP4_CD_ORDER_ROW_MAJOR;
  const Shape shape{by_row ? 131 : 136, by_row ? 168 : 171, 128, 2};
  return with_fields(forced(variant, make_problem(shape, Data::exact, 21)), f, 22);
}

}  // namespace

TEST_CASE("D leaves by TMA where its lines and strides are multiples of 16 bytes", "[store]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = "sm100_128x128x256";
  const char* when = GENERATE("soonest", "latest", "random");
  const gemm_test::Setting order_of_work(emulator, "EMU_ORDER", when, "random");
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    for (const int32_t order : {NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR}) {
      const Problem p = aligned(variant, type, order);
      CHECK(stored(gpu, p) == NVFP4_STORE_TMA);
      const Shape& s = p.shape();
      // By columns D takes the general epilogue, whose boxes have half as many rows.
      const int64_t rows = order == NVFP4_CD_ORDER_ROW_MAJOR ? kSide : kSide / 2;
      CHECK(emulator.counter("tma_stores") == uint64_t(boxes(s.m, rows) * boxes(s.n) * s.l));
      CHECK(emulator.counter("global_store_bytes") == 0);
      CHECK(emulator.counter("hazards") == 0);
      CHECK(emulator.counter("formal_hazards") == 0);
    }
  }
}

TEST_CASE("D with C and bias and an activation leaves by TMA", "[store]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = "sm100_128x128x256";
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    Fields f = fields(type, NVFP4_CD_ORDER_ROW_MAJOR);
    f.c_type = type, f.beta = 0.5f, f.c_is_d = true;
    f.bias_type = NVFP4_TYPE_BF16, f.activation = NVFP4_ACTIVATION_SILU;
    const Problem p =
        with_fields(forced(variant, make_problem({70, 136, 192}, Data::exact, 5)), f, 6);
    CHECK(stored(gpu, p) == NVFP4_STORE_TMA);
    CHECK(emulator.counter("tma_stores") > 0);
    CHECK(emulator.counter("global_store_bytes") == 0);
  }
}

// More boxes than a warp has room for, the last of which begins beyond D.
TEST_CASE("D in fp32 leaves a pair of 10.x in boxes of half as many rows", "[store]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = GENERATE("sm100_256x128x256", "sm100_256x256x256");
  const char* when = GENERATE("soonest", "latest");
  const gemm_test::Setting order_of_work(emulator, "EMU_ORDER", when, "random");
  const Problem p = aligned(variant, NVFP4_TYPE_F32, NVFP4_CD_ORDER_ROW_MAJOR);
  CHECK(stored(gpu, p) == NVFP4_STORE_TMA);
  const Shape& s = p.shape();
  CHECK(emulator.counter("tma_stores") == uint64_t(2 * boxes(s.m) * boxes(s.n) * s.l));
  CHECK(emulator.counter("hazards") == 0);
  CHECK(emulator.counter("formal_hazards") == 0);
  Fields f = fields(NVFP4_TYPE_F32, NVFP4_CD_ORDER_ROW_MAJOR);
  f.activation = NVFP4_ACTIVATION_SILU;  // what that epilogue turns takes the room
  const Problem general =
      with_fields(forced(variant, make_problem({40, 136, 64}, Data::exact, 9)), f, 9);
  CHECK(stored(gpu, general) == NVFP4_STORE_THREADS);
}

TEST_CASE("D leaves by threads where one of its lines or strides is not", "[store]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = "sm100_128x128x256";
  const auto by_threads = [&](const Shape& shape, const Fields& f) {
    const Problem p = with_fields(forced(variant, make_problem(shape, Data::exact, 7)), f, 8);
    CHECK(stored(gpu, p) == NVFP4_STORE_THREADS);
    CHECK(emulator.counter("tma_stores") == 0);
  };
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_F32}) {
    const int64_t odd = type == NVFP4_TYPE_F32 ? 2 : 4;  // elements, 8 bytes
    Fields f = fields(type, NVFP4_CD_ORDER_ROW_MAJOR);
    f.d_ld_gap = 8 - odd;  // the line's end is not, what follows is
    by_threads({40, 128 + odd, 64}, f);
    f.d_ld_gap = odd;
    by_threads({40, 136, 64}, f);
    f.d_ld_gap = 0, f.d_batch_gap = odd;
    by_threads({40, 136, 64, 2}, f);
    f = fields(type, NVFP4_CD_ORDER_COLUMN_MAJOR);
    by_threads({40 + odd, 136, 64}, f);
  }
}

TEST_CASE("tiles of few tokens leave D to threads", "[store]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const Problem p = aligned("sm100_128x64x256", NVFP4_TYPE_F16, NVFP4_CD_ORDER_ROW_MAJOR);
  CHECK(stored(gpu, p) == NVFP4_STORE_THREADS);
  CHECK(emulator.counter("tma_stores") == 0);
}

TEST_CASE("a plan that leaves by TMA writes the D of each run", "[store][plan]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const Problem p = aligned("sm100_128x128x256", NVFP4_TYPE_BF16, 0);
  const support::DeviceGemm a(gpu.driver, p), b(gpu.driver, p);
  const support::Plan plan(a.desc);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.d = b.desc.d;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(first_difference(p, b.d_bytes(), p.reference()) == "");
  CHECK(a.d_bytes() == p.d_before());
  REQUIRE(plan.run() == NVFP4_SUCCESS);
  CHECK(first_difference(p, a.d_bytes(), p.reference()) == "");
}
