// SPDX-License-Identifier: MIT
// K shared by the CTAs of a cluster on 10.x: parts, their order, what they exchange and who stores.
#include <cstring>
#include <set>

#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "test/gemm/partitions.h"
#include "tools/harness/device_gemm.h"

namespace {

constexpr const char* kNarrow = "sm100_128x64x256";
constexpr const char* kWide = "sm100_128x128x256";

int split_of(const gemm_test::Gpu& gpu, const Problem& p) {
  return gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc);
}

}  // namespace

// Tokens of one share and of several, the last of which is short or empty; weights of one band and
// of all; a K whose parts differ by a k-block, and that ends in a cut step.
TEST_CASE("CTAs of 10.x that share K give the bits of the sum", "[split]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* variant = GENERATE(kNarrow, kWide);
  std::set<int> splits;
  for (const support::Shape& shape :
       {support::Shape{1, 128, 4096}, support::Shape{16, 33, 4112}, support::Shape{17, 136, 4688},
        support::Shape{33, 40, 4864, 2}, support::Shape{64, 128, 4160}, support::Shape{65, 8, 5120},
        support::Shape{97, 31, 4096}, support::Shape{128, 130, 2560},
        support::Shape{70, 9, 3600}}) {
    Problem p = make_problem(shape, Data::exact, 970);
    p.pdl = shape.m % 2 ? NVFP4_PDL_ON_STATIC_WEIGHTS : NVFP4_PDL_OFF;
    if (shape.m % 4 == 1) {  // stores of 2 bytes
      p.d_ld += 3;
      p.d_batch_stride = shape.m * p.d_ld + 1;
    }
    splits.insert(split_of(gpu, forced(variant, p)));
    gemm_test::require_reference_bits(gpu, forced(variant, p));
  }
  CHECK(splits.count(2) == 1);
  CHECK(splits.count(4) == 1);
}

// A part of one k-block, or of a piece of one; more parts than stages are refused by name.
TEST_CASE("CTAs of 10.x share a short K in as many parts as the caller names", "[split]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const auto [shape, variant] =
      GENERATE(table<support::Shape, const char*>({{{17, 136, 272}, "sm100_128x64x256/2"},
                                                   {{70, 40, 784}, "sm100_128x64x256/4"},
                                                   {{33, 130, 512}, "sm100_128x128x256/2"}}));
  CAPTURE(variant);
  const Problem p = make_problem(shape, Data::exact, 977);
  CHECK(split_of(gpu, p) == 1);
  CHECK(split_of(gpu, forced(variant, p)) == variant[strlen(variant) - 1] - '0');
  gemm_test::require_reference_bits(gpu, forced(variant, p));
}

TEST_CASE("parts of K on 10.x are added in their order in fp32", "[split]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  // 18 k-blocks: 5, 5, 4 and 4, or 9 and 9. 100 tokens reach the last part's CTA: only from the
  // third on does it show who adds its own part first, since two parts commute.
  const char* variant = GENERATE(kNarrow, kWide);
  const int64_t partitions = GENERATE(2, 4), all = 18;
  const support::Shape shape{100, 40, 4432};
  const std::string split = std::string(variant) + "/" + std::to_string(partitions);
  const Problem p = make_problem(shape, Data::random, 971);
  CAPTURE(split);
  std::vector<uint8_t> sum;
  for (int64_t rank = 0, first = 0; rank < partitions; ++rank) {
    const int64_t last = first + all / partitions + (rank < all % partitions);
    Problem partition = forced(variant, make_problem({shape.m, shape.n, 64}));
    partition.a = gemm_test::k_blocks(p.a, first, last),
    partition.b = gemm_test::k_blocks(p.b, first, last);
    partition.k = partition.a.k, partition.alpha = p.alpha, partition.batch_invariant = true;
    sum = gemm_test::sums(gpu, partition, sum);
    first = last;
  }
  CHECK(gemm_test::sums(gpu, forced(split.c_str(), p)) == sum);
  Problem whole = forced(variant, p);
  whole.batch_invariant = true;  // one sum from the first step to the last: other bits
  CHECK(gemm_test::sums(gpu, whole) != sum);
}

TEST_CASE("shared sums of 10.x do not depend on when asynchronous work completes",
          "[split][order]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const char* variant = GENERATE(kNarrow, kWide);
  const Problem p = forced(variant, make_problem({65, 136, 4432}, Data::random, 972));
  REQUIRE(split_of(gpu, p) > 1);
  std::set<std::vector<uint16_t>> results;
  for (const char* order : {"soonest", "latest", "random"}) {
    for (const char* seed : {"1", "2", "3"}) {
      REQUIRE(emulator.set("EMU_ORDER", order) == 0);
      REQUIRE(emulator.set("EMU_SEED", seed) == 0);
      results.insert(support::run_on_device(gpu.driver, p));
    }
  }
  emulator.set("EMU_ORDER", "random");
  emulator.set("EMU_SEED", "1");
  CHECK(results.size() == 1);
}

TEST_CASE("shared sums of 10.x reach every epilogue", "[split][epilogue]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const char* variant = GENERATE(kNarrow, kWide);
  support::Random random(973);
  for (int i = 0; i < 8; ++i) {
    const support::Shape shape{1 + int64_t(random.below(66)), 1 + int64_t(random.below(140)), 4112,
                               1 + int64_t(random.below(2))};
    const support::Fields f = random_fields(shape, random);
    const support::Problem p = support::with_fields(
        forced(variant, make_problem(shape, Data::exact, 974)), f, random.next());
    CAPTURE(support::to_string(shape), to_string(f));
    REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc) > 1);
    REQUIRE(difference_on_device(gpu.driver, p) == "");
  }
}

// Each K partition loads its k-blocks once, and sends the rows of other CTAs that exist, rounded up
// to four.
TEST_CASE("CTAs of 10.x that share K load it once and exchange no four rows that are not there",
          "[split][count]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const Problem p = forced("sm100_128x64x256/4", make_problem({18, 128, 4096}, Data::exact, 975));
  REQUIRE(split_of(gpu, p) == 4);
  support::run_on_device(gpu.driver, p);
  CHECK(emulator.counter("mmas") == 64);
  CHECK(emulator.counter("tma_loads") == 16 * 2);
  // 16 tokens from three to the first rank, two to the second, of 128 sums each.
  CHECK(emulator.counter("cluster_bytes") == 3 * (16 + 4) * 128 * 4);
}
