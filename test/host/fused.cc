// SPDX-License-Identifier: MIT
// nvfp4_fused_quantize_host against double arithmetic, and the rules of its arguments.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

constexpr int64_t kRows = 5, kK = 4640;  // more than 256 blocks of 16 a row, and not a multiple

struct Data {
  std::vector<float> x, y, weight;
  std::vector<uint8_t> codes, scales;

  Data() : x(kRows * kK), y(x.size()), weight(kK), codes(x.size() / 2), scales(x.size() / 16) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (std::vector<float>* v : {&x, &y, &weight})
      for (float& f : *v) f = normal(random);
  }
  nvfp4_fused_quantize_desc desc(int32_t operation) {
    nvfp4_fused_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = kRows;
    q.k = q.x_ld = q.y_ld = q.codes_ld = kK;
    q.x = x.data();
    q.y = y.data();
    q.codes = codes.data();
    q.scales = scales.data();
    q.tensor_scale = 0.01f;
    q.operation = operation;
    q.type = NVFP4_TYPE_F32;
    q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    if (operation == NVFP4_FUSED_RMS_NORM) {
      q.weight = weight.data();
      q.epsilon = 1e-5f;
    }
    return q;
  }
};

// Where rounding differs in the last place, now and then a code does: by one.
void check_near(const Data& got, const std::vector<double>& z) {
  std::vector<float> values(z.begin(), z.end());
  std::vector<uint8_t> codes(got.codes.size()), scales(got.scales.size());
  REQUIRE(nvfp4_quantize_host(values.data(), kK, kRows, kK, 0.01f, codes.data(), kK, scales.data(),
                              NVFP4_SCALE_LAYOUT_LINEAR) == NVFP4_SUCCESS);
  size_t other = 0, far = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    other += codes[i] != got.codes[i];
    for (const int shift : {0, 4})
      far += std::abs((codes[i] >> shift & 7) - (got.codes[i] >> shift & 7)) > 1 ||
             (codes[i] >> shift & 8) != (got.codes[i] >> shift & 8);
  }
  CHECK(other <= codes.size() / 1000);
  CHECK(far == 0);
  CHECK(scales == got.scales);
}

void refused(const nvfp4_fused_quantize_desc& q, nvfp4_status status, const std::string& words) {
  CHECK(nvfp4_status_name(nvfp4_fused_quantize(&q, nullptr)) ==
        std::string(nvfp4_status_name(status)));
  INFO(nvfp4_last_error());
  CHECK(std::string(nvfp4_last_error()).find(words) != std::string::npos);
  CHECK(nvfp4_fused_quantize_host(&q) == status);
}

#define REFUSED(operation, change, status, words)       \
  do {                                                  \
    nvfp4_fused_quantize_desc q = data.desc(operation); \
    change;                                             \
    refused(q, status, words);                          \
  } while (false)

}  // namespace

TEST_CASE("silu(x) * y on the host is near double arithmetic") {
  Data data;
  const nvfp4_fused_quantize_desc q = data.desc(NVFP4_FUSED_SILU_MUL);
  REQUIRE(nvfp4_fused_quantize_host(&q) == NVFP4_SUCCESS);
  std::vector<double> z;
  for (size_t i = 0; i < data.x.size(); ++i)
    z.push_back(double(data.x[i]) / (1 + std::exp(-double(data.x[i]))) * double(data.y[i]));
  check_near(data, z);
}

TEST_CASE("RMSNorm on the host is near double arithmetic and adds the residual") {
  Data data;
  const Data before = data;
  const nvfp4_fused_quantize_desc q = data.desc(NVFP4_FUSED_RMS_NORM);
  REQUIRE(nvfp4_fused_quantize_host(&q) == NVFP4_SUCCESS);
  std::vector<double> z;
  for (size_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (size_t i = row * kK; i < (row + 1) * kK; ++i) {
      REQUIRE(data.y[i] == before.x[i] + before.y[i]);
      squares += double(data.y[i]) * double(data.y[i]);
    }
    const double factor = 1 / std::sqrt(squares / kK + double(q.epsilon));
    for (size_t i = 0; i < kK; ++i)
      z.push_back(double(data.y[row * kK + i]) * factor * double(data.weight[i]));
  }
  check_near(data, z);
}

