// SPDX-License-Identifier: MIT
#include "tools/nvfp4/candidates.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

#include "tools/harness/device_gemm.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/inputs.h"

namespace nvfp4_tool {

namespace {

PlanSummary summary_of(const nvfp4_plan_info& info) {
  PlanSummary plan;
  if (info.variant != nullptr) plan.variant = info.variant;
  plan.split = std::max(info.k_partitions, 1);
  plan.whole = info.whole_tiles;
  plan.ctas = info.grid_ctas;
  plan.predicted_us = info.predicted_ns / 1e3;
  return plan;
}

// What distinguishes two plans.
std::tuple<std::string, int64_t, int64_t, int64_t> key_of(const PlanSummary& plan) {
  return {plan.variant, plan.split, plan.whole, plan.ctas};
}

std::string words_of(const PlanSummary& plan) {
  std::string text = plan.variant + ", split " + std::to_string(plan.split);
  if (plan.whole > 0) text += ", of the tiles after the first " + std::to_string(plan.whole);
  return text;
}

// An fp32 product whose D is read back after each variant.
class Probe {
 public:
  Probe(const support::Driver& driver, const RunOptions& options, support::Data data,
        uint64_t workspace_bytes)
      : driver_(driver),
        problem_(in_f32(options, data)),
        gemm_(driver, problem_),
        workspace_(driver, std::max<uint64_t>(workspace_bytes, 256)),
        d_bytes_(gemm_.d_bytes().size()),
        exact_(data == support::Data::exact && support::sums_are_exact(problem_)) {
    gemm_.desc.workspace = workspace_.pointer();
    gemm_.desc.workspace_bytes = workspace_.bytes();
  }

  bool exact() const { return exact_; }

  std::vector<uint8_t> d(const char* variant) {
    gemm_.desc.variant = variant;
    // So that elements which a variant does not write are not those of the variant before.
    const auto d = reinterpret_cast<CUdeviceptr>(gemm_.desc.d);
    driver_.check(driver_.cuMemsetD8(d, 0xFF, d_bytes_), "cuMemsetD8");
    if (nvfp4_gemm_run(&gemm_.desc, nullptr) != NVFP4_SUCCESS) {
      throw std::runtime_error(nvfp4_last_error());
    }
    return gemm_.d_bytes();
  }

 private:
  static support::Problem in_f32(const RunOptions& options, support::Data data) {
    RunOptions with = options;
    with.data = data, with.alpha = 1.0f, with.variant.clear();
    with.product.d_type = NVFP4_TYPE_F32;
    return problem_from(with);
  }

  const support::Driver& driver_;
  support::Problem problem_;
  support::DeviceGemm gemm_;
  support::DeviceBuffer workspace_;
  size_t d_bytes_;
  bool exact_;
};

}  // namespace

Candidates list_candidates(const nvfp4_gemm_desc& problem, int32_t capability, int32_t sms) {
  nvfp4_gemm_desc desc = problem;
  desc.variant = nullptr;
  Candidates all;
  all.choice = summary_of(support::plan_info(desc, capability, sms));
  all.planned = words_of(all.choice);
  std::set<std::tuple<std::string, int64_t, int64_t, int64_t>> known;
  const auto note = [&](const char* name) {
    uint64_t bytes = 0;
    desc.variant = name;
    if (nvfp4_gemm_workspace_bytes(&desc, capability, &bytes) != NVFP4_SUCCESS) return;
    all.workspace_bytes = std::max(all.workspace_bytes, bytes);
    const PlanSummary plan = summary_of(support::plan_info(desc, capability, sms));
    if (!known.insert(key_of(plan)).second || name == nullptr) return;
    all.others.push_back({name, plan});
  };
  note(nullptr);  // known, and its workspace
  for (const std::string& name : support::variant_names(capability)) {
    note(name.c_str());
    for (const int parts : {1, 2, 3, 4, 8}) note((name + "/" + std::to_string(parts)).c_str());
  }
  return all;
}

void compare_bits(const support::Driver& driver, const RunOptions& problem,
                  Candidates* candidates) {
  const std::string shape = to_string(problem.shape());
  for (const support::Data data : {support::Data::exact, support::Data::random}) {
    support::progress(shape + ": data");
    Probe probe(driver, problem, data, candidates->workspace_bytes);
    const std::vector<uint8_t> want = probe.d(nullptr);
    for (Candidate& each : candidates->others) {
      support::progress(shape + ": bits of " + each.name);
      each.same_bits = probe.d(each.name.c_str()) == want;
      if (probe.exact() && !each.same_bits) {
        throw std::runtime_error(shape + ": " + each.name +
                                 " has other bits than the planner's choice where sums are exact: "
                                 "a bug, please report it");
      }
    }
  }
  support::progress_done();
}

}  // namespace nvfp4_tool
