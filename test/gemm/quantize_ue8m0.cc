// SPDX-License-Identifier: MIT
// Quantization on the device to UE8M0 scales, of 16 or 32 elements, and back: the bits of the
// host's functions for every exponent, either rule and layout; padding and gaps keep their bytes.
#include <cstring>
#include <vector>

#include "test/gemm/gpu.h"

namespace {

using support::DeviceBuffer;
using support::Random;

const std::vector<int32_t> kFormats = support::ue8m0_formats();
constexpr int32_t kTypes[] = {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32};
constexpr int32_t kLayouts[] = {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR};
constexpr int32_t kRules[] = {NVFP4_SCALE_RULE_ROUND_UP, NVFP4_SCALE_RULE_FLOOR};

int64_t bytes_of(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// Blocks of neighbouring exponents, among them all there are, and blocks of anything: of zeros, NaN
// and infinities too.
std::vector<uint8_t> random_rows(int32_t type, int64_t rows, int64_t k, int64_t ld, uint64_t seed) {
  const uint32_t field = type == NVFP4_TYPE_F16    ? 0x7C00
                         : type == NVFP4_TYPE_BF16 ? 0x7F80
                                                   : 0x7F800000;
  const uint32_t step = field & (0 - field), most = field / step;
  std::vector<uint8_t> bytes(size_t(rows * ld * bytes_of(type)), 0xFF);
  Random random(seed);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t block = row * (k / 16) + i / 16;
      auto bits = uint32_t(random.next());
      const uint32_t near = (uint32_t(block) + random.below(5)) % most * step;
      if (block % 8 != 7) bits = (bits & ~field) | near;
      if (block % 8 == 6)
        bits = random.below(3) == 0 ? 0x80000000 >> (type == NVFP4_TYPE_F32 ? 0 : 16) : 0;
      // Where codes change, and halves of the largest: ties of elements and of the rule.
      if (block % 8 == 5) bits &= ~(step - 1) | step / 2 | step / 4;
      std::memcpy(&bytes[size_t((row * ld + i) * bytes_of(type))], &bits, size_t(bytes_of(type)));
    }
  }
  return bytes;
}

struct Case {
  int32_t format, type, layout, rule;
  int64_t rows, k, x_ld, codes_ld;

  nvfp4_quantize_desc desc(void* x, void* codes, void* scales) const {
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = rows, q.k = k, q.x = x, q.x_ld = x_ld, q.x_type = type;
    q.codes = codes, q.codes_ld = codes_ld, q.scales = scales, q.scale_layout = layout;
    q.tensor_scale = 1, q.format = format, q.scale_rule = rule;
    return q;
  }
  size_t scale_bytes() const { return nvfp4_scale_bytes_for(rows, k, layout, format); }
};

}  // namespace

