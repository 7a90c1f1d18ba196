// SPDX-License-Identifier: MIT
// nvfp4_gemm_describe: a plan in numbers.
#include <cmath>
#include <cstring>
#include <functional>

#include "host/plan/variant.h"
#include "tools/harness/plan_info.h"
#include "tools/testing/catch.h"

namespace {

nvfp4_gemm_desc problem(int64_t m, int64_t n, int64_t k, int64_t l = 1) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = k, g.l = l;
  g.a_ld = g.b_ld = k, g.d_ld = n;
  g.a_batch_stride = m * k, g.b_batch_stride = n * k, g.d_batch_stride = m * n;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.a_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(m, k, g.a_scale_layout));
  g.b_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(n, k, g.b_scale_layout));
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1;
  return g;
}

nvfp4_plan_info described(const nvfp4_gemm_desc& g, int32_t capability, int32_t sms) {
  nvfp4_plan_info info;
  memset(&info, 0xEE, sizeof info);
  info.struct_size = sizeof info;
  const nvfp4_status status = nvfp4_gemm_describe(&g, capability, sms, &info);
  INFO((status == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
  REQUIRE(status == NVFP4_SUCCESS);
  for (const int32_t each : info.reserved) REQUIRE(each == 0);
  return info;
}

bool near(double value, double want) { return std::fabs(value - want) < 0.0005 * want; }

}  // namespace

TEST_CASE("describe has each number of a headline shape's plan", "[describe]") {
  const nvfp4_plan_info info = described(problem(128, 7168, 16384), 100, 148);
  CHECK(std::string(info.variant) == "sm100_128x128x256");
  CHECK(info.variant == nvfp4_variant_name(100, info.variant_index));
  CHECK(std::string(info.image) == "sm_100a cubin");
  CHECK(info.workspace_bytes == 0);
  CHECK((info.tile_m == 128 && info.tile_n == 128 && info.tile_k == 256 && info.tile_ctas == 1));
  CHECK((info.tiles == 56 && info.k_partitions == 2 && info.whole_tiles == 0));
  CHECK((info.cluster_ctas == 2 && info.grid_ctas == 112));
  CHECK((info.cta_threads == 320 && info.ctas_per_sm == 1));
  CHECK((info.stages > 0 && info.stages * info.stage_bytes <= info.shared_bytes));
  CHECK(info.tmem_columns == 512);
  CHECK(info.proof == NVFP4_PROOF_PUBLISHED);
  CHECK(info.store == NVFP4_STORE_THREADS);
  CHECK(info.epilogue == NVFP4_EPILOGUE_FAST);
  CHECK(info.predicted_ns == 0);
  CHECK(info.bytes == 0.5625 * 16384 * (128 + 7168) + 2.0 * 128 * 7168);
  CHECK(near(info.memory_ns, info.bytes / 7680));  // 7.68 TB/s are 7680 bytes a nanosecond
  CHECK(near(info.math_ns, 2.0 * 128 * 7168 * 16384 / (32768 * 148 * 1.5)));
}

// ptxas takes the kernels of 10.x for both, and no GPU has run them.
TEST_CASE("On 10.7 and 11.0 kernels of 10.x are taken where a variant names one", "[describe]") {
  const bool thor = GENERATE(false, true);
  const int32_t capability = thor ? 110 : 107;
  nvfp4_gemm_desc g = problem(128, 512, 1024);
  CHECK(nvfp4_gemm_supported(&g, capability) == NVFP4_STATUS_NOT_SUPPORTED);
  int named = 0;
  for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
    const nvfp4::Variant& variant = nvfp4::variant_at(i);
    if (variant.family != &nvfp4::kFamily_sm100) continue;
    g.variant = variant.name;
    ++named;
    const nvfp4_plan_info info = described(g, capability, 20);
    CHECK(info.proof == NVFP4_PROOF_ASSEMBLED);
    CHECK(std::string(info.image) == (thor ? "sm_110f cubin" : "sm_100f cubin"));
  }
  CHECK(named > 0);
  g.variant = nullptr;
  g.a_type = NVFP4_TYPE_BF16, g.a_scales = nullptr;  // by mma.sync, as on any GPU from 8.0 on
  CHECK(described(g, capability, 20).proof == NVFP4_PROOF_PUBLISHED);
}

TEST_CASE("describe says pairs and stores by TMA and grids of many tiles", "[describe]") {
  nvfp4_gemm_desc g = problem(4096, 4096, 4096, 2);
  const nvfp4_plan_info info = described(g, 100, 148);
  CHECK(info.tile_ctas == 2);
  CHECK(info.tiles * int64_t{info.tile_m} * info.tile_n == 2 * 4096 * 4096);
  CHECK(info.grid_ctas == 148);
  CHECK(described(g, 100, 100).grid_ctas == 100);
  CHECK(info.store == NVFP4_STORE_TMA);
  g.d_ld = 4097, g.d_batch_stride = 4096 * 4097;
  CHECK(described(g, 100, 148).store == NVFP4_STORE_THREADS);
}

