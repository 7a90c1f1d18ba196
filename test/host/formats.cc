// SPDX-License-Identifier: MIT
// Operands with UE8M0 scales: the reference against a sum bit by bit, and which products have a
// kernel.
#include <array>
#include <cstring>

#include "host/base/operand_format.h"
#include "tools/harness/formats.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

using support::block_of;

const std::vector<int32_t> kFormats = support::ue8m0_formats();

// A sum of numbers that double holds, kept as how often each power of two is in it.
class BitSum {
 public:
  void add(double value) {
    int exponent;
    auto bits = int64_t(std::ldexp(std::frexp(value, &exponent), 53));
    const int sign = bits < 0 ? -1 : 1;
    bits *= sign;
    for (int i = 0; i < 53; ++i)
      times_[size_t(kMiddle + exponent - 53 + i)] += (bits >> i & 1) * sign;
  }
  // Rounded once to nearest even.
  float rounded() {
    const bool negative = carry() < 0;
    if (negative) {
      for (int64_t& times : times_) times = -times;
      carry();
    }
    int top = int(times_.size()) - 1;
    while (top >= 0 && times_[size_t(top)] == 0) --top;
    if (top < 0) return 0;
    const int last = std::max(top - 23, kMiddle - 149);  // the place that fp32 keeps last
    double kept = 0;
    for (int i = top; i >= last; --i) kept += std::ldexp(double(times_[size_t(i)]), i - last);
    const bool half = times_[size_t(last - 1)] != 0;
    bool rest = false;
    for (int i = 0; i < last - 1; ++i) rest = rest || times_[size_t(i)] != 0;
    if (half && (rest || std::fmod(kept, 2) != 0)) kept += 1;
    const double value = std::ldexp(kept, last - kMiddle);
    const float magnitude = value > 0x1.fffffep127 ? INFINITY : float(value);
    return negative ? -magnitude : magnitude;
  }

 private:
  static constexpr int kMiddle = 700;  // of 2^0
  // To 0 or 1 of each but the last, whose sign is that of all.
  int64_t carry() {
    for (size_t i = 0; i + 1 < times_.size(); ++i) {
      const int64_t one = times_[i] & 1;
      times_[i + 1] += (times_[i] - one) / 2;
      times_[i] = one;
    }
    return times_.back();
  }
  std::array<int64_t, 1400> times_{};
};

struct Random {
  uint32_t state;
  uint32_t operator()() { return (state = state * 1664525 + 1013904223) >> 16; }
};

struct Product {
  int64_t m = 3, n = 5, k = 96;
  int32_t format, a_type;
  std::vector<uint8_t> a, b, a_scales, b_scales;
  std::vector<uint16_t> halves;
  std::vector<float> d;

  // Scales from all their range, or of one place with what cancels in it.
  Product(int32_t format_, int32_t a_type_, uint32_t seed, bool near)
      : format(format_), a_type(a_type_), d(size_t(m * n), -1.0f) {
    Random next{seed};
    a.resize(size_t(m * k / 2)), b.resize(size_t(n * k / 2)), halves.resize(size_t(m * k));
    a_scales.resize(size_t(m * k / block_of(format)));
    b_scales.resize(size_t(n * k / block_of(format)));
    constexpr uint8_t kSpread[] = {0, 1, 2, 100, 127, 150, 252, 253, 254};
    for (auto* bytes : {&a, &b})
      for (uint8_t& byte : *bytes) byte = uint8_t(next());
    for (auto* bytes : {&a_scales, &b_scales})
      for (uint8_t& byte : *bytes) byte = near ? uint8_t(120 + next() % 14) : kSpread[next() % 9];
    for (uint16_t& half : halves) {
      half = uint16_t(next() & 0x807F) | uint16_t((near ? 120 + next() % 14 : next() % 255) << 7);
      if (a_type == NVFP4_TYPE_F16) half = uint16_t(next() % 2 << 15 | next() % 0x7C00);
    }
  }

