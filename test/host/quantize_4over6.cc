// SPDX-License-Identifier: MIT
// NVFP4_SCALE_RULE_4OVER6 on the host: blocks by hand, every block beside both of its scales, the
// error on normal data, and who refuses the rule.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tools/harness/formats.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

constexpr int32_t kRule = NVFP4_SCALE_RULE_4OVER6;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Quantized {
  std::vector<uint8_t> codes, scales;
  bool operator==(const Quantized& x) const { return codes == x.codes && scales == x.scales; }
};

nvfp4_quantize_desc desc_of(std::vector<float>& x, int64_t rows, Quantized& q) {
  nvfp4_quantize_desc desc{};
  desc.struct_size = sizeof desc;
  desc.rows = rows, desc.k = desc.x_ld = desc.codes_ld = int64_t(x.size()) / rows;
  desc.x = x.data(), desc.x_type = NVFP4_TYPE_F32;
  q.codes.resize(x.size() / 2), q.scales.resize(x.size() / 16);
  desc.codes = q.codes.data(), desc.scales = q.scales.data();
  desc.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  desc.tensor_scale = 1, desc.scale_rule = kRule;
  return desc;
}

// Quantizes x and as many zeros as 16 elements need.
Quantized quantize(std::vector<float> x, float t, int32_t rule = kRule) {
  x.resize(16, 0.0f);
  Quantized q;
  nvfp4_quantize_desc desc = desc_of(x, 1, q);
  desc.tensor_scale = t, desc.scale_rule = rule;
  REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
  return q;
}

// The nearest of some values, of two that are as near the one with the even code.
template <typename Value>
uint8_t nearest(double target, uint8_t codes, const Value& value_of) {
  uint8_t best = 0;
  for (uint8_t code = 1; code < codes; ++code) {
    const double now = std::fabs(value_of(code) - target);
    const double before = std::fabs(value_of(best) - target);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best;
}

// A block of numbers under the scale that maps the largest magnitude to `element`.
struct Candidate {
  Quantized q{std::vector<uint8_t>(8), std::vector<uint8_t>(1)};
  float error = 0;

  Candidate(const std::vector<float>& x, float element, float t) {
    float amax = 0;
    for (const float one : x) amax = std::fmax(amax, std::fabs(one));
    const uint8_t code = nearest(amax / element / t, 0x7F, support::e4m3_value);
    const float scale = float(support::e4m3_value(code)), step = scale * t;
    q.scales[0] = code;
    for (size_t i = 0; i < 16; ++i) {
      uint8_t e2m1 = 0;
      if (code != 0) {
        e2m1 = nearest(std::fabs(x[i] / step), 8, support::e2m1_value);
        if (std::signbit(x[i])) e2m1 |= 8;
      }
      q.codes[i / 2] |= uint8_t(e2m1 << i % 2 * 4);
      const float difference = float(support::e2m1_value(e2m1)) * scale * t - x[i];
      error = error + difference * difference;
    }
  }
};

std::vector<float> normal(size_t count, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> x(count);
  for (float& one : x) {  // not std::normal_distribution, which each library has its own way
    const double u = (double(bits()) + 0.5) * 0x1p-32, v = double(bits()) * 0x1p-32;
    one = float(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
  }
  return x;
}

}  // namespace

TEST_CASE("Blocks have the scale of 4over6 that the rule gives by hand", "[4over6]") {
  struct Row {
    std::vector<float> x;
    float t;
    uint8_t scale;
    std::vector<uint8_t> codes;  // the first bytes
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Row kRows[] = {
      {{4, 3, -3, 2}, 1, 0x38, {0x56, 0x4D}},  // 4 / 4 = 1: no error
      {{6, 5, -5, 5}, 1, 0x3C, {0x56, 0x5D}},  // 5 becomes 4.5, under the other scale 4
      {{12, 8}, 1, 0x40, {0x67}},              // 6 * 2 and 4 * 2
      {{12}, 1, 0x40, {0x07}},                 // 6 * 2 or 4 * 3
      {{12}, 0.5f, 0x48, {0x07}},
      {{2688, 448}, 1, 0x7E, {0x27}},            // both scales saturate
      {{2000}, 1, 0x7A, {0x07}},                 // 6 * 320 is nearer than 4 * 448, which saturates
      {{6 * 0.49f * 0x1p-9f}, 1, 0x01, {0x05}},  // amax / 6 is no scale
      {{0, -0.0f}, 1, 0x00, {0x00}},
      {{1, nan, -3}, 1, 0x7F, {0x00, 0x00}},
      {{kInfinity, -kInfinity, 448}, 1, 0x7E, {0xF7, 0x02}},
      {{0x6p-90f, 0x5p-90f}, 0x1p-90f, 0x38, {0x67}},  // the squares are 0, the errors not
  };
  for (const Row& row : kRows) {
    CAPTURE(row.x, row.t);
    const Quantized q = quantize(row.x, row.t);
    CHECK(int(q.scales[0]) == int(row.scale));
    std::vector<uint8_t> codes = row.codes;
    codes.resize(8);
    CHECK(q.codes == codes);
  }
}

TEST_CASE("4over6 keeps of both scales the one with the smaller error", "[4over6]") {
  support::Random random(5);
  int fours = 0, blocks = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<float> x(16);
    // Blocks from those whose squares are 0 to those whose squares are infinite.
    const int exponent = i % 4 == 0 ? int(random.below(230)) - 115 : int(random.below(12)) - 6;
    for (float& one : x) {
      const float part = float(int32_t(random.below(1 << 24)) - (1 << 23)) * 0x1p-23f;
      one = std::ldexp(part, exponent - int(random.below(4)));
    }
    const int of_t = i % 4 == 0 ? exponent - int(random.below(14)) : -int(random.below(12));
    const float t = std::ldexp(1 + float(random.below(1000)) * 0x1p-10f, of_t);
    const Candidate six(x, 6, t), four(x, 4, t);
    const bool is_four = four.error < six.error;
    CAPTURE(i, six.error, four.error);
    REQUIRE(quantize(x, t) == (is_four ? four.q : six.q));
    REQUIRE(quantize(x, t, NVFP4_SCALE_RULE_DEFAULT) == six.q);
    fours += is_four, ++blocks;
  }
  CHECK(fours > blocks / 5);
  CHECK(fours < blocks / 2);
}

// docs/numerics.md has the figures.
TEST_CASE("4over6 has 6 to 9 % less error than the default on normal data", "[4over6]") {
  std::vector<float> x = normal(256 * 1024, 1), back(x.size());
  double errors[2];
  for (const int32_t rule : {int32_t{NVFP4_SCALE_RULE_DEFAULT}, kRule}) {
    Quantized q;
    nvfp4_quantize_desc desc = desc_of(x, 256, q);
    float t = 0;
    desc.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX, desc.tensor_scale_device = &t;
    desc.scale_rule = rule;
    REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
    desc.x = back.data();
    desc.tensor_scale_mode = NVFP4_TENSOR_SCALE_DEVICE;
    REQUIRE(nvfp4_dequantize_reference(&desc) == NVFP4_SUCCESS);
    double error = 0, norm = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      error += std::pow(double(back[i]) - x[i], 2), norm += std::pow(double(x[i]), 2);
    }
    errors[rule == kRule] = std::sqrt(error / norm);
  }
  const double less = 1 - errors[1] / errors[0];
  CAPTURE(errors[0], errors[1], less);
  CHECK(less > 0.06);
  CHECK(less < 0.09);
}

