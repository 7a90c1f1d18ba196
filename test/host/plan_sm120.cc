// SPDX-License-Identifier: MIT
// The planner of NVFP4 tokens on 12.x. No GPU has confirmed its clocks: what is tested is what any
// plan must keep to, and that few tokens get narrow tiles and many get wide ones.
#include <set>

#include "host/plan/family.h"
#include "host/problem/fields.h"
#include "kernel/sm120/tile.h"
#include "test/host/plan_rules.h"
#include "tools/harness/problem.h"

namespace {

using nvfp4::kFamily_sm120;

nvfp4_gemm_desc product(int64_t m, int64_t n, int64_t k, int64_t l = 1) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = k, g.l = l;
  g.a_ld = g.b_ld = k, g.d_ld = n, g.d_batch_stride = m * n;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16;
  return g;
}

nvfp4::Plan plan_for(const nvfp4_gemm_desc& g, int32_t capability = 120) {
  nvfp4::Plan plan;
  const nvfp4_status status = host_test::plan_of(g, capability, &plan);
  INFO((status == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
  REQUIRE(status == NVFP4_SUCCESS);
  return plan;
}

// "" or what is wrong.
std::string complaint_sm120(const nvfp4_gemm_desc& g, const nvfp4::Plan& plan, int64_t sms) {
  const nvfp4::Variant& v = *plan.variant;
  if (v.family != &kFamily_sm120) return "the kernel of another family";
  if (plan.cluster != 1 || plan.several) return "12.x has no clusters and a tile per CTA";
  if (plan.split > 1 && plan.split > (g.k + 255) / 256) return "a part of K is empty";
  if (plan.split > 1 && plan.grid > sms * v.ctas_per_sm) return "parts of K run one after another";
  if (plan.split > 1 && g.batch_invariant != 0) return "batch_invariant with parts of K";
  const host_test::Wide row = host_test::Wide(g.n + 3) / 4 * 4;
  const host_test::Wide bytes = plan.split > 1 ? row * g.m * g.l * plan.split * 4 : 0;
  if (plan.workspace_bytes != bytes) return "the workspace is not the parts' sums";
  if ((plan.add_ctas > 0) != (plan.split > 1)) return "nothing adds the parts, or adds none";
  return host_test::complaint(g, plan);
}

}  // namespace

TEST_CASE("12.x: each plan covers D once and fits") {
  support::Random random(120);
  std::set<std::string> taken;
  std::set<uint32_t> splits;
  for (int i = 0; i < 60000; ++i) {
    const auto size = [&](int bits) { return 1 + int64_t(random.next() >> (64 - bits)); };
    nvfp4_gemm_desc g =
        product(size(1 + int(random.below(16))), size(1 + int(random.below(17))),
                16 * size(1 + int(random.below(11))), size(1 + int(random.below(3))));
    g.batch_invariant = random.below(4) == 0;
    const int32_t capability = i % 2 ? 120 : 121;
    nvfp4::Plan plan;
    CAPTURE(g.m, g.n, g.k, g.l, capability);
    if (host_test::plan_of(g, capability, &plan) != NVFP4_SUCCESS) FAIL(nvfp4_last_error());
    const std::string wrong = complaint_sm120(g, plan, capability == 120 ? 170 : 48);
    if (!wrong.empty()) FAIL(wrong);
    taken.insert(plan.variant->name);
    splits.insert(plan.split);
  }
  CHECK(taken.size() == 3);
  CHECK(splits == std::set<uint32_t>{1, 2, 3, 4, 8});
}

TEST_CASE("12.x: few tokens take narrow tiles and many take wide ones") {
  for (const int32_t capability : {120, 121}) {
    CAPTURE(capability);
    for (const int64_t m : {1, 8}) {
      CHECK(plan_for(product(m, 7168, 7168), capability).variant->tile_tokens == 8);
    }
    for (const int64_t m : {1024, 4096}) {
      CHECK(plan_for(product(m, 5120, 17408), capability).variant->tile_tokens == 128);
    }
  }
}

TEST_CASE("12.x: few weights are cut along K and some tokens take the tile between") {
  CHECK(plan_for(product(48, 5120, 5120)).variant->tile_tokens == 32);
  CHECK(plan_for(product(1, 512, 16384)).split == 8);
  CHECK(plan_for(product(1, 65536, 16384)).split == 1);
}

// Public libraries counted 1 KB too much here and lost 13 of 16 tiles.
TEST_CASE("12.x: each tile fits an SM as often as it says") {
  int tiles = 0;
  for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
    const nvfp4::Variant& v = nvfp4::variant_at(i);
    if (v.family != &kFamily_sm120) continue;
    CAPTURE(v.name);
    ++tiles;
    CHECK(v.shared_bytes <= 99 * 1024);
    CHECK(v.ctas_per_sm * (v.shared_bytes + 1024) <= 100 * 1024);
    CHECK(v.ctas_per_sm * v.threads * 128 <= 65536);  // registers of sass.txt's entries
  }
  CHECK(tiles == 3);
}

TEST_CASE("12.x: what its kernel has not is refused by name") {
  const auto refused = [](const nvfp4_gemm_desc& g) {
    return nvfp4_gemm_supported(&g, 120) == NVFP4_SUCCESS ? "" : std::string(nvfp4_last_error());
  };
  nvfp4_gemm_desc g = product(4, 128, 256);
  CHECK(refused(g) == "");
  g.operand_format = NVFP4_OPERAND_FORMAT_MXFP4;
  CHECK(refused(g) ==
        "operand_format = NVFP4_OPERAND_FORMAT_MXFP4 with a_type = NVFP4_TYPE_NONE has no kernel "
        "for compute capability 12.0");
  g = product(4, 128, 256);
  g.variant = "sm100_128x64x256";
  CHECK(refused(g) == "variant = \"sm100_128x64x256\" has no kernel for compute capability 12.0");
  g.variant = "sm120_64x8x256/2";
  CHECK(refused(g).find("has more parts than K has stages of 256") != std::string::npos);
}
