// SPDX-License-Identifier: MIT
// batch_invariant: a row of D has the same bits whatever M is and wherever the row stands.
#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

namespace {

// 1 to 4 tokens have tiles of their own, and 8, 16, 32 and 64; some of them with a rest.
const std::vector<int64_t> kRows = {1, 3, 8, 17, 70};

// Rows `first` and on of a problem with one batch, as a problem.
Problem rows_of(const Problem& whole, int64_t first, int64_t count) {
  const size_t codes = size_t(whole.k / 2), scales = size_t(whole.k / 16);
  Problem part = make_problem({count, whole.n, whole.k});
  part.b = whole.b;
  part.alpha = whole.alpha;
  part.batch_invariant = whole.batch_invariant;
  const auto copy = [&](const std::vector<uint8_t>& from, std::vector<uint8_t>& to, size_t bytes) {
    std::copy_n(from.begin() + ptrdiff_t(size_t(first) * bytes), size_t(count) * bytes, to.begin());
  };
  copy(whole.a.codes, part.a.codes, codes);
  copy(whole.a.scales, part.a.scales, scales);
  return part;
}

// D in fp32, in which every other order of additions shows.
std::vector<uint8_t> sums(const Gpu& gpu, const Problem& problem) {
  support::Fields fields;
  fields.d_type = NVFP4_TYPE_F32;
  return bytes_on_device(gpu.driver, support::with_fields(problem, fields, 1));
}

// How many of those parts have other bits than the rows that they are of.
size_t parts_that_differ(const Gpu& gpu, const Problem& whole, const std::vector<int64_t>& rows) {
  const std::vector<uint8_t> d = sums(gpu, whole);
  size_t differ = 0;
  for (const int64_t count : rows) {
    const int64_t first = (whole.m - count) * 2 / 3;  // at another place of its tile
    const std::vector<uint8_t> part = sums(gpu, rows_of(whole, first, count));
    differ += !std::equal(part.begin(), part.end(), d.begin() + first * whole.n * 4);
  }
  return differ;
}

}  // namespace

TEST_CASE("with batch_invariant the bits of a row depend neither on M nor on its place") {
  USE_GPU(gpu);
  // Five stages and one step; and a short K.
  const support::Shape shape =
      GENERATE_REF(support::Shape{131, gpu.sized(70, 40), 1344}, support::Shape{131, 36, 128});
  Problem problem = make_problem(shape, Data::random, 90);
  problem.batch_invariant = true;
  CHECK(parts_that_differ(gpu, problem, kRows) == 0);
  // Without it tiles of other widths add in other orders on 9.0, so the test can fail.
  problem.batch_invariant = false;
  if (gpu.info.major == 9 && shape.k > 256) CHECK(parts_that_differ(gpu, problem, {1}) > 0);
}

TEST_CASE("with batch_invariant a wide tile adds the parts of a cluster of narrow ones") {
  USE_GPU(gpu);
  if (gpu.info.major != 9) SKIP_TEST("only tiles of 9.0 add own parts");
  // N and K ask for eight, four and two or three partitions, so that some pieces have no k-block; K
  // ends inside a k-block. The last N has one partition, and CTAs with several tiles.
  const support::Shape shape =
      GENERATE(support::Shape{130, 72, 2048}, support::Shape{5, 1800, 1344},
               support::Shape{5, 3000, 1344}, support::Shape{5, 128 * 133, 576});
  const int32_t tokens = GENERATE(int32_t{NVFP4_TYPE_NONE}, int32_t{NVFP4_TYPE_BF16});
  if (gpu.info.emulated() && shape.k == 576 && tokens != NVFP4_TYPE_NONE) return;  // slow there
  Problem problem = support::make_a16_problem(shape, tokens, Data::random, 92);
  problem.batch_invariant = true;
  const std::string family = tokens == NVFP4_TYPE_NONE ? "sm90_" : "sm90_bf16_";
  if (!gemm_test::is_taken(family + "128x128x256")) return;
  const auto by = [&](const std::string& tile) {
    return sums(gpu, gemm_test::forced((family + tile).c_str(), problem));
  };
  CHECK(by("128x128x256") == by("64x16x256"));
}

TEST_CASE("with batch_invariant every tile that may be taken gives the same bits") {
  USE_GPU(gpu);
  // Two CTAs share the first K, eight the second: of two the order cannot be told.
  const support::Shape shape =
      GENERATE_REF(support::Shape{21, gpu.sized(130, 40), 1344}, support::Shape{9, 40, 2880});
  Problem problem = make_problem(shape, Data::random, 91);
  problem.batch_invariant = true;
  CHECK(gemm_test::inside_bound(gpu, problem, support::run_on_device(gpu.driver, problem)));
  const std::vector<uint8_t> d = sums(gpu, problem);
  size_t taken = 0;
  for (const char* variant : gemm_test::variants()) {
    const Problem forced = gemm_test::forced(variant, problem);
    const nvfp4_gemm_desc desc = support::make_desc(forced, NVFP4_SCALE_LAYOUT_128X4);
    uint64_t bytes = 0;
    CAPTURE(variant);
    if (nvfp4_gemm_workspace_bytes(&desc, gpu.info.compute_capability(), &bytes) == NVFP4_SUCCESS) {
      ++taken;
      CHECK(sums(gpu, forced) == d);
    } else {
      CHECK(std::string(nvfp4_last_error()).find("batch_invariant = 1 excludes it") !=
            std::string::npos);
    }
  }
  CHECK(taken == (gpu.info.major == 9 ? 5 : gemm_test::variants().size()));
}
