// SPDX-License-Identifier: MIT
#include "tools/nvfp4/candidates.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tools/harness/general_gemm.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/explained.h"
#include "tools/nvfp4/inputs.h"

namespace nvfp4_tool {

namespace {

// The header: a refusal lists the names.
std::vector<std::string> variant_names(nvfp4_gemm_desc desc, int32_t capability) {
  desc.variant = "?";
  if (nvfp4_gemm_supported(&desc, capability) != NVFP4_STATUS_INVALID_VALUE) {
    throw std::runtime_error("the library did not list its variants");
  }
  const std::string refusal = nvfp4_last_error();
  std::istringstream list(refusal.substr(refusal.find("none of:") + 8));
  std::vector<std::string> names;
  for (std::string name; list >> name;) names.push_back(name);
  return names;
}

// What makes two plans differ; clocks and names of what is not chosen are no part of it.
std::string plan_of(const Explained& explained) {
  return explained.line("variant") + ", split " + explained.line("split") + ", " +
         explained.line("grid");
}

PlanSummary summary_of(const Explained& explained) {
  const std::string split = explained.line("split");
  PlanSummary plan;
  plan.variant = explained.line("variant");
  plan.split = std::atoll(split.c_str());
  plan.whole = int64_t(number_after(split, "first "));
  plan.ctas = std::atoll(explained.line("grid").c_str());
  plan.predicted_us = std::strtod(explained.line("time").c_str(), nullptr);
  return plan;
}

// A product in fp32 whose D is read back after each variant.
class Probe {
 public:
  Probe(const support::Driver& driver, const RunOptions& options, support::Data data,
        uint64_t workspace_bytes)
      : driver_(driver),
        problem_(operands(options, data), fields(), 1),
        gemm_(driver, problem_),
        workspace_(driver, std::max<uint64_t>(workspace_bytes, 256)),
        d_bytes_(gemm_.d().size()),
        exact_(data == support::Data::exact && support::sums_are_exact(problem_.operands)) {
    gemm_.desc.workspace = workspace_.pointer();
    gemm_.desc.workspace_bytes = workspace_.bytes();
  }

  bool exact() const { return exact_; }

  std::vector<uint8_t> d(const char* variant) {
    gemm_.desc.variant = variant;
    // So that what a variant does not write is not the one's before.
    const auto d = reinterpret_cast<CUdeviceptr>(gemm_.desc.d);
    driver_.check(driver_.cuMemsetD8(d, 0xFF, d_bytes_), "cuMemsetD8");
    if (nvfp4_gemm_run(&gemm_.desc, nullptr) != NVFP4_SUCCESS) {
      throw std::runtime_error(nvfp4_last_error());
    }
    return gemm_.d();
  }

 private:
  static support::Problem operands(const RunOptions& options, support::Data data) {
    RunOptions with = options;
    with.data = data;
    return problem_from(with);
  }
  static support::EpilogueFields fields() {
    support::EpilogueFields fields;
    fields.d_type = NVFP4_TYPE_F32;
    return fields;
  }

  const support::Driver& driver_;
  support::GeneralProblem problem_;
  support::DeviceGeneral gemm_;
  support::DeviceBuffer workspace_;
  size_t d_bytes_;
  bool exact_;
};

}  // namespace

Candidates list_candidates(const nvfp4_gemm_desc& problem, int32_t capability, int32_t sms) {
  nvfp4_gemm_desc desc = problem;
  desc.variant = nullptr;
  const Explained planned(desc, capability, sms);
  const std::string split = planned.line("split");
  Candidates all;
  all.planned = planned.line("variant") + (split.empty() ? "" : ", split " + split);
  all.choice = summary_of(planned);
  std::set<std::string> known;
  const auto note = [&](const char* name) {
    uint64_t bytes = 0;
    desc.variant = name;
    if (nvfp4_gemm_workspace_bytes(&desc, capability, &bytes) != NVFP4_SUCCESS) return;
    all.workspace_bytes = std::max(all.workspace_bytes, bytes);
    const Explained explained(desc, capability, sms);
    if (!known.insert(plan_of(explained)).second || name == nullptr) return;
    all.others.push_back({name, summary_of(explained)});
  };
  note(nullptr);  // known, and its workspace
  for (const std::string& name : variant_names(desc, capability)) {
    for (const char* parts : {"", "/1", "/2", "/3", "/4", "/8"}) note((name + parts).c_str());
  }
  return all;
}

void compare_bits(const support::Driver& driver, const RunOptions& problem,
                  Candidates* candidates) {
  const std::string shape = to_string(problem.shape);
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