TEST_CASE("describe says what has code of its own in the epilogue", "[describe]") {
  nvfp4_gemm_desc g = problem(64, 4096, 4096);
  g.d_type = NVFP4_TYPE_F32;
  CHECK(described(g, 100, 148).epilogue == NVFP4_EPILOGUE_FAST);
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_FAST);
  g.d_type = NVFP4_TYPE_BF16;
  CHECK(described(g, 100, 148).epilogue == NVFP4_EPILOGUE_FAST);
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_FAST);
  g.activation = NVFP4_ACTIVATION_SILU;
  CHECK(described(g, 100, 148).epilogue == NVFP4_EPILOGUE_GENERAL);
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_FAST);
}

TEST_CASE("describe says where C and activations and maxima have code of their own", "[describe]") {
  const auto epilogue = [](const char* variant, auto change) {
    nvfp4_gemm_desc g = problem(512, 4096, 4096);
    g.activation = NVFP4_ACTIVATION_SILU, g.variant = variant;
    change(g);
    return described(g, 90, 132).epilogue;
  };
  const char* const variant = "sm90_128x128x256";
  const std::function<void(nvfp4_gemm_desc&)> fast[] = {
      [](nvfp4_gemm_desc&) {},
      [](nvfp4_gemm_desc& g) { g.d_type = NVFP4_TYPE_F32; },
      [](nvfp4_gemm_desc& g) { g.bias_type = NVFP4_TYPE_F32; },
      [](nvfp4_gemm_desc& g) {
        g.activation = NVFP4_ACTIVATION_NONE, g.c_type = NVFP4_TYPE_F16, g.beta = 1;
        g.c_ld = 4096;
      },
  };
  for (const auto& change : fast) CHECK(epilogue(variant, change) == NVFP4_EPILOGUE_FAST);
  const std::function<void(nvfp4_gemm_desc&)> general[] = {
      [](nvfp4_gemm_desc& g) { g.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR; },
      [](nvfp4_gemm_desc& g) { g.k -= 16; },
      [](nvfp4_gemm_desc& g) { g.bias_type = NVFP4_TYPE_F32, g.bias_axis = NVFP4_BIAS_AXIS_ROW; },
      [](nvfp4_gemm_desc& g) {
        g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR, g.a_scales_batch_stride_bytes = 0;
      },
      [](nvfp4_gemm_desc& g) {
        g.d_type = NVFP4_TYPE_NVFP4, g.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
      },
  };
  for (const auto& change : general) CHECK(epilogue(variant, change) == NVFP4_EPILOGUE_GENERAL);
  CHECK(epilogue("sm90_64x16x256", [](nvfp4_gemm_desc&) {}) == NVFP4_EPILOGUE_GENERAL);
}

TEST_CASE("describe says where D with scales has code of its own", "[describe]") {
  const auto epilogue = [](int64_t m, int32_t capability, auto change) {
    nvfp4_gemm_desc g = problem(m, 4096, 4096);
    g.d_type = NVFP4_TYPE_NVFP4, g.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    change(g);
    if (capability == 90) g.variant = m < 32 ? "sm90_128x16x256" : "sm90_128x128x256";
    return described(g, capability, 132).epilogue;
  };
  const auto plain = [](nvfp4_gemm_desc&) {};
  CHECK(epilogue(128, 90, plain) == NVFP4_EPILOGUE_FAST);
  CHECK(epilogue(128, 100, plain) == NVFP4_EPILOGUE_FAST);
  for (const int32_t capability : {90, 100}) {
    CHECK(epilogue(128, capability, [](nvfp4_gemm_desc& g) { g.d_ld += 8; }) ==
          NVFP4_EPILOGUE_GENERAL);
  }
  CHECK(epilogue(8, 90, plain) == NVFP4_EPILOGUE_GENERAL);
  nvfp4_gemm_desc scaled = problem(4096, 4096, 4096);
  REQUIRE(described(scaled, 100, 148).store == NVFP4_STORE_TMA);
  scaled.d_type = NVFP4_TYPE_NVFP4, scaled.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  CHECK(described(scaled, 100, 148).store == NVFP4_STORE_THREADS);
  CHECK(epilogue(128, 90, [](nvfp4_gemm_desc& g) { g.k -= 16; }) == NVFP4_EPILOGUE_GENERAL);
  CHECK(epilogue(128, 90, [](nvfp4_gemm_desc& g) {
          g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
          g.a_scales_batch_stride_bytes = 0;
        }) == NVFP4_EPILOGUE_GENERAL);
  const auto gated = [](nvfp4_gemm_desc& g) {
    g.b2 = g.b, g.b2_scales = g.b_scales, g.alpha2 = 1, g.activation = NVFP4_ACTIVATION_SILU;
  };
  CHECK(epilogue(128, 90, gated) == NVFP4_EPILOGUE_FAST);
  CHECK(epilogue(8, 90, gated) == NVFP4_EPILOGUE_FAST);
  CHECK(epilogue(128, 100, gated) == NVFP4_EPILOGUE_GENERAL);
  CHECK(epilogue(128, 90, [&](nvfp4_gemm_desc& g) { gated(g), g.d_ld += 8; }) ==
        NVFP4_EPILOGUE_GENERAL);
}

