// SPDX-License-Identifier: MIT
// D in E2M1 with scales, by the reference: the bits of quantizing the same product in fp32, nothing
// else written, and its rules.
#include <cstring>

#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kM = 133, kN = 96, kK = 48, kL = 2, kLd = 100;
constexpr int64_t kRowBytes = kLd / 2, kStride = kM * kLd + 6;
constexpr uint8_t kBefore = 0xA5;
constexpr int32_t kLinear = NVFP4_SCALE_LAYOUT_LINEAR, k128x4 = NVFP4_SCALE_LAYOUT_128X4;

struct Type {
  int32_t type, format;
};
const Type kTypes[] = {{NVFP4_TYPE_NVFP4, NVFP4_OPERAND_FORMAT_NVFP4},
                       {NVFP4_TYPE_MXFP4, NVFP4_OPERAND_FORMAT_MXFP4},
                       {NVFP4_TYPE_E2M1_UE8M0, NVFP4_OPERAND_FORMAT_E2M1_UE8M0}};

// Two batches, with C, bias and an activation, so that values are no multiples of anything.
struct Product {
  Bytes a, a_scales, b, b_scales;
  std::vector<float> bias, c;
  std::vector<uint16_t> tokens;
  Desc g = NVFP4_GEMM_DESC_INIT;

  explicit Product(int32_t a_type = NVFP4_TYPE_NONE)
      : a(kL * kM * 64 / 2), a_scales(kL * 512), b(kL * kN * 64 / 2), b_scales(kL * 512) {
    support::Random random(3);
    a_scales.resize(kL * 400), b_scales.resize(kL * 288);
    for (Bytes* bytes : {&a, &b}) {
      for (uint8_t& byte : *bytes) byte = uint8_t(random.next());
    }
    for (Bytes* bytes : {&a_scales, &b_scales}) {
      for (uint8_t& byte : *bytes) byte = uint8_t(random.below(0x60));
    }
    for (int64_t i = 0; i < kN; ++i) bias.push_back(float(random.below(2000)) / 7 - 100);
    for (int64_t i = 0; i < kL * kM * kN; ++i) c.push_back(float(random.below(999)) / 3 - 150);
    for (int64_t i = 0; i < kL * kM * 64; ++i)
      tokens.push_back(uint16_t(0x3F00 + random.below(512)));
    g.m = kM, g.n = kN, g.k = kK, g.l = kL;
    g.a = a.data(), g.a_ld = 64, g.a_batch_stride = kM * 64;
    g.a_scales = a_scales.data(), g.a_scales_batch_stride_bytes = 400, g.a_scale_layout = kLinear;
    g.b = b.data(), g.b_ld = 64, g.b_batch_stride = kN * 64;
    g.b_scales = b_scales.data(), g.b_scales_batch_stride_bytes = 288, g.b_scale_layout = kLinear;
    g.alpha = 0.7f, g.beta = -1.3f;
    g.c = c.data(), g.c_type = NVFP4_TYPE_F32, g.c_ld = kN, g.c_batch_stride = kM * kN;
    g.bias = bias.data(), g.bias_type = NVFP4_TYPE_F32, g.activation = NVFP4_ACTIVATION_SILU;
    if (a_type == NVFP4_TYPE_NONE) return;
    g.a = tokens.data(), g.a_type = a_type, g.a_scales = nullptr;
    g.a_scales_batch_stride_bytes = 0, g.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  }
};

struct Result {
  Bytes codes, scales;
  bool operator==(const Result& x) const { return codes == x.codes && scales == x.scales; }
};

int64_t scales_stride(const Type& type, int32_t layout) {
  return int64_t(nvfp4_scale_bytes_for(kM, kN, layout, type.format) + 31) / 16 * 16;
}

Result empty(const Type& type, int32_t layout) {
  return {Bytes(size_t(kL * kStride / 2), kBefore),
          Bytes(size_t(kL * scales_stride(type, layout)), kBefore)};
}

Desc scaled(Desc g, Result& d, const Type& type, int32_t layout, int32_t rule, const float* t) {
  g.d = d.codes.data(), g.d_type = type.type, g.d_ld = kLd, g.d_batch_stride = kStride;
  g.d_scales = d.scales.data(), g.d_scale_layout = layout, g.d_scale_rule = rule;
  g.d_scales_batch_stride_bytes = scales_stride(type, layout), g.d_tensor_scale = t;
  return g;
}

