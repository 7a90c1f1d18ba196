// SPDX-License-Identifier: MIT
// nvfp4_gemm_reference against a naive computation in 128-bit integers, and its rules for NaN,
// infinity, zero and rounding.
#include <cstring>

#include "nvfp4_gemm.h"
#include "test/host/csv.h"
#include "tools/harness/formats.h"

namespace {

constexpr uint16_t kGap = 0xBEEF;
__extension__ using int128 = __int128;

struct Problem {
  int64_t m, n, k, l;
  int64_t a_ld, b_ld, d_ld, d_stride;
  std::vector<uint8_t> a, b, a_scales, b_scales;  // linear scales
  std::vector<uint16_t> d;

  Problem(int64_t m_, int64_t n_, int64_t k_, int64_t l_ = 1, int64_t gap = 0)
      : m(m_), n(n_), k(k_), l(l_) {
    a_ld = (k + 31) / 32 * 32 + 32 * gap;
    b_ld = (k + 31) / 32 * 32 + 64 * gap;
    d_ld = n + gap;
    d_stride = m * d_ld + gap;
    a.assign(l * m * a_ld / 2, 0), b.assign(l * n * b_ld / 2, 0);
    a_scales.assign(l * scale_stride(m), 0x38), b_scales.assign(l * scale_stride(n), 0x38);
    d.assign(l * d_stride, kGap);
  }

  int64_t scale_stride(int64_t rows) const { return (rows * (k / 16) + 15) / 16 * 16; }

  void randomize(uint32_t seed, uint8_t largest_scale) {
    uint32_t state = seed;
    const auto next = [&state] { return (state = state * 1664525 + 1013904223) >> 16; };
    for (auto* bytes : {&a, &b}) {
      for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(next());
    }
    for (auto* bytes : {&a_scales, &b_scales}) {
      for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(next() % (largest_scale + 1u));
    }
  }

  nvfp4_gemm_desc desc(float alpha) {
    nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
    g.m = m, g.n = n, g.k = k, g.l = l;
    g.a = a.data(), g.a_ld = a_ld, g.a_batch_stride = m * a_ld;
    g.b = b.data(), g.b_ld = b_ld, g.b_batch_stride = n * b_ld;
    g.a_scales = a_scales.data(), g.a_scales_batch_stride_bytes = scale_stride(m);
    g.b_scales = b_scales.data(), g.b_scales_batch_stride_bytes = scale_stride(n);
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.d = d.data(), g.d_ld = d_ld, g.d_batch_stride = d_stride;
    g.d_type = NVFP4_TYPE_F16;
    g.alpha = alpha;
    return g;
  }

  uint16_t run(float alpha = 1.0f) {
    const nvfp4_gemm_desc g = desc(alpha);
    REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
    return d[0];
  }
};

// The exact sum in units of 2^-20, one product at a time.
int128 exact_units(const Problem& p, int64_t batch, int64_t row, int64_t column) {
  int128 sum = 0;
  for (int64_t i = 0; i < p.k; ++i) {
    const auto element = [&](const std::vector<uint8_t>& x, int64_t rows, int64_t r, int64_t ld) {
      return support::e2m1_twice(x[(batch * rows * ld + r * ld + i) / 2] >> (i % 2 * 4) & 0xF);
    };
    const auto scale = [&](const std::vector<uint8_t>& x, int64_t rows, int64_t r) {
      const uint8_t byte = x[batch * p.scale_stride(rows) + r * (p.k / 16) + i / 16];
      return static_cast<int64_t>(std::ldexp(support::e4m3_value(byte), 9));
    };
    sum += static_cast<int128>(element(p.a, p.m, row, p.a_ld) * element(p.b, p.n, column, p.b_ld)) *
           scale(p.a_scales, p.m, row) * scale(p.b_scales, p.n, column);
  }
  return sum;
}

// binary16 in double precision, where every step but the rounding to an integer is exact.
uint16_t nearest_f16(float value) {
  const double magnitude = std::fabs(double(value));
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const double places = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  const double code = places + 1024.0 * (exponent + 14);
  const uint16_t bits = code < 0x7C00 ? static_cast<uint16_t>(code) : 0x7C00;
  return bits | (std::signbit(value) ? 0x8000 : 0);
}

uint16_t naive(const Problem& p, int64_t batch, int64_t row, int64_t column, float alpha) {
  const int128 units = exact_units(p, batch, row, column);
  // The compiler's conversion of a 128-bit integer rounds once, to nearest even.
  const float acc = static_cast<float>(units) * 0x1p-20f;
  return nearest_f16(alpha * acc);
}

void check_all(Problem& p, float alpha) {
  p.run(alpha);
  size_t wrong = 0, gaps = p.d.size();
  for (int64_t batch = 0; batch < p.l; ++batch) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; ++column) {
        const size_t at = batch * p.d_stride + row * p.d_ld + column;
        wrong += p.d[at] != naive(p, batch, row, column, alpha);
        p.d[at] = kGap;
        --gaps;
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(p.d == std::vector<uint16_t>(p.d.size(), kGap));  // nothing else was written
  CHECK(gaps == p.d.size() - p.l * p.m * p.n);
}

}  // namespace

