// SPDX-License-Identifier: MIT
// What tests compute of a product whose K several CTAs share: a K partition's operands, and sums
// that are added on top of others as the kernels add them.
#pragma once

#include <vector>

#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

namespace gemm_test {

// K-blocks first .. last of an operand.
inline support::Operand k_blocks(const support::Operand& o, int64_t first, int64_t last) {
  const int64_t k = std::min(o.k, last * 256) - first * 256;
  support::Operand out = make_problem({o.rows, 1, k}).a;
  for (int64_t row = 0; row < o.rows; ++row) {
    for (int64_t i = 0; i < k; ++i) out.set_code(0, row, i, o.code(0, row, first * 256 + i));
    for (int64_t b = 0; b < k / 16; ++b) out.set_scale(0, row, b, o.scale(0, row, first * 16 + b));
  }
  return out;
}

// Sums in fp32, on top of others if there are any: fma(1, others, sum) is their rounded sum.
inline std::vector<uint8_t> sums(const gemm_test::Gpu& gpu, const Problem& p,
                                 const std::vector<uint8_t>& others = {}) {
  support::Fields f;
  f.d_type = NVFP4_TYPE_F32;
  if (!others.empty()) f.c_type = NVFP4_TYPE_F32, f.beta = 1;
  support::Problem general = support::with_fields(p, f, 1);
  if (!others.empty()) general.c = others;
  const support::DeviceGemm gemm(gpu.driver, general);
  const nvfp4_status status = nvfp4_gemm_run(&gemm.desc, nullptr);
  INFO((status == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
  REQUIRE(status == NVFP4_SUCCESS);
  return gemm.d_bytes();
}

}  // namespace gemm_test
