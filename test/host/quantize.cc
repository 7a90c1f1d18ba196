// SPDX-License-Identifier: MIT
// Quantization: every code, every scale byte, the rules for zero, NaN and infinity, and the
// roundings of the golden table.
#include <cfenv>
#include <cstring>

#include "nvfp4_gemm.h"
#include "test/host/csv.h"
#include "tools/harness/formats.h"

namespace {

constexpr int32_t kLinear = NVFP4_SCALE_LAYOUT_LINEAR;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

struct Block {
  uint8_t scale = 0xEE;
  uint8_t code[16] = {};
};

// One block of 16: x[i] and zeros after.
Block quantize(std::vector<float> x, float tensor_scale = 1.0f) {
  x.resize(16, 0.0f);
  Block block;
  uint8_t packed[8];
  REQUIRE(nvfp4_quantize_host(x.data(), 16, 1, 16, tensor_scale, packed, 16, &block.scale,
                              kLinear) == NVFP4_SUCCESS);
  for (int i = 0; i < 16; ++i) block.code[i] = packed[i / 2] >> (i % 2 * 4) & 0xF;
  return block;
}

}  // namespace

TEST_CASE("Dequantizing gives code * scale for all 16 codes and 256 scale bytes") {
  uint8_t packed[8];
  for (int i = 0; i < 8; ++i) packed[i] = static_cast<uint8_t>(2 * i | (2 * i + 1) << 4);
  for (int byte = 0; byte < 256; ++byte) {
    const uint8_t scale = static_cast<uint8_t>(byte);
    float x[16];
    REQUIRE(nvfp4_dequantize_host(packed, 16, &scale, kLinear, 1, 16, 1.0f, x, 16) ==
            NVFP4_SUCCESS);
    for (uint8_t code = 0; code < 16; ++code) {
      CAPTURE(byte, int(code));
      const double expected = support::e2m1_value(code) * support::e4m3_value(scale);
      if (std::isnan(expected)) {
        CHECK(std::isnan(x[code]));
      } else {
        CHECK(double(x[code]) == expected);
        CHECK(std::signbit(x[code]) == (code >= 8));  // -0 stays -0
      }
    }
  }
}

// By hand from scale = e4m3(amax / 6 / t), code = e2m1(x / (scale * t)). Other quantizers agree but
// for the last three: where a scale is 0 or elements are -0 theirs have codes of the same value.
TEST_CASE("Blocks have the scale and codes that the rule gives by hand") {
  struct Row {
    std::vector<float> x;
    float t;
    uint8_t scale;
    const char* codes;
  };
  const std::vector<float> each = {0,  .5f, -1,   1.5f,  2,    -3,   4,     6,
                                   -6, 5,   2.5f, -2.5f, .25f, .75f, 1.25f, -1.75f};
  const auto first = [](float x, float others) {
    std::vector<float> block(16, others);
    block[0] = x;
    return block;
  };
  const float unit = 0x1p-9f;  // the smallest scale
  const Row kRows[] = {
      {each, 1, 0x38, "01A34D67F64C022C"},
      {each, 0.0123f, 0x6A, "01A34D67F75D123C"},
      {first(2688, 448), 1, 0x7E, "7222222222222222"},
      {first(5000, 448), 1, 0x7E, "7222222222222222"},
      {first(6 * 0.51f * unit, 0.001f), 1, 0x01, "5111111111111111"},
      {first(6 * 0.49f * unit, 0.001f), 1, 0x00, "0000000000000000"},
      {first(-0.0f, -0.0f), 1, 0x00, "0000000000000000"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.codes, row.t);
    const Block block = quantize(row.x, row.t);
    CHECK(int(block.scale) == int(row.scale));
    std::string codes;
    for (const uint8_t code : block.code) codes += "0123456789ABCDEF"[code];
    CHECK(codes == row.codes);
  }
}