TEST_CASE("The reference equals a naive 128-bit computation bit for bit") {
  struct Shape {
    int64_t m, n, k, l, gap;
  };
  const Shape s =
      GENERATE(Shape{1, 1, 16, 1, 0}, Shape{1, 1, 16, 2, 3}, Shape{3, 5, 48, 1, 1},
               Shape{31, 33, 256, 1, 0}, Shape{32, 32, 272, 2, 5}, Shape{65, 7, 512, 3, 2},
               Shape{2, 100, 1040, 1, 1}, Shape{5, 3, 8192, 1, 0});
  const int largest_scale = GENERATE(0x07, 0x40, 0x7E);
  CAPTURE(s.m, s.n, s.k, s.l, s.gap, largest_scale);
  Problem p(s.m, s.n, s.k, s.l, s.gap);
  p.randomize(static_cast<uint32_t>(s.m * 1000 + s.k), static_cast<uint8_t>(largest_scale));
  check_all(p, largest_scale == 0x7E ? 0x1p-14f : 1.1f);
}

TEST_CASE("The largest sums of the largest K do not overflow") {
  Problem p(1, 2, 1 << 20);
  std::fill(p.a.begin(), p.a.end(), uint8_t{0x77});
  std::fill(p.b.begin(), p.b.begin() + p.b_ld / 2, uint8_t{0x77});
  std::fill(p.b.begin() + p.b_ld / 2, p.b.end(), uint8_t{0xFF});
  std::fill(p.a_scales.begin(), p.a_scales.end(), uint8_t{0x7E});
  std::fill(p.b_scales.begin(), p.b_scales.end(), uint8_t{0x7E});
  p.run(0x1p-36f);  // 36 * 448 * 448 * 2^20 = 110.25 * 2^36
  CHECK(p.d[0] == nearest_f16(110.25f));
  CHECK(p.d[1] == nearest_f16(-110.25f));
}

TEST_CASE("The 128x4 layout and the linear one give the same bits") {
  Problem p(130, 33, 208, 2);
  p.randomize(5, 0x7E);
  p.run(0.001f);
  const std::vector<uint16_t> linear = p.d;
  const auto convert = [&](const std::vector<uint8_t>& scales, int64_t rows) {
    const size_t bytes = nvfp4_scale_bytes(rows, p.k, NVFP4_SCALE_LAYOUT_128X4);
    std::vector<uint8_t> tiles(p.l * bytes);
    for (int64_t batch = 0; batch < p.l; ++batch) {
      nvfp4_scale_convert_host(scales.data() + batch * p.scale_stride(rows),
                               NVFP4_SCALE_LAYOUT_LINEAR, tiles.data() + batch * bytes,
                               NVFP4_SCALE_LAYOUT_128X4, rows, p.k);
    }
    return tiles;
  };
  std::vector<uint8_t> a_tiles = convert(p.a_scales, p.m), b_tiles = convert(p.b_scales, p.n);
  // Padding is never used: NaN there changes nothing. Rows 130.. of the second tile are padding.
  a_tiles[512 * 4 + 2 * 16] = 0xFF;
  nvfp4_gemm_desc g = p.desc(0.001f);
  g.a_scales = a_tiles.data(), g.a_scales_batch_stride_bytes = int64_t(a_tiles.size()) / p.l;
  g.b_scales = b_tiles.data(), g.b_scales_batch_stride_bytes = int64_t(b_tiles.size()) / p.l;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  std::fill(p.d.begin(), p.d.end(), kGap);
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  CHECK(p.d == linear);
}

TEST_CASE("Batch strides of 0 repeat the same matrix and the same scales") {
  Problem p(2, 3, 32, 2);
  p.randomize(9, 0x50);
  nvfp4_gemm_desc g = p.desc(1.0f);
  g.a_batch_stride = g.b_batch_stride = 0;
  g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = 0;
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  CHECK(std::vector<uint16_t>(p.d.begin(), p.d.begin() + p.d_stride) ==
        std::vector<uint16_t>(p.d.begin() + p.d_stride, p.d.end()));
}

TEST_CASE("A NaN scale makes its row or column NaN and nothing else") {
  Problem p(4, 40, 512);
  p.randomize(3, 0x40);
  const uint8_t nan_byte = GENERATE(0x7F, 0xFF);
  p.a_scales[2 * 32 + 31] = nan_byte;  // row 2, in its last panel
  p.b_scales[35 * 32 + 0] = nan_byte;  // column 35, in its first
  std::fill(p.a.begin() + 2 * p.a_ld / 2, p.a.begin() + 3 * p.a_ld / 2,
            0);  // zero elements do not help
  p.run();
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t column = 0; column < p.n; ++column) {
      CAPTURE(row, column);
      const double value = support::f16_value(p.d[row * p.d_ld + column]);
      CHECK(std::isnan(value) == (row == 2 || column == 35));
    }
  }
}

