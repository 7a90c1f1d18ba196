// SPDX-License-Identifier: MIT
// Packed tokens without a device: sizes, rules, which products read them, and the reference and the
// quantizers on the host beside the tests' own order (tools/harness/operand.cc).
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

constexpr int32_t kTokens = NVFP4_PACKING_SM90_TOKENS_1;
void* address(uint64_t at) { return reinterpret_cast<void*>(at); }
bool says(const char* words) { return std::strstr(nvfp4_last_error(), words) != nullptr; }

nvfp4_gemm_desc product() {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 200, g.n = 300, g.k = 544, g.l = 3;
  g.a = address(0x100000000000), g.a_packing = kTokens, g.a_batch_stride = 200 * 768;
  g.b = address(0x300000000000), g.b_ld = 544, g.b_batch_stride = 300 * 544;
  g.b_scales = address(0x200000000000), g.b_scales_batch_stride_bytes = 3 * 9 * 512;
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = address(0x500000000000), g.d_ld = 304, g.d_batch_stride = 200 * 304;
  g.d_type = NVFP4_TYPE_F16;
  return g;
}

struct Rule {
  const char* name;
  std::function<void(nvfp4_gemm_desc&)> change;
  nvfp4_status status;
  const char* sentence;
};
#define WITH(...) [](nvfp4_gemm_desc& g) { __VA_ARGS__; }
constexpr nvfp4_status kInvalid = NVFP4_STATUS_INVALID_VALUE;

// clang-format off
const Rule kRules[] = {
    {"legal", WITH((void)g), NVFP4_SUCCESS, ""},
    {"one matrix for all", WITH(g.a_batch_stride = 0), NVFP4_SUCCESS, ""},
    {"a layout of scales", WITH(g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR), NVFP4_SUCCESS, ""},
    {"a stride of scales", WITH(g.a_scales_batch_stride_bytes = 3), NVFP4_SUCCESS, ""},
    {"gated", WITH(g.b2 = address(0x700000000000), g.alpha2 = 1, g.b2_scales = address(0x710000000000)), NVFP4_SUCCESS, ""},
    {"batch_invariant", WITH(g.batch_invariant = 1), NVFP4_SUCCESS, ""},
    {"nothing to multiply", WITH(g.k = 0, g.a = nullptr), NVFP4_SUCCESS, ""},
    {"a_packing of weights", WITH(g.a_packing = NVFP4_PACKING_SM90_1), NVFP4_STATUS_INVALID_ENUM, "a_packing = NVFP4_PACKING_SM90_1 is not one of NVFP4_PACKING_NONE, NVFP4_PACKING_SM90_TOKENS_1"},
    {"a_packing 4", WITH(g.a_packing = 4), NVFP4_STATUS_INVALID_ENUM, "a_packing = 4 is not one of"},
    {"a_ld", WITH(g.a_ld = 544), kInvalid, "a_ld = 544 must be 0 where a_packing = NVFP4_PACKING_SM90_TOKENS_1"},
    {"a_scales", WITH(g.a_scales = address(0x600000000000)), kInvalid, "a_scales = 0x600000000000 must be NULL where a_packing = NVFP4_PACKING_SM90_TOKENS_1"},
    {"a_batch_stride", WITH(g.a_batch_stride += 128), NVFP4_STATUS_MISALIGNED, "a_batch_stride = 153728 is not a multiple of 256, the elements of a unit"},
    {"a", WITH(g.a = address(0x100000000008)), NVFP4_STATUS_MISALIGNED, "a = 0x100000000008"},
    {"a NULL", WITH(g.a = nullptr), NVFP4_STATUS_NULL_POINTER, "a is NULL"},
    {"16-bit tokens", WITH(g.a_type = NVFP4_TYPE_F16), kInvalid, "a_packing = NVFP4_PACKING_SM90_TOKENS_1 must be NVFP4_PACKING_NONE where a_type = NVFP4_TYPE_F16"},
    {"MXFP4", WITH(g.operand_format = NVFP4_OPERAND_FORMAT_MXFP4), kInvalid, "operand_format = NVFP4_OPERAND_FORMAT_MXFP4 must be NVFP4_OPERAND_FORMAT_NVFP4 where a_packing"},
    {"d over the last byte of a", WITH(g.d = address(0x100000000000 + 3 * 200 * 1536 - 16)), NVFP4_STATUS_OVERLAP, "d = ["},
    {"packed weights", WITH(g.b_packing = NVFP4_PACKING_SM90_1, g.b_ld = 0, g.b_scales = nullptr, g.b_batch_stride = 0), NVFP4_STATUS_NOT_SUPPORTED, "b_packing = "},
    {"a tile of few tokens", WITH(g.variant = "sm90_64x16x256"), kInvalid, "variant = \"sm90_64x16x256\" decodes tokens itself: a_packing = NVFP4_PACKING_SM90_TOKENS_1 excludes it"},
    {"a tiny tile", WITH(g.variant = "sm90_64x4x256"), kInvalid, "decodes tokens itself"},
};
// clang-format on

}  // namespace