TEST_CASE("Dequantized values are those of the golden table") {
  int checked = 0;
  for (const auto& cells : host_test::golden("numeric_decode", 1040)) {
    const uint8_t code = static_cast<uint8_t>(host_test::hex(cells[1]));
    const uint32_t expected = host_test::hex(cells[2]);
    const bool element = cells[0] == "e2m1";
    if (!element && cells[0] != "ue4m3") continue;
    // An element under scale 1, a scale under element 1.
    const uint8_t packed[8] = {static_cast<uint8_t>(element ? code : 0x2)};
    const uint8_t scale = element ? 0x38 : code;
    float x[16];
    REQUIRE(nvfp4_dequantize_host(packed, 16, &scale, kLinear, 1, 16, 1.0f, x, 16) ==
            NVFP4_SUCCESS);
    CAPTURE(cells[0], cells[1]);
    const float value = from_bits(expected);
    CHECK((std::isnan(value) ? std::isnan(x[0]) : bits_of(x[0]) == expected));
    ++checked;
  }
  CHECK(checked == 16 + 256);
}

TEST_CASE("The outer product of dequantization is one rounded fp32 multiplication") {
  const uint8_t packed[8] = {0x53}, scale = 0x39;  // 1.5 and 3, scale 1.125
  float x[16];
  const float t = from_bits(0x3DCCCCCD);
  REQUIRE(nvfp4_dequantize_host(packed, 16, &scale, kLinear, 1, 16, t, x, 16) == NVFP4_SUCCESS);
  CHECK(x[0] == 1.6875f * t);
  CHECK(x[1] == 3.375f * t);
}

// With a 6 in the block and t = 1 the scale is 1, so a code is the rounding of x itself.
TEST_CASE("Elements round to nearest even like the golden table") {
  int checked = 0;
  for (const auto& cells : host_test::golden("numeric_encode", 3220)) {
    const float x = from_bits(host_test::hex(cells[0]));
    if (!(std::fabs(x) <= 6.0f)) continue;
    const Block block = quantize({6.0f, x});
    CAPTURE(cells[0]);
    REQUIRE(block.scale == 0x38);
    CHECK(int(block.code[1]) == int(host_test::hex(cells[1])));
    ++checked;
  }
  CHECK(checked > 1000);
}

// amax = 6 v with amax / 6 = v exactly: the scale is the rounding of v itself.
TEST_CASE("Scales round to nearest even and saturate like the golden table") {
  int checked = 0;
  for (const auto& cells : host_test::golden("numeric_encode", 3220)) {
    const float v = std::fabs(from_bits(host_test::hex(cells[0])));
    const float amax = v * 6.0f;
    if (!std::isfinite(amax) || amax / 6.0f != v) continue;
    CAPTURE(cells[0]);
    CHECK(int(quantize({amax}).scale) == int(host_test::hex(cells[2]) & 0x7F));
    ++checked;
  }
  CHECK(checked > 1000);
}

TEST_CASE("A block follows the stated expression with each operation rounded to nearest even") {
  uint32_t state = 1;
  for (int i = 0; i < 300; ++i) {
    std::vector<float> x(16);
    for (float& value : x) {
      state = state * 1664525 + 1013904223;
      value = float(int32_t(state)) * 0x1p-29f;
    }
    const float t = 0.0317f * float(1 + i % 7);
    float amax = 0;
    for (const float value : x) amax = std::max(amax, std::fabs(value));
    const Block block = quantize(x, t);
    // The codes that neighbours of the right ones would beat are the wrong ones.
    const auto nearest = [](double target, auto value_of, int codes) {
      int best = 0;
      for (int code = 1; code < codes; ++code) {
        const double now = std::fabs(value_of(code) - target),
                     before = std::fabs(value_of(best) - target);
        if (now < before || (now == before && code % 2 == 0)) best = code;
      }
      return best;
    };
    const auto e4m3 = [](int code) { return support::e4m3_value(uint8_t(code)); };
    const auto e2m1 = [](int code) { return support::e2m1_value(uint8_t(code)); };
    REQUIRE(int(block.scale) == nearest(amax / 6.0f / t, e4m3, 0x7F));
    const float step = float(support::e4m3_value(block.scale)) * t;
    for (int j = 0; j < 16; ++j) {
      CAPTURE(i, j);
      CHECK(int(block.code[j] & 7) == nearest(std::fabs(x[j] / step), e2m1, 8));
      CHECK((block.code[j] >= 8) == (x[j] < 0));
    }
  }
}

