// SPDX-License-Identifier: MIT
// Where scales and elements lie, and what a number in them means.
#include "test/regression/regression.h"
#include "tools/harness/formats.h"

using namespace regression;

namespace {

constexpr int32_t kTiled = NVFP4_SCALE_LAYOUT_128X4, kLinear = NVFP4_SCALE_LAYOUT_LINEAR;

// Linear scales that say where they belong.
std::vector<uint8_t> numbered(int64_t rows, int64_t k) {
  std::vector<uint8_t> scales(size_t(rows * k / 16));
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = uint8_t(1 + i % 125);
  return scales;
}

std::vector<uint8_t> converted(const std::vector<uint8_t>& from, int32_t layout, int32_t to,
                               int64_t rows, int64_t k) {
  std::vector<uint8_t> out(nvfp4_scale_bytes(rows, k, to) + 16, 0xEE);
  REQUIRE(nvfp4_scale_convert_host(from.data(), layout, out.data(), to, rows, k) == NVFP4_SUCCESS);
  REQUIRE(std::vector<uint8_t>(out.end() - 16, out.end()) == std::vector<uint8_t>(16, 0xEE));
  out.resize(out.size() - 16);
  return out;
}

// One product per element: A is 1 at (row 0, k = at), B holds the code everywhere.
Problem one_hot(int64_t k, int64_t at) {
  Problem problem = make_problem({1, 16, k});
  problem.a.set_code(0, 0, at, 0x2);
  for (uint8_t& scale : problem.a.scales) scale = 0x38;
  for (uint8_t& scale : problem.b.scales) scale = 0x38;
  return problem;
}

}  // namespace

// The swizzled scales were given the shape without padding, which only fits multiples of 128 and 4.
TEST_CASE("vllm #23140: swizzled scales reshaped to the unpadded shape", "[regression]") {
  const int64_t rows = GENERATE(1, 31, 33, 127, 128, 129, 300);
  const int64_t k = GENERATE(16, 48, 64, 80, 320);
  const std::vector<uint8_t> linear = numbered(rows, k);
  const std::vector<uint8_t> tiled = converted(linear, kLinear, kTiled, rows, k);
  CHECK(int64_t(tiled.size()) == (rows + 127) / 128 * 128 * ((k / 16 + 3) / 4 * 4));
  CHECK(converted(tiled, kTiled, kLinear, rows, k) == linear);
}

// Scales of fewer than 128 rows were converted as if the tile were full.
TEST_CASE("vllm #12519: scales of fewer than 128 rows", "[regression]") {
  const int64_t k = 192;
  for (int64_t rows = 1; rows < 128; ++rows) {
    const std::vector<uint8_t> linear = numbered(rows, k);
    const std::vector<uint8_t> tiled = converted(linear, kLinear, kTiled, rows, k);
    CAPTURE(rows);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t s = 0; s < 12; ++s) {
        // In words: tile s/4 of 512 bytes; a line of 16 bytes for every row of a quarter.
        const int64_t line = row % 32, quarter = row / 32;
        REQUIRE(tiled[size_t(512 * (s / 4) + 16 * line + 4 * quarter + s % 4)] ==
                linear[size_t(row * 12 + s)]);
      }
    }
  }
}

// The question was which layout scales have when K is below 64.
TEST_CASE("CUDALibrarySamples #311: scales when K is below 64", "[regression]") {
  const int64_t k = GENERATE(16, 32, 48);
  CHECK(nvfp4_scale_bytes(200, k, kTiled) == 2 * 512);
  const std::vector<uint8_t> tiled = converted(numbered(200, k), kLinear, kTiled, 200, k);
  const size_t scales = size_t(k / 16);
  CHECK(tiled[0] == 1);
  CHECK(tiled[16] == 1 + scales);  // row 1
  for (size_t s = scales; s < 4; ++s) CHECK(tiled[s] == 0);
}

// V scales were written swizzled and read linear: silent corruption.
TEST_CASE("vllm #50084: scales written in one layout and read in another", "[regression]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({65, 129, 320}, Data::exact, 310);
  support::DeviceGemm gemm(gpu.driver, problem);
  // The layout is asked for, not guessed.
  gemm.desc.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  CHECK(gemm.enqueue() == NVFP4_STATUS_INVALID_ENUM);
  CHECK(host_test::contains(nvfp4_last_error(), "a_scale_layout"));
  gemm.desc.a_scale_layout = kTiled, gemm.desc.b_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  CHECK(gemm.enqueue() == NVFP4_STATUS_INVALID_ENUM);
  CHECK(host_test::contains(nvfp4_last_error(), "b_scale_layout"));

  // The reference reads both, and says the same for the same scales.
  const std::vector<uint8_t> tiles_a = problem.a.interleaved_scales(0xFF);
  const std::vector<uint8_t> tiles_b = problem.b.interleaved_scales(0xFF);
  std::vector<uint16_t> d(65 * 129);
  nvfp4_gemm_desc g = support::make_desc(problem, kTiled);
  g.a = problem.a.codes.data(), g.b = problem.b.codes.data(), g.d = d.data();
  g.a_scales = tiles_a.data(), g.b_scales = tiles_b.data();
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  const std::vector<uint16_t> linear = support::reference(problem);
  CHECK(d == linear);
  // And is not the same when one is taken for the other, or this test would prove nothing.
  g.b_scale_layout = kLinear;
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  CHECK(d != linear);
}

