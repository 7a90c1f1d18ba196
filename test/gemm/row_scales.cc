// SPDX-License-Identifier: MIT
// a_tensor_scale_rows: a factor for each row of A. What a row holds is its own affair: whatever a
// stale row of a captured graph is left with, its neighbours have the same bits.
#include <cmath>
#include <cstring>

#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using support::Fields;
using support::Problem;

namespace {

// An emulated Hopper takes one of those that its fast entries store, by the variant's number; all
// elsewhere.
std::vector<int32_t> types(const Gpu& gpu, const char* variant) {
  if (!gpu.small()) return {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32};
  return {int32_t(1 + gemm_test::variant_number(variant) % 2)};
}

}  // namespace

// Products of three factors overflow and underflow in one order of multiplication alone. With an
// activation they are the general epilogue's.
TEST_CASE("each row of A has its tensor scale in each batch and variant", "[row_scales]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const Shape shape{gemm_test::few_tokens(gpu, variant, gpu.sized(131, 21)), 140, 192, 2};
  const Problem operands = gemm_test::forced(variant, make_problem(shape, Data::exact, 30));
  for (const int32_t type : types(gpu, variant))
    for (const int32_t activation : {NVFP4_ACTIVATION_NONE, NVFP4_ACTIVATION_RELU}) {
      Fields f;
      f.activation = activation;
      f.d_type = type, f.a_tensor_scale = f.b_tensor_scale = support::kGiven,
      f.a_tensor_scale_rows = 1;
      f.b_tensor_scale_columns = 64, f.alpha = 3;
      Problem p = with_fields(operands, f, 1);
      p.b_factors = {1e-30f, 7, 0.1f};
      p.a_factors[0] = 3e38f, p.a_factors.back() = -0.0f;
      INFO(to_string(f));
      REQUIRE(difference_on_device(gpu.driver, p) == "");
    }
}

TEST_CASE("tokens of 16 bits have a factor for each row", "[row_scales][a16]") {
  USE_GPU_FOR_HALVES(gpu);
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
    Fields f;
    f.d_type = type, f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
    const Problem operands = support::make_a16_problem({9, 70, 128, 2}, type, Data::exact, 31, {});
    REQUIRE(difference_on_device(gpu.driver, with_fields(operands, f, 2)) == "");
  }
}

TEST_CASE("a stale row's factor changes no bit of its neighbours", "[row_scales]") {
  USE_GPU(gpu);
  const Shape shape{19, 72, 128, 2};
  Fields f;
  f.d_type = NVFP4_TYPE_BF16, f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
  Problem p = with_fields(make_problem(shape, Data::random, 32), f, 3);
  const std::vector<uint8_t> before = bytes_on_device(gpu.driver, p);
  const int64_t stale = shape.m + 7;  // row 7 of batch 1
  for (const float value : {NAN, 6e4f, INFINITY, 0.0f}) {
    p.a_factors[size_t(stale)] = value;
    std::vector<uint8_t> after = bytes_on_device(gpu.driver, p);
    const size_t row = size_t(shape.n) * 2, at = size_t(stale) * row;
    CHECK(!std::equal(&after[at], &after[at] + row, &before[at]));
    std::copy_n(&before[at], row, &after[at]);
    CHECK(after == before);
  }
}

TEST_CASE("a plan takes new factors for the rows of A and all of them are looked at",
          "[row_scales]") {
  USE_GPU(gpu);
  Fields f;
  f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
  const Problem operands = make_problem({9, 70, 64, 2}, Data::exact, 33);
  const Problem first = with_fields(operands, f, 4), second = with_fields(operands, f, 5);
  const support::DeviceGemm a(gpu.driver, first), b(gpu.driver, second);
  const support::Plan plan(a.desc);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.a_tensor_scale = b.desc.a_tensor_scale;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(first_difference(second, a.d_bytes(), second.reference()) == "");
  // The last factor of the last batch lies in D.
  const auto* d = static_cast<const float*>(a.desc.d);
  x.a_tensor_scale = d - (9 * 2 - 1);
  CHECK(plan.run(x) == NVFP4_STATUS_OVERLAP);
}
