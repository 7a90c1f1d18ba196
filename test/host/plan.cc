// SPDX-License-Identifier: MIT
// The planner: what holds for every problem, on a million random ones, and what it answers for the
// shapes with a name (test/golden/plans.csv).
#include "host/plan/family.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "host/plan/checked.h"
#include "test/host/csv.h"
#include "test/host/plan_rules.h"
#include "tools/harness/problem.h"

namespace {

using Desc = nvfp4_gemm_desc;
using host_test::complaint;
using host_test::plan_of;
using host_test::same;
using host_test::tiles_of;
using host_test::Wide;

constexpr uint32_t kVariantsOf10 = 0  // the first rows of variants.def
#define SM100_TILE(...) +1
#include "kernel/sm100/tiles.def"
    ;

Desc dense(int64_t m, int64_t n, int64_t k, int64_t l) {
  Desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = k, g.l = l;
  g.a_ld = g.b_ld = k;
  g.d_ld = n;
  g.a = reinterpret_cast<void*>(uint64_t{1} << 60);
  g.a_scales = reinterpret_cast<void*>(uint64_t{3} << 60);
  g.b = reinterpret_cast<void*>(uint64_t{5} << 60);
  g.b_scales = reinterpret_cast<void*>(uint64_t{7} << 60);
  g.d = reinterpret_cast<void*>(uint64_t{9} << 60);
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16;
  // A and B repeat: strides of batches are not the planner's business.
  g.d_batch_stride = m * n;
  return g;
}

// Any magnitude is as likely as any other, and the values beside powers of two as likely as others.
int64_t random_size(support::Random& random) {
  const uint64_t span = uint64_t{1} << random.below(32);
  const int64_t near = int64_t(span) + int64_t(random.below(5)) - 2;
  const int64_t value = random.below(2) ? near : int64_t(random.next() % span) + 1;
  return value < 0 ? 0 : value > INT32_MAX ? INT32_MAX : value;
}

Desc random_problem(support::Random& random, const std::vector<const char*>& names) {
  const int64_t k = random_size(random) / 64 * 64;
  Desc g = dense(random_size(random), random_size(random), k, random_size(random));
  g.variant = names[random.below(names.size())];
  return g;
}

struct Tally {
  size_t planned = 0, limited = 0, by_variant[nvfp4::kVariantCount] = {};
};

// "" or what is wrong with the answers to one problem.
std::string complaint(const Desc& g, Tally* tally) {
  nvfp4::CheckedGemm problem{};
  const nvfp4_status checked = nvfp4::check_gemm(&g, nvfp4::Caller::run, &problem);
  if (problem.empty) return "";
  if (checked != NVFP4_SUCCESS) {
    // Dense problems of legal sizes: there are only two ways to be refused.
    ++tally->limited;
    const nvfp4::Variant& widest = nvfp4::variant_of_fewest_tiles(problem.forced);
    const bool too_many = tiles_of(g, widest) * widest.tile_ctas > INT32_MAX;
    const Wide d_end = Wide(reinterpret_cast<uint64_t>(g.d)) + Wide(g.l) * g.m * g.n * 2;
    const bool too_far = d_end > Wide(1) << 64;
    const bool rightly = checked == NVFP4_STATUS_LIMIT && (too_many || too_far);
    return rightly ? "" : nvfp4_last_error();
  }
  nvfp4::Plan plan, again, elsewhere;
  const nvfp4_status planned = plan_of(g, 100, &plan);
  // The widest of all is a tile of 9.0, which a CTA has alone; on 10.x two have 256 x 256.
  const nvfp4::Variant& widest = nvfp4::variant_at(kVariantsOf10 - 1);
  if (planned == NVFP4_STATUS_LIMIT && tiles_of(g, widest) * widest.tile_ctas > INT32_MAX) {
    ++tally->limited;
    return "";
  }
  if (planned != NVFP4_SUCCESS) return nvfp4_last_error();
  if (plan_of(g, 100, &again) != NVFP4_SUCCESS) return nvfp4_last_error();
  if (plan_of(g, 103, &elsewhere) != NVFP4_SUCCESS) return nvfp4_last_error();
  if (!same(plan, again)) return "the second answer differs";
  if (!same(plan, elsewhere)) return "compute capability 10.3 gets another plan";
  ++tally->planned;
  ++tally->by_variant[nvfp4::index_of(*plan.variant)];
  if (plan.workspace_bytes != 0) return "10.x wants a workspace";
  const uint32_t ctas = plan.split * plan.variant->tile_ctas;
  if (plan.cluster != ctas) return "CTAs that share a tile are no cluster";
  if (ctas > 4) return "a pair shares K";
  if (plan.split > plan.variant->max_split) return "no kernel has this split";
  if (plan.split != 1 && plan.split != 2 && plan.split != 4) return "no kernel has this split";
  if (plan.split > 1 && plan.grid > (plan.split == 4 ? 144 : 148)) return "a cluster has to wait";
  if (plan.split > 1 && plan.split * 4 > (g.k + 255) / 256) return "a part of K is too short";
  return complaint(g, plan);
}

// Refused since the tokens in fp16, rows and K rounded up, are too many.
bool rightly_limited(const Desc& g, nvfp4_status status) {
  // To tiles of 256 tokens or of 192.
  const Wide rows = std::max((Wide(g.m) + 255) / 256 * 256, (Wide(g.m) + 191) / 192 * 192),
             k = (Wide(g.k) + 255) / 256 * 256;
  // A thread writes 64 bytes of them; 128 to a CTA, grid.x at most 2^31 - 1.
  return status == NVFP4_STATUS_LIMIT && rows * k * 2 * Wide(g.l) > Wide(INT32_MAX) * 128 * 64;
}

// The same for compute capability 9.0, of a problem that was legal.
std::string complaint_sm90(Desc g, const char* variant, Tally* tally) {
  nvfp4::Plan plan;
  g.variant = variant;
  nvfp4::Asked asked;
  nvfp4::find_variant(variant, &asked);
  const nvfp4::Variant* const forced = asked.variant;
  if (forced != nullptr && forced->a_type != NVFP4_TYPE_NONE) {
    g.a_type = forced->a_type, g.a_scales = nullptr;
  }
  nvfp4::CheckedGemm checked;
  if (nvfp4::check_gemm(&g, nvfp4::Caller::run, &checked) != NVFP4_SUCCESS) return "";
  const nvfp4_status status = plan_of(g, 90, &plan);
  if (status != NVFP4_SUCCESS) return rightly_limited(g, status) ? "" : nvfp4_last_error();
  nvfp4::Choice choice;
  nvfp4::kFamily_sm90.choose_split(g, plan.arch(), *plan.variant, &choice);
  if (plan.split != choice.split) return "the split is not the best one of the variant";
  if (plan.cluster != plan.split) return "CTAs that share a tile are no cluster";
  const bool known = plan.split <= 4 || plan.split == 8;
  if (!known) return "no kernel has this split";
  const bool no_such_code = plan.split == 3 || plan.split > plan.variant->max_split;
  if (g.a_type != NVFP4_TYPE_NONE && no_such_code) return "this kernel has not this split";
  if (plan.split > 1 && plan.split > (g.k + 255) / 256) return "a part of K is empty";
  const nvfp4::Variant& v = *plan.variant;
  const Wide matrices = nvfp4::tokens_repeat(g) ? 1 : g.l;
  const Wide tokens = Wide(g.m) * ((g.k + 255) / 256 * 256) * 2 * matrices;
  const Wide bytes = v.workspace_tokens && g.a_packing == NVFP4_PACKING_NONE ? tokens : 0;
  // Even shares: 132 CTAs and the tiles that fill no whole wave have so many parts at most.
  const Wide parts = plan.even ? 131 + tiles_of(g, v) % 132 : 0;
  const Wide words = plan.even ? tiles_of(g, v) % 132 : 0;  // one for each tile that is shared
  const Wide all = bytes + parts * v.tile_tokens * v.tile_weights * 4 + words * 8;
  if (Wide(plan.workspace_bytes) != all) return "the workspace is not tokens x K in fp16 and parts";
  ++tally->by_variant[nvfp4::index_of(*plan.variant)];
  return complaint(g, plan);
}

}  // namespace