  nvfp4_gemm_desc desc() {
    nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
    g.m = m, g.n = n, g.k = k, g.l = 1, g.alpha = 1;
    g.operand_format = format, g.a_type = a_type;
    g.a = a.data(), g.a_scales = a_scales.data(), g.a_ld = k;
    if (a_type != NVFP4_TYPE_NONE) g.a = halves.data(), g.a_scales = nullptr;
    g.b = b.data(), g.b_scales = b_scales.data(), g.b_ld = k;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.d = d.data(), g.d_ld = n, g.d_type = NVFP4_TYPE_F32;
    return g;
  }
  double element(const std::vector<uint8_t>& x, const std::vector<uint8_t>& scales, int64_t row,
                 int64_t i) const {
    const uint8_t code = uint8_t(x[size_t(row * k + i) / 2] >> (i % 2 * 4) & 15);
    const uint8_t scale = scales[size_t(row * (k / block_of(format)) + i / block_of(format))];
    return support::e2m1_value(code) * support::ue8m0_value(scale);
  }
  double token(int64_t row, int64_t i) const {
    const uint16_t half = halves[size_t(row * k + i)];
    if (a_type == NVFP4_TYPE_NONE) return element(a, a_scales, row, i);
    return a_type == NVFP4_TYPE_F16 ? support::f16_value(half) : support::bf16_value(half);
  }
  float exact(int64_t row, int64_t column) const {
    BitSum sum;
    for (int64_t i = 0; i < k; ++i) sum.add(token(row, i) * element(b, b_scales, column, i));
    return sum.rounded();
  }
};

std::string answer(nvfp4_status status) {
  return status == NVFP4_SUCCESS ? "" : nvfp4_last_error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("formats: the harness has the library's and refuses what is none") {
  REQUIRE(std::size(support::kScaledFormats) == std::size(nvfp4::kOperandFormats));
  for (const nvfp4::OperandFormat& row : nvfp4::kOperandFormats) {
    CAPTURE(row.format);
    CHECK(block_of(row.format) == row.block);
    const bool ue8m0 = support::row_of(row.format).scale == support::ScaleType::ue8m0;
    CHECK(ue8m0 == (row.scale == nvfp4::ScaleType::ue8m0));
    CHECK(support::format_of_d(row.d_type) == row.format);
    CHECK(support::scale_block_of_d(row.d_type) == row.block);
  }
  CHECK(support::scale_block_of_d(NVFP4_TYPE_F32) == 0);
  CHECK_THROWS_WITH(support::format_of_d(NVFP4_TYPE_F32), "D of type 3 has no scales");
  CHECK_THROWS_WITH(block_of(-1), "-1 is no operand format");
}

TEST_CASE("formats: the reference rounds the exact sum once whatever the scales are") {
  const int32_t format = GENERATE(from_range(std::begin(kFormats), std::end(kFormats)));
  const int32_t a_type =
      GENERATE(int32_t{NVFP4_TYPE_NONE}, int32_t{NVFP4_TYPE_F16}, int32_t{NVFP4_TYPE_BF16});
  const bool near = GENERATE(true, false);
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Product p(format, a_type, seed, near);
    const nvfp4_gemm_desc g = p.desc();
    REQUIRE(answer(nvfp4_gemm_reference(&g)) == "");
    for (int64_t row = 0; row < p.m; ++row)
      for (int64_t column = 0; column < p.n; ++column) {
        CAPTURE(seed, row, column);
        REQUIRE(p.d[size_t(row * p.n + column)] == p.exact(row, column));
      }
  }
}

TEST_CASE("formats: the scale byte 255 is NaN and reaches only its row or column") {
  const int32_t format = GENERATE(from_range(std::begin(kFormats), std::end(kFormats)));
  Product p(format, NVFP4_TYPE_NONE, 1, true);
  p.a_scales[size_t(p.k / block_of(format))] = 0xFF;
  p.b_scales[size_t(3 * p.k / block_of(format))] = 0xFF;
  const nvfp4_gemm_desc g = p.desc();
  REQUIRE(answer(nvfp4_gemm_reference(&g)) == "");
  for (int64_t i = 0; i < p.m * p.n; ++i) {
    CHECK(std::isnan(p.d[size_t(i)]) == (i / p.n == 1 || i % p.n == 3));
  }
}

