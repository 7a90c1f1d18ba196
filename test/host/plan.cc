// SPDX-License-Identifier: MIT
// The planner: what holds for every problem, on a million random ones, and what it answers for the
// shapes with a name (test/golden/plans.csv).
#include "host/plan.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "host/check.h"
#include "host/csv.h"
#include "host/plan_rules.h"
#include "support/catch.h"
#include "support/problem.h"

namespace {

using Desc = nvfp4_gemm_desc;
using host_test::complaint;
using host_test::same;
using host_test::tiles_of;
using host_test::Wide;

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

Desc random_problem(support::Random& random, const char* const (&names)[4]) {
  const int64_t k = random_size(random) / 64 * 64;
  Desc g = dense(random_size(random), random_size(random), k, random_size(random));
  g.variant = names[random.below(4)];
  return g;
}

struct Tally {
  size_t planned = 0, limited = 0, by_variant[nvfp4::kVariantCount] = {};
};

// "" or what is wrong with the answers to one problem.
std::string complaint(const Desc& g, Tally* tally) {
  bool empty = false;
  const nvfp4_status checked = nvfp4::check_gemm(&g, nvfp4::Caller::run, &empty);
  if (empty) return "";
  if (checked != NVFP4_SUCCESS) {
    // Dense problems of legal sizes: there are only two ways to be refused.
    ++tally->limited;
    const bool too_many = tiles_of(g, nvfp4::variant_of_fewest_tiles(g)) > INT32_MAX;
    const bool too_far = strstr(nvfp4_last_error(), "beyond the address space") != nullptr;
    const bool rightly = checked == NVFP4_STATUS_LIMIT && (too_many || too_far);
    return rightly ? "" : nvfp4_last_error();
  }
  nvfp4::Plan plan, again, elsewhere;
  if (nvfp4::make_plan(g, 100, &plan) != NVFP4_SUCCESS) return nvfp4_last_error();
  if (nvfp4::make_plan(g, 100, &again) != NVFP4_SUCCESS) return nvfp4_last_error();
  if (nvfp4::make_plan(g, 103, &elsewhere) != NVFP4_SUCCESS) return nvfp4_last_error();
  if (!same(plan, again)) return "the second answer differs";
  if (!same(plan, elsewhere)) return "compute capability 10.3 gets another plan";
  ++tally->planned;
  ++tally->by_variant[plan.variant_index];
  return complaint(g, plan);
}

}  // namespace

TEST_CASE("A million random problems: each legal one has a plan that covers D once and fits") {
  const char* const names[4] = {nullptr, nvfp4::variant_at(0).name, nvfp4::variant_at(1).name,
                                nvfp4::variant_at(2).name};
  support::Random random(2026);
  Tally tally;
  for (int i = 0; i < 1000000; ++i) {
    const Desc g = random_problem(random, names);
    const std::string wrong = complaint(g, &tally);
    if (wrong.empty()) continue;
    CAPTURE(g.m, g.n, g.k, g.l, (g.variant ? g.variant : "chosen"));
    FAIL(wrong);
  }
  std::printf("plans: %zu made, %zu beyond a limit\n", tally.planned, tally.limited);
  CHECK(tally.planned > 400000);
  CHECK(tally.limited > 400000);
  for (const size_t count : tally.by_variant) CHECK(count > 50000);
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
  REQUIRE(nvfp4::make_plan(g, 100, &plan) == NVFP4_SUCCESS);
  CHECK(std::string(plan.variant->name) == "sm100_128x256x256");
  CHECK(plan.grid == 1u << 30);
}

TEST_CASE("The named shapes have the plans of test/golden/plans.csv") {
  for (const auto& row : host_test::golden("plans.csv", 16)) {
    const auto number = [&](size_t column) { return std::stoll(row[column]); };
    CAPTURE(row[0]);
    const Desc g = dense(number(1), number(2), number(3), number(4));
    nvfp4::Plan plan;
    REQUIRE(nvfp4::make_plan(g, 100, &plan) == NVFP4_SUCCESS);
    CHECK(plan.variant->name == row[5]);
    CHECK(plan.tiles_m == number(6));
    CHECK(plan.tiles_n == number(7));
    CHECK(plan.grid == number(8));
  }
}

TEST_CASE("Of variants that take equally long the widest is chosen") {
  // 240, 160 and 80 tiles: 2, 2 and 1 waves of 192, 256 and 384 rows, so 384, 512 and 384.
  nvfp4::Plan plan;
  REQUIRE(nvfp4::make_plan(dense(192, 128 * 80, 256, 1), 100, &plan) == NVFP4_SUCCESS);
  CHECK(std::string(plan.variant->name) == "sm100_128x256x256");
}