// silu(128) is 128 in fp32, so z is 128 y exactly, and quantized as nvfp4_quantize_reference does.
TEST_CASE("what is fused has UE8M0 scales as the quantizer makes them") {
  Data data;
  for (float& x : data.x) x = 128;
  std::vector<float> z;
  for (const float y : data.y) z.push_back(128 * y);
  for (const int32_t format : {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0})
    for (const int32_t rule : {NVFP4_SCALE_RULE_DEFAULT, NVFP4_SCALE_RULE_FLOOR}) {
      CAPTURE(format, rule);
      nvfp4_fused_quantize_desc q = data.desc(NVFP4_FUSED_SILU_MUL);
      q.format = format, q.scale_rule = rule, q.tensor_scale = 1;
      REQUIRE(nvfp4_fused_quantize_host(&q) == NVFP4_SUCCESS);
      std::vector<uint8_t> codes(data.codes.size()), scales(data.scales.size());
      nvfp4_quantize_desc plain{};
      plain.struct_size = sizeof plain;
      plain.rows = kRows, plain.k = plain.x_ld = plain.codes_ld = kK;
      plain.x = z.data(), plain.x_type = NVFP4_TYPE_F32;
      plain.codes = codes.data(), plain.scales = scales.data();
      plain.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR, plain.tensor_scale = 1;
      plain.format = format, plain.scale_rule = rule;
      REQUIRE(nvfp4_quantize_reference(&plain) == NVFP4_SUCCESS);
      const size_t made = nvfp4_scale_bytes_for(kRows, kK, NVFP4_SCALE_LAYOUT_LINEAR, format);
      CHECK(data.codes == codes);
      CHECK(std::equal(scales.begin(), scales.begin() + std::ptrdiff_t(made),
                       data.scales.begin()));
    }
}

TEST_CASE("without a residual RMSNorm reads x and writes nothing there") {
  Data data;
  nvfp4_fused_quantize_desc q = data.desc(NVFP4_FUSED_RMS_NORM);
  const Data before = data;
  q.y = nullptr;
  q.y_ld = 0;  // not looked at
  REQUIRE(nvfp4_fused_quantize_host(&q) == NVFP4_SUCCESS);
  CHECK(data.x == before.x);
  CHECK(data.codes != before.codes);
  q.rows = 0;
  q.x = nullptr;
  CHECK(nvfp4_fused_quantize(&q, nullptr) == NVFP4_SUCCESS);
}

