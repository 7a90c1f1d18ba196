// SPDX-License-Identifier: MIT
// Quantization to E2M1 with UE8M0 scales on the host: bytes of scales that other implementations
// give, codes by search for the nearest value, and where both lie.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

using support::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kMxfp4 = NVFP4_OPERAND_FORMAT_MXFP4, kPer16 = NVFP4_OPERAND_FORMAT_E2M1_UE8M0;
constexpr int32_t kRules[] = {NVFP4_SCALE_RULE_DEFAULT, NVFP4_SCALE_RULE_ROUND_UP,
                              NVFP4_SCALE_RULE_FLOOR};

int64_t block_of(int32_t format) { return format == kMxfp4 ? 32 : 16; }

struct Quantized {
  std::vector<uint8_t> codes, scales;
};

nvfp4_quantize_desc desc_of(std::vector<float>& x, Quantized& q, int64_t rows, int32_t format,
                            int32_t layout) {
  const int64_t k = int64_t(x.size()) / rows;
  q.codes.resize(x.size() / 2, 0xA5);
  q.scales.resize(nvfp4_scale_bytes_for(rows, k, layout, format), 0xA5);
  nvfp4_quantize_desc desc{};
  desc.struct_size = sizeof desc;
  desc.rows = rows, desc.k = k, desc.x = x.data(), desc.x_ld = k, desc.x_type = NVFP4_TYPE_F32;
  desc.codes = q.codes.data(), desc.codes_ld = k, desc.scales = q.scales.data();
  desc.scale_layout = layout, desc.tensor_scale = 1, desc.format = format;
  return desc;
}

Quantized quantize(std::vector<float> x, int64_t rows, int32_t format, int32_t rule,
                   int32_t layout = NVFP4_SCALE_LAYOUT_LINEAR) {
  Quantized q;
  nvfp4_quantize_desc desc = desc_of(x, q, rows, format, layout);
  desc.scale_rule = rule;
  REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
  return q;
}

// A block whose largest magnitude, of the last element, is given.
std::vector<float> block_with(int32_t format, float amax) {
  std::vector<float> x(size_t(block_of(format)), 0.25f * amax);
  x.back() = -amax;
  return x;
}

double magnitude_of(uint32_t code) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return values[code & 7];
}

// The nearest magnitude, of two that are as near the one with the even code.
uint32_t nearest_code(double x) {
  uint32_t best = 0;
  for (uint32_t code = 1; code < 8; ++code) {
    const double now = std::fabs(magnitude_of(code) - std::fabs(x));
    const double before = std::fabs(magnitude_of(best) - std::fabs(x));
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? 8 : 0);
}

// Values whose magnitudes differ by up to 2^6 in a block, the blocks' by 2^40.
std::vector<float> spread(int64_t count, int64_t block) {
  Random random(7);
  std::vector<float> x;
  while (int64_t(x.size()) < count) {
    const int exponent = int(random.below(40)) - 20;
    for (int64_t i = 0; i < block; ++i) {
      const float value = std::ldexp(float(random.below(1 << 20)) + 1, exponent - int(i % 7));
      x.push_back(random.below(2) ? value : -value);
    }
  }
  return x;
}

}  // namespace

TEST_CASE("UE8M0 scales are rounded up by default and down by the floor rule") {
  const struct {
    float amax;
    uint8_t up, floor;
  } rows[] = {{0.5f, 0x7C, 0x7C},        {1, 0x7D, 0x7D},
              {1.5f, 0x7D, 0x7D},        {std::nextafter(1.5f, 2.0f), 0x7E, 0x7D},
              {3, 0x7E, 0x7E},           {std::nextafter(3.0f, 4.0f), 0x7F, 0x7E},
              {6, 0x7F, 0x7F},           {std::nextafter(6.0f, 7.0f), 0x80, 0x7F},
              {448, 0x86, 0x85},         {3.4e38f, 0xFD, 0xFC},
              {0, 0x00, 0x00},           {0x1p-149f, 0x00, 0x00},
              {0x1p-125f, 0x00, 0x00},   {0x1.8p-125f, 0x00, 0x00},
              {0x1.9p-125f, 0x01, 0x00}, {kInfinity, 0xFE, 0xFE}};
  for (const int32_t format : {kMxfp4, kPer16})
    for (const auto& row : rows) {
      CAPTURE(format, row.amax);
      const std::vector<float> x = block_with(format, row.amax);
      for (const int32_t rule : kRules) {
        const uint8_t want = rule == NVFP4_SCALE_RULE_FLOOR ? row.floor : row.up;
        CHECK(int(quantize(x, 1, format, rule).scales[0]) == int(want));
      }
    }
}

