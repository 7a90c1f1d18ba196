// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/harness/formats.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/emulator.h"
#include "tools/nvfp4/npy.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

using support::Problem;
using support::progress;

namespace {

// An operand from fp32 values with the usual tensor scale, so that the largest value becomes 6 *
// 448. The tensor scale is multiplied into *alpha.
support::Operand quantise(const Matrix& x, support::Operand o, float* alpha) {
  float largest = 0;
  for (float value : x.values) largest = std::max(largest, std::fabs(value));
  const float tensor_scale = largest > 0 && std::isfinite(largest) ? largest / 2688 : 1.0f;
  if (nvfp4_quantize_host(x.values.data(), x.columns, x.rows, x.columns, tensor_scale,
                          o.codes.data(), o.ld, o.scales.data(),
                          NVFP4_SCALE_LAYOUT_LINEAR) != NVFP4_SUCCESS) {
    throw UsageError(nvfp4_last_error());
  }
  *alpha *= tensor_scale;
  return o;
}

Problem problem_from_files(const RunOptions& options) {
  const Matrix a = load_npy(options.a_path), b = load_npy(options.b_path);
  if (a.columns != b.columns) {
    throw UsageError("A has " + std::to_string(a.columns) + " columns and B has " +
                     std::to_string(b.columns) + ": both are K");
  }
  if (a.rows == 0 || b.rows == 0 || a.columns == 0 || a.columns % 64 != 0) {
    throw UsageError("M, N and K must be positive and K a multiple of 64; here " +
                     std::to_string(a.rows) + ", " + std::to_string(b.rows) + ", " +
                     std::to_string(a.columns));
  }
  Problem p = support::make_problem({a.rows, b.rows, a.columns, 1});
  float alpha = options.alpha.value_or(1.0f);
  p.a = quantise(a, std::move(p.a), &alpha);
  p.b = quantise(b, std::move(p.b), &alpha);
  p.alpha = alpha;
  return p;
}

Problem problem_of(const RunOptions& options) {
  if (!options.a_path.empty()) return problem_from_files(options);
  progress(to_string(options.shape) + ": data");
  Problem p = support::make_problem(options.shape, options.data, options.seed, gaps_of(options));
  p.alpha = options.alpha.value_or(p.alpha);
  return p;
}

// Elements between one row or batch and the next. Overlapping rows are no matrix.
int64_t gap(const char* name, std::optional<int64_t> stride, int64_t dense, int64_t least) {
  const int64_t value = stride.value_or(dense);
  if (value < least) {
    throw UsageError(std::string(name) + ": " + std::to_string(value) + " is less than " +
                     std::to_string(least));
  }
  return value - dense;
}

void save(const std::string& path, const support::Shape& s, const std::vector<uint16_t>& d) {
  std::vector<float> values(d.size());
  std::transform(d.begin(), d.end(), values.begin(),
                 [](uint16_t bits) { return float(support::f16_value(bits)); });
  std::vector<size_t> shape = {size_t(s.m), size_t(s.n)};
  if (s.l != 1) shape.insert(shape.begin(), size_t(s.l));
  save_npy(path, shape, values);
}

std::string duration(const Verified& v) {
  char text[64];
  if (v.device_seconds == 0) {
    std::snprintf(text, sizeof text, "%.1f s", v.wall_seconds);
  } else if (v.light_percent == 0) {
    std::snprintf(text, sizeof text, "%.2f us", v.device_seconds * 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.2f us, %.0f %%", v.device_seconds * 1e6, v.light_percent);
  }
  return text;
}

const char* legend(const support::DeviceInfo& device) {
  return device.emulated()
             ? "time: wall clock of the emulator; a device time is not measured there"
             : "time: median of 21 with cold caches, and percent of the speed of light";
}

int run_one(const RunOptions& options, const Problem& problem, const support::Driver& driver,
            const support::DeviceInfo& device) {
  if (options.counters) require_emulator(driver, "--counters");
  if (!options.trace_path.empty()) trace_to(driver, options.trace_path);
  const Verified v = verify(driver, device, problem);
  if (!options.out_path.empty()) save(options.out_path, problem.shape, v.d);
  std::printf("shape     %s\n", to_string(problem.shape).c_str());
  std::printf("device    %s\n", device.name.c_str());
  std::printf("image     %s\n", v.names.image.c_str());
  std::printf("variant   %s\n", v.names.variant.c_str());
  std::printf("bits      %lld of %lld equal to the reference's%s\n",
              static_cast<long long>(v.bits.equal), static_cast<long long>(v.bits.total),
              v.exact ? "; every partial sum is exact, so all must be" : "");
  if (!v.exact) {
    std::printf("error     %.3g at most, bound %.3g there; error / bound %.3f at most\n",
                v.bound.largest_error, v.bound.bound_there, v.bound.largest_ratio);
    std::printf("rtol = atol = 1e-3: %lld of %lld outside\n",
                static_cast<long long>(v.bound.outside_tolerance),
                static_cast<long long>(v.bound.total));
  }
  std::printf("%s\n%-9s %s\n", legend(device), "time", duration(v).c_str());
  if (!v.passed()) std::printf("first     %s\n", v.complaint().c_str());
  if (options.counters || !options.trace_path.empty()) print_counters(driver);
  if (!options.trace_path.empty()) std::printf("trace     %s\n", options.trace_path.c_str());
  std::printf("verdict   %s\n", v.passed() ? "PASS" : "FAIL");
  return v.passed() ? kPassed : kFailed;
}

// One row: the task's data must be equal bit by bit, random scales must lie inside the bound.
bool headline_row(const support::Shape& shape, const RunOptions& options,
                  const support::Driver& driver, const support::DeviceInfo& device) {
  const auto problem = [&](support::Data data) {
    progress(to_string(shape) + ": data");
    return support::make_problem(shape, data, options.seed);
  };
  const Verified task = verify(driver, device, problem(support::Data::gpumode));
  const Verified random = verify(driver, device, problem(support::Data::random));
  if (!task.exact) throw std::logic_error("the data of the task are not exact at this shape");
  const bool passed = task.passed() && random.passed();
  char bits[48], error[48];
  std::snprintf(bits, sizeof bits, "%lld of %lld", static_cast<long long>(task.bits.equal),
                static_cast<long long>(task.bits.total));
  std::snprintf(error, sizeof error, "%.1e / %.1e", random.bound.largest_error,
                random.bound.bound_there);
  std::printf("%-18s  %-13s  %-19s  %-17s  %-17s  %10lld  %-16s  %s\n", to_string(shape).c_str(),
              task.names.image.c_str(), task.names.variant.c_str(), bits, error,
              static_cast<long long>(random.bound.outside_tolerance), duration(task).c_str(),
              passed ? "PASS" : "FAIL");
  for (const Verified* v : {&task, &random}) {
    if (!v->passed()) std::printf("  %s\n", v->complaint().c_str());
  }
  std::fflush(stdout);
  return passed;
}

int headline(const RunOptions& options, const support::Driver& driver,
             const support::DeviceInfo& device) {
  const support::Shape shapes[] = {{128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}};
  std::printf("%s on %s, seed %llu\n", nvfp4_build_info(), device.name.c_str(),
              static_cast<unsigned long long>(options.seed));
  std::printf("equal: scales 0..3, every sum exact, bits compared with the reference\n");
  std::printf("error / bound: random scales, the largest error and its bound\n");
  std::printf("%s\n\n", legend(device));
  std::printf("%-18s  %-13s  %-19s  %-17s  %-17s  %-10s  %-16s  %s\n", "M x N x K", "image",
              "variant", "equal", "error / bound", "over 1e-3", "time", "verdict");
  std::fflush(stdout);
  bool passed = true;
  for (const support::Shape& shape : shapes) {
    passed = headline_row(shape, options, driver, device) && passed;
  }
  return passed ? kPassed : kFailed;
}

}  // namespace

support::Gaps gaps_of(const RunOptions& options) {
  const support::Shape& s = options.shape;
  support::Gaps gaps;
  gaps.a_ld = gap("--a-ld", options.a_ld, s.k, s.k);
  gaps.b_ld = gap("--b-ld", options.b_ld, s.k, s.k);
  gaps.d_ld = gap("--d-ld", options.d_ld, s.n, s.n);
  gaps.a_batch = gap("--a-batch-stride", options.a_batch_stride, s.m * (s.k + gaps.a_ld), 0);
  gaps.b_batch = gap("--b-batch-stride", options.b_batch_stride, s.n * (s.k + gaps.b_ld), 0);
  gaps.d_batch = gap("--d-batch-stride", options.d_batch_stride, s.m * (s.n + gaps.d_ld), 0);
  return gaps;
}

int run(const RunOptions& options) {
  if (options.shape.k % 64 != 0) {
    throw UsageError("--k: " + std::to_string(options.shape.k) + " is not a multiple of 64");
  }
  enable_call_log();
  // Arguments and files first: they are wrong with or without a driver.
  std::optional<Problem> problem;
  if (!options.headline) problem = problem_of(options);
  if (problem && !options.variant.empty()) problem->variant = options.variant.c_str();
  if (problem) problem->pdl = options.pdl;
  const support::Driver& driver = support::Driver::get();
  const std::vector<support::DeviceInfo> devices = support::devices(driver);
  if (size_t(options.device) >= devices.size()) {
    throw UsageError("--device: " + std::to_string(options.device) + ", but the driver has " +
                     std::to_string(devices.size()) + " device(s)");
  }
  const support::Context context(driver, options.device);
  const support::DeviceInfo& device = devices[size_t(options.device)];
  return problem ? run_one(options, *problem, driver, device) : headline(options, driver, device);
}

}  // namespace nvfp4_tool
