// SPDX-License-Identifier: MIT
// nvfp4 run with --groups.
#include "tools/nvfp4/outcome.h"

#include <chrono>
#include <cinttypes>
#include <memory>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/call_log.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

using support::DeviceBuffer;
using support::Operand;
using support::require;
using Bytes = std::vector<uint8_t>;

// An operand with the rows of A from `begin` on, whose 128x4 tiles begin with its first row.
Operand rows_of(const Operand& a, int64_t begin, int64_t end) {
  Operand rows = a;
  rows.rows = end - begin;
  rows.scales.assign(size_t(rows.scales_stride()), 0);
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t block = 0; block < a.k / a.block(); ++block) {
      rows.set_scale(0, row - begin, block, a.scale(0, row, block));
    }
  }
  return rows;
}

// A of all rows, a B for each group, and where the rows of each end.
struct Operands {
  Operand a, b;
  float alpha;
  std::vector<int32_t> ends;
  Bytes a_elements, a_scales, b_scales;
};

Operands make(const RunOptions& options) {
  Operands x;
  int64_t end = 0;
  for (const int64_t rows : options.groups) x.ends.push_back(int32_t(end += rows));
  if (end == 0) throw UsageError("--groups: no group has a row, so there is nothing to multiply");
  if (end > INT32_MAX) {
    throw UsageError("--groups: " + std::to_string(end) + " rows in all; at most 2147483647");
  }
  RunOptions tokens = options, weights = options;
  tokens.product.m = end, tokens.product.l = 1;
  weights.product.m = 1, weights.product.l = options.b_shared ? 1 : int64_t(x.ends.size());
  support::Problem problem = problem_from(tokens);
  problem.b = problem_from(weights).b;
  if (!support::sums_are_exact(problem)) {
    throw UsageError(
        "the sums of these groups are rounded: with --groups D is judged by its bits; try --data "
        "exact or a smaller --k");
  }
  x.a = problem.a, x.b = problem.b, x.alpha = problem.alpha;
  x.b_scales = x.b.device_scales(0x7F, 0);
  x.a_elements = x.a.elements();
  if (!x.a.quantized()) return x;
  if (x.a.layout == NVFP4_SCALE_LAYOUT_LINEAR) {
    x.a_scales = x.a.device_scales(0x7F, 0);
    return x;
  }
  int64_t begin = 0;
  for (const int32_t group_end : x.ends) {
    if (group_end > begin) {
      const Bytes tiles = rows_of(x.a, begin, group_end).interleaved_scales(0x7F);
      x.a_scales.insert(x.a_scales.end(), tiles.begin(), tiles.end());
    }
    begin = group_end;
  }
  // However the rows are divided: the library keeps D apart from all of these bytes.
  x.a_scales.resize(
      nvfp4_grouped_scale_bytes(end, int64_t(x.ends.size()), x.a.k, x.a.layout, x.a.format), 0x7F);
  return x;
}

// The product without addresses.
nvfp4_gemm_desc describe(const RunOptions& options, const Operands& x) {
  support::Fields f = fields_of(options);
  f.d_type = NVFP4_TYPE_F32, f.alpha = x.alpha;
  f.lay_out({x.a.rows, x.b.rows, x.b.k, int64_t(x.ends.size())});
  nvfp4_gemm_desc g = numbers_of(f);
  g.a_ld = x.a.ld, g.b_ld = x.b.ld;
  g.d_ld = g.n, g.d_batch_stride = 0;
  if (!options.b_shared) {
    g.b_batch_stride = x.b.batch_stride;
    g.b_scales_batch_stride_bytes = x.b.device_scales_stride(0, x.b.layout);
  }
  return g;
}

nvfp4_grouped_desc grouped_of(const nvfp4_gemm_desc& gemm, const int32_t* rows, bool b_shared) {
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = &gemm, grouped.rows = rows, grouped.rows_kind = NVFP4_ROWS_ENDS;
  grouped.b_shared = b_shared;
  return grouped;
}