TEST_CASE("describe says which tokens of 16 bits have D with scales of their own code on 9.0",
          "[describe]") {
  nvfp4_gemm_desc g = problem(128, 4096, 4096);
  g.a_type = NVFP4_TYPE_BF16, g.a_scales = nullptr, g.a_scale_layout = 0;
  g.a_scales_batch_stride_bytes = 0;
  g.variant = "sm90_bf16_128x128x256";
  g.d_type = NVFP4_TYPE_NVFP4, g.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_FAST);
  g.k -= 16;
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_GENERAL);
  g.k += 16, g.operand_format = NVFP4_OPERAND_FORMAT_MXFP4;
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_GENERAL);
  g.operand_format = 0, g.variant = "sm90_bf16_64x16x256";
  CHECK(described(g, 90, 132).epilogue == NVFP4_EPILOGUE_GENERAL);
}

TEST_CASE("describe says what is shared along K on 9.0 and what the planner predicts",
          "[describe]") {
  const nvfp4_plan_info info = described(problem(1, 64 * 160, 8192), 90, 132);
  CHECK(std::string(info.variant) == "sm90_64x1x256");
  CHECK(info.variant == nvfp4_variant_name(90, info.variant_index));
  CHECK((info.k_partitions == 2 && info.whole_tiles == 132 && info.tiles == 160));
  CHECK((info.cluster_ctas == 2 && info.grid_ctas == 132));
  CHECK(info.proof == NVFP4_PROOF_HARDWARE);
  CHECK(info.predicted_ns > 1000);
  CHECK(info.tmem_columns == 0);
}

TEST_CASE("describe counts the workspace that linear scales take on 10.x", "[describe]") {
  nvfp4_gemm_desc g = problem(100, 256, 1024);
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  const nvfp4_plan_info info = described(g, 100, 148);
  uint64_t bytes = 0;
  REQUIRE(nvfp4_gemm_workspace_bytes(&g, 100, &bytes) == NVFP4_SUCCESS);
  CHECK((info.workspace_bytes == bytes && info.a_scales_bytes == 0));
  CHECK(info.b_scales_bytes == 256 * 1024 / 16);
}

TEST_CASE("describe says that nothing is multiplied", "[describe]") {
  for (const nvfp4_gemm_desc& g : {problem(0, 64, 64), problem(64, 64, 0)}) {
    nvfp4_plan_info want{};
    want.struct_size = sizeof want;
    want.variant_index = -1;
    const nvfp4_plan_info info = described(g, 90, 132);
    CHECK(memcmp(&info, &want, sizeof info) == 0);
  }
}

TEST_CASE("describe fills a larger structure and refuses a smaller one", "[describe]") {
  const nvfp4_gemm_desc g = problem(64, 64, 64);
  struct Newer {
    nvfp4_plan_info info;
    unsigned char later[64];
  } newer;
  memset(&newer, 0xEE, sizeof newer);
  newer.info.struct_size = sizeof newer;
  REQUIRE(nvfp4_gemm_describe(&g, 90, 132, &newer.info) == NVFP4_SUCCESS);
  CHECK(newer.info.struct_size == sizeof newer);
  for (const unsigned char byte : newer.later) CHECK(byte == 0);
  nvfp4_plan_info info, before;
  memset(&info, 0xEE, sizeof info);
  const auto refused = [&](const nvfp4_gemm_desc* desc, int32_t capability, int32_t sms) {
    before = info;
    const nvfp4_status status = nvfp4_gemm_describe(desc, capability, sms, &info);
    CHECK(memcmp(&info, &before, sizeof info) == 0);
    return status;
  };
  for (const uint64_t size : {uint64_t{0}, uint64_t{sizeof info - 8}, uint64_t{4104}}) {
    info.struct_size = size;
    CHECK(refused(&g, 90, 132) == NVFP4_STATUS_INVALID_STRUCT);
  }
  info.struct_size = sizeof info;
  CHECK(refused(&g, 90, 0) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(refused(&g, 70, 132) == NVFP4_STATUS_UNSUPPORTED_ARCH);
  CHECK(refused(nullptr, 90, 132) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_gemm_describe(&g, 90, 132, nullptr) == NVFP4_STATUS_NULL_POINTER);
}
