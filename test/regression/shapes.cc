// SPDX-License-Identifier: MIT
// Sizes at which other libraries were wrong, crashed or refused.
#include <cstdio>
#include <cstdlib>

#include "test/regression/regression.h"
#include "tools/harness/formats.h"

using namespace regression;
using gemm_test::require_reference_bits;

// mm_fp4 returned zeros that depended on M.
TEST_CASE("flashinfer #3398: zeros that depend on M", "[regression]") {
  USE_GPU(gpu);
  // D of fewer rows is the beginning of D of 300: all M against one reference.
  const Problem whole = make_problem({300, 16, 64}, Data::exact, 320);
  const std::vector<uint16_t> expected = support::reference(whole);
  for (int64_t m = 1; m <= 300; m += m < 140 ? 1 : 9) {
    Problem problem = whole;
    problem.m = problem.a.rows = m;
    CAPTURE(m);
    const std::vector<uint16_t> d = run(gpu, problem);
    REQUIRE(std::equal(d.begin(), d.end(), expected.begin()));
    REQUIRE(int64_t(d.size()) == m * 16);
  }
}

// Illegal instruction for N = 768, while 1536 worked; reported on two architectures.
TEST_CASE("DeepGEMM #237: N = 768", "[regression]") {
  USE_GPU(gpu);
  const int64_t n = GENERATE(384, 768, 1536), m = GENERATE(1, 130);
  require_reference_bits(gpu, make_problem({m, n, 128}, Data::exact, 321));
}

// The tests had K of 64 and 192 only; the first multiple of 128 failed on a user's machine.
TEST_CASE("TransformerEngine #2956: tested on toy K only", "[regression]") {
  USE_GPU(gpu);
  const int64_t k = GENERATE(128, 256, 512, 1024, 2048, 2880, 4096, 5120, 7168, 8192, 14336, 16384);
  const Problem problem = make_problem({9, 24, k}, Data::random, 322);
  CAPTURE(k);
  CHECK(gemm_test::inside_bound(gpu, problem, run(gpu, problem)));
}

// Misaligned address for even numbers of K iterations when the output tile was wide.
TEST_CASE("cuda-tile #24: even numbers of K iterations under a wide N", "[regression]") {
  USE_GPU(gpu);
  const int64_t stages = GENERATE(1, 2, 3, 4), n = GENERATE(16, 64, 128, 250);
  require_reference_bits(
      gpu, forced(EACH_VARIANT, make_problem({128, n, 256 * stages}, Data::exact, 323)));
}

// Hidden sizes that are no multiple of 128 gave garbage.
TEST_CASE("vllm #35497: hidden sizes that are no multiple of 128", "[regression]") {
  USE_GPU(gpu);
  const int64_t hidden = GENERATE(192, 320, 960, 2880);
  require_reference_bits(gpu, make_problem({33, hidden / 3, hidden}, Data::exact, 324));
}

// An expert shard is 160 wide, the kernel wanted multiples of 64.
TEST_CASE("tokenspeed #1322: an expert shard 160 wide", "[regression]") {
  USE_GPU(gpu);
  require_reference_bits(gpu, make_problem({33, 160, 128}, Data::exact, 325));
  require_right_or_refused(gpu, {33, 128, 160}, 326);
}

// Tiles with N = 8 modulo 16 were computed wrongly without an error.
TEST_CASE("tilelang #2593: N = 8 modulo 16", "[regression]") {
  USE_GPU(gpu);
  const int64_t n = GENERATE(8, 24, 56, 136, 200), m = GENERATE(8, 72);
  require_reference_bits(gpu, forced(EACH_VARIANT, make_problem({m, n, 192}, Data::exact, 327)));
}

// A port to B200 stored ragged rows in 16-byte pieces although they begin anywhere.
TEST_CASE("ai-performance-engineering #33: a vector store to ragged rows", "[regression]") {
  USE_GPU(gpu);
  Gaps gaps;
  const int64_t n = GENERATE(7, 8, 129, 136);
  gaps.d_ld = GENERATE(0, 1, 2, 4, 8);
  require_reference_bits(gpu,
                         forced(EACH_VARIANT, make_problem({66, n, 64}, Data::exact, 328, gaps)));
}

// 13.3 answered NOT_SUPPORTED for M or N of 1.
TEST_CASE("cuBLASLt 13.3 release notes: M or N of 1", "[regression]") {
  USE_GPU(gpu);
  const Shape shape = GENERATE(Shape{1, 200, 192}, Shape{200, 1, 192}, Shape{1, 1, 192});
  require_reference_bits(gpu, forced(EACH_VARIANT, make_problem(shape, Data::exact, 329)));
}