Bytes reference(const Operands& x, nvfp4_gemm_desc g, bool b_shared) {
  Bytes d(size_t(g.m * g.n) * sizeof(float));
  g.a = x.a_elements.data(), g.b = x.b.codes.data(), g.d = d.data();
  g.a_scales = x.a_scales.empty() ? nullptr : x.a_scales.data(), g.b_scales = x.b_scales.data();
  g.variant = nullptr;
  const nvfp4_grouped_desc grouped = grouped_of(g, x.ends.data(), b_shared);
  require(nvfp4_grouped_reference(&grouped));
  return d;
}

// On the device, with the workspace that it asks for.
class OnDevice {
 public:
  OnDevice(const support::Driver& driver, const support::DeviceInfo& device, const Operands& x,
           const nvfp4_gemm_desc& desc, bool b_shared)
      : gemm_(desc), d_(driver, size_t(desc.m * desc.n) * sizeof(float)) {
    const auto add = [&](const Bytes& bytes) {
      if (bytes.empty()) return static_cast<void*>(nullptr);
      buffers_.push_back(std::make_unique<DeviceBuffer>(driver, bytes));
      return buffers_.back()->pointer();
    };
    gemm_.a = add(x.a_elements), gemm_.a_scales = add(x.a_scales);
    gemm_.b = add(x.b.codes), gemm_.b_scales = add(x.b_scales);
    gemm_.d = d_.pointer();
    const void* const ends = add(support::bytes_of(x.ends.data(), x.ends.size()));
    grouped_ = grouped_of(gemm_, static_cast<const int32_t*>(ends), b_shared);
    uint64_t bytes = 0;
    require(nvfp4_grouped_workspace_bytes(&grouped_, device.compute_capability(), &bytes));
    gemm_.workspace = add(Bytes(bytes)), gemm_.workspace_bytes = bytes;
  }
  OnDevice(const OnDevice&) = delete;

  void enqueue() const { require(nvfp4_grouped_run(&grouped_, nullptr)); }
  Bytes d() const { return d_.download(); }
  nvfp4_plan_info plan(const support::DeviceInfo& device) const {
    nvfp4_plan_info info{};
    info.struct_size = sizeof info;
    require(nvfp4_grouped_describe(&grouped_, device.compute_capability(), device.sms, &info));
    return info;
  }

 private:
  nvfp4_gemm_desc gemm_;
  nvfp4_grouped_desc grouped_{};
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  DeviceBuffer d_;
};

int64_t count_equal(const Bytes& a, const Bytes& b) {
  int64_t equal = 0;
  for (size_t i = 0; i < a.size(); i += 4) equal += std::equal(&a[i], &a[i] + 4, &b[i]);
  return equal;
}

}  // namespace

Outcome run_grouped(const RunOptions& options, const support::Driver& driver,
                    const support::DeviceInfo& device) {
  const Operands x = make(options);
  const nvfp4_gemm_desc desc = describe(options, x);
  support::progress("groups: on the device");
  const OnDevice gemm(driver, device, x, desc, options.b_shared);
  const auto start = std::chrono::steady_clock::now();
  gemm.enqueue();
  const Bytes d = gemm.d();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const CallNames names = last_call();
  support::progress("groups: reference");
  const int64_t equal = count_equal(d, reference(x, desc, options.b_shared));
  double seconds = 0;
  if (!device.emulated()) seconds = time_on_device(driver, [&] { gemm.enqueue(); }).median;
  support::progress_done();

  Outcome o;
  o.shape = {desc.m, desc.n, desc.k, desc.l}, o.alpha = desc.alpha;
  o.names = names, o.plan = gemm.plan(device);
  o.equal = equal, o.total = desc.m * desc.n;
  o.wall_seconds = wall, o.device_seconds = seconds;
  if (equal != o.total) {
    o.first = std::to_string(o.total - equal) + " elements of D are not the reference's";
  }
  o.more = [&options, rows = desc.m](Report& report) {
    report.line("groups", "%zu, of %" PRId64 " rows in all%s", options.groups.size(), rows,
                options.b_shared ? ", that use one B" : "");
    report["groups"] = options.groups;
    report["b_shared"] = options.b_shared;
  };
  return o;
}

}  // namespace nvfp4_tool
