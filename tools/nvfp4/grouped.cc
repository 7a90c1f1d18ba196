// SPDX-License-Identifier: MIT
// nvfp4 run with --groups.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <memory>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/groups.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/call_log.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/outcome.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

using support::DeviceBuffer;
using support::require;
using Bytes = std::vector<uint8_t>;

support::GroupedProblem make(const RunOptions& options) {
  RunOptions tokens = options, weights = options;
  tokens.product.m = all_rows(options), tokens.product.l = 1;
  weights.product = tokens.product;
  weights.product.m = 1, weights.product.l = options.b_shared ? 1 : group_count(options);
  support::Problem problem = problem_from(tokens);
  support::Operand b = problem_from(weights).b;
  support::Problem both = problem;
  both.b = b;
  if (!support::sums_are_exact(both)) {
    throw UsageError(
        "the sums of these groups are rounded: with --groups D is judged by its bits; try --data "
        "exact or a smaller --k");
  }
  return with_groups(std::move(problem), std::move(b), groups_of(options), options.seed);
}

// On the device, with the workspace that it asks for.
class OnDevice {
 public:
  OnDevice(const support::Driver& driver, const support::DeviceInfo& device,
           const support::GroupedProblem& x, int64_t rows_hint)
      : gemm_(make_desc(x)), grouped_(make_grouped_desc(x, &gemm_)), d_(driver, x.d_before()) {
    const auto add = [&](const Bytes& bytes) -> const void* {
      if (bytes.empty()) return nullptr;
      buffers_.push_back(std::make_unique<DeviceBuffer>(driver, bytes));
      return buffers_.back()->pointer();
    };
    for (const support::Input& input : inputs(x, 0x7F))
      nvfp4::fields::set(&gemm_, *input.field, add(input.bytes));
    for (const support::GroupInput& input : group_inputs(x))
      nvfp4::fields::set(&grouped_, *input.field, add(input.bytes));
    set_results(x, d_.pointer(), gemm_);
    grouped_.rows_hint = int32_t(rows_hint);
    uint64_t bytes = 0;
    require(nvfp4_grouped_workspace_bytes(&grouped_, device.compute_capability(), &bytes));
    gemm_.workspace = const_cast<void*>(add(Bytes(bytes))), gemm_.workspace_bytes = bytes;
  }
  OnDevice(const OnDevice&) = delete;

  void enqueue() const { require(nvfp4_grouped_run(&grouped_, nullptr)); }
  Bytes d() const { return d_.download(); }
  bool guards_intact() const {
    return d_.guards_intact() &&
           std::all_of(buffers_.begin(), buffers_.end(),
                       [](const auto& buffer) { return buffer->guards_intact(); });
  }
  nvfp4_plan_info plan(const support::DeviceInfo& device) const {
    nvfp4_plan_info info{};
    info.struct_size = sizeof info;
    require(nvfp4_grouped_describe(&grouped_, device.compute_capability(), device.sms, &info));
    return info;
  }

 private:
  nvfp4_gemm_desc gemm_;
  nvfp4_grouped_desc grouped_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  DeviceBuffer d_;
};

// Elements of 16 bits without gaps and anything behind them, or bytes.
int64_t count_equal(const Bytes& a, const Bytes& b, size_t unit) {
  int64_t equal = 0;
  for (size_t i = 0; i + unit <= a.size(); i += unit)
    equal += std::equal(&a[i], &a[i] + unit, &b[i]);
  return equal;
}

}  // namespace

Outcome run_grouped(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device) {
  const support::GroupedProblem x = make(options);
  support::progress("groups: on the device");
  const OnDevice gemm(driver, device, x, options.rows_hint);
  const auto start = std::chrono::steady_clock::now();
  gemm.enqueue();
  const Bytes d = gemm.d();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const CallNames names = last_call();
  if (!gemm.guards_intact()) throw std::runtime_error("the guard of an array was written");
  support::progress("groups: reference");
  const Bytes want = x.grouped_reference();
  const size_t unit = is_general(x) || x.d_ld_gap != 0 ? 1 : 2;
  double seconds = 0;
  if (!device.emulated()) seconds = time_on_device(driver, [&] { gemm.enqueue(); }).median;
  support::progress_done();

  Outcome o;
  o.shape = {x.m, x.n, x.k, x.groups.count()}, o.alpha = x.alpha;
  o.names = names, o.plan = gemm.plan(device);
  o.unit = unit == 1 ? "bytes" : "elements";
  o.equal = count_equal(d, want, unit), o.total = int64_t(d.size() / unit);
  o.wall_seconds = wall, o.device_seconds = seconds;
  o.first = first_difference(x, d, want);
  o.more = [&options, rows = x.m](Report& report) {
    report.line("groups", "%" PRId64 ", of %" PRId64 " rows in all%s", group_count(options), rows,
                options.b_shared ? ", that use one B" : "");
    std::vector<int64_t> of_each;
    for (const auto& [of_group, groups] : options.groups)
      of_each.insert(of_each.end(), size_t(groups), of_group);
    report["groups"] = of_each;
    report["b_shared"] = options.b_shared;
  };
  return o;
}

}  // namespace nvfp4_tool
