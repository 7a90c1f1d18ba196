// SPDX-License-Identifier: MIT
// Every variant with every number of CTAs along K, small: what `make check-hw PART=sanitize` runs
// under compute-sanitizer, whose tools slow a kernel down a hundredfold.
#include <cstdio>
#include <map>
#include <set>

#include "test/gemm/grouped.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

namespace {

// Tails of M, N and K: a whole tile (of tokens up to 8) beside a piece of one. Emulated, a piece
// alone.
Problem sized(const gemm_test::Gpu& gpu, const char* variant, int64_t k) {
  const int64_t m = std::min<int64_t>(gemm_test::tile_tokens(variant), 8) + 1;
  const int64_t n = gpu.sized(gemm_test::tile_weights(variant) + 8, int64_t{72});
  return forced(variant, make_problem({m, n, k}, Data::gpumode, 140));
}

// The shortest K, in stages of which the last is cut short, for each number of CTAs that the
// planner gives this variant along K.
std::map<int, int64_t> shortest_of_each_split(const gemm_test::Gpu& gpu, const char* variant) {
  std::map<int, int64_t> shortest;
  const support::DeviceGemm gemm(gpu.driver, sized(gpu, variant, 64));
  nvfp4_gemm_desc desc = gemm.desc;
  for (int64_t stages = 1; stages <= 64; ++stages) {
    desc.k = stages * 256 - 64;
    desc.a_ld = desc.b_ld = desc.k;
    shortest.emplace(gemm_test::split_of(gpu, desc), desc.k);
  }
  return shortest;
}

}  // namespace