TEST_CASE("formats: K is a multiple of the elements that share a scale") {
  Product p(NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_TYPE_BF16, 1, true);
  nvfp4_gemm_desc g = p.desc();
  g.k = 80;
  const std::string rule =
      "k = 80 is not a multiple of 32, the elements that share a scale; nearest 64 or 96";
  CHECK(answer(nvfp4_gemm_reference(&g)) == rule);
  CHECK(answer(nvfp4_gemm_supported(&g, 90)) == rule);
  g.operand_format = NVFP4_OPERAND_FORMAT_E2M1_UE8M0;
  CHECK(answer(nvfp4_gemm_supported(&g, 90)) == "");
}

TEST_CASE("formats: scales of a batch lie as far apart as those of 32 elements each ask") {
  Product p(NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_TYPE_BF16, 1, true);
  nvfp4_gemm_desc g = p.desc();
  g.l = 2, g.n = 8, g.k = 128;  // addresses alone: nothing is read
  g.a_ld = g.b_ld = 128, g.a_batch_stride = g.b_batch_stride = 1024, g.d_ld = 8;
  g.d_batch_stride = 64, g.b_scales_batch_stride_bytes = 32;
  g.a = g.a_scales = g.b = g.b_scales = nullptr, g.d = nullptr;
  CHECK(answer(nvfp4_gemm_supported(&g, 90)) == "");
  g.b_scales_batch_stride_bytes = 16;
  CHECK(contains(answer(nvfp4_gemm_supported(&g, 90)),
                 "b_scales_batch_stride_bytes = 16 is less than nvfp4_scale_bytes_for() = 32"));
}

TEST_CASE("formats: what has no kernel is refused by its format") {
  const int32_t format = GENERATE(from_range(std::begin(kFormats), std::end(kFormats)));
  struct Row {
    int capability;
    int32_t a_type;
    const char* sentence;
  };
  const Row kRows[] = {
      {90, NVFP4_TYPE_BF16, ""},
      {90, NVFP4_TYPE_F16, "with a_type = NVFP4_TYPE_F16 has no kernel for compute capability 9.0"},
      {90, NVFP4_TYPE_NONE, ""},
      {80, NVFP4_TYPE_BF16, ""},
      {89, NVFP4_TYPE_BF16, ""},
      {120, NVFP4_TYPE_BF16, ""},
      {80, NVFP4_TYPE_F16, "with a_type = NVFP4_TYPE_F16 has no kernel for compute capability 8.0"},
      {80, NVFP4_TYPE_NONE, "a_type = NVFP4_TYPE_NONE has no kernel for compute capability 8.0"},
      {100, NVFP4_TYPE_NONE, ""},
      {100, NVFP4_TYPE_BF16, ""},
      {100, NVFP4_TYPE_F16, "with a_type = NVFP4_TYPE_F16 has no kernel"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.capability, row.a_type);
    Product p(format, row.a_type, 1, true);
    nvfp4_gemm_desc g = p.desc();
    g.a = g.a_scales = g.b = g.b_scales = nullptr, g.d = nullptr;  // sizes alone, no workspace
    const std::string why = answer(nvfp4_gemm_supported(&g, row.capability));
    CHECK(why.empty() == (row.sentence[0] == 0));
    CHECK(contains(why, row.sentence));
  }
}

