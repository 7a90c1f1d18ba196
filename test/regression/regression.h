// SPDX-License-Identifier: MIT
// What the regression tests share. Each repeats, on this library, a bug of another project: the
// test is named after the public thread, and the comment above it says in a sentence what happened
// there (`make list-regressions` prints both).
#pragma once

#include <string>
#include <vector>

#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "test/host/child.h"

namespace regression {

using support::Gaps;

// D with the padding of the scales holding `poison`.
inline std::vector<uint16_t> run(const gemm_test::Gpu& gpu, const Problem& problem,
                                 uint8_t poison = 0x7F) {
  return support::run_on_device(gpu.driver, problem, poison);
}

// Whatever the padding of the scales holds, D has the bits that it has over zeros, and they are
// the reference's.
inline void require_deaf_to_padding(const gemm_test::Gpu& gpu, const Problem& problem) {
  gemm_test::require_reference_bits(gpu, problem, 0x00);
  for (const int poison : {0x7E, 0x7F, 0xFF}) {
    CAPTURE(support::to_string(problem.shape()), poison);
    REQUIRE(run(gpu, problem, uint8_t(poison)) == run(gpu, problem, 0x00));
  }
}

// A shape that this version may refuse: if so, in words that name the value and its neighbours;
// else the result is right. Never a third thing.
inline void require_right_or_refused(const gemm_test::Gpu& gpu, const Shape& shape, uint64_t seed) {
  CAPTURE(support::to_string(shape));
  const Problem problem = make_problem(shape, Data::exact, seed);
  const support::DeviceGemm gemm(gpu.driver, problem);
  const nvfp4_status status = gemm.enqueue();
  if (status == NVFP4_STATUS_NOT_SUPPORTED) {
    const std::string sentence = nvfp4_last_error();
    CHECK(host_test::contains(sentence, std::to_string(shape.k)));
    CHECK(host_test::contains(sentence, "nearest"));
    CHECK(gemm.d() == std::vector<uint16_t>(size_t(shape.l * shape.m * shape.n), 0xFFFF));
    return;
  }
  REQUIRE(status == NVFP4_SUCCESS);
  CHECK(support::compare_bits(shape, gemm.d(), support::reference(problem)).passed());
  CHECK(gemm.damage() == "");
}

}  // namespace regression