TEST_CASE("every variant and split at the sizes of compute-sanitizer", "[sanitize]") {
  USE_GPU_FOR_HALVES(gpu);
  if (gpu.info.emulated() && !gemm_test::everything())
    SKIP_TEST("for compute-sanitizer; every emulated run is checked by the emulator");
  std::set<int> splits;
  std::set<std::string> plain, general;  // variants that ran so
  int products = 0;
  const auto run = [&](const Problem& problem) {
    CAPTURE(problem.variant, problem.n, problem.k, problem.pdl);
    const support::DeviceGemm gemm(gpu.driver, problem);
    REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
    CHECK(gemm.damage() == "");
    // Those of 16-bit tokens only where there are no others.
    if (problem.a.quantized() != gemm_test::variants().empty()) {
      splits.insert(gemm_test::split_of(gpu, gemm.desc));
    }
    const std::string name = problem.variant;
    plain.insert(name.substr(0, name.find('/')));
    ++products;
  };
  const auto run_general = [&](const Problem& problem) {
    CAPTURE(problem.variant);
    support::Fields fields;
    fields.d_type = fields.c_type = fields.bias_type = NVFP4_TYPE_BF16;
    fields.alpha = 1, fields.beta = 0.5, fields.activation = NVFP4_ACTIVATION_SILU;
    CHECK(difference_on_device(gpu.driver, support::with_fields(problem, fields, 1)) == "");
    general.insert(problem.variant);
    ++products;
  };
  for (const char* variant : gemm_test::variants()) {
    for (const auto& [split, k] : shortest_of_each_split(gpu, variant)) {
      CAPTURE(split);
      run(sized(gpu, variant, k));
    }
    // By name, since the planner divides K by two only where there are more tiles.
    if (gpu.info.major == 9) run(sized(gpu, (std::string(variant) + "/2").c_str(), 960));
    for (const int32_t pdl : {NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
      Problem problem = sized(gpu, variant, 448);
      problem.pdl = pdl;
      run(problem);
    }
    if (gpu.small()) continue;
    // 19 stages in each of eight parts: every ring wraps.
    run(sized(gpu, variant, 38912));
    // More tiles than SMs, which the wide ones give to a CTA per SM.
    const int64_t weights = gemm_test::tile_weights(variant);
    if (weights == 128 && gemm_test::tile_tokens(variant) >= 128)
      run(forced(variant, make_problem({9, gpu.info.sms * weights + 8, 448}, Data::gpumode, 141)));
  }
  for (const auto& half : gemm_test::half_variants(true)) {
    // One CTA along K, and several; D in the plain way, and in bf16 with C, bias and SiLU.
    for (const int64_t k : {320, 2880})
      run(forced(half.name, support::make_a16_problem({9, 72, k}, half.type, Data::gpumode, 142)));
    run_general(
        forced(half.name, support::make_a16_problem({9, 72, 336}, half.type, Data::exact, 143)));
  }
  for (const char* variant : gemm_test::variants())
    run_general(forced(variant, make_problem({9, 72, 336}, Data::exact, 144)));
  if (gpu.info.major == 9) CHECK(splits == std::set<int>{1, 2, 3, 4, 8});
  if (gpu.info.major == 10) CHECK(splits == std::set<int>{1, 2, 4});
  CHECK(splits.size() > 1);
  const size_t variants = support::variant_names(gpu.info.compute_capability()).size();
  CHECK((plain.size() == variants && general == plain));
  // For tools/gates/first_hour.py.
  std::string partitions;
  for (const int split : splits)
    partitions += (partitions.empty() ? "" : ", ") + std::to_string(split);
  std::printf("{\"products\": %d, \"variants\": %zu, \"k_partitions\": [%s]}\n", products, variants,
              partitions.c_str());
}

int32_t type_of(const std::string& variant) {
  return variant.find("_bf16_") != std::string::npos  ? NVFP4_TYPE_BF16
         : variant.find("_f16_") != std::string::npos ? NVFP4_TYPE_F16
                                                      : NVFP4_TYPE_NONE;
}

// Each entry for grouped products, for gated ones and for both.
TEST_CASE("every entry for groups and gates at the sizes of compute-sanitizer", "[sanitize]") {
  USE_GPU_FOR_HALVES(gpu);
  if (gpu.small() && !gemm_test::everything())
    SKIP_TEST("for compute-sanitizer; every emulated run is checked by the emulator");
  if (gpu.info.compute_capability() != 90 && gpu.info.major != 10) return;
  const int32_t capability = gpu.info.compute_capability();
  int products[3] = {0, 0, 0};  // gated, grouped, both
  const auto run = [&](const std::string& variant, bool gated, bool groups, int32_t d_type) {
    const int32_t type = type_of(variant);
    // Two stages, the second of them cut; D in 16 bits takes the fast epilogue where K is whole.
    const int64_t k = d_type == NVFP4_TYPE_F32 ? 336 : 320;
    gemm_test::GroupedProblem problem({12, 72, k, type}, {5, 5, 12}, 145, Data::exact);
    problem.fields.b2 = support::Given{gated}, problem.fields.d_type = d_type;
    if (gated) problem.fields.activation = NVFP4_ACTIVATION_SILU, problem.fields.alpha2 = 0.5f;
    CAPTURE(variant, gated, groups, d_type);
    if (!groups) {
      Problem operands = problem.product(2);
      operands.batch_invariant = false, operands.variant = variant.c_str();
      const support::Problem one = support::with_fields(operands, problem.fields, 146);
      const support::DeviceGemm device(gpu.driver, one);
      if (nvfp4_gemm_supported(&device.desc, capability) != NVFP4_SUCCESS) return;
      CHECK(difference_on_device(gpu.driver, one) == "");
    } else {
      gemm_test::DeviceGrouped device(gpu, problem);
      device.gemm.variant = variant.c_str();
      if (nvfp4_grouped_supported(&device.grouped, capability) != NVFP4_SUCCESS) return;
      CHECK(run_grouped(device) == grouped_reference(problem, device));
      CHECK(device.guards_intact());
    }
    ++products[groups ? 1 + int(gated) : 0];
  };
  for (const std::string& variant : support::variant_names(capability)) {
    for (const int32_t d_type : {NVFP4_TYPE_F16, NVFP4_TYPE_F32}) {
      run(variant, true, false, d_type);
      run(variant, false, true, d_type);
      run(variant, true, true, d_type);
    }
  }
  const bool hopper = gpu.info.major == 9;
  CHECK(products[0] == (hopper ? 19 : 4));
  CHECK(products[1] == (hopper ? 22 : 14));
  CHECK(products[2] == (hopper ? 16 : 8));
  std::printf("{\"products\": %d, \"gated\": %d, \"grouped\": %d, \"grouped_gated\": %d}\n",
              products[0] + products[1] + products[2], products[0], products[1], products[2]);
}

// Each entry for grouped products where a CTA computes several tiles, one after the other: three
// groups for each SM, each with two tiles or more. The rows of groups lie side by side, or apart,
// with a row of no group after each. All lanes load linear scales of weights.
TEST_CASE("every entry for groups with several tiles a CTA at the sizes of compute-sanitizer",
          "[sanitize]") {
  USE_GPU_FOR_HALVES(gpu);
  if (gpu.info.emulated() && !gemm_test::everything())
    SKIP_TEST("for compute-sanitizer; every emulated run is checked by the emulator");
  const int32_t capability = gpu.info.compute_capability();
  constexpr int32_t kRows = 2;
  const int32_t groups = 3 * gpu.info.sms;
  std::map<std::string, int> products;
  const auto run = [&](int32_t type, bool gated, const std::string& weights, int64_t capacity) {
    std::vector<int32_t> rows(size_t(groups), kRows);
    for (int32_t group = 0; capacity == 0 && group < groups; ++group)
      rows[size_t(group)] = (group + 1) * kRows;
    gemm_test::GroupedProblem problem({groups * std::max<int64_t>(capacity, kRows), 136, 80, type},
                                      rows, 147, Data::exact);
    problem.capacity = capacity;
    problem.fields.b2 = support::Given{gated};
    problem.fields.activation = gated ? NVFP4_ACTIVATION_SILU : NVFP4_ACTIVATION_NONE;
    if (weights == "packed ") problem.fields.b_packing = NVFP4_PACKING_SM90_1;
    if (weights == "linear ") problem.weights.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
    gemm_test::DeviceGrouped device(gpu, problem);
    const std::vector<uint8_t> expected = grouped_reference(problem, device);
    const std::string name = weights + (gated ? "gated " : "") + (capacity > 0 ? "apart" : "even");
    for (const std::string& variant : support::variant_names(capability)) {
      device.gemm.variant = variant.c_str();
      if (type_of(variant) != type) continue;
      if (nvfp4_grouped_supported(&device.grouped, capability) != NVFP4_SUCCESS) continue;
      CAPTURE(variant, name);
      device.take(gpu, variant.c_str());
      device.clear_d();
      CHECK(run_grouped(device) == expected);
      CHECK(device.guards_intact());
      ++products[name];
    }
  };
  for (const int32_t type : {NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
    for (const bool gated : {false, true}) {
      for (const int64_t capacity : {0, kRows + 1}) {
        run(type, gated, "", capacity);
        if (capability == 90) run(type, gated, "linear ", capacity);
        if (type != NVFP4_TYPE_NONE && capability == 90) run(type, gated, "packed ", capacity);
      }
    }
  }
  CHECK(products.size() == (capability == 90 ? 12 : 4));
  std::string each;
  for (const auto& [name, count] : products) each += ", \"" + name + "\": " + std::to_string(count);
  std::printf("{\"products\": \"grouped\", \"groups\": %d%s}\n", groups, each.c_str());
}