// The same in two calls. Padding of scales, which a product leaves alone, gets its bytes back.
Result chained(Desc g, const Type& type, int32_t layout, int32_t rule, float t) {
  std::vector<float> x(size_t(kL * kM * kN));
  g.d = x.data(), g.d_type = NVFP4_TYPE_F32, g.d_ld = kN, g.d_batch_stride = kM * kN;
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  Result d = empty(type, layout);
  for (int64_t batch = 0; batch < kL; ++batch) {
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = kM, q.k = kN, q.x = &x[size_t(batch * kM * kN)], q.x_ld = kN;
    q.x_type = NVFP4_TYPE_F32, q.codes = &d.codes[size_t(batch * kStride / 2)], q.codes_ld = kLd;
    q.scales = &d.scales[size_t(batch * scales_stride(type, layout))];
    q.scale_layout = layout, q.tensor_scale = t, q.format = type.format, q.scale_rule = rule;
    REQUIRE(nvfp4_quantize_reference(&q) == NVFP4_SUCCESS);
  }
  return d;
}

// The scales that exist: 128x4 tiles also have padding, linear scales have none.
Bytes without_padding(const Result& d, const Type& type, int32_t layout) {
  const int64_t k = type.format == NVFP4_OPERAND_FORMAT_MXFP4 ? kN / 2 : kN;
  Bytes all;
  for (int64_t batch = 0; batch < kL; ++batch) {
    Bytes linear(size_t(kM * k / 16));
    REQUIRE(nvfp4_scale_convert_host(&d.scales[size_t(batch * scales_stride(type, layout))], layout,
                                     linear.data(), kLinear, kM, k) == NVFP4_SUCCESS);
    all.insert(all.end(), linear.begin(), linear.end());
  }
  return all;
}

}  // namespace

TEST_CASE("D with scales has the bits of quantizing the same product in fp32") {
  const float kScales[] = {1, 0.0123f, 0x1p-100f, 0x1p100f};
  for (const int32_t a_type : {NVFP4_TYPE_NONE, NVFP4_TYPE_BF16}) {
    const Product product(a_type);
    for (const Type& type : kTypes)
      for (const int32_t layout : {kLinear, k128x4})
        for (const float t : kScales) {
          const bool nvfp4 = type.type == NVFP4_TYPE_NVFP4;
          if (!nvfp4 && t != 1) continue;
          for (const int32_t rule : {NVFP4_SCALE_RULE_DEFAULT, NVFP4_SCALE_RULE_FLOOR}) {
            if (nvfp4 && rule != NVFP4_SCALE_RULE_DEFAULT) continue;
            CAPTURE(a_type, type.type, layout, t, rule);
            Result d = empty(type, layout);
            const Desc g = scaled(product.g, d, type, layout, rule, t == 1 ? nullptr : &t);
            REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
            const Result want = chained(product.g, type, layout, rule, t);
            CHECK(d.codes == want.codes);
            CHECK(without_padding(d, type, layout) == without_padding(want, type, layout));
          }
        }
  }
}

TEST_CASE("Beside D's codes and scales nothing is written and no padding of scales") {
  const Product product;
  for (const Type& type : kTypes) {
    CAPTURE(type.type);
    Result d = empty(type, k128x4), other = d;
    for (uint8_t& byte : other.codes) byte = 0x5A;
    for (uint8_t& byte : other.scales) byte = 0x5A;
    for (Result* x : {&d, &other}) {
      const Desc g = scaled(product.g, *x, type, k128x4, 0, nullptr);
      REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
    }
    const auto kept = [](const Bytes& x, const Bytes& y) {
      size_t bytes = 0;
      for (size_t i = 0; i < x.size(); ++i) bytes += x[i] == kBefore && y[i] == 0x5A;
      return bytes;
    };
    const size_t per_row = type.format == NVFP4_OPERAND_FORMAT_MXFP4 ? kN / 32 : kN / 16;
    CHECK(kept(d.codes, other.codes) == d.codes.size() - size_t(kL * kM * kN / 2));
    CHECK(kept(d.scales, other.scales) == d.scales.size() - size_t(kL * kM) * per_row);
  }
}

