// SPDX-License-Identifier: MIT
// D that is made apart from its product: when it can be, how the plan of the product looks, and
// what the planner of 9.0 takes.
#include <cstring>

#include "host/plan/apart.h"
#include "host/plan/plan.h"
#include "test/host/child.h"
#include "test/host/plan_rules.h"
#include "tools/harness/plan_info.h"
#include "tools/testing/catch.h"

using host_test::contains;
using host_test::plan_of;
using nvfp4::Apart;
using nvfp4::sums_product;
using nvfp4::way_apart;

namespace {

void* at(uint64_t address) { return reinterpret_cast<void*>(address); }

// Arrays lie 2^36 bytes apart.
nvfp4_gemm_desc problem(int64_t m, int64_t n, int64_t k) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  const auto address = [](uint64_t i) { return at(i << 36); };
  g.m = m, g.n = n, g.k = k, g.l = 1, g.alpha = 1;
  g.a = address(1), g.b = address(2), g.a_scales = address(3), g.b_scales = address(4);
  g.d = address(5), g.a_ld = g.b_ld = k, g.d_ld = n;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_BF16;
  return g;
}

nvfp4_gemm_desc gated(int64_t m, int64_t n, int64_t k) {
  nvfp4_gemm_desc g = problem(m, n, k);
  g.b2 = at(uint64_t{6} << 36), g.b2_scales = at(uint64_t{7} << 36), g.alpha2 = 1;
  g.activation = NVFP4_ACTIVATION_SILU;
  return g;
}

nvfp4_gemm_desc to_nvfp4(int64_t m, int64_t n, int64_t k) {
  nvfp4_gemm_desc g = problem(m, n, k);
  g.d_type = NVFP4_TYPE_NVFP4, g.d_scales = at(uint64_t{8} << 36);
  g.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  return g;
}

}  // namespace

TEST_CASE("What the fast epilogue makes is not made apart and the rest has its way", "[apart]") {
  nvfp4_gemm_desc g = problem(16, 256, 512);
  CHECK(way_apart(g) == Apart::one);
  g.d_type = NVFP4_TYPE_F32;
  CHECK(way_apart(g) == Apart::one);
  g.activation = NVFP4_ACTIVATION_RELU;
  CHECK(way_apart(g) == Apart::finish);
  g.k = 0;
  CHECK(way_apart(g) == Apart::one);

  nvfp4_gemm_desc d = to_nvfp4(16, 256, 512);
  CHECK(way_apart(d) == Apart::quantizer);
  d.l = 2;  // the quantizer takes one matrix
  CHECK(way_apart(d) == Apart::finish);
  d.l = 1, d.activation = NVFP4_ACTIVATION_RELU;  // which it does not have
  CHECK(way_apart(d) == Apart::finish);

  nvfp4_gemm_desc both = gated(16, 256, 512);
  CHECK(way_apart(both) == Apart::finish);
  both.l = 2;
  CHECK(way_apart(both) == Apart::one);
  both.l = 1, both.b2 = at((uint64_t{2} << 36) + (uint64_t{1} << 40));
  CHECK(way_apart(both) == Apart::one);
  both.b2 = at((uint64_t{2} << 36) + (uint64_t{1} << 40) - 16);
  CHECK(way_apart(both) == Apart::finish);
  both.d_amax = static_cast<float*>(at(4096));
  CHECK(way_apart(both) == Apart::one);
}