// Wrong results on B300 where M is no multiple of 64.
TEST_CASE("cuBLASLt CUB-9577: M no multiple of 64 on a B300", "[regression]") {
  const std::string m = GENERATE("1", "40", "97", "190");
  const std::string command =
      "EMU_DEVICE=B300 LD_LIBRARY_PATH=build/emulator build/nvfp4 run --n 136 --k 320 "
      "--data exact --m " +
      m + " >/dev/null 2>&1";
  INFO(command);
  CHECK(std::system(command.c_str()) == 0);
}

// K of 0 was ignored or read illegally where batches have scales of their own; empty groups too.
TEST_CASE("cuBLASLt CUB-9529: K = 0 and empty batches", "[regression]") {
  USE_GPU(gpu);
  support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 64, 3}, Data::exact, 330));
  const std::vector<uint16_t> untouched(3 * 65 * 129, 0xFFFF);
  for (int64_t nvfp4_gemm_desc::*size :
       {&nvfp4_gemm_desc::m, &nvfp4_gemm_desc::n, &nvfp4_gemm_desc::l}) {
    const int64_t was = gemm.desc.*size;
    gemm.desc.*size = 0;
    CHECK(gemm.enqueue() == NVFP4_SUCCESS);
    gemm.desc.*size = was;
    CHECK(gemm.d() == untouched);
  }
  gemm.desc.k = 0;
  CHECK(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(gemm.d() == std::vector<uint16_t>(3 * 65 * 129, 0x0000));
  CHECK(gemm.damage() == "");
}

// Zero scales made a kernel hang, waiting for a block that it had skipped.
TEST_CASE("cuBLASLt CUB-9627: all scales zero", "[regression]") {
  USE_GPU(gpu);
  Problem problem = forced(EACH_VARIANT, make_problem({65, 129, 1600}, Data::exact, 331));
  const std::vector<uint16_t> zeros(65 * 129, 0);
  for (uint8_t& scale : problem.a.scales) scale = 0;
  CHECK(run(gpu, problem) == zeros);
  for (uint8_t& scale : problem.b.scales) scale = 0;
  CHECK(run(gpu, problem) == zeros);
}

// Wrong results with 768 K stages on B300 and Rubin.
TEST_CASE("cuBLASLt CUB-10573: 768 stages of K", "[regression]") {
  USE_GPU(gpu);
  // Elements that are 1 in one 64-step of each stage: the sum is 16 * 768, and fp16 holds it.
  Problem problem = make_problem({3, 5, 768 * 256});
  for (support::Operand* o : {&problem.a, &problem.b}) {
    for (uint8_t& scale : o->scales) scale = 0x38;
    for (int64_t row = 0; row < o->rows; ++row) {
      for (int64_t stage = 0; stage < 768; ++stage) {
        for (int64_t i = 0; i < 16; ++i) o->set_code(0, row, 256 * stage + stage % 4 * 64 + i, 0x2);
      }
    }
  }
  CHECK(run(gpu, problem) == std::vector<uint16_t>(15, 0x7200));  // 12288
}

// Sizes multiplied in 32 bits: the allocation was too small for large problems.
TEST_CASE("DeepGEMM f63d7f2: sizes multiplied in 32 bits", "[regression]") {
  const int64_t big = (int64_t{1} << 31) - 64;
  for (const int32_t layout : {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR}) {
    const uint64_t rows = uint64_t(layout == NVFP4_SCALE_LAYOUT_LINEAR ? big : big + 64);
    CHECK(nvfp4_scale_bytes(big, big, layout) == rows * (uint64_t(big) / 16));  // below 2^59
  }
  // 3 * 2^31 bytes of A: legal, and its end is where it is, so D after it does not overlap.
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 3, g.n = 8, g.k = 64, g.l = 1, g.alpha = 1;
  g.a_ld = int64_t{1} << 32, g.b_ld = 64, g.d_ld = 8, g.d_type = NVFP4_TYPE_F16;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  const uint64_t a = uint64_t{1} << 40;
  g.a = reinterpret_cast<void*>(a), g.b = reinterpret_cast<void*>(uint64_t{1} << 44);
  g.a_scales = reinterpret_cast<void*>(uint64_t{1} << 45);
  g.b_scales = reinterpret_cast<void*>(uint64_t{1} << 46);
  const uint64_t end = a + 2 * (uint64_t{1} << 31) + 32;
  g.d = reinterpret_cast<void*>(end);
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_SUCCESS);
  g.d = reinterpret_cast<void*>(end - 16);
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_STATUS_OVERLAP);
}