TEST_CASE("With 4over6 tensor scales are made and read as by the default", "[4over6]") {
  constexpr size_t kRows = 9, kK = 64;
  std::vector<float> x = normal(kRows * kK, 2);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= std::ldexp(1.0f, int(i / kK) - 4);
  Quantized q;
  std::vector<float> t(kRows);
  const auto run = [&](int32_t mode) {
    nvfp4_quantize_desc desc = desc_of(x, kRows, q);
    desc.tensor_scale_mode = mode, desc.tensor_scale_device = t.data();
    REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
  };
  const auto check_rows = [&](bool own) {
    for (size_t row = 0; row < kRows; ++row) {
      const auto first = x.begin() + std::ptrdiff_t(row * kK);
      for (size_t block = 0; block < kK / 16; ++block) {
        const auto at = first + std::ptrdiff_t(block * 16);
        const Quantized one = quantize({at, at + 16}, t[own ? row : 0]);
        CHECK(int(one.scales[0]) == int(q.scales[row * kK / 16 + block]));
        CHECK(std::memcmp(one.codes.data(), &q.codes[(row * kK + block * 16) / 2], 8) == 0);
      }
      float amax = 0;
      for (size_t i = 0; i < kK; ++i) amax = std::fmax(amax, std::fabs(first[std::ptrdiff_t(i)]));
      if (own) CHECK(t[row] == amax / 2688.0f);
    }
  };
  run(NVFP4_TENSOR_SCALE_ROW_AMAX);
  check_rows(true);
  run(NVFP4_TENSOR_SCALE_ROWS);
  check_rows(true);
  run(NVFP4_TENSOR_SCALE_AMAX);
  check_rows(false);
}

TEST_CASE("The caller's rounding mode does not change what 4over6 keeps", "[4over6]") {
  const int mode = GENERATE(FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO);
  const std::vector<float> all = normal(200 * 16, 3);
  for (size_t i = 0; i < all.size(); i += 16) {
    const std::vector<float> x(all.begin() + std::ptrdiff_t(i),
                               all.begin() + std::ptrdiff_t(i + 16));
    const Quantized expected = quantize(x, 0.01f);
    fesetround(mode);
    const Quantized found = quantize(x, 0.01f);
    fesetround(FE_TONEAREST);
    CHECK(found == expected);
  }
}

TEST_CASE("4over6 is refused where there is no such rule", "[4over6]") {
  std::vector<float> x(64);
  Quantized q;
  for (const int32_t format : {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0}) {
    nvfp4_quantize_desc desc = desc_of(x, 1, q);
    desc.format = format;
    for (const nvfp4_status status :
         {nvfp4_quantize_reference(&desc), nvfp4_quantize(&desc, nullptr)}) {
      CHECK(status == NVFP4_STATUS_INVALID_VALUE);
      CHECK(std::string(nvfp4_last_error())
                .find("scale_rule = NVFP4_SCALE_RULE_4OVER6 is one of UE4M3 scales, which format = "
                      "NVFP4_OPERAND_FORMAT_") == 0);
    }
  }
  nvfp4_fused_quantize_desc fused{};
  fused.struct_size = sizeof fused;
  fused.rows = 1, fused.k = 64, fused.operation = NVFP4_FUSED_SILU_MUL;
  fused.scale_rule = kRule;
  for (const nvfp4_status status :
       {nvfp4_fused_quantize_host(&fused), nvfp4_fused_quantize(&fused, nullptr)}) {
    CHECK(status == NVFP4_STATUS_INVALID_ENUM);
    CHECK(std::string(nvfp4_last_error()) ==
          "scale_rule = NVFP4_SCALE_RULE_4OVER6 is not one of NVFP4_SCALE_RULE_DEFAULT, "
          "NVFP4_SCALE_RULE_ROUND_UP, NVFP4_SCALE_RULE_FLOOR");
  }
}
