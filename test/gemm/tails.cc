// SPDX-License-Identifier: MIT
// Sizes that end inside a tile, in every direction. K counts stages of 256: the sizes below end
// inside the first, fill one, start the second, and go round the ring of stages more than once.
#include "test/gemm/sizes.h"

TEST_CASE("every M meets every N inside and just beyond a tile", "[tails]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const int64_t m = GENERATE(1, 7, 63, 65, 127, 129, 200, 300);
  const int64_t ks[] = {64, 128, 192, 256, 320, 448, 576};
  // `parts` shares the pairs out among the variants: each runs one in so many.
  const size_t all = gpu.small() ? 16 : 1;
  const size_t parts = !gpu.info.emulated() || gemm_test::everything() ? all : 2 * all;
  size_t turn = size_t(m);
  for (const int64_t n : {1, 7, 63, 65, 127, 129, 200, 300}) {
    // Two K for every pair, another two for the next; in the emulator one.
    for (int i = gpu.info.emulated() && !gemm_test::everything(); i < 2; ++i, turn += 3) {
      if ((turn + gemm_test::variant_number(variant)) % parts != 0) continue;
      const int64_t tokens = gemm_test::few_tokens(gpu, variant, m);
      gemm_test::require_reference_bits(
          gpu, forced(variant, make_problem({tokens, n, ks[turn % 7]}, Data::exact, turn)));
    }
  }
}

TEST_CASE("every number of 64-steps up to nine is multiplied once", "[tails]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const int64_t steps = GENERATE(range(1, 10));
  if (!gemm_test::takes(gpu, variant, size_t(steps), 3)) return;
  gemm_test::require_reference_bits(
      gpu, forced(variant, make_problem({gpu.sized(65, 9), gpu.sized(129, 72), 64 * steps},
                                        Data::exact, 1)));
}

TEST_CASE("the ring of stages wraps once and twice and many times", "[tails]") {
  USE_GPU(gpu);
  if (gpu.small())
    SKIP_TEST("one tile of an emulated Hopper is cut along K: sm90.cc fills its ring");
  // 8, 6 and 4 stages of 256.
  const char* variant = EACH_VARIANT;
  const int64_t k = GENERATE(1024, 1088, 1280, 1536, 1600, 1792, 2048, 2112, 2304, 3328, 6720);
  support::Problem p = forced(variant, make_problem({66, 136, k}, Data::exact, 2));
  p.batch_invariant = gpu.info.major == 10;  // no CTA shares K there, so that each ring wraps
  gemm_test::require_reference_bits(gpu, p);
}