TEST_CASE("Codes with UE8M0 scales are the nearest and read back as code times scale") {
  for (const int32_t format : {kMxfp4, kPer16})
    for (const int32_t rule : kRules) {
      CAPTURE(format, rule);
      const int64_t block = block_of(format), rows = 40, k = 6 * block;
      std::vector<float> x = spread(rows * k, block);
      Quantized q = quantize(x, rows, format, rule);
      std::vector<float> back(x.size());
      const nvfp4_quantize_desc desc = desc_of(back, q, rows, format, NVFP4_SCALE_LAYOUT_LINEAR);
      REQUIRE(nvfp4_dequantize_reference(&desc) == NVFP4_SUCCESS);
      int wrong = 0, clipped = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double scale = std::ldexp(1.0, int(q.scales[i / size_t(block)]) - 127);
        const uint32_t code = q.codes[i / 2] >> (i % 2 * 4) & 0xF;
        const double value = magnitude_of(code) * scale;
        wrong += code != nearest_code(double(x[i]) / scale);
        wrong += double(back[i]) != ((code & 8) != 0 ? -value : value);
        clipped += std::fabs(double(x[i])) > 6 * scale;
      }
      CHECK(wrong == 0);
      CHECK((clipped > 0) == (rule == NVFP4_SCALE_RULE_FLOOR));
    }
}

TEST_CASE("Ties and signs and zeros and NaN and infinities keep their rules with UE8M0 scales") {
  std::vector<float> x(16);
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, 6, -0.0f, -0.25f, -5};
  std::copy(std::begin(ties), std::end(ties), x.begin());
  Quantized q = quantize(x, 1, kPer16, 0);
  CHECK(int(q.scales[0]) == 127);
  CHECK(q.codes == std::vector<uint8_t>{0x20, 0x42, 0x64, 0x76, 0x88, 0x0E, 0x00, 0x00});
  q = quantize(std::vector<float>(16, -0.0f), 1, kPer16, 0);
  CHECK(q.codes == std::vector<uint8_t>(8));
  x[4] = kInfinity, x[5] = -kInfinity;
  q = quantize(x, 1, kPer16, 0);
  CHECK((int(q.scales[0]) == 254 && int(q.codes[2]) == 0xF7));
  x[3] = NAN;
  q = quantize(x, 1, kPer16, 0);
  CHECK((int(q.scales[0]) == 255 && q.codes == std::vector<uint8_t>(8)));
  std::vector<float> back(16);
  const nvfp4_quantize_desc desc = desc_of(back, q, 1, kPer16, NVFP4_SCALE_LAYOUT_LINEAR);
  REQUIRE(nvfp4_dequantize_reference(&desc) == NVFP4_SUCCESS);
  CHECK(std::all_of(back.begin(), back.end(), [](float value) { return std::isnan(value); }));
}

TEST_CASE("Scales of 32 elements lie where those of gpt-oss' weights do and padding is 0") {
  constexpr int64_t kRows = 129, kK = 2880;
  std::vector<float> x(size_t(kRows * kK));
  const struct {
    int64_t row, k;
    size_t byte;
  } places[] = {{0, 32, 1},   {0, 128, 512},      {1, 0, 16},     {32, 0, 4},
                {33, 96, 23}, {127, 2848, 11773}, {128, 0, 11776}};
  for (size_t i = 0; i < std::size(places); ++i) {
    x[size_t(places[i].row * kK + places[i].k)] = std::ldexp(1.0f, int(i));
  }
  const Quantized q = quantize(x, kRows, kMxfp4, 0, NVFP4_SCALE_LAYOUT_128X4);
  std::vector<uint8_t> want(q.scales.size());
  for (size_t i = 0; i < std::size(places); ++i) want[places[i].byte] = uint8_t(0x7D + i);
  CHECK(q.scales == want);
}

TEST_CASE("UE8M0 scales have rules of their own") {
  std::vector<float> x(64);
  Quantized q;
  const auto refused = [&](nvfp4_quantize_desc desc, const std::string& sentence) {
    CHECK(nvfp4_quantize_reference(&desc) == NVFP4_STATUS_INVALID_VALUE);
    CHECK(std::string(nvfp4_last_error()).find(sentence) != std::string::npos);
  };
  nvfp4_quantize_desc desc = desc_of(x, q, 1, kMxfp4, NVFP4_SCALE_LAYOUT_LINEAR);
  desc.k = 48;
  refused(desc, "k = 48 is not a multiple of 32");
  desc.k = 64, desc.tensor_scale = 2;
  refused(desc, "tensor_scale must be 1 by value where format = NVFP4_OPERAND_FORMAT_MXFP4");
  desc.tensor_scale = 1, desc.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX;
  desc.tensor_scale_device = x.data();
  refused(desc, "with tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX");
  desc.tensor_scale_mode = 0, desc.format = NVFP4_OPERAND_FORMAT_NVFP4;
  desc.scale_rule = NVFP4_SCALE_RULE_FLOOR;
  refused(desc, "scale_rule = NVFP4_SCALE_RULE_FLOOR is one of UE8M0 scales");
}