TEST_CASE("packed tokens: products on 9.0 have rules of their own", "[packed_tokens]") {
  for (const Rule& rule : kRules) {
    nvfp4_gemm_desc g = product();
    rule.change(g);
    const nvfp4_status status = nvfp4_gemm_supported(&g, 90);
    CAPTURE(rule.name, nvfp4_last_error());
    CHECK(status == rule.status);
    if (status != NVFP4_SUCCESS) CHECK(says(rule.sentence));
  }
}

TEST_CASE("packed tokens: other GPUs and grouped products refuse them by name", "[packed_tokens]") {
  nvfp4_gemm_desc g = product();
  for (const int32_t capability : {100, 103, 120}) {
    CHECK(nvfp4_gemm_supported(&g, capability) == NVFP4_STATUS_NOT_SUPPORTED);
    CHECK(says("a_packing = NVFP4_PACKING_SM90_TOKENS_1: no kernel for compute capability"));
  }
  CHECK(nvfp4_gemm_supported(&g, 80) == NVFP4_STATUS_NOT_SUPPORTED);
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = &g, grouped.rows_kind = NVFP4_ROWS_ENDS;
  grouped.rows = static_cast<const int32_t*>(address(0x800000000000));
  CHECK(nvfp4_grouped_supported(&grouped, 90) == NVFP4_STATUS_NOT_SUPPORTED);
  CHECK(says("a_packing = NVFP4_PACKING_SM90_TOKENS_1: grouped products do not have that"));
}

