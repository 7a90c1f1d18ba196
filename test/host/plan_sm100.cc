// SPDX-License-Identifier: MIT
// The planner of 10.x beside the timing model, whose closed form it is: what it chooses, by what
// the simulation said of every variant, whole and cut (bench/results).
#include <cstdio>
#include <map>
#include <tuple>

#include "host/family/token_policy.h"
#include "host/plan/family.h"
#include "host/plan/proof.h"
#include "test/host/csv.h"
#include "test/host/plan_rules.h"

namespace {

using Size = std::tuple<int64_t, int64_t, int64_t>;    // m, n, k
using Way = std::tuple<uint32_t, uint32_t, uint32_t>;  // tile, weights x tokens; parts of K

nvfp4_gemm_desc dense(const Size& size) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  std::tie(g.m, g.n, g.k) = size;
  g.l = 1;
  g.a_ld = g.b_ld = g.k;
  g.d_ld = g.n;
  return g;
}

// Rows after the comments; the first names the columns.
std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);)
    if (line[0] != '#') rows.push_back(host_test::split(line));
  INFO(path);
  REQUIRE(rows.size() > 30);
  return rows;
}

Way way_of(const nvfp4::Variant& v, uint32_t partitions) {
  return {v.tile_weights, v.tile_tokens, partitions};
}

// Microseconds.
std::map<Size, std::map<Way, double>> simulated() {
  std::map<Size, std::map<Way, double>> all;
  const std::map<std::string, Way> ways{
      {"sm100_128x64", {128, 64, 1}},     {"sm100_128x128", {128, 128, 1}},
      {"sm100_256x128", {256, 128, 1}},   {"sm100_256x256", {256, 256, 1}},
      {"sm100_128x64/2", {128, 64, 2}},   {"sm100_128x64/4", {128, 64, 4}},
      {"sm100_128x128/2", {128, 128, 2}}, {"sm100_128x128/4", {128, 128, 4}}};
  const auto rows = rows_of("bench/results/model-b200-2026-11-29.csv");
  for (size_t i = 1; i < rows.size(); ++i) {
    const Size size{std::stoll(rows[i][0]), std::stoll(rows[i][1]), std::stoll(rows[i][2])};
    for (size_t column = 3; column < rows[i].size(); ++column) {
      const auto way = ways.find(rows[0][column]);
      const std::string& us = rows[i][column];  // "-": more CTAs than run at once
      if (way != ways.end() && us != "-") all[size][way->second] = std::stod(us);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("On 10.x what the planner chooses loses little by the simulation's own figures") {
  std::vector<double> lost;
  for (const auto& [size, times] : simulated()) {
    nvfp4::Plan plan;
    REQUIRE(host_test::plan_of(dense(size), 100, &plan) == NVFP4_SUCCESS);
    const auto [m, n, k] = size;
    CAPTURE(m, n, k, plan.variant->name, plan.split);
    const auto chosen = times.find(way_of(*plan.variant, plan.split));
    REQUIRE(chosen != times.end());
    double best = chosen->second;
    for (const auto& [way, us] : times) best = std::min(best, us);
    lost.push_back(chosen->second / best - 1);
  }
  REQUIRE(lost.size() == 60);
  std::sort(lost.begin(), lost.end());
  std::printf("planner of 10.x: lost %.1f %% median, %.1f %% at 95 of 100, %.1f %% at most\n",
              100 * lost[30], 100 * lost[57], 100 * lost[59]);
  CHECK(lost[30] < 0.03);
  CHECK(lost[57] < 0.08);
}

TEST_CASE("On 10.x the closed form is near the simulation") {
  double squares = 0;
  int count = 0;
  for (const auto& [size, times] : simulated()) {
    nvfp4_gemm_desc g = dense(size);
    for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
      const nvfp4::Variant& v = nvfp4::variant_at(i);
      if (v.family != &nvfp4::kFamily_sm100) continue;
      nvfp4::Choice choice;
      const nvfp4::Architecture& b200 = nvfp4::kArchitectures[0];
      REQUIRE(nvfp4::kFamily_sm100.choose_split(g, b200, v, &choice));
      const auto us = times.find(way_of(v, choice.split));
      REQUIRE(us != times.end());
      const double ratio = static_cast<double>(choice.cost) / 1000 / us->second;
      CAPTURE(g.m, g.n, g.k, v.name, choice.split, choice.cost, us->second);
      CHECK(ratio > 0.85);
      CHECK(ratio < 1.25);
      squares += (ratio - 1) * (ratio - 1);
      ++count;
    }
  }
  CHECK(squares / count < 0.055 * 0.055);
}

TEST_CASE("On 10.x every pair of CTAs in a cluster has a tile of 256 weights") {
  nvfp4_gemm_desc g = dense({300, 4000, 4096});
  nvfp4::Plan plan;
  g.variant = "sm100_256x256x256";
  REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.tiles_m == 2);
  CHECK(plan.tiles_n == 16);
  CHECK(plan.cluster == 2);
  CHECK(plan.split == 1);
  CHECK(plan.grid == 64);
  CHECK(plan.workspace_bytes == 0);
}

TEST_CASE("On 10.x a device of an odd number of SMs gets whole pairs") {
  nvfp4_gemm_desc g = dense({300, 4000, 4096});
  nvfp4::Plan plan;
  g.variant = "sm100_256x256x256";
  REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.several);
  CHECK(nvfp4::count_ctas(plan, 148) == 64);
  CHECK(nvfp4::count_ctas(plan, 64) == 64);
  CHECK(nvfp4::count_ctas(plan, 63) == 62);
  CHECK(nvfp4::count_ctas(plan, 1) == 2);
}

