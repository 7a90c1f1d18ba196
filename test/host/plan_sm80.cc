// SPDX-License-Identifier: MIT
// The planner of the mma.sync kernel: what holds on each architecture that it serves. What it
// chooses on 9.0 is judged in plan_times.cc.
#include "host/plan/family.h"
#include "test/host/plan_rules.h"
#include "tools/harness/plan_info.h"

namespace {

using nvfp4::kFamily_sm80;

nvfp4_gemm_desc halves(int64_t m, int64_t n, int64_t k, int32_t type = NVFP4_TYPE_BF16) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = k, g.l = 1;
  g.a_ld = g.b_ld = k, g.d_ld = n;
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16;
  g.a_type = type;
  return g;
}

nvfp4::Plan plan_for(const nvfp4_gemm_desc& g, int32_t capability) {
  nvfp4::Plan plan;
  REQUIRE(host_test::plan_of(g, capability, &plan) == NVFP4_SUCCESS);
  return plan;
}

// The plan by a row of arch.def, of which a capability may have two.
nvfp4::Plan plan_on(const nvfp4_gemm_desc& g, uint32_t row, bool* is_served = nullptr) {
  nvfp4::Plan plan;
  nvfp4::CheckedGemm checked;
  REQUIRE(nvfp4::check_gemm(&g, nvfp4::Caller::question, &checked) == NVFP4_SUCCESS);
  if (is_served != nullptr) *is_served = nvfp4::is_served(checked, nvfp4::kArchitectures[row]);
  REQUIRE(nvfp4::make_plan_on(checked, row, &plan) == NVFP4_SUCCESS);
  return plan;
}

}  // namespace

TEST_CASE("On 9.0 many 16-bit tokens go by wgmma and with batch_invariant all do") {
  CHECK(plan_for(halves(1, 24576, 6144), 90).variant->family == &kFamily_sm80);
  CHECK(plan_for(halves(64, 24576, 6144), 90).variant->family == &nvfp4::kFamily_sm90);
  CHECK(plan_for(halves(512, 4608, 7168), 90).variant->family == &nvfp4::kFamily_sm90);
  nvfp4_gemm_desc g = halves(1, 24576, 6144);
  g.batch_invariant = 1;
  CHECK(plan_for(g, 90).variant->family == &nvfp4::kFamily_sm90);
  g.variant = "sm80_bf16_64x8w4x128";
  CHECK(nvfp4_gemm_workspace_bytes(&g, 90, &g.workspace_bytes) == NVFP4_STATUS_INVALID_VALUE);
}

TEST_CASE("K partitions of mma.sync are a cluster on 9.0 and meet in the workspace elsewhere") {
  for (const nvfp4::Architecture& arch : nvfp4::kArchitectures) {
    for (const uint32_t parts : {1u, 2u, 3u, 4u, 8u}) {
      const std::string name = "sm80_f16_64x16w4x128/" + std::to_string(parts);
      nvfp4_gemm_desc g = halves(20, 200, 2048, NVFP4_TYPE_F16);
      g.variant = name.c_str();
      const nvfp4::Plan plan = plan_for(g, arch.capability);
      CAPTURE(arch.capability, name);
      const bool clusters = arch.capability == 90;
      CHECK(plan.grid == 2 * 4 * parts);  // tiles of 16 tokens x 64 weights
      CHECK(plan.cluster == (clusters ? parts : 1));
      CHECK(plan.waits == clusters);
      const bool adds = parts > 1 && !clusters;
      CHECK(plan.workspace_bytes == (adds ? 2 * 4 * parts * 16 * 64 * 4 : 0));
      CHECK(plan.add_ctas == (adds ? 2 * 4 : 0));
    }
  }
}

TEST_CASE("Under an older driver a plan needs no more workspace than the question says") {
  int rows = 0;
  for (uint32_t row = 0; row < nvfp4::kArchitectureCount; ++row) {
    const int32_t capability = nvfp4::kArchitectures[row].capability;
    if (nvfp4::is_first_row(row)) continue;
    ++rows;
    CAPTURE(capability);
    CHECK(nvfp4::row_for_older_driver(row) == nvfp4::kArchitectureCount);
    for (const int64_t m : {1, 16, 300}) {
      nvfp4_gemm_desc g = halves(m, 512, 16384);
      REQUIRE(nvfp4_gemm_workspace_bytes(&g, capability, &g.workspace_bytes) == NVFP4_SUCCESS);
      const nvfp4::Plan plan = plan_on(g, row);
      CHECK(plan.variant->family == &kFamily_sm80);
      CHECK(plan.workspace_bytes <= g.workspace_bytes);
      CHECK(plan.cluster == 1);
      CHECK_FALSE(plan.waits);
      if (capability / 10 != 12) CHECK((plan.split > 1) == (capability != 90));
      for (const char* forced : {"", "/1", "/2", "/8"}) {
        CAPTURE(forced);
        const std::string name = std::string("sm80_bf16_64x8w4x128") + forced;
        g.variant = name.c_str();
        REQUIRE(nvfp4_gemm_workspace_bytes(&g, capability, &g.workspace_bytes) == NVFP4_SUCCESS);
        bool is_served;
        const uint64_t needed = plan_on(g, row, &is_served).workspace_bytes;
        CHECK(is_served == (needed <= g.workspace_bytes));
      }
    }
  }
  CHECK(rows == 5);
}