TEST_CASE("Random problems: each legal one has a plan that covers D once and fits") {
  std::vector<const char*> names{nullptr};
  for (uint32_t i = 0; i < kVariantsOf10; ++i) names.push_back(nvfp4::variant_at(i).name);
  support::Random random(2026);
  Tally tally;
  const int count = std::getenv("NVFP4_LONG") ? 1000000 : 250000;
  for (int i = 0; i < count; ++i) {
    const Desc g = random_problem(random, names);
    const std::string wrong = complaint(g, &tally);
    if (wrong.empty()) continue;
    CAPTURE(g.m, g.n, g.k, g.l, (g.variant ? g.variant : "chosen"));
    FAIL(wrong);
  }
  std::printf("plans: %zu made, %zu beyond a limit\n", tally.planned, tally.limited);
  CHECK(tally.planned > size_t(count) * 2 / 5);
  CHECK(tally.limited > size_t(count) * 2 / 5);
  for (uint32_t i = 0; i < kVariantsOf10; ++i) CHECK(tally.by_variant[i] > size_t(count) / 20);
}

TEST_CASE("Compute capability 9.0: plans fit and each variant has its best split") {
  support::Random random(90);
  Tally tally;
  for (int i = 0; i < 200000; ++i) {
    const Desc g = random_problem(random, {nullptr});
    nvfp4::CheckedGemm checked;
    if (nvfp4::check_gemm(&g, nvfp4::Caller::run, &checked) != NVFP4_SUCCESS) continue;
    if (checked.empty) continue;
    const uint32_t index = kVariantsOf10 + random.below(nvfp4::kVariantCount + 1 - kVariantsOf10);
    const bool names_one = index < nvfp4::kVariantCount;
    const char* variant = names_one ? nvfp4::variant_at(index).name : nullptr;
    if (names_one && nvfp4::variant_at(index).family != &nvfp4::kFamily_sm90) continue;
    const std::string wrong = complaint_sm90(g, variant, &tally);
    if (wrong.empty()) continue;
    CAPTURE(g.m, g.n, g.k, g.l, (variant ? variant : "chosen"));
    FAIL(wrong);
  }
  for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
    CAPTURE(nvfp4::variant_at(i).name);
    const bool is_of_9 = nvfp4::variant_at(i).family == &nvfp4::kFamily_sm90;
    CHECK((tally.by_variant[i] > 1000) == is_of_9);
  }
}