TEST_CASE("The product of a D that is made apart is bare and lies behind its sums", "[apart]") {
  nvfp4_gemm_desc g = gated(5, 250, 512);
  g.workspace = at(uint64_t{9} << 36), g.workspace_bytes = 1 << 20;
  g.bias = at(16), g.bias_type = NVFP4_TYPE_F16;
  std::swap(g.b, g.b2);  // b2 has the lower addresses
  const nvfp4_gemm_desc sums = sums_product(g, Apart::finish);
  CHECK((sums.l == 2 && sums.m == 5 && sums.n == 250 && sums.alpha == 1));
  CHECK((sums.b == g.b2 && sums.b_scales == g.b2_scales));
  CHECK(sums.b_batch_stride == 2 * (int64_t{4} << 36));
  CHECK(sums.b_scales_batch_stride_bytes == -(int64_t{3} << 36));
  CHECK((sums.a_batch_stride == 0 && sums.a_scales_batch_stride_bytes == 0));
  CHECK((sums.d == g.workspace && sums.d_ld == 252 && sums.d_batch_stride == 5 * 252));
  CHECK((sums.bias_type == NVFP4_TYPE_NONE && sums.activation == NVFP4_ACTIVATION_NONE));
  CHECK((sums.b2 == nullptr && sums.alpha2 == 0 && sums.d_type == NVFP4_TYPE_F32));
  const uint64_t bytes = nvfp4::sums_bytes(g);
  CHECK(bytes == (2 * 5 * 252 * 4 + 255) / 256 * 256);
  CHECK(sums.workspace == static_cast<const uint8_t*>(g.workspace) + bytes);
  CHECK(sums.workspace_bytes == g.workspace_bytes - bytes);
}

TEST_CASE("Tokens that batches share are decoded once and their tiles follow in a CTA", "[apart]") {
  nvfp4_gemm_desc g = problem(64, 256, 512);
  g.l = 2, g.b_batch_stride = 256 * 512, g.d_batch_stride = 64 * 256;
  g.b_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(256, 512, g.b_scale_layout));
  g.variant = "sm90_64x64x256";
  nvfp4::Plan shared{}, own{};
  REQUIRE(plan_of(g, 90, &shared) == NVFP4_SUCCESS);
  g.a_batch_stride = 64 * 512, g.a_scales_batch_stride_bytes = 512 * 8;
  REQUIRE(plan_of(g, 90, &own) == NVFP4_SUCCESS);
  CHECK(own.workspace_bytes == 2 * shared.workspace_bytes);
  g = gated(1, 28672, 4096);
  g.variant = "sm90_64x1x256/1/apart";
  REQUIRE(plan_of(g, 90, &own) == NVFP4_SUCCESS);
  CHECK(own.several);
}

TEST_CASE("A plan and explain say that D is made apart and the workspace has its sums",
          "[apart][describe]") {
  nvfp4_gemm_desc g = gated(128, 512, 1024);
  g.variant = "sm90_128x128x256/2/apart";
  const nvfp4_plan_info info = support::plan_info(g, 90, 132);
  CHECK(std::string(info.variant) == "sm90_128x128x256/apart");
  CHECK((info.d_apart == 1 && info.k_partitions == 2 && info.tiles == 8));
  // Sums, and tokens in fp16.
  CHECK(info.workspace_bytes == 2 * 128 * 512 * 4 + 128 * 1024 * 2);
  char text[4096];
  REQUIRE(nvfp4_gemm_explain(&g, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(contains(text,
                 "apart     the kernel stores 524288 bytes of sums in fp32 in the workspace, "
                 "those with b2 as a second batch; a second one, for any epilogue, makes D "
                 "of them\n"));
  g.variant = "sm90_128x128x256/2";
  CHECK(support::plan_info(g, 90, 132).d_apart == 0);
  g.variant = "sm90_128x128x256/apart/2";
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_INVALID_VALUE);
  g = problem(128, 512, 1024);
  g.variant = "sm90_128x128x256/apart";
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(contains(nvfp4_last_error(), "makes D apart, which this product does not need"));
}

TEST_CASE("On 9.0 a gated product with rows of one order for all M has a kernel by two launches",
          "[apart]") {
  for (const int64_t m : {1, 17, 128, 4096}) {
    nvfp4_gemm_desc g = gated(m, 512, 1024);
    g.batch_invariant = 1;
    nvfp4::Plan plan{};
    REQUIRE(plan_of(g, 90, &plan) == NVFP4_SUCCESS);
    CHECK(plan.apart == Apart::finish);
    const nvfp4_gemm_desc sums = nvfp4::product_of(g, plan);
    const bool own_parts = nvfp4::adds_own_parts(sums, plan.arch(), *plan.variant);
    CHECK((plan.variant->batch_invariant || own_parts));
    CHECK(own_parts == (m == 4096));
    g.l = 2;
    CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_NOT_SUPPORTED);
  }
}