TEST_CASE("A plan of mma.sync has no more shared memory than its GPU") {
  const std::map<int32_t, uint32_t> most = {{80, 163},  {86, 99},   {89, 99},   {90, 227},
                                            {100, 227}, {103, 227}, {107, 227}, {110, 227},
                                            {120, 99},  {121, 99}};
  std::map<int32_t, int> served;
  for (uint32_t row = 0; row < nvfp4::kArchitectureCount; ++row) {
    const nvfp4::Architecture& arch = nvfp4::kArchitectures[row];
    for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
      const nvfp4::Variant& variant = nvfp4::variant_at(i);
      if (variant.family != &nvfp4::kFamily_sm80 || !nvfp4::serves(variant, arch)) continue;
      ++served[arch.capability];
      for (const int64_t m : {1, 3, 8, 16, 300}) {
        for (const char* parts : {"", "/1", "/8"}) {
          const std::string cut = std::string(variant.name) + parts;
          nvfp4_gemm_desc g = halves(m, 4608, 7168, variant.a_type);
          g.variant = cut.c_str();
          const nvfp4::Plan plan = plan_on(g, row);
          CAPTURE(arch.capability, cut, m);
          CHECK(plan.shared_bytes <= most.at(arch.capability) * 1024);
          const auto largest = plan.variant->family->most_shared_bytes;
          CHECK(plan.shared_bytes <= largest(arch, *plan.variant));
          CHECK(largest(arch, *plan.variant) <= most.at(arch.capability) * 1024);
        }
      }
    }
  }
  CHECK(served.size() == most.size());
  // Eight warps' rings are larger than 99 KB.
  CHECK(support::variant_names(86) ==
        std::vector<std::string>{"sm80_f16_64x8w4x128", "sm80_f16_64x16w4x128",
                                 "sm80_bf16_64x8w4x128", "sm80_bf16_64x16w4x128"});
  CHECK(support::variant_names(80).size() == 8);
}

TEST_CASE(
    "Beside another launch of mma.sync an SM has room for its share of the CTAs and no more") {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 12800, 5120},
                                {8, 24576, 8192},
                                {16, 5376, 21504},
                                {1, 4608, 2048},
                                {1, 200000, 1024}}) {
    nvfp4_gemm_desc g = halves(m, n, k);
    g.variant = m > 8 ? "sm80_bf16_64x16w4x128/4" : "sm80_bf16_64x8w4x128";
    const nvfp4::Plan plan = plan_for(g, 90);
    for (const int32_t sms : {132, 114, 78, 8}) {
      const uint32_t bytes = kFamily_sm80.shared_bytes_beside(plan, plan.grid, sms);
      const int64_t used = sms - (plan.cluster < 3 ? 0 : plan.cluster == 3 ? 24 : 12);
      const int64_t share =
          (plan.grid + std::max<int64_t>(used, 1) - 1) / std::max<int64_t>(used, 1);
      CAPTURE(m, n, k, sms, bytes, share, plan.shared_bytes);
      CHECK(bytes >= plan.shared_bytes);
      CHECK(bytes <= plan.arch().shared_bytes);
      CHECK(228 * 1024 / (bytes + 1024) <= share);
      if (bytes > plan.shared_bytes) CHECK(228 * 1024 / (bytes + 1024) == share);
    }
  }
}

TEST_CASE("With batch_invariant N and K alone say how mma.sync cuts K and there are four warps") {
  for (const int32_t capability : {80, 86, 89, 100, 107, 110, 120, 121}) {
    for (const auto& [n, k] :
         {std::pair<int64_t, int64_t>{512, 7168}, {4096, 4096}, {24576, 6144}}) {
      nvfp4_gemm_desc g = halves(1, n, k);
      g.batch_invariant = 1;
      const uint32_t split = plan_for(g, capability).split;
      for (const int64_t m : {2, 8, 9, 16, 17, 100, 1000}) {
        g.m = m;
        const nvfp4::Plan plan = plan_for(g, capability);
        CAPTURE(capability, m, n, k, plan.variant->name);
        CHECK(plan.split == split);
        CHECK(plan.variant->threads == 128);
      }
    }
  }
}

TEST_CASE("Few weights are cut along K for the SMs of the GPU that plans are made for") {
  CHECK(plan_for(halves(1, 24576, 6144), 80).split == 1);  // 384 tiles
  for (const int32_t capability : {80, 86, 89, 100, 120}) {
    CAPTURE(capability);
    CHECK(plan_for(halves(1, 512, 16384), capability).split > 1);  // 8 tiles
  }
}

TEST_CASE("Before 9.0 NVFP4 tokens are refused by name") {
  for (const int32_t capability : {80, 86, 89}) {
    nvfp4_gemm_desc g = halves(4, 128, 256, NVFP4_TYPE_NONE);
    g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    CHECK(nvfp4_gemm_workspace_bytes(&g, capability, &g.workspace_bytes) ==
          NVFP4_STATUS_NOT_SUPPORTED);
    const std::string dotted =
        std::to_string(capability / 10) + "." + std::to_string(capability % 10);
    CHECK(std::string(nvfp4_last_error()) ==
          "a_type = NVFP4_TYPE_NONE has no kernel for compute capability " + dotted +
              ", which computes tokens in fp16 and bf16 (NVFP4_TYPE_F16, NVFP4_TYPE_BF16)");
  }
}
