// SPDX-License-Identifier: MIT
// What the header declares and this version does not have: each field, enumerator and function is
// refused by its name, whatever asks for it, before a driver is looked for.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;
using Quantize = nvfp4_quantize_desc;
using Fused = nvfp4_fused_quantize_desc;

alignas(16) unsigned char memory[4096];
float* const kFloats = reinterpret_cast<float*>(memory);

// A product, a matrix and a fused matrix that would be computed, but for the field of the row.
Desc product() {
  Desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 0, g.n = 32, g.k = 32, g.l = 1;  // m = 0: success, and nothing is looked at
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16;
  return g;
}

Quantize matrix() {
  Quantize q{};
  q.struct_size = sizeof q;
  q.k = 32, q.tensor_scale = 1;
  q.x_type = NVFP4_TYPE_F32, q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  return q;
}

Fused fused() {
  Fused q{};
  q.struct_size = sizeof q;
  q.k = 32, q.tensor_scale = 1, q.operation = NVFP4_FUSED_SILU_MUL;
  q.type = NVFP4_TYPE_F32, q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  return q;
}

nvfp4_plan_info marked() {
  nvfp4_plan_info info{};
  info.struct_size = sizeof info, info.tile_m = 77;
  return info;
}

template <typename T>
struct Row {
  const char* sentence;  // begins with this
  std::function<void(T&)> set;
};

#define FIELD(field, value, text)                       \
  {                                                     \
#field " = " text, [](auto& x) { x.field = value; } \
  }
#define POINTER(field, value) FIELD(field, value, "0x")
#define NAME(field, enumerator) FIELD(field, enumerator, #enumerator " is not there in version")

const std::vector<Row<Desc>> kProducts = {
    POINTER(d_amax, kFloats),
    POINTER(d_row_amax, kFloats),
};

const std::vector<Row<Fused>> kFused = {
    NAME(format, NVFP4_OPERAND_FORMAT_MXFP4),
    NAME(format, NVFP4_OPERAND_FORMAT_E2M1_UE8M0),
};

#undef NAME
#undef POINTER
#undef FIELD

void refused(nvfp4_status status, const std::string& sentence) {
  INFO(nvfp4_last_error());
  CHECK(std::string(nvfp4_status_name(status)) == "NVFP4_STATUS_NOT_SUPPORTED");
  CHECK(std::string(nvfp4_last_error()).rfind(sentence, 0) == 0);
}

}  // namespace

TEST_CASE("What a product may ask for and this version does not have is refused by its name") {
  const Desc valid = product();
  REQUIRE(nvfp4_gemm_run(&valid, nullptr) == NVFP4_SUCCESS);
  for (const auto& row : kProducts) {
    CAPTURE(row.sentence);
    Desc g = product();
    row.set(g);
    uint64_t bytes = 77;
    char text[9] = "as it is";
    nvfp4_plan_info info = marked();
    nvfp4_gemm_plan* plan = reinterpret_cast<nvfp4_gemm_plan*>(memory);
    refused(nvfp4_gemm_run(&g, nullptr), row.sentence);
    refused(nvfp4_gemm_supported(&g, 100), row.sentence);
    refused(nvfp4_gemm_supported(&g, 90), row.sentence);
    refused(nvfp4_gemm_workspace_bytes(&g, 90, &bytes), row.sentence);
    refused(nvfp4_gemm_describe(&g, 90, 132, &info), row.sentence);
    refused(nvfp4_gemm_explain(&g, 90, 132, text, sizeof text), row.sentence);
    refused(nvfp4_gemm_reference(&g), row.sentence);
    refused(nvfp4_gemm_plan_create(&g, &plan), row.sentence);
    CHECK(bytes == 77);
    CHECK(std::string(text) == "as it is");
    CHECK(info.tile_m == 77);
    CHECK(plan == nullptr);
  }
}

TEST_CASE(
    "What a quantizer may be asked for and this version does not have is refused by its name") {
  const Quantize valid = matrix();
  REQUIRE(nvfp4_quantize(&valid, nullptr) == NVFP4_SUCCESS);
  const Fused good = fused();
  REQUIRE(nvfp4_fused_quantize(&good, nullptr) == NVFP4_SUCCESS);
  for (const auto& row : kFused) {
    CAPTURE(row.sentence);
    Fused q = fused();
    row.set(q);
    refused(nvfp4_fused_quantize(&q, nullptr), row.sentence);
    refused(nvfp4_fused_quantize_host(&q), row.sentence);
  }
}