TEST_CASE("Rules of a D with scales and of its fields with any other D") {
  const Product product;
  const float t = 1;
  const auto answer = [&](const Type& type, auto change) {
    Result d = empty(type, k128x4);
    Desc g = scaled(product.g, d, type, k128x4, 0, nullptr);
    change(g);
    const nvfp4_status status = nvfp4_gemm_reference(&g);
    CHECK(d == empty(type, k128x4));
    return std::string(nvfp4_status_name(status)).substr(13) + ": " + nvfp4_last_error();
  };
  const auto begins = [](const std::string& text, const std::string& with) {
    INFO(text);
    CHECK(text.rfind(with, 0) == 0);
  };
  const Type nvfp4 = kTypes[0], mxfp4 = kTypes[1];
  begins(answer(nvfp4, [](Desc& g) { g.n = 88; }), "INVALID_VALUE: n = 88 is not a multiple of 16");
  begins(answer(mxfp4, [](Desc& g) { g.n = 80; }), "INVALID_VALUE: n = 80 is not a multiple of 32");
  begins(answer(nvfp4,
                [](Desc& g) {
                  g.cd_order = 1, g.c_ld = g.d_ld = kM + 1,
                  g.c_batch_stride = g.d_batch_stride = 1 << 20;
                }),
         "INVALID_VALUE: cd_order must be NVFP4_CD_ORDER_ROW_MAJOR");
  begins(answer(nvfp4, [](Desc& g) { g.d_scale_layout = 0; }), "INVALID_ENUM: d_scale_layout");
  begins(answer(nvfp4, [](Desc& g) { g.d_scale_rule = 2; }), "INVALID_VALUE: d_scale_rule must be");
  begins(answer(mxfp4, [&](Desc& g) { g.d_tensor_scale = &t; }),
         "NOT_SUPPORTED: d_tensor_scale must be NULL where d_type = NVFP4_TYPE_MXFP4");
  begins(answer(nvfp4, [](Desc& g) { g.d_ld = kLd - 1; }), "MISALIGNED: d_ld = 99");
  begins(answer(nvfp4, [](Desc& g) { ++g.d_batch_stride; }), "MISALIGNED: d_batch_stride");
  begins(answer(nvfp4, [](Desc& g) { g.d_scales = nullptr; }), "NULL_POINTER: d_scales");
  begins(answer(nvfp4, [](Desc& g) { --g.d_scales_batch_stride_bytes; }),
         "MISALIGNED: d_scales_batch_stride_bytes");
  begins(answer(nvfp4, [](Desc& g) { g.d_scales_batch_stride_bytes = 2032; }),
         "INVALID_VALUE: d_scales_batch_stride_bytes = 2032 is less than nvfp4_scale_bytes_for()");
  begins(answer(nvfp4, [](Desc& g) { g.d_scales = g.d; }), "OVERLAP: d_scales");
  begins(answer(nvfp4, [](Desc& g) { g.d_scales = const_cast<void*>(g.c); }), "OVERLAP: d_scales");
  begins(answer(nvfp4, [](Desc& g) { g.d_scales = const_cast<void*>(g.b); }), "OVERLAP: d_scales");
  begins(answer(nvfp4, [](Desc& g) { g.d_tensor_scale = static_cast<float*>(g.d); }),
         "OVERLAP: d = [");

  std::vector<float> x(size_t(kL * kM * kN));
  const auto plain = [&](auto change) {
    Desc g = product.g;
    g.d = x.data(), g.d_type = NVFP4_TYPE_F32, g.d_ld = kN, g.d_batch_stride = kM * kN;
    change(g);
    CHECK(nvfp4_gemm_reference(&g) == NVFP4_STATUS_INVALID_VALUE);
    return std::string(nvfp4_last_error());
  };
  begins(plain([&](Desc& g) { g.d_scales = &g; }), "d_scales = 0x");
  begins(plain([&](Desc& g) { g.d_tensor_scale = &t; }), "d_tensor_scale = 0x");
  begins(plain([](Desc& g) { g.d_scales_batch_stride_bytes = 16; }),
         "d_scales_batch_stride_bytes = 16 must be 0 where d_type");
  begins(
      plain([](Desc& g) { g.d_scale_layout = 1; }),
      "d_scale_layout = NVFP4_SCALE_LAYOUT_128X4 must be NVFP4_SCALE_LAYOUT_UNSET where d_type =");
  begins(plain([](Desc& g) { g.d_scale_rule = 1; }),
         "d_scale_rule = NVFP4_SCALE_RULE_ROUND_UP must be NVFP4_SCALE_RULE_DEFAULT where d_type");
}
