// SPDX-License-Identifier: MIT
// Kernels of 10.x on GPUs for which they have only been assembled, 10.7 and 11.0: emulated ones run
// them where a variant names them. With linear scales the quantizer's image is loaded as well.
#include "test/gemm/gpu.h"

TEST_CASE("assembled: a named variant gives the reference's bits on 10.7 and 11.0", "[assembled]") {
  const gemm_test::Gpu gpu;
  if (gpu.info.compute_capability() != 107 && gpu.info.compute_capability() != 110) {
    support::leave_out();
    return;
  }
  const char* const variant =
      GENERATE("sm100_128x64x256", "sm100_128x128x256/2", "sm100_256x128x256");
  const int32_t format =
      GENERATE(int32_t{NVFP4_OPERAND_FORMAT_NVFP4}, int32_t{NVFP4_OPERAND_FORMAT_MXFP4});
  const Problem made = support::make_problem({9, 136, 576}, Data::exact, 961);
  Problem p = gemm_test::forced(variant, with_format(made, format, Data::exact, 961));
  gemm_test::require_reference_bits(gpu, p, 0xFF);
  p.a.layout = p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  gemm_test::require_reference_bits(gpu, p, 0xFF);
}