// As an H200 measured (bench/results/gated-h200-2026-11-29.csv).
TEST_CASE("On 9.0 few tokens of a gated product have a tile of their own where that is faster",
          "[apart][gated]") {
  struct Row {
    int64_t m, n, k;
    int32_t a_type;
    const char* variant;
  };
  const Row row = GENERATE(Row{1, 14336, 4096, NVFP4_TYPE_NONE, "sm90_64x1x256"},
                           Row{2, 1536, 4096, NVFP4_TYPE_NONE, "sm90_64x2x256"},
                           Row{4, 8192, 3072, NVFP4_TYPE_NONE, "sm90_64x4x256"},
                           Row{16, 14336, 4096, NVFP4_TYPE_NONE, "sm90_128x16x256"},
                           Row{32, 1536, 4096, NVFP4_TYPE_NONE, "sm90_128x32x256"},
                           Row{64, 14336, 4096, NVFP4_TYPE_NONE, "sm90_128x64x256"},
                           Row{1, 8192, 3072, NVFP4_TYPE_BF16, "sm80_bf16_64x8w4x128/apart"},
                           Row{32, 14336, 4096, NVFP4_TYPE_BF16, "sm90_bf16_128x64x256"});
  nvfp4_gemm_desc g = gated(row.m, row.n, row.k);
  if (row.a_type != NVFP4_TYPE_NONE) {
    g.a_type = row.a_type, g.a_scales = nullptr, g.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  }
  CAPTURE(row.m, row.n, row.k, row.a_type);
  CHECK(std::string(support::plan_info(g, 90, 132).variant) == row.variant);
}

// A question does not know of maxima, and not all kernels for gated products find them.
TEST_CASE("The workspace that a gated product was told of is enough for one with maxima",
          "[apart][gated]") {
  float maximum = 0;
  int larger = 0;
  for (const int64_t m : {1, 2, 3, 16, 20, 48, 64, 70, 128, 300}) {
    for (const int64_t n : {64, 1536, 8192}) {
      for (const int64_t k : {256, 3072, 16384}) {
        nvfp4_gemm_desc g = gated(m, n, k);
        uint64_t told = 0, needed = 0;
        REQUIRE(nvfp4_gemm_workspace_bytes(&g, 90, &told) == NVFP4_SUCCESS);
        g.d_amax = &maximum;
        REQUIRE(nvfp4_gemm_workspace_bytes(&g, 90, &needed) == NVFP4_SUCCESS);
        CAPTURE(m, n, k);
        CHECK(told >= needed);
        larger += needed > 0;
      }
    }
  }
  CHECK(larger > 0);
}

TEST_CASE("A variant whose kernel takes plain gated products refuses others by a sentence",
          "[apart][gated]") {
  nvfp4_gemm_desc g = gated(32, 256, 256);
  g.variant = "sm90_64x4x256/2";
  uint64_t bytes = 0;
  g.k = g.a_ld = g.b_ld = 512;
  CHECK(nvfp4_gemm_workspace_bytes(&g, 90, &bytes) == NVFP4_SUCCESS);
  g.d_type = NVFP4_TYPE_F32;
  CHECK(nvfp4_gemm_workspace_bytes(&g, 90, &bytes) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(contains(nvfp4_last_error(), "takes gated products (b2) with operand_format = NVFP4"));
  g.d_type = NVFP4_TYPE_BF16, g.variant = "sm90_64x32x256";
  CHECK(nvfp4_gemm_workspace_bytes(&g, 90, &bytes) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(contains(nvfp4_last_error(), "has no kernel for gated products (b2)"));
}
