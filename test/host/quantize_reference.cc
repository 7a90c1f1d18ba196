// SPDX-License-Identifier: MIT
// nvfp4_quantize_reference and nvfp4_dequantize_reference beside the host functions of fp32: values
// of each type, each source of the tensor scale, and nothing read or written that is not said.
#include <cstring>

#include "tools/harness/formats.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

constexpr int64_t kRows = 131, kK = 80, kXLd = 83, kCodesLd = 82;
constexpr int32_t kTypes[] = {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32};
constexpr int32_t kLayouts[] = {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR};
constexpr uint8_t kBefore = 0xA5;

size_t bytes_of(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

float value_of(int32_t type, const uint8_t* element) {
  uint32_t bits = 0;
  std::memcpy(&bits, element, bytes_of(type));
  if (type == NVFP4_TYPE_F16) return float(support::f16_value(uint16_t(bits)));
  if (type == NVFP4_TYPE_BF16) bits <<= 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

struct Matrix {
  int32_t type;
  std::vector<uint8_t> bytes;
  std::vector<float> values;

  explicit Matrix(int32_t of) : type(of), bytes(((kRows - 1) * kXLd + kK) * bytes_of(of)) {
    support::Random random(31);
    for (uint8_t& byte : bytes) byte = uint8_t(random.next());
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < kK; ++i)
        values.push_back(value_of(type, &bytes[size_t(row * kXLd + i) * bytes_of(type)]));
  }
};

struct Quantized {
  std::vector<uint8_t> codes, scales;
  explicit Quantized(int32_t layout)
      : codes(((kRows - 1) * kCodesLd + kK) / 2, kBefore),
        scales(nvfp4_scale_bytes(kRows, kK, layout), kBefore) {}
  bool operator==(const Quantized& x) const { return codes == x.codes && scales == x.scales; }
};

nvfp4_quantize_desc desc_of(Matrix& x, Quantized& q, int32_t layout) {
  nvfp4_quantize_desc desc{};
  desc.struct_size = sizeof desc;
  desc.rows = kRows, desc.k = kK;
  desc.x = x.bytes.data(), desc.x_ld = kXLd, desc.x_type = x.type;
  desc.codes = q.codes.data(), desc.codes_ld = kCodesLd;
  desc.scales = q.scales.data(), desc.scale_layout = layout;
  return desc;
}

Quantized by_host(const Matrix& x, float t, int32_t layout) {
  Quantized q(layout);
  REQUIRE(nvfp4_quantize_host(x.values.data(), kK, kRows, kK, t, q.codes.data(), kCodesLd,
                              q.scales.data(), layout) == NVFP4_SUCCESS);
  return q;
}

}  // namespace

TEST_CASE("A matrix of any type is quantized to the bits of its values in fp32") {
  for (const int32_t type : kTypes)
    for (const int32_t layout : kLayouts) {
      CAPTURE(type, layout);
      Matrix x(type);
      const std::vector<uint8_t> untouched = x.bytes;
      Quantized value(layout), read(layout);
      float t = 0.0123f;
      nvfp4_quantize_desc desc = desc_of(x, value, layout);
      desc.tensor_scale = t;
      REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
      CHECK(value == by_host(x, t, layout));
      desc = desc_of(x, read, layout);
      desc.tensor_scale_mode = NVFP4_TENSOR_SCALE_DEVICE, desc.tensor_scale_device = &t;
      REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
      CHECK(read == value);
      CHECK(t == 0.0123f);
      CHECK(x.bytes == untouched);
    }
}

TEST_CASE("AMAX makes the tensor scale of the finite elements without a workspace") {
  for (const int32_t type : kTypes) {
    CAPTURE(type);
    Matrix x(type);
    float amax = 0, t = -1;
    for (const float value : x.values)
      if (std::isfinite(value)) amax = std::fmax(amax, std::fabs(value));
    Quantized q(kLayouts[0]);
    nvfp4_quantize_desc desc = desc_of(x, q, kLayouts[0]);
    desc.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX, desc.tensor_scale_device = &t;
    REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
    CHECK(t == amax / 2688.0f);
    CHECK(q == by_host(x, t, kLayouts[0]));
    // -0 alone, and in fp32 a value whose 2688th part is 0.
    const uint32_t small = type == NVFP4_TYPE_F32 ? 1 : 0x8000;
    for (size_t i = 0; i < x.bytes.size(); i += bytes_of(type))
      std::memcpy(&x.bytes[i], &small, bytes_of(type));
    REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
    CHECK(t == 1);
  }
}

TEST_CASE("Dequantized values are rounded once to the type and gaps keep their bytes") {
  Matrix source(NVFP4_TYPE_F32);
  const float t = 0.37f;
  for (const int32_t layout : kLayouts) {
    Quantized q = by_host(source, t, layout);
    std::vector<float> exact(size_t(kRows * kK));
    REQUIRE(nvfp4_dequantize_host(q.codes.data(), kCodesLd, q.scales.data(), layout, kRows, kK, t,
                                  exact.data(), kK) == NVFP4_SUCCESS);
    for (const int32_t type : kTypes) {
      CAPTURE(type, layout);
      Matrix x(type);
      const std::vector<uint8_t> before = x.bytes;
      nvfp4_quantize_desc desc = desc_of(x, q, layout);
      desc.tensor_scale = t;
      REQUIRE(nvfp4_dequantize_reference(&desc) == NVFP4_SUCCESS);
      size_t wrong = 0;
      const size_t size = bytes_of(type);
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t i = 0; i < kXLd && size_t(row * kXLd + i) * size < x.bytes.size(); ++i) {
          const size_t at = size_t(row * kXLd + i) * size;
          if (i >= kK) {
            wrong += std::memcmp(&x.bytes[at], &before[at], size) != 0;
            continue;
          }
          const float got = value_of(type, &x.bytes[at]), want = exact[size_t(row * kK + i)];
          if (std::isnan(want) || type == NVFP4_TYPE_F32) {
            wrong += std::isnan(want) ? !std::isnan(got) : got != want;
            continue;
          }
          const int least = type == NVFP4_TYPE_F16 ? -14 : -126;
          const int place = type == NVFP4_TYPE_F16 ? 10 : 7;
          const int exponent = want == 0 ? least : std::max(std::ilogb(want), least);
          const bool overflows = type == NVFP4_TYPE_F16 && std::fabs(want) >= 65520;
          wrong += overflows ? !std::isinf(got)
                             : std::fabs(double(got) - want) > std::ldexp(0.5, exponent - place);
        }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("The host's twins keep the rules of the descriptor") {
  Matrix x(NVFP4_TYPE_F16);
  Quantized q(kLayouts[0]);
  nvfp4_quantize_desc desc = desc_of(x, q, kLayouts[0]);
  CHECK(nvfp4_quantize_reference(nullptr) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_quantize_reference(&desc) == NVFP4_STATUS_INVALID_VALUE);  // tensor_scale is 0
  desc.tensor_scale = 1;
  desc.codes = desc.x;
  CHECK(nvfp4_quantize_reference(&desc) == NVFP4_STATUS_OVERLAP);
  CHECK(nvfp4_dequantize_reference(&desc) == NVFP4_STATUS_OVERLAP);
  desc.codes = q.codes.data();
  desc.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX;
  CHECK(nvfp4_quantize_reference(&desc) == NVFP4_STATUS_NULL_POINTER);  // tensor_scale_device
  CHECK(nvfp4_dequantize_reference(&desc) == NVFP4_STATUS_INVALID_ENUM);
  desc.rows = 0;
  CHECK(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
}