TEST_CASE("a_type decides which variants are asked and which a name may force") {
  Desc g = dense(100, 1024, 4096, 1);
  nvfp4::Plan plan;
  for (const int32_t type : {NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
    g.a_type = type;
    g.variant = nullptr;
    REQUIRE(plan_of(g, 90, &plan) == NVFP4_SUCCESS);
    CHECK(plan.variant->a_type == type);
    if (type != NVFP4_TYPE_NONE) CHECK(plan.workspace_bytes == 0);
    g.variant = type == NVFP4_TYPE_F16 ? "sm90_bf16_64x16x256" : "sm90_f16_64x16x256";
    CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_INVALID_VALUE);
  }
  CHECK(std::string(nvfp4_last_error()) ==
        "variant = \"sm90_f16_64x16x256\" takes a_type = NVFP4_TYPE_F16; it is NVFP4_TYPE_BF16");
  g.variant = nullptr;
  REQUIRE(plan_of(g, 103, &plan) == NVFP4_SUCCESS);
  CHECK(plan.variant->family == &nvfp4::kFamily_sm80);
  // More than 2^31 tiles of 192 tokens and 128 weights; the checks counted those of 256.
  g = dense(INT32_MAX, 64 * 128, 64, 3);
  g.a_type = NVFP4_TYPE_F16;
  CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_LIMIT);
}

// What an H200 took least for (docs/notebook.md): 36 clusters of three CTAs. And where 80 tiles
// would leave SMs idle, even shares.
TEST_CASE("On 9.0 K is cut where the clusters run one after the other too") {
  struct Row {
    int64_t m, n, k;
    int32_t a_type;
    uint32_t split, grid;
  };
  const Row rows[] = {{256, 5120, 10240, NVFP4_TYPE_BF16, 1, 132},
                      {16, 4608, 3584, NVFP4_TYPE_NONE, 3, 108},
                      {120, 2304, 16384, NVFP4_TYPE_NONE, 3, 108}};
  for (const Row& row : rows) {
    CAPTURE(row.m, row.n, row.k);
    Desc g = dense(row.m, row.n, row.k, 1);
    g.a_type = row.a_type;
    if (g.a_type != NVFP4_TYPE_NONE) g.a_scales = nullptr;
    nvfp4::Plan plan;
    REQUIRE(plan_of(g, 90, &plan) == NVFP4_SUCCESS);
    CHECK(plan.split == row.split);
    CHECK(plan.grid == row.grid);
  }
}