TEST_CASE("formats: a variant that does not take one says so") {
  Product p(NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_TYPE_BF16, 1, true);
  nvfp4_gemm_desc g = p.desc();
  g.variant = "sm80_bf16_64x8w4x128";
  CHECK(contains(answer(nvfp4_gemm_supported(&g, 90)),
                 "does not take operand_format = NVFP4_OPERAND_FORMAT_MXFP4"));
  g.variant = "sm80_bf16_64x16w4x128";  // where 9.0 has kernels of its own for them
  CHECK(contains(answer(nvfp4_gemm_supported(&g, 90)), "does not take operand_format"));
  g.variant = "sm90_bf16_64x64x256";
  CHECK(answer(nvfp4_gemm_supported(&g, 90)) == "");
  for (const int32_t capability : {80, 100, 120}) {
    g.variant = "sm80_bf16_64x16w4x128";
    CHECK(answer(nvfp4_gemm_supported(&g, capability)) == "");
    g.variant = "sm80_bf16_64x8w4x128";
    CHECK(contains(answer(nvfp4_gemm_supported(&g, capability)), "does not take operand_format"));
  }
}

// What other libraries take and this one does not: the sentence names the caller's field.
TEST_CASE("formats: operands and layouts that are left for later are refused by name") {
  struct Row {
    const char* what;
    int capability;
    void (*set)(nvfp4_gemm_desc& g);
    const char* sentence;
  };
  const Row kRows[] = {
      {"MXFP8 tokens of E4M3, a number that has no name yet", 100,
       [](nvfp4_gemm_desc& g) { g.a_type = 7; },
       "a_type = 7 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16"},
      {"tokens quantized by another format than the weights", 100,
       [](nvfp4_gemm_desc& g) { g.a_type = NVFP4_TYPE_MXFP4; },
       "a_type = NVFP4_TYPE_MXFP4 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16"},
      {"fp32 tokens", 90, [](nvfp4_gemm_desc& g) { g.a_type = NVFP4_TYPE_F32; },
       "a_type = NVFP4_TYPE_F32 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16"},
      {"fp16 tokens beside UE8M0 scales", 90, [](nvfp4_gemm_desc& g) { g.a_type = NVFP4_TYPE_F16; },
       "operand_format = NVFP4_OPERAND_FORMAT_MXFP4 with a_type = NVFP4_TYPE_F16 has no kernel for "
       "compute capability 9.0"},
      {"an operand format of 8-bit elements", 100, [](nvfp4_gemm_desc& g) { g.operand_format = 3; },
       "operand_format = 3 is not one of NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_OPERAND_FORMAT_MXFP4, "
       "NVFP4_OPERAND_FORMAT_E2M1_UE8M0"},
      {"DeepGEMM's packed scales, FlashInfer's 8x4", 100,
       [](nvfp4_gemm_desc& g) { g.b_scale_layout = 3; },
       "b_scale_layout = 3 is not one of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR"},
      {"the same of tokens", 100, [](nvfp4_gemm_desc& g) { g.a_scale_layout = 3; },
       "a_scale_layout = 3 is not one of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR"},
      {"a K that ends within a scale", 100, [](nvfp4_gemm_desc& g) { g.k = 48; },
       "k = 48 is not a multiple of 32, the elements that share a scale; nearest 32 or 64"},
      {"steps of 96 along K, by a variant of that name", 103,
       [](nvfp4_gemm_desc& g) { g.variant = "sm100_256x256x96"; },
       "variant = \"sm100_256x256x96\" is not one of:"},
      {"MXFP4 tokens before 9.0", 80, [](nvfp4_gemm_desc&) {},
       "a_type = NVFP4_TYPE_NONE has no kernel for compute capability 8.0"},
      {"MXFP4 tokens on 12.0", 120, [](nvfp4_gemm_desc&) {},
       "operand_format = NVFP4_OPERAND_FORMAT_MXFP4 with a_type = NVFP4_TYPE_NONE has no kernel "
       "for "
       "compute capability 12.0"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.what);
    Product p(NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_TYPE_NONE, 1, true);
    nvfp4_gemm_desc g = p.desc();
    g.a = g.a_scales = g.b = g.b_scales = nullptr, g.d = nullptr;  // sizes alone, no workspace
    REQUIRE(answer(nvfp4_gemm_supported(&g, 100)) == "");
    row.set(g);
    CHECK(answer(nvfp4_gemm_supported(&g, row.capability)).rfind(row.sentence, 0) == 0);
  }
}
