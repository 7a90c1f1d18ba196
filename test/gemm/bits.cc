// SPDX-License-Identifier: MIT
// The same bits. Where sums are exact, one problem has those of the reference on every device: each
// is compared with the hash committed here, on 10.0, 10.3 and 9.0, emulated or real. And the same
// every time: runs that overlap each other, on one stream and on several.
#include "test/gemm/hash.h"
#include "test/gemm/sizes.h"

using gemm_test::hash;
using support::DeviceGemm;

namespace {

struct Row {
  Shape shape;
  Data data;
  uint64_t seed, hash;
};
const Row kRows[] = {
    {{1, 128, 256}, Data::exact, 1, 0x92450BA0C1DA3AE5},
    {{16, 136, 2112}, Data::exact, 2, 0x65EFB0A6DDFA5A4A},
    {{64, 130, 1088}, Data::gpumode, 3, 0x2EA82AA5CF9ACF5A},
    {{128, 136, 832}, Data::exact, 4, 0xB49345290F72E7F6},
    {{33, 129, 320, 3}, Data::gpumode, 5, 0x71F276F1AD9B4D53},
    {{300, 72, 64}, Data::exact, 6, 0x6C67232E872809AF},
};

}  // namespace

TEST_CASE("exact sums have the committed bits on every device", "[bits]") {
  USE_GPU(gpu);
  for (const Row& row : kRows) {
    CAPTURE(support::to_string(row.shape));
    const support::Problem problem = support::make_problem(row.shape, row.data, row.seed);
    REQUIRE(support::sums_are_exact(problem));
    CHECK(hash(support::run_on_device(gpu.driver, problem)) == row.hash);
  }
}

TEST_CASE("exact sums have the committed bits from the reference", "[bits][reference]") {
  for (const Row& row : kRows) {
    CAPTURE(support::to_string(row.shape));
    CHECK(hash(support::reference(support::make_problem(row.shape, row.data, row.seed))) ==
          row.hash);
  }
}

namespace {

struct Streams {
  const support::Driver& driver;
  std::vector<CUstream> all;

  Streams(const support::Driver& d, int count) : driver(d), all(size_t(count)) {
    for (CUstream& s : all) d.check(d.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  ~Streams() {
    for (const CUstream s : all) driver.cuStreamDestroy(s);
  }
};

// Streams that do not wait for the default stream may not start before what it still fills.
void finish_uploads(const support::Driver& driver) {
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace

// Random scales: the sums are inexact, so that another order of adding would show.
TEST_CASE("runs under load give the same bits every time", "[repeat]") {
  USE_GPU(gpu);
  const bool real = !gpu.info.emulated();
  const int runs = real ? 200 : 6, streams_used = 4;
  // On a GPU one that fills it, and one of few tiles, which are cut along K.
  const bool few = real && GENERATE(false, true);
  const support::Shape shape = few    ? support::Shape{40, 1024, 7168}
                               : real ? support::Shape{128, 4096, 7168}
                                      : gpu.sized<support::Shape>({33, 256, 576}, {9, 72, 576});
  const Problem problem =
      gemm_test::forced(SOME_VARIANTS(0), support::make_problem(shape, Data::random, 17));
  CAPTURE(support::to_string(shape), problem.variant);
  const std::vector<uint16_t> first = support::run_on_device(gpu.driver, problem);
  const Streams streams(gpu.driver, streams_used);
  std::vector<std::unique_ptr<DeviceGemm>> copies;
  copies.push_back(std::make_unique<DeviceGemm>(gpu.driver, problem));
  for (int i = 1; i < streams_used; ++i) copies.push_back(std::make_unique<DeviceGemm>(*copies[0]));
  finish_uploads(gpu.driver);
  for (int run = 0; run < runs; run += streams_used) {
    for (int i = 0; i < streams_used; ++i)
      REQUIRE(copies[size_t(i)]->enqueue(streams.all[size_t(i)]) == NVFP4_SUCCESS);
    for (const CUstream s : streams.all)
      gpu.driver.check(gpu.driver.cuStreamSynchronize(s), "cuStreamSynchronize");
    for (const auto& copy : copies) {
      CAPTURE(run);
      const bool same = copy->d() == first;  // Catch would print both
      REQUIRE(same);
    }
  }
  for (const auto& copy : copies) CHECK(copy->damage() == "");
}

TEST_CASE("two streams with problems of different kernels do not disturb each other", "[repeat]") {
  USE_GPU(gpu);
  const int64_t scale = gpu.info.emulated() ? 1 : 8;
  const Problem narrow = support::make_problem({3, 128 * scale, 256 * scale}, Data::exact, 5);
  const Problem wide = support::make_problem({200, 136 * scale, 192 * scale}, Data::exact, 6);
  const DeviceGemm one(gpu.driver, narrow), two(gpu.driver, wide);
  const Streams streams(gpu.driver, 2);
  finish_uploads(gpu.driver);
  for (int i = 0; i < (gpu.info.emulated() ? 2 : 50); ++i) {
    REQUIRE(one.enqueue(streams.all[0]) == NVFP4_SUCCESS);
    REQUIRE(two.enqueue(streams.all[1]) == NVFP4_SUCCESS);
  }
  for (const CUstream s : streams.all)
    gpu.driver.check(gpu.driver.cuStreamSynchronize(s), "cuStreamSynchronize");
  CHECK(support::compare_bits(narrow.shape(), one.d(), support::reference(narrow)).passed());
  CHECK(support::compare_bits(wide.shape(), two.d(), support::reference(wide)).passed());
}