TEST_CASE("arguments of what is fused with quantization are refused by rule") {
  Data data;
  constexpr int32_t silu = NVFP4_FUSED_SILU_MUL, norm = NVFP4_FUSED_RMS_NORM;
  REFUSED(silu, q.struct_size = 8, NVFP4_STATUS_INVALID_STRUCT, "nvfp4_fused_quantize_desc");
  REFUSED(silu, q.rows = -1, NVFP4_STATUS_INVALID_VALUE, "rows = -1");
  REFUSED(silu, q.k = 24, NVFP4_STATUS_INVALID_VALUE, "multiple of 16");
  REFUSED(silu, q.operation = 0, NVFP4_STATUS_INVALID_ENUM, "NVFP4_FUSED_SILU_MUL");
  REFUSED(silu, q.type = NVFP4_TYPE_NVFP4, NVFP4_STATUS_INVALID_ENUM, "NVFP4_TYPE_NVFP4");
  REFUSED(silu, q.epsilon = 1e-5f, NVFP4_STATUS_INVALID_VALUE, "epsilon");
  REFUSED(norm, q.epsilon = 0, NVFP4_STATUS_INVALID_VALUE, "epsilon = 0");
  REFUSED(norm, q.epsilon = -1, NVFP4_STATUS_INVALID_VALUE, "epsilon = -1");
  REFUSED(norm, q.epsilon = std::numeric_limits<float>::infinity(), NVFP4_STATUS_INVALID_VALUE,
          "epsilon = inf");
  REFUSED(norm, q.scale_layout = 0, NVFP4_STATUS_INVALID_ENUM, "scale_layout");
  REFUSED(norm, q.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX, NVFP4_STATUS_INVALID_ENUM,
          "NVFP4_TENSOR_SCALE_AMAX");
  REFUSED(norm, q.tensor_scale_mode = NVFP4_TENSOR_SCALE_ROWS, NVFP4_STATUS_INVALID_ENUM,
          "NVFP4_TENSOR_SCALE_ROWS");
  REFUSED(norm, q.tensor_scale_mode = NVFP4_TENSOR_SCALE_ROW_AMAX, NVFP4_STATUS_NULL_POINTER,
          "tensor_scale_device");
  REFUSED(norm, q.pdl = 2, NVFP4_STATUS_INVALID_ENUM, "pdl");
  REFUSED(norm, q.packing = NVFP4_PACKING_SM90_1, NVFP4_STATUS_INVALID_ENUM, "packing = ");
  REFUSED(norm, q.format = 3, NVFP4_STATUS_INVALID_ENUM, "format = 3");
  REFUSED(norm, q.scale_rule = -1, NVFP4_STATUS_INVALID_ENUM, "scale_rule = -1");
  REFUSED(norm, q.tensor_scale = 0, NVFP4_STATUS_INVALID_VALUE, "tensor_scale = 0");
  REFUSED(norm, q.scale_rule = NVFP4_SCALE_RULE_FLOOR, NVFP4_STATUS_INVALID_VALUE, "scale_rule");
  constexpr int32_t mxfp4 = NVFP4_OPERAND_FORMAT_MXFP4;
  REFUSED(norm, q.format = mxfp4, NVFP4_STATUS_INVALID_VALUE, "tensor_scale must be 1");
  REFUSED(norm, (q.format = mxfp4, q.tensor_scale_mode = NVFP4_TENSOR_SCALE_ROW_AMAX),
          NVFP4_STATUS_INVALID_VALUE, "NVFP4_TENSOR_SCALE_ROW_AMAX");
  REFUSED(silu, (q.format = mxfp4, q.k = 48), NVFP4_STATUS_INVALID_VALUE, "multiple of 32");
  REFUSED(silu, q.x_ld = kK - 1, NVFP4_STATUS_INVALID_VALUE, "x_ld");
  REFUSED(silu, q.x = nullptr, NVFP4_STATUS_NULL_POINTER, "x ");
  REFUSED(silu, q.y = nullptr, NVFP4_STATUS_NULL_POINTER, "y ");
  REFUSED(norm, q.y_ld = 1, NVFP4_STATUS_INVALID_VALUE, "y_ld = 1");
  REFUSED(norm, q.weight = nullptr, NVFP4_STATUS_NULL_POINTER, "weight");
  REFUSED(silu, q.weight = data.x.data(), NVFP4_STATUS_INVALID_VALUE, "weight");
  REFUSED(silu, q.codes_ld = kK + 1, NVFP4_STATUS_MISALIGNED, "codes_ld");
  REFUSED(norm, q.y = data.x.data(), NVFP4_STATUS_OVERLAP, "y");
  REFUSED(norm, q.scales = data.weight.data(), NVFP4_STATUS_OVERLAP, "scales");
  REFUSED(norm, q.tensor_scale_mode = NVFP4_TENSOR_SCALE_DEVICE, NVFP4_STATUS_NULL_POINTER,
          "tensor_scale_device");
}
