// SPDX-License-Identifier: MIT
// The general epilogue: every type and field against the reference's bits, alone and together. Each
// comparison is of D's whole memory, with 0xFF around every array and in every gap.
#include "test/gemm/gpu.h"
#include "tools/harness/general_gemm.h"

using support::Data;
using support::EpilogueFields;
using support::GeneralProblem;
using support::make_problem;
using support::Problem;
using support::Shape;

namespace {

void require_reference(const gemm_test::Gpu& gpu, const GeneralProblem& p) {
  INFO(to_string(p.operands.shape)
       << ", variant " << (p.operands.variant ? p.operands.variant : "chosen") << ", "
       << to_string(p.fields));
  REQUIRE(difference_on_device(gpu.driver, p) == "");
}

Problem exact(const Shape& shape, const char* variant = nullptr) {
  return gemm_test::forced(variant, make_problem(shape, Data::exact, 90));
}

}  // namespace

TEST_CASE("each variant stores D of each type, by rows and by columns", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  uint64_t seed = 1;
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    for (const int32_t order : {NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR}) {
      EpilogueFields f;
      f.d_type = type, f.cd_order = order, f.alpha = 1.0f / 3;
      f.d_ld_gap = int64_t(seed % 3);
      require_reference(gpu,
                        GeneralProblem(exact({gpu.sized(130, 18), 136, 320}, variant), f, seed++));
    }
  }
}

TEST_CASE("each variant knows every field, whatever the others are", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  support::Random random(100 + gemm_test::variant_number(variant));
  for (int i = 0; i < gpu.sized(24, 12); ++i) {
    const Shape shape{1 + random.below(gpu.small() ? 40 : 200), 1 + random.below(200),
                      64 * (1 + random.below(5)), 1 + random.below(2)};
    const EpilogueFields f = random_fields(shape, random);
    require_reference(gpu, GeneralProblem(exact(shape, variant), f, random.next()));
  }
}

TEST_CASE("K = 0 is the epilogue of +0, whatever its fields are", "[epilogue][empty]") {
  USE_GPU(gpu);
  support::Random random(7);
  for (int i = 0; i < 40; ++i) {
    const Shape shape{1 + random.below(70), 1 + random.below(300), 0, 1 + random.below(3)};
    require_reference(
        gpu, GeneralProblem(make_problem(shape), random_fields(shape, random), random.next()));
  }
}