TEST_CASE("Blocks of zeros and subnormal numbers and NaN and infinity") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SECTION("zeros: scale 0, codes +0, also for -0") {
    const Block block = quantize({-0.0f, 0.0f});
    CHECK(int(block.scale) == 0);
    CHECK(int(block.code[0]) == 0);
  }
  SECTION("a scale that rounds to 0 gives +0 codes") {
    const Block block = quantize({-0x1p-10f * 6.0f, 0x1p-11f});  // half of the smallest scale: even
    CHECK(int(block.scale) == 0);
    CHECK(int(block.code[0]) == 0);
  }
  SECTION("just above half of the smallest scale it is the smallest") {
    CHECK(int(quantize({std::nextafter(0x1p-10f * 6.0f, 1.0f)}).scale) == 1);
  }
  SECTION("a NaN makes the scale NaN and every code +0") {
    const Block block = quantize({1.0f, nan, -3.0f});
    CHECK(int(block.scale) == 0x7F);
    for (const uint8_t code : block.code) CHECK(int(code) == 0);
  }
  SECTION("an infinity has scale 448 and codes +-6; a finite element keeps its share") {
    const Block block = quantize({kInfinity, -kInfinity, 448.0f, -0.0f});
    CHECK(int(block.scale) == 0x7E);
    CHECK(int(block.code[0]) == 0x7);
    CHECK(int(block.code[1]) == 0xF);
    CHECK(int(block.code[2]) == 0x2);
    CHECK(int(block.code[3]) == 0x8);
  }
  SECTION("an infinity under the largest tensor scale, where scale * t overflows") {
    const Block block = quantize({kInfinity, 1.0f}, std::numeric_limits<float>::max());
    CHECK(int(block.scale) == 0x7E);
    CHECK(int(block.code[0]) == 0x7);
    CHECK(int(block.code[1]) == 0x0);
  }
  SECTION("a NaN wins over an infinity") { CHECK(int(quantize({kInfinity, nan}).scale) == 0x7F); }
  SECTION("subnormal inputs and tensor scales are not flushed") {
    const float tiny = std::numeric_limits<float>::denorm_min();
    const Block block = quantize({6 * tiny, -3 * tiny, tiny}, tiny);
    CHECK(int(block.scale) == 0x38);
    CHECK(int(block.code[0]) == 0x7);
    CHECK(int(block.code[1]) == 0xD);
    CHECK(int(block.code[2]) == 0x2);
  }
}

// amax = 6 t makes the scale 1 and the step t, and 2.5 t is a tie that another rounding of the
// quotient decides differently.
TEST_CASE("The caller's rounding mode does not change a code and comes back as it was") {
  const int mode = GENERATE(FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO);
  int differing = 0;
  for (int i = 0; i < 100; ++i) {
    const volatile float t = 0.01f + 0.00137f * float(i);
    const volatile float tie = 2.5f * t;
    const std::vector<float> x = {6.0f * t, tie, -tie, 0.75f * t, -3.5f * t};
    const Block expected = quantize(x, t);
    fesetround(mode);
    const Block block = quantize(x, t);
    const int after = fegetround();
    const volatile float quotient = tie / t;
    fesetround(FE_TONEAREST);
    const volatile float nearest = tie / t;
    differing += quotient != nearest;
    CHECK(after == mode);
    CHECK(memcmp(&block, &expected, sizeof block) == 0);
  }
  CHECK(differing > 0);  // the mode did matter
}