// The two elements of a byte were swapped, and the image was white.
TEST_CASE("sglang #23625: the nibbles of a byte are swapped", "[regression]") {
  USE_GPU(gpu);
  const int64_t at = GENERATE(0, 1, 62, 63, 64, 191);
  Problem problem = one_hot(192, at);
  for (int64_t n = 0; n < 16; ++n) {
    problem.b.set_code(0, n, at, 0x4);      // 2
    problem.b.set_code(0, n, at ^ 1, 0x7);  // 6, its neighbour in the byte
  }
  // The byte itself: the lower k in the low nibble.
  CHECK(problem.b.codes[size_t(at / 2)] == (at % 2 == 0 ? 0x74 : 0x47));
  CHECK(run(gpu, problem) == std::vector<uint16_t>(16, 0x4000));
}

// A repack shifted codes to the wrong bits of a byte, so most products came out wrong.
TEST_CASE("tilelang #2324: each of the 256 products of two codes", "[regression]") {
  USE_GPU(gpu);
  Problem problem = make_problem({16, 16, 64});
  for (int code = 0; code < 16; ++code) {
    problem.a.set_code(0, code, 0, uint8_t(code));
    problem.b.set_code(0, code, 0, uint8_t(code));
  }
  for (uint8_t& scale : problem.a.scales) scale = 0x38;
  for (uint8_t& scale : problem.b.scales) scale = 0x38;
  const std::vector<uint16_t> d = run(gpu, problem);
  for (int i = 0; i < 256; ++i) {
    CAPTURE(i / 16, i % 16);
    const double product =
        support::e2m1_value(uint8_t(i / 16)) * support::e2m1_value(uint8_t(i % 16));
    CHECK(support::f16_value(d[size_t(i)]) == product);
  }
}

// Operands packed along M or N compiled, ran and were wrong in every element.
TEST_CASE("triton #11733: packed along the wrong dimension", "[regression]") {
  USE_GPU(gpu);
  // Symmetric data would hide it: row r of A has its only element at k = r.
  Problem problem = make_problem({64, 64, 64});
  for (int64_t row = 0; row < 64; ++row) {
    problem.a.set_code(0, row, row, 0x2);
    for (int64_t k = 0; k < 64; ++k) problem.b.set_code(0, row, k, uint8_t((row + 3 * k) % 16));
  }
  for (uint8_t& scale : problem.a.scales) scale = 0x38;
  for (uint8_t& scale : problem.b.scales) scale = 0x38;
  const std::vector<uint16_t> d = run(gpu, problem);
  for (int64_t m = 0; m < 64; ++m) {
    for (int64_t n = 0; n < 64; ++n) {
      CAPTURE(m, n);
      REQUIRE(support::f16_value(d[size_t(m * 64 + n)]) ==
              support::e2m1_value(uint8_t((n + 3 * m) % 16)));
    }
  }
}

// Some took the global scale for a divisor, some for a multiplier; results were off by its square.
TEST_CASE("modular #6600: the tensor scale taken the wrong way round", "[regression]") {
  USE_GPU(gpu);
  // 0.75 everywhere, so amax = 0.75; 64 products of 0.75 * 0.75 are 36.
  const std::vector<float> x(64 * 16, 0.75f);
  const float t = 0.75f / 2688;
  Problem problem = make_problem({16, 16, 64});
  for (support::Operand* o : {&problem.a, &problem.b}) {
    REQUIRE(nvfp4_quantize_host(x.data(), 64, 16, 64, t, o->codes.data(), o->ld, o->scales.data(),
                                kLinear) == NVFP4_SUCCESS);
    CHECK(o->scales[0] == 0x7E);  // 448: t * 448 * 6 is amax
    CHECK(o->codes[0] == 0x77);
  }
  problem.alpha = t * t;
  for (const uint16_t element : run(gpu, problem)) {
    REQUIRE(std::fabs(support::f16_value(element) - 36) < 0.02);
  }
}

// A benchmark took the largest value for the largest magnitude, so negative peaks saturated.
TEST_CASE("vllm #20578: the largest value instead of the largest magnitude", "[regression]") {
  std::vector<float> x(16, 0.5f);
  x[7] = -12;
  std::vector<uint8_t> codes(8);
  uint8_t scale = 0;
  REQUIRE(nvfp4_quantize_host(x.data(), 16, 1, 16, 1.0f, codes.data(), 16, &scale, kLinear) ==
          NVFP4_SUCCESS);
  CHECK(scale == 0x40);                          // 2 = 12 / 6
  CHECK(codes[3] == (0xF0 | (codes[0] & 0xF)));  // -6
  float back[16];
  REQUIRE(nvfp4_dequantize_host(codes.data(), 16, &scale, kLinear, 1, 16, 1.0f, back, 16) ==
          NVFP4_SUCCESS);
  CHECK(back[7] == -12);
}

// The scale layout of one operand was used for the other.
TEST_CASE("cutlass #3535: the scales of A and B exchanged", "[regression]") {
  USE_GPU(gpu);
  Problem problem = forced(EACH_VARIANT, make_problem({130, 70, 192}, Data::exact, 311));
  const std::vector<uint16_t> before = run(gpu, problem);
  // Twice the scales of one row of B: its column of D doubles, nothing else moves.
  for (int64_t s = 0; s < 12; ++s) {
    problem.b.set_scale(0, 66, s, uint8_t(problem.b.scale(0, 66, s) + 8));
  }
  const std::vector<uint16_t> after = run(gpu, problem);
  for (size_t i = 0; i < before.size(); ++i) {
    const double factor = i % 70 == 66 ? 2 : 1;
    CAPTURE(i / 70, i % 70);
    REQUIRE(support::f16_value(after[i]) == factor * support::f16_value(before[i]));
  }
}