TEST_CASE("Compute capability 9.0: tokens in fp16 beyond one grid are refused") {
  Desc g = dense(int64_t{1} << 22, 128, int64_t{1} << 21, 1);  // 2^44 bytes of fp16: 2^31 CTAs
  nvfp4::Plan plan;
  CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_LIMIT);
  CHECK(std::string(nvfp4_last_error()) ==
        "the pre-pass that makes fp16 of the tokens needs 2147483648 CTAs; at most 2147483647");
  g.m -= 256;
  CHECK(plan_of(g, 90, &plan) == NVFP4_SUCCESS);
  g = dense(1, 64, 512, INT32_MAX);  // a CTA for each k-block of each batch, with one row
  g.variant = "sm90_64x32x256", g.a_batch_stride = 512;
  CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_LIMIT);
}

TEST_CASE("With batch_invariant N and K alone decide the split on every compute capability") {
  support::Random random(52);
  std::set<uint32_t> splits;
  for (int i = 0; i < 20000; ++i) {
    Desc g = random_problem(random, {nullptr});
    g.batch_invariant = 1;
    g.m = 1 + g.m % 5000, g.n = 1 + g.n % 20000, g.k = 64 + g.k % 30000 / 64 * 64;
    g.l = 1 + g.l % 4;
    Desc alone = g;
    alone.m = alone.l = 1;
    nvfp4::Plan plan, of_one;
    const int32_t capability = i % 2 ? 90 : 100;
    CAPTURE(g.m, g.n, g.k, g.l, capability);
    REQUIRE(plan_of(g, capability, &plan) == NVFP4_SUCCESS);
    REQUIRE(plan_of(alone, capability, &of_one) == NVFP4_SUCCESS);
    const uint32_t parts = plan.own_parts > 0 ? plan.own_parts : plan.split;
    const bool in_order = plan.own_parts > 0 || plan.variant->batch_invariant;
    if (parts != of_one.split || !in_order) FAIL("another order");
    splits.insert(parts);
  }
  CHECK(splits.size() > 3);
}

TEST_CASE(
    "With batch_invariant a product of too many CTAs is refused and so are tiles of other orders") {
  // 2^30 tiles of 64 x 64, two CTAs each; tiles of 128 x 256 are an eighth as many.
  Desc g = dense(int64_t{1} << 30, 64 * 64, 4096, 1);
  g.variant = "sm90_64x64x256";
  nvfp4::Plan plan;
  REQUIRE(plan_of(g, 90, &plan) == NVFP4_SUCCESS);
  g.batch_invariant = 1;
  CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_LIMIT);
  CHECK(std::string(nvfp4_last_error()) ==
        "with batch_invariant = 1 the product needs more than 2147483647 CTAs");
  g.variant = "sm90_128x64x256";
  CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()) ==
        "variant = \"sm90_128x64x256\" adds along K in another order than the batch-invariant "
        "tiles of compute capability 9.0: batch_invariant = 1 excludes it");
}

TEST_CASE("A variant of another compute capability is refused") {
  Desc g = dense(128, 256, 512, 1);
  nvfp4::Plan plan;
  g.variant = "sm100_128x64x256";
  CHECK(plan_of(g, 90, &plan) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()) ==
        "variant = \"sm100_128x64x256\" has no kernel for compute capability 9.0");
  g.variant = "sm90_128x64x256";
  CHECK(plan_of(g, 100, &plan) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(plan_of(g, 90, &plan) == NVFP4_SUCCESS);
}