TEST_CASE("Bit 7 of a scale byte is ignored") {
  Problem p(1, 1, 16);
  p.a[0] = 0x05, p.b[0] = 0x07;  // 3 * 6
  p.a_scales[0] = 0xB8;          // 1 with bit 7
  CHECK(support::f16_value(p.run()) == 18.0);
}

TEST_CASE("The element with the lower k is in the low nibble") {
  Problem p(1, 1, 16);
  p.a[0] = 0x72, p.b[0] = 0x02;  // k = 0: 1 * 1; k = 1: 6 * 0
  CHECK(support::f16_value(p.run()) == 1.0);
}

TEST_CASE("alpha follows IEEE: zero and infinity and NaN are not special cases of the library") {
  const float infinity = std::numeric_limits<float>::infinity();
  Problem zero(1, 1, 16);
  Problem one(1, 1, 16);
  one.a[0] = 0x2, one.b[0] = 0xA;  // 1 * -1
  Problem nan(1, 1, 16);
  nan.a_scales[0] = 0x7F;
  CHECK(zero.run(1.0f) == 0x0000);
  CHECK(zero.run(-1.0f) == 0x8000);
  CHECK(zero.run(infinity) == 0x7FFF);
  CHECK(zero.run(NAN) == 0x7FFF);
  CHECK(one.run(0.0f) == 0x8000);
  CHECK(one.run(infinity) == 0xFC00);
  CHECK(one.run(-infinity) == 0x7C00);
  CHECK(nan.run(0.0f) == 0x7FFF);
}

TEST_CASE("K = 0 gives round(alpha * 0) and looks at no input") {
  Problem p(3, 4, 0, 2, 1);
  nvfp4_gemm_desc g = p.desc(-2.0f);
  g.a = g.b = g.a_scales = g.b_scales = nullptr;
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  CHECK(p.d[0] == 0x8000);
  CHECK(p.d[p.d_stride + 2 * p.d_ld + 3] == 0x8000);
  CHECK(p.d[4] == kGap);
}

// With acc = 1, D = f16(alpha): the whole golden table of roundings goes through.
TEST_CASE(
    "The result rounds to fp16 like the golden table: ties and subnormals and infinity and NaN") {
  Problem p(1, 1, 16);
  p.a[0] = p.b[0] = 0x2;
  for (const auto& cells : host_test::golden("numeric_encode", 3220)) {
    const uint32_t bits = host_test::hex(cells[0]);
    float alpha;
    memcpy(&alpha, &bits, 4);
    CAPTURE(cells[0]);
    CHECK(int(p.run(alpha)) == int(host_test::hex(cells[5])));
  }
}

TEST_CASE("alpha * acc is one fp32 multiplication that keeps subnormal results") {
  Problem p(1, 1, 16);
  p.a[0] = 0x7, p.b[0] = 0x7;         // 36
  p.a_scales[0] = p.b_scales[0] = 1;  // 36 * 2^-18
  CHECK(support::f16_value(p.run(1.0f)) == 36.0 * 0x1p-18);
  CHECK(support::f16_value(p.run(0x1p-10f)) == 0x1p-23);  // 36 * 2^-28 is 2.25 units of fp16
  // 1/3 * 36 * 2^-18 in fp32 first, then fp16.
  CHECK(p.run(1.0f / 3.0f) == nearest_f16((1.0f / 3.0f) * (36.0f * 0x1p-18f)));
}

TEST_CASE("Rows can be computed apart at addresses that only suit their type") {
  Problem p(5, 7, 64);
  p.randomize(11, 0x45);
  p.run();
  const std::vector<uint16_t> whole = p.d;
  for (int64_t row = 0; row < p.m; ++row) {
    nvfp4_gemm_desc g = p.desc(1.0f);
    g.m = 1;
    g.a = p.a.data() + row * p.a_ld / 2;
    g.a_scales = p.a_scales.data() + row * 4;  // 4-byte aligned
    g.d = p.d.data() + row * p.d_ld;           // 14 bytes apart
    std::fill(p.d.begin() + row * p.d_ld, p.d.begin() + (row + 1) * p.d_ld, kGap);
    REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  }
  CHECK(p.d == whole);
}

TEST_CASE("A refused reference leaves D as it was") {
  Problem p(2, 2, 32);
  nvfp4_gemm_desc g = p.desc(1.0f);
  g.b_ld = 31;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_STATUS_INVALID_VALUE);
  g = p.desc(1.0f);
  g.d = reinterpret_cast<char*>(p.d.data()) + 1;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_STATUS_MISALIGNED);
  CHECK(p.d == std::vector<uint16_t>(p.d.size(), kGap));
}