TEST_CASE(
    "quantize: UE8M0 scales and their codes on the device have the host's bits and so do the "
    "elements made of them",
    "[quantize]") {
  USE_GPU_FOR_HALVES(gpu);
  const int32_t format = GENERATE(from_range(std::begin(kFormats), std::end(kFormats)));
  const int32_t type = GENERATE(from_range(std::begin(kTypes), std::end(kTypes)));
  const int32_t layout = GENERATE(from_range(std::begin(kLayouts), std::end(kLayouts)));
  const int32_t rule = GENERATE(from_range(std::begin(kRules), std::end(kRules)));
  const bool loose = layout == NVFP4_SCALE_LAYOUT_LINEAR;
  // A rest of a warp's 32 blocks, rows that begin anywhere, and as many exponents as there are.
  const Case c{format, type, layout, rule, 37, 608, loose ? 611 : 608, loose ? 614 : 608};
  CAPTURE(format, type, layout, rule);
  std::vector<uint8_t> x = random_rows(type, c.rows, c.k, c.x_ld, 90);
  std::vector<uint8_t> codes(size_t(c.rows * c.codes_ld / 2), 0xA5), scales(c.scale_bytes(), 0xA5);
  const DeviceBuffer x_there(gpu.driver, x), codes_there(gpu.driver, codes);
  const DeviceBuffer scales_there(gpu.driver, scales);
  const nvfp4_quantize_desc there =
      c.desc(x_there.pointer(), codes_there.pointer(), scales_there.pointer());
  REQUIRE(nvfp4_quantize(&there, nullptr) == NVFP4_SUCCESS);
  const nvfp4_quantize_desc here = c.desc(x.data(), codes.data(), scales.data());
  REQUIRE(nvfp4_quantize_reference(&here) == NVFP4_SUCCESS);
  // The host clears padding, the device leaves it.
  std::vector<uint8_t> got = scales_there.download();
  if (layout == NVFP4_SCALE_LAYOUT_128X4) {
    std::vector<uint8_t> linear(
        nvfp4_scale_bytes_for(c.rows, c.k, NVFP4_SCALE_LAYOUT_LINEAR, format));
    const int64_t k = int64_t(linear.size()) / c.rows * 16;
    REQUIRE(nvfp4_scale_convert_host(got.data(), layout, linear.data(), NVFP4_SCALE_LAYOUT_LINEAR,
                                     c.rows, k) == NVFP4_SUCCESS);
    CHECK(std::count(got.begin(), got.end(), uint8_t(0xA5)) >= int64_t(got.size() - linear.size()));
    REQUIRE(nvfp4_scale_convert_host(linear.data(), NVFP4_SCALE_LAYOUT_LINEAR, got.data(), layout,
                                     c.rows, k) == NVFP4_SUCCESS);
  }
  CHECK(codes_there.download() == codes);
  CHECK(got == scales);
  CHECK((codes_there.guards_intact() && scales_there.guards_intact()));

  std::vector<uint8_t> back(x.size(), 0xFF);
  const DeviceBuffer back_there(gpu.driver, back);
  const nvfp4_quantize_desc from =
      c.desc(back_there.pointer(), codes_there.pointer(), scales_there.pointer());
  REQUIRE(nvfp4_dequantize(&from, nullptr) == NVFP4_SUCCESS);
  const nvfp4_quantize_desc from_here = c.desc(back.data(), codes.data(), scales.data());
  REQUIRE(nvfp4_dequantize_reference(&from_here) == NVFP4_SUCCESS);
  CHECK(back_there.download() == back);
}

// Bytes that no quantizer makes, too: a scale of NaN over codes that are not 0.
TEST_CASE("quantize: every code under every UE8M0 scale is dequantized to the host's bits",
          "[quantize]") {
  USE_GPU_FOR_HALVES(gpu);
  const int32_t type = GENERATE(from_range(std::begin(kTypes), std::end(kTypes)));
  const Case c{NVFP4_OPERAND_FORMAT_E2M1_UE8M0,
               type,
               NVFP4_SCALE_LAYOUT_LINEAR,
               NVFP4_SCALE_RULE_DEFAULT,
               16,
               256,
               256,
               256};
  std::vector<uint8_t> codes(size_t(c.rows * c.k / 2)), scales(c.scale_bytes());
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = uint8_t(i % 8 * 0x22 + 0x10);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = uint8_t(i);
  std::vector<uint8_t> x(size_t(c.rows * c.k * bytes_of(type)), 0xFF);
  const DeviceBuffer x_there(gpu.driver, x), codes_there(gpu.driver, codes);
  const DeviceBuffer scales_there(gpu.driver, scales);
  const nvfp4_quantize_desc there =
      c.desc(x_there.pointer(), codes_there.pointer(), scales_there.pointer());
  REQUIRE(nvfp4_dequantize(&there, nullptr) == NVFP4_SUCCESS);
  const nvfp4_quantize_desc here = c.desc(x.data(), codes.data(), scales.data());
  REQUIRE(nvfp4_dequantize_reference(&here) == NVFP4_SUCCESS);
  CHECK(x_there.download() == x);
}