TEST_CASE("packed tokens: a plan has no workspace for them and explain says so",
          "[packed_tokens]") {
  nvfp4_gemm_desc g = product();
  g.variant = "sm90_64x32x256";
  uint64_t bytes = 1;
  REQUIRE(nvfp4_gemm_workspace_bytes(&g, 90, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 0);
  char text[4096];
  REQUIRE(nvfp4_gemm_explain(&g, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::strstr(text, "tokens    packed, NVFP4_PACKING_SM90_TOKENS_1") != nullptr);
  CHECK(std::strstr(text, "--a-packing sm90-tokens-1") != nullptr);
  for (const int64_t m : {1, 30, 64, 500, 5000}) {
    g = product(), g.l = 1, g.m = m;
    CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_SUCCESS);
  }
}

TEST_CASE("packed tokens: a row has 512 bytes for each 256 of K", "[packed_tokens]") {
  CHECK(nvfp4_packed_bytes(1, 16, kTokens, NVFP4_OPERAND_FORMAT_NVFP4) == 512);
  CHECK(nvfp4_packed_bytes(7, 528, kTokens, NVFP4_OPERAND_FORMAT_NVFP4) == 7 * 3 * 512);
  CHECK(nvfp4_packed_bytes(7, 512, kTokens, NVFP4_OPERAND_FORMAT_MXFP4) == 0);
  CHECK(nvfp4_packed_bytes(INT64_MAX, 256, kTokens, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
}

TEST_CASE("packed tokens: the reference has the bits of codes and scales", "[packed_tokens]") {
  const support::Shape shape =
      GENERATE(support::Shape{3, 40, 96, 1}, support::Shape{13, 33, 528, 2});
  support::Problem p = support::make_problem(shape, support::Data::random, 21);
  support::Fields fields;
  fields.d_type = NVFP4_TYPE_F32;
  if (shape.l == 1) fields.b2 = support::kGiven, fields.alpha2 = 1;
  p = with_fields(std::move(p), fields, 24);
  p.a.set_scale(0, 2, 1, 0x7F);
  const std::vector<uint8_t> plain = p.reference();
  p.a_packing = kTokens;
  CHECK(p.reference() == plain);
}

TEST_CASE("packed tokens: quantizers on the host write what they write as codes and scales",
          "[packed_tokens]") {
  const int32_t rule =
      GENERATE(int32_t{NVFP4_SCALE_RULE_DEFAULT}, int32_t{NVFP4_SCALE_RULE_4OVER6});
  constexpr int64_t kRows = 11, kK = 336;
  support::Random random(5);
  std::vector<float> x(kRows * kK), back(x.size()), from_codes(x.size());
  for (float& each : x) each = float(int(random.below(2001)) - 1000) / 128;
  x[7 * kK + 40] = std::numeric_limits<float>::quiet_NaN();
  support::Problem p = support::make_problem({kRows, 16, kK});
  std::vector<uint8_t> packed(kRows * 2 * 512, 0xA5);
  nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
  q.rows = kRows, q.k = q.x_ld = kK, q.x = x.data(), q.x_type = NVFP4_TYPE_F32;
  q.tensor_scale = 0.01f, q.scale_rule = rule;
  q.codes = p.a.codes.data(), q.codes_ld = p.a.ld, q.scales = p.a.scales.data();
  q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  REQUIRE(nvfp4_quantize_reference(&q) == NVFP4_SUCCESS);
  q.x = from_codes.data();
  REQUIRE(nvfp4_dequantize_reference(&q) == NVFP4_SUCCESS);
  q.x = x.data(), q.codes = packed.data(), q.codes_ld = 0, q.scales = nullptr;
  q.packing = kTokens;
  REQUIRE(nvfp4_quantize_reference(&q) == NVFP4_SUCCESS);
  CHECK(packed == p.a.packed_tokens());
  q.x = back.data();
  REQUIRE(nvfp4_dequantize_reference(&q) == NVFP4_SUCCESS);
  CHECK(std::memcmp(back.data(), from_codes.data(), back.size() * 4) == 0);
}

TEST_CASE("packed tokens: quantizers refuse what goes with codes and scales alone",
          "[packed_tokens]") {
  std::vector<uint8_t> memory(4096), packed(1024);
  nvfp4_quantize_desc good = NVFP4_QUANTIZE_DESC_INIT;
  good.rows = 2, good.k = good.x_ld = 16, good.x = memory.data(), good.x_type = NVFP4_TYPE_F32;
  good.tensor_scale = 1, good.codes = packed.data(), good.packing = kTokens;
  CHECK(nvfp4_quantize_reference(&good) == NVFP4_SUCCESS);
  const auto refused = [&](auto change, nvfp4_status status, const char* words) {
    nvfp4_quantize_desc q = good;
    change(q);
    CHECK(nvfp4_quantize_reference(&q) == status);
    CAPTURE(nvfp4_last_error());
    CHECK(says(words));
  };
  using Desc = nvfp4_quantize_desc;
  refused([](Desc& q) { q.codes_ld = 16; }, kInvalid, "codes_ld = 16 must be 0 where packing = ");
  refused([&](Desc& q) { q.scales = memory.data(); }, kInvalid, "must be NULL where packing = ");
  refused([](Desc& q) { q.format = NVFP4_OPERAND_FORMAT_E2M1_UE8M0; }, kInvalid,
          "must be NVFP4_OPERAND_FORMAT_NVFP4 where packing = ");
  refused([](Desc& q) { q.codes = static_cast<uint8_t*>(q.codes) + 8; }, NVFP4_STATUS_MISALIGNED,
          "codes = ");
  refused([&](Desc& q) { q.codes = memory.data() + 16; }, NVFP4_STATUS_OVERLAP, "codes = ");
}
