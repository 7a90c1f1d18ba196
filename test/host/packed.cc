// SPDX-License-Identifier: MIT
// Which products read packed weights, by the answers of the planner alone.
#include <cstring>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

const void* address(uint64_t at) { return reinterpret_cast<const void*>(at); }
bool says(const char* words) { return std::strstr(nvfp4_last_error(), words) != nullptr; }

nvfp4_gemm_desc product(int64_t m, int32_t a_type) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = 300, g.k = 592, g.l = 1, g.alpha = 1;
  g.a = address(0x100000000000), g.a_type = a_type, g.a_ld = 592;
  g.b = address(0x300000000000), g.b_packing = NVFP4_PACKING_SM90_1;
  g.d = const_cast<void*>(address(0x500000000000)), g.d_ld = 304, g.d_type = NVFP4_TYPE_F16;
  return g;
}

nvfp4_plan_info info_of(const nvfp4_gemm_desc& g) {
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  CAPTURE(nvfp4_last_error());
  CHECK(nvfp4_gemm_describe(&g, 90, 132, &info) == NVFP4_SUCCESS);
  return info;
}

}  // namespace

TEST_CASE("9.0 reads packed weights beside tokens of 16 bits", "[pack]") {
  for (const int32_t a_type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
    for (const int64_t m : {1, 16, 17, 64, 300, 4096}) {
      CAPTURE(a_type, m);
      nvfp4_gemm_desc g = product(m, a_type);
      CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_SUCCESS);
      g.k = 560;  // MXFP4 has a scale for 32
      g.operand_format = NVFP4_OPERAND_FORMAT_E2M1_UE8M0;
      CHECK((nvfp4_gemm_supported(&g, 90) == NVFP4_SUCCESS) == (a_type == NVFP4_TYPE_BF16));
      for (const int32_t capability : {80, 86, 100, 103, 110, 120}) {
        g = product(m, a_type);
        CHECK(nvfp4_gemm_supported(&g, capability) == NVFP4_STATUS_NOT_SUPPORTED);
        CHECK(says("b_packing = NVFP4_PACKING_SM90_1: no kernel for compute capability"));
      }
    }
  }
}

// Tokens in NVFP4 have no kernel for packed weights.
TEST_CASE("gated and grouped products of 16-bit tokens read packed weights on 9.0", "[pack]") {
  for (const int32_t a_type : {NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
    nvfp4_gemm_desc g = product(64, a_type);
    if (a_type == NVFP4_TYPE_NONE) {
      g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR, g.a_scales = address(0x200000000000);
      g.a_ld = 608;
    }
    const nvfp4_status expected =
        a_type == NVFP4_TYPE_NONE ? NVFP4_STATUS_NOT_SUPPORTED : NVFP4_SUCCESS;
    nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
    grouped.gemm = &g, grouped.rows_kind = NVFP4_ROWS_ENDS;
    grouped.rows = static_cast<const int32_t*>(address(0x800000000000));
    const auto check = [&](const char* grouped_kind, const char* kind) {
      CAPTURE(a_type, grouped_kind);
      CHECK(nvfp4_gemm_supported(&g, 90) == expected);
      if (expected != NVFP4_SUCCESS) CHECK(says(kind));
      CHECK(nvfp4_grouped_supported(&grouped, 90) == expected);
      if (expected != NVFP4_SUCCESS) CHECK(says(grouped_kind));
      CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_STATUS_NOT_SUPPORTED);
      CHECK(nvfp4_grouped_supported(&grouped, 80) == NVFP4_STATUS_NOT_SUPPORTED);
    };
    check("reads such weights in grouped products with a_type = NVFP4_TYPE_NONE",
          "reads such weights in products with a_type = NVFP4_TYPE_NONE");
    g.b2 = address(0x700000000000), g.alpha2 = 1;
    check("reads such weights in grouped products that are gated (b2) with a_type",
          "reads such weights in products that are gated (b2) with a_type");
  }
}

// A tile is a unit of b and one of b2.
TEST_CASE("a plan of gated packed weights has tiles of half the columns", "[pack]") {
  nvfp4_gemm_desc g = product(100, NVFP4_TYPE_BF16);
  g.b2 = address(0x700000000000), g.alpha2 = 1;
  g.variant = "sm90_bf16_128x128x256/1";
  const nvfp4_plan_info info = info_of(g);
  CHECK(info.tile_n == 64);
  CHECK(info.stages == 5);
  CHECK(info.stage_bytes == 18432);
  CHECK(info.epilogue == NVFP4_EPILOGUE_GENERAL);
}

// A stage of 64 weights has no scales of 64 others beside it.
TEST_CASE("a plan of packed weights has the stages of their entry", "[pack]") {
  nvfp4_gemm_desc g = product(64, NVFP4_TYPE_BF16);
  g.variant = "sm90_bf16_64x64x256/2";
  const nvfp4_plan_info packed = info_of(g);
  CHECK(packed.stage_bytes == 9216);
  CHECK(packed.stages == 10);
  CHECK(packed.k_partitions == 2);
  g.b_packing = NVFP4_PACKING_NONE, g.b_ld = 608;
  g.b_scales = address(0x600000000000), g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  CHECK(info_of(g).stage_bytes == 10240);
}

// The tiles of 16 tokens have kernels for packed weights, and those of wgmma none for groups.
TEST_CASE("a plan of packed weights in groups has a tile with a kernel for them", "[pack]") {
  nvfp4_gemm_desc g = product(64, NVFP4_TYPE_F16);
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = &g, grouped.rows_kind = NVFP4_ROWS_ENDS, grouped.rows_hint = 12;
  grouped.rows = static_cast<const int32_t*>(address(0x800000000000));
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  CHECK(nvfp4_grouped_describe(&grouped, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(std::strcmp(info.variant, "sm90_f16_64x32x256") == 0);
  CHECK(info.stage_bytes == 9216);
  g.k = g.a_ld = 1024;
  CHECK(nvfp4_grouped_describe(&grouped, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(std::strcmp(info.variant, "sm80_f16_64x16w4x128") == 0);
  grouped.rows_hint = 8;
  CHECK(nvfp4_grouped_describe(&grouped, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(std::strcmp(info.variant, "sm80_f16_64x8w4x128") == 0);
  g.a_type = NVFP4_TYPE_BF16;
  CHECK(nvfp4_grouped_describe(&grouped, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(std::strcmp(info.variant, "sm80_bf16_64x8w4x128") == 0);
  grouped.rows_hint = 16;
  CHECK(nvfp4_grouped_describe(&grouped, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(std::strcmp(info.variant, "sm80_bf16_64x16w4x128") == 0);
  grouped.rows_hint = 17;
  CHECK(nvfp4_grouped_describe(&grouped, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(std::strcmp(info.variant, "sm90_bf16_64x32x256") == 0);
}

TEST_CASE("explain says that weights are packed", "[pack][explain]") {
  const nvfp4_gemm_desc g = product(64, NVFP4_TYPE_BF16);
  char text[4096];
  CHECK(nvfp4_gemm_explain(&g, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::strstr(text, "weights   packed, NVFP4_PACKING_SM90_1") != nullptr);
}
