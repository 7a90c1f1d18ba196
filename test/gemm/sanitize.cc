// SPDX-License-Identifier: MIT
// Every variant with every number of CTAs along K, small: what `make check-hw PART=sanitize` runs under
// compute-sanitizer, whose tools slow a kernel down a hundredfold.
#include <cstdio>
#include <set>

#include "gemm/gpu.h"

using gemm_test::forced;
using support::Data;
using support::make_problem;
using support::Problem;

TEST_CASE("every variant and split, at the sizes of compute-sanitizer", "[sanitize]") {
  USE_GPU(gpu);
  std::set<int> splits;
  int products = 0;
  const auto run = [&](const char* variant, int64_t k, int32_t pdl) {
    CAPTURE(variant, k, pdl);
    // Tails of M, N and K; a whole tile of weights beside one of 8 on a GPU.
    Problem problem = forced(variant, make_problem({9, gpu.sized(136, 72), k}, Data::gpumode, 140));
    problem.pdl = pdl;
    const support::DeviceGemm gemm(gpu.driver, problem);
    REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    CHECK(support::compare_bits(problem.shape, gemm.d(), support::reference(problem)).passed());
    CHECK(gemm.damage() == "");
    splits.insert(gemm_test::split_of(gpu, gemm.desc));
    ++products;
  };
  for (const char* variant : gemm_test::variants()) {
    for (const int64_t k : {192, 448, 704, 960, 1984}) run(variant, k, NVFP4_PDL_OFF);
    run(variant, 448, NVFP4_PDL_ON);
    run(variant, 448, NVFP4_PDL_ON_STATIC_WEIGHTS);
    // Long enough for every ring to wrap in each part of K.
    if (!gpu.small()) run(variant, 20544, NVFP4_PDL_OFF);
  }
  // On 9.0 the planner cuts these K into 1, 2, 3, 4 and 8; another rule needs other sizes here.
  if (gpu.info.major == 9) CHECK(splits == std::set<int>{1, 2, 3, 4, 8});
  std::printf("%d products by %zu variants, CTAs along K:", products, gemm_test::variants().size());
  for (const int split : splits) std::printf(" %d", split);
  std::printf("\n");
}