TEST_CASE(
    "Leading dimensions leave gaps untouched and scales take either layout and padding is 0") {
  constexpr int64_t rows = 130, k = 80, x_ld = 83, codes_ld = 94;
  std::vector<float> x(rows * x_ld, NAN);  // gaps hold NaN
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < k; ++i) x[r * x_ld + i] = float((r * 7 + i * 3) % 13) - 6.0f;
  }
  std::vector<uint8_t> codes(rows * codes_ld / 2, 0xEE), linear(rows * k / 16, 0xEE);
  std::vector<uint8_t> tiles(nvfp4_scale_bytes(rows, k, 1), 0xEE), converted(tiles.size());
  REQUIRE(nvfp4_quantize_host(x.data(), x_ld, rows, k, 0.5f, codes.data(), codes_ld, linear.data(),
                              kLinear) == NVFP4_SUCCESS);
  REQUIRE(nvfp4_quantize_host(x.data(), x_ld, rows, k, 0.5f, codes.data(), codes_ld, tiles.data(),
                              1) == NVFP4_SUCCESS);
  REQUIRE(nvfp4_scale_convert_host(linear.data(), kLinear, converted.data(), 1, rows, k) == 0);
  CHECK(tiles == converted);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = k / 2; i < codes_ld / 2; ++i) CHECK(codes[r * codes_ld / 2 + i] == 0xEE);
  }
  SECTION("dequantizing either layout gives the same values") {
    std::vector<float> from_linear(rows * x_ld, 7.0f), from_tiles(rows * x_ld, 7.0f);
    REQUIRE(nvfp4_dequantize_host(codes.data(), codes_ld, linear.data(), kLinear, rows, k, 0.5f,
                                  from_linear.data(), x_ld) == NVFP4_SUCCESS);
    REQUIRE(nvfp4_dequantize_host(codes.data(), codes_ld, tiles.data(), 1, rows, k, 0.5f,
                                  from_tiles.data(), x_ld) == NVFP4_SUCCESS);
    CHECK(from_linear == from_tiles);
    CHECK(from_linear[k] == 7.0f);  // the gap
    CHECK(from_linear[2] == 0.0f);  // x = 0 there
  }
}

TEST_CASE("Quantizer arguments are refused by rule and nothing is written") {
  std::vector<float> x(64, 1.0f);
  std::vector<uint8_t> codes(32, 0xEE), scales(512, 0xEE);
  const auto quantizer = [&](const float* from, int64_t x_ld, int64_t rows, int64_t k, float t,
                             void* to, int64_t codes_ld, void* to_scales, int32_t layout) {
    const nvfp4_status a =
        nvfp4_quantize_host(from, x_ld, rows, k, t, to, codes_ld, to_scales, layout);
    const nvfp4_status b = nvfp4_dequantize_host(to, codes_ld, to_scales, layout, rows, k, t,
                                                 const_cast<float*>(from), x_ld);
    CHECK(a == b);
    CHECK(codes == std::vector<uint8_t>(32, 0xEE));
    return a;
  };
  const float* const f = x.data();
  void* const c = codes.data();
  void* const s = scales.data();
  const float nan = NAN;
  CHECK(quantizer(f, 16, -1, 16, 1, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 17, 1, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, 0, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, -1, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, nan, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, kInfinity, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, 1, c, 16, s, 0) == NVFP4_STATUS_INVALID_ENUM);
  CHECK(quantizer(f, 15, 2, 16, 1, c, 16, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, 1, c, 15, s, 2) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(quantizer(f, 16, 2, 16, 1, c, 17, s, 2) == NVFP4_STATUS_MISALIGNED);
  CHECK(std::string(nvfp4_last_error()) ==
        "codes_ld = 17 is not a multiple of 2; nearest 16 or 18");
  CHECK(quantizer(f, 16, 2, 16, 1, c, INT64_MAX, s, 2) == NVFP4_STATUS_MISALIGNED);
  CHECK(std::string(nvfp4_last_error()) ==
        "codes_ld = 9223372036854775807 is not a multiple of 2; nearest 9223372036854775806");
  CHECK(quantizer(nullptr, 16, 2, 16, 1, c, 16, s, 2) == NVFP4_STATUS_NULL_POINTER);
  CHECK(quantizer(f, 16, 2, 16, 1, nullptr, 16, s, 2) == NVFP4_STATUS_NULL_POINTER);
  CHECK(quantizer(f, 16, 2, 16, 1, c, 16, nullptr, 2) == NVFP4_STATUS_NULL_POINTER);
  CHECK(quantizer(f, INT64_MAX, 2, 16, 1, c, 16, s, 2) == NVFP4_STATUS_LIMIT);
  CHECK(quantizer(f, 16, 2, 16, 1, c, INT64_MAX - 1, s, 2) == NVFP4_STATUS_LIMIT);
  CHECK(quantizer(f, 16, 2, 16, 1, c, 16, c, 2) == NVFP4_STATUS_OVERLAP);
  CHECK(quantizer(nullptr, 0, 0, 16, 1, nullptr, 0, nullptr, 2) == NVFP4_SUCCESS);
  CHECK(quantizer(nullptr, 0, 5, 0, 1, nullptr, 0, nullptr, 1) == NVFP4_SUCCESS);
}