// The limit of a dimension's stride in a tensor map.
TEST_CASE("On 10.x scales whose batches are 2^40 bytes apart are for other tiles") {
  nvfp4_gemm_desc g = dense({4096, 4096, 4096});
  g.l = 2;
  g.a_batch_stride = g.b_batch_stride = g.d_batch_stride = 4096 * 4096;
  for (int64_t* stride : {&g.a_scales_batch_stride_bytes, &g.b_scales_batch_stride_bytes}) {
    g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = int64_t{1} << 24;
    nvfp4::Plan plan;
    g.variant = nullptr;
    REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
    CHECK(plan.variant->tile_ctas == 2);
    *stride = (int64_t{1} << 40) - 16;
    REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
    CHECK(plan.variant->tile_ctas == 2);
    *stride = int64_t{1} << 40;
    REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
    CHECK(plan.variant->tile_ctas == 1);
    g.variant = "sm100_256x256x256";
    CHECK(host_test::plan_of(g, 100, &plan) == NVFP4_STATUS_INVALID_VALUE);
    CHECK(std::string(nvfp4_last_error()) ==
          "variant = \"sm100_256x256x256\" takes scales whose batches are less than 2^40 bytes "
          "apart");
  }
}

TEST_CASE("On 10.x a cut depends on the sizes alone and batch_invariant has none") {
  nvfp4_gemm_desc g = dense({1, 4096, 7168});
  nvfp4::Plan plan;
  REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.split == 4);
  CHECK(plan.cluster == 4);
  CHECK(plan.grid == 128);
  CHECK(nvfp4::count_ctas(plan, 20) == 128);
  g.batch_invariant = 1;
  REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.split == 1);
  CHECK(plan.cluster == 1);
  // 37 tiles in 4 parts are more CTAs than clusters of 4 are placed at once.
  REQUIRE(host_test::plan_of(dense({1, 37 * 128, 7168}), 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.split == 2);
  // And what a single round of the machine does not hold is not cut at all: a cluster would wait.
  // By its clocks this one would be: three rounds of half of K for two of all of it.
  REQUIRE(host_test::plan_of(dense({1, 149 * 128, 16384}), 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.split == 1);
  // A part has at least four stages.
  REQUIRE(host_test::plan_of(dense({1, 128, 7 * 256}), 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.split == 1);
  REQUIRE(host_test::plan_of(dense({1, 128, 15 * 256 + 16}), 100, &plan) == NVFP4_SUCCESS);
  CHECK(plan.split == 4);
}

TEST_CASE("On 10.x the epilogue of D decides between tiles of unsplit K alone") {
  const auto tile = [](const Size& size, int32_t activation) {
    nvfp4_gemm_desc g = dense(size);
    g.activation = activation;
    nvfp4::Plan plan;
    REQUIRE(host_test::plan_of(g, 100, &plan) == NVFP4_SUCCESS);
    return way_of(*plan.variant, plan.split);
  };
  // The general epilogue takes so long that it has to run beside the next tile's products, which
  // needs a second accumulator.
  const Size large{4096, 4096, 4096};
  CHECK(tile(large, NVFP4_ACTIVATION_NONE) == Way{256, 256, 1});
  CHECK(tile(large, NVFP4_ACTIVATION_SILU) == Way{256, 128, 1});
  // The bits of partial sums do not depend on it.
  for (const Size& size : {Size{1, 4096, 7168}, {128, 4096, 7168}, {64, 4096, 4096}}) {
    CHECK(tile(size, NVFP4_ACTIVATION_SILU) == tile(size, NVFP4_ACTIVATION_NONE));
  }
}

TEST_CASE("desc.variant names in how many parts K is cut on both families") {
  nvfp4_gemm_desc g = dense({1, 149 * 128, 4 * 256});
  nvfp4::Plan plan;
  const auto status = [&](const char* variant, int32_t capability) {
    g.variant = variant;
    return host_test::plan_of(g, capability, &plan);
  };
  // What the planner would not take: more clusters than run at once, parts of one stage.
  REQUIRE(status("sm100_128x64x256/4", 100) == NVFP4_SUCCESS);
  CHECK(plan.split == 4);
  CHECK(plan.cluster == 4);
  CHECK(plan.grid == 4 * 149);
  REQUIRE(status("sm90_64x16x256/3", 90) == NVFP4_SUCCESS);
  CHECK(plan.split == 3);
  CHECK(plan.cluster == 3);
  CHECK(plan.whole == 0);
  CHECK(plan.grid == 3 * 298);
  REQUIRE(status("sm90_128x128x256/1", 90) == NVFP4_SUCCESS);
  CHECK(plan.several);
  CHECK(plan.grid == 149);
  CHECK(status("sm90_64x16x256/8", 90) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(nvfp4_last_error() ==
        std::string("variant = \"sm90_64x16x256/8\" has more parts than K has stages of 256"));
  g.k = 0;
  CHECK(status("sm90_64x16x256/1", 90) == NVFP4_SUCCESS);
  CHECK(status("sm90_64x16x256/2", 90) == NVFP4_STATUS_INVALID_VALUE);
}

TEST_CASE("A forced cut of K keeps batch invariance and the largest grid") {
  nvfp4_gemm_desc g = dense({1, 4096, 7168});
  g.batch_invariant = 1;
  nvfp4::Plan plan;
  const auto status = [&](const char* variant, int32_t capability) {
    g.variant = variant;
    return host_test::plan_of(g, capability, &plan);
  };
  CHECK(status("sm100_128x64x256/1", 100) == NVFP4_SUCCESS);
  CHECK(status("sm100_128x64x256/2", 100) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(nvfp4_last_error() ==
        std::string("variant = \"sm100_128x64x256/2\" has another number of K partitions than "
                    "batch_invariant = 1 requires"));
  REQUIRE(status("sm90_64x16x256", 90) == NVFP4_SUCCESS);
  for (const uint32_t partitions : {1, 2, 4, 8}) {
    const std::string name = "sm90_64x16x256/" + std::to_string(partitions);
    const uint32_t its = plan.split;
    CHECK((status(name.c_str(), 90) == NVFP4_SUCCESS) == (partitions == its));
    REQUIRE(status("sm90_64x16x256", 90) == NVFP4_SUCCESS);
  }
  g = dense({int64_t{1} << 30, 8192, 512});  // 2^30 tiles
  CHECK(status("sm100_128x64x256/1", 100) == NVFP4_SUCCESS);
  CHECK(status("sm100_128x64x256/2", 100) == NVFP4_STATUS_LIMIT);
  CHECK(nvfp4_last_error() == std::string("with variant = \"sm100_128x64x256/2\" the product "
                                          "needs more than 2147483647 CTAs"));
}

TEST_CASE("The planner of 10.x takes by itself what hardware or public kernels speak for") {
  using nvfp4::Proof;
  constexpr const nvfp4::Family *k80 = &nvfp4::kFamily_sm80, *k90 = &nvfp4::kFamily_sm90;
  constexpr const nvfp4::Family* k100 = &nvfp4::kFamily_sm100;
  constexpr nvfp4::ProofRow kRows[] = {{k90, k90, 1, 4, Proof::hardware},
                                       {k100, k100, 1, 2, Proof::published},
                                       {k100, k100, 1, 4, Proof::emulator},
                                       {k80, k90, 1, 2, Proof::hardware}};
  CHECK(nvfp4::is_taken_unasked(kRows, k90, k90, 1, 4));
  CHECK(nvfp4::is_taken_unasked(kRows, k100, k100, 1, 2));
  CHECK_FALSE(nvfp4::is_taken_unasked(kRows, k100, k100, 1, 4));
  CHECK_FALSE(nvfp4::is_taken_unasked(kRows, k100, k100, 1, 8));  // in no row
  CHECK_FALSE(nvfp4::is_taken_unasked(kRows, k100, k100, 2, 2));  // of pairs
  CHECK_FALSE(nvfp4::is_taken_unasked(kRows, k80, k100, 1, 2));   // on other GPUs
  // Each way to cut K that a variant has stands in the table; on 9.0 alone all have run.
  for (uint32_t row = 0; row < nvfp4::kArchitectureCount; ++row) {
    if (!nvfp4::is_first_row(row)) continue;
    const nvfp4::Architecture& arch = nvfp4::kArchitectures[row];
    const Proof proof = arch.capability == 90 ? Proof::hardware : Proof::published;
    for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i) {
      const nvfp4::Variant& v = nvfp4::variant_at(i);
      for (const uint32_t partitions : nvfp4::kPartitionCounts) {
        if (!serves(v, arch) || !nvfp4::has_split(v, partitions)) continue;
        CAPTURE(arch.capability, v.name, partitions);
        CHECK(nvfp4::proof_of(nvfp4::kProofs, v.family, arch.family, v.tile_ctas, partitions) ==
              proof);
      }
    }
  }
}

// 56e6 codes of 9/16 bytes, their scale among them, are a quarter of 126 MB.
TEST_CASE("tokens of 10.x stay in the L2 where they are less than a quarter of it") {
  using nvfp4::token_policy;
  CHECK(token_policy(4096, 4096, 1) == nvfp4::kTokensEvictedLast);
  CHECK(token_policy(8192, 8192, 1) == nvfp4::kTokensEvictedAsOthers);
  CHECK(token_policy(55999984, 1, 1) == nvfp4::kTokensEvictedLast);
  CHECK(token_policy(56000000, 1, 1) == nvfp4::kTokensEvictedAsOthers);
  CHECK(token_policy(4096, 4096, 4) == nvfp4::kTokensEvictedAsOthers);
}