TEST_CASE("Compute capability 9.0: a workspace has to be there and large enough and apart from D") {
  Desc g = dense(128, 256, 512, 1);
  g.variant = "sm90_128x64x256";
  uint64_t bytes = 0;
  REQUIRE(nvfp4_gemm_workspace_bytes(&g, 90, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 128 * 512 * 2);
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_NULL_POINTER);
  CHECK(std::string(nvfp4_last_error()) == "workspace is NULL and is required here");
  g.workspace = reinterpret_cast<void*>(uint64_t{11} << 60);
  g.workspace_bytes = bytes - 1;
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()) ==
        "workspace_bytes = 131071 is less than the 131072 that nvfp4_gemm_workspace_bytes() says");
  g.workspace_bytes = bytes;
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_SUCCESS);
  const void* const others[] = {g.d, g.a, g.a_scales, g.b, g.b_scales};
  for (const void* other : others) {
    g.workspace = const_cast<void*>(other);
    CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_OVERLAP);
  }
  // A tile of 8 tokens needs nothing.
  g.variant = "sm90_64x8x256";
  g.workspace = nullptr, g.workspace_bytes = 0;
  REQUIRE(nvfp4_gemm_workspace_bytes(&g, 90, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 0);
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_SUCCESS);
}

TEST_CASE("The number of tiles is counted without overflow at the top of every size") {
  const Desc g = dense(INT32_MAX, INT32_MAX, 64, INT32_MAX);
  for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
    const nvfp4::Variant& v = nvfp4::variant_at(i);
    int64_t matrix, all;
    CAPTURE(v.name);
    CHECK_FALSE(nvfp4::count_tiles(g, v, &matrix, &all));
    CHECK(Wide(matrix) * Wide(g.l) == tiles_of(g, v));
  }
  // 2^31 - 1 tiles are the last that are legal, 2^31 the first that are not.
  Desc edge = dense(1, 128, 64, INT32_MAX);
  int64_t matrix, all;
  CHECK(nvfp4::count_tiles(edge, nvfp4::variant_at(0), &matrix, &all));
  CHECK(all == INT32_MAX);
  edge.l = (INT32_MAX / 2) + 1, edge.n = 129;
  CHECK_FALSE(nvfp4::count_tiles(edge, nvfp4::variant_at(0), &matrix, &all));
}

TEST_CASE("A problem that only the widest tiles can cover gets the widest") {
  // 2^30 tiles of 256 tokens, 2^31 of 128.
  const Desc g = dense(256 << 10, 128 << 10, 64, 1024);
  nvfp4::Plan plan;
  REQUIRE(plan_of(g, 100, &plan) == NVFP4_SUCCESS);
  // By one CTA each, or by two for twice as many weights.
  CHECK(plan.variant->tile_tokens == 256);
  CHECK(plan.grid == 1u << 30);
}

TEST_CASE("The named shapes have the plans of test/golden/plans.csv") {
  for (const auto& row : host_test::golden("plans.csv", 16)) {
    const auto number = [&](size_t column) { return std::stoll(row[column]); };
    CAPTURE(row[0]);
    const Desc g = dense(number(1), number(2), number(3), number(4));
    nvfp4::Plan plan;
    REQUIRE(plan_of(g, 100, &plan) == NVFP4_SUCCESS);
    CHECK(plan.variant->name == row[5]);
    CHECK(plan.tiles_m == number(6));
    CHECK(plan.tiles_n == number(7));
    CHECK(plan.grid == number(8));
    CHECK(plan.split == number(9));
  }
}

TEST_CASE("nvfp4_variant_name lists each variant that a capability can run and no other",
          "[plan]") {
  for (uint32_t row = 0; row < nvfp4::kArchitectureCount; ++row) {
    if (!nvfp4::is_first_row(row)) continue;
    const nvfp4::Architecture& arch = nvfp4::kArchitectures[row];
    int32_t index = 0;
    for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
      const nvfp4::Variant& v = nvfp4::variant_at(i);
      if (!serves(v, arch)) continue;
      CHECK(nvfp4_variant_name(arch.capability, index++) == v.name);
      Desc g = dense(1, 64, 64, 1);
      g.variant = v.name, g.a_type = v.a_type;
      if (g.a_type != NVFP4_TYPE_NONE) g.a_scales = nullptr;
      INFO(v.name);
      CHECK(nvfp4_gemm_workspace_bytes(&g, arch.capability, &g.workspace_bytes) == NVFP4_SUCCESS);
    }
    REQUIRE(index > 0);
    CHECK(nvfp4_variant_name(arch.capability, index) == nullptr);
    CHECK(nvfp4_variant_name(arch.capability, -1) == nullptr);
  }
  CHECK(nvfp4_variant_name(70, 0) == nullptr);
}
