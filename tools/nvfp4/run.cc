// SPDX-License-Identifier: MIT
// nvfp4 run: one product, verified.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <mutex>

#include "nvfp4_gemm.h"
#include "tools/harness/formats.h"
#include "tools/harness/parallel.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/outcome.h"
#include "tools/nvfp4/output_files.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

using support::Problem;

namespace {

void save(OutputFiles& files, const std::string& path, const support::Shape& s,
          const std::vector<uint16_t>& d) {
  std::vector<float> values(d.size());
  std::transform(d.begin(), d.end(), values.begin(),
                 [](uint16_t bits) { return float(support::f16_value(bits)); });
  std::vector<size_t> shape = {size_t(s.m), size_t(s.n)};
  if (s.l != 1) shape.insert(shape.begin(), size_t(s.l));
  save_npy(files, path, shape, values);
}

void report_error(Report& report, const support::BoundVerdict& bound) {
  report.line("error", "%.3g at most, bound %.3g there; error / bound %.3f at most",
              bound.largest_error, bound.bound_there, bound.largest_ratio);
  if (!report.for_programs()) {
    std::printf("rtol = atol = 1e-3: %" PRId64 " of %" PRId64 " outside\n", bound.outside_tolerance,
                bound.total);
  }
  report["error"] = {{"largest", bound.largest_error},
                     {"bound_there", bound.bound_there},
                     {"largest_ratio", bound.largest_ratio},
                     {"outside_bound", bound.outside_bound},
                     {"outside_tolerance", bound.outside_tolerance}};
}

// The cost of quantization: D against the product of the original matrices.
struct ProductError {
  double relative = 0;  // |D - P| / |P|, norms over the elements where both are finite
  double largest = 0;   // of |D - P|
  int64_t elements = 0;
};

// Eight independent sums, which the compiler vectorises.
double dot(const float* a, const float* b, int64_t k) {
  double sums[8] = {};
  for (int64_t i = 0; i < k; i += 8) {  // K is a multiple of 16
    for (int64_t j = 0; j < 8; ++j) sums[j] += double(a[i + j]) * double(b[i + j]);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// P = alpha * A * B^T of the fp32 values, summed in double.
ProductError product_error(const Sources& from, const std::vector<uint16_t>& d,
                           const support::Progress& progress) {
  const int64_t m = from.a.rows, n = from.b.rows, k = from.a.columns;
  ProductError whole;
  double errors = 0, norm = 0;
  std::mutex mutex;
  const auto each_column = [&](int64_t column) {
    ProductError mine;
    double my_errors = 0, my_norm = 0;
    for (int64_t row = 0; row < m; ++row) {
      const double wanted = double(from.alpha) * dot(&from.a.values[size_t(row * k)],
                                                     &from.b.values[size_t(column * k)], k);
      const double got = support::f16_value(d[size_t(row * n + column)]);
      if (!std::isfinite(wanted) || !std::isfinite(got)) continue;
      ++mine.elements;
      mine.largest = std::max(mine.largest, std::fabs(got - wanted));
      my_errors += (got - wanted) * (got - wanted);
      my_norm += wanted * wanted;
    }
    const std::lock_guard lock(mutex);
    whole.elements += mine.elements;
    whole.largest = std::max(whole.largest, mine.largest);
    errors += my_errors, norm += my_norm;
  };
  support::parallel_for(n, each_column, progress);
  if (norm > 0) whole.relative = std::sqrt(errors / norm);
  return whole;
}

void report_product(Report& report, const Sources& sources, const Verified& v) {
  const ProductError error = product_error(
      sources, v.d,
      support::progress_of(
          to_string(support::Shape{sources.a.rows, sources.b.rows, sources.a.columns}) +
          ": product without quantization"));
  support::progress_done();
  const bool any = error.elements != 0;
  if (any) {
    report.line("fp32", "relative error against the fp32 product %.4f (Frobenius); largest %.3g",
                error.relative, error.largest);
  } else {
    report.line("fp32", "no element is finite in both D and the fp32 product");
  }
  report["fp32_product"] = {{"relative_error", any ? Json(error.relative) : Json()},
                            {"largest_error", any ? Json(error.largest) : Json()},
                            {"elements", error.elements}};
}

// `sources`: the matrices before they were quantized, if they are known.
Outcome computed(const RunOptions& options, const Problem& problem, const Sources* sources,
                 const support::Driver& driver, const support::DeviceInfo& device,
                 OutputFiles& files) {
  const Verified v = verify(driver, device, problem);
  if (!options.out_path.empty()) save(files, options.out_path, problem.shape(), v.d);
  Outcome o;
  o.shape = problem.shape(), o.alpha = problem.alpha;
  o.names = v.names, o.plan = v.plan;
  o.equal = v.bits.equal, o.total = v.bits.total, o.exact = v.exact;
  o.wall_seconds = v.wall_seconds, o.device_seconds = v.device_seconds;
  if (!v.kept()) o.first = v.complaint();
  o.notes = v.notes();
  o.more = [v, sources](Report& report) {
    if (!v.exact) report_error(report, v.bound);
    if (sources) report_product(report, *sources, v);
  };
  return o;
}

const support::DeviceInfo& device_of(const RunOptions& options,
                                     const std::vector<support::DeviceInfo>& devices) {
  if (size_t(options.device) < devices.size()) return devices[size_t(options.device)];
  throw UsageError("--device: " + std::to_string(options.device) + ", but the driver has " +
                   std::to_string(devices.size()) + " device(s)");
}

// D is written as fp32 from fp16.
void refuse_other_d(const RunOptions& options) {
  if (options.out_path.empty()) return;
  if (!options.groups.empty()) throw UsageError("--out does not go with --groups");
  if (is_general(fields_of(options))) {
    throw UsageError("--out does not go with options of the epilogue");
  }
}

}  // namespace

int run(const RunOptions& given) {
  RunOptions options = given;
  const int64_t block = support::block_of(options.product.operand_format);
  if (options.product.k % block != 0) {
    throw UsageError("--k: " + std::to_string(options.product.k) + " is not a multiple of " +
                     std::to_string(block));
  }
  // Arguments and files come first: they are wrong with or without a driver.
  const support::Gaps gaps = gaps_of(options);
  const bool own = has_files(options);
  refuse_other_d(options);
  const Sources sources = own ? load_sources(options) : Sources{};
  const support::Driver& driver = support::Driver::get();
  const std::vector<support::DeviceInfo> devices = support::devices(driver);
  const support::DeviceInfo& device = device_of(options, devices);
  const support::Context context(driver, options.device);
  options = with_variant(options, device.compute_capability());
  if (options.headline) return headline(options, driver, device);
  const auto report = [&](const std::function<Outcome(OutputFiles&)>& compute) {
    return run_and_report(options, driver, device, compute);
  };
  if (!options.groups.empty()) {
    return report([&](OutputFiles&) { return run_grouped(options, driver, device); });
  }
  if (!own) require_memory(options.shape(), gaps, device);
  if (is_general(fields_of(options))) {
    return report([&](OutputFiles&) { return run_general(options, driver, device); });
  }
  const Problem problem = own ? problem_from(sources, options) : problem_from(options);
  return report([&](OutputFiles& files) {
    return computed(options, problem, own && sources.original() ? &sources : nullptr, driver,
                    device, files);
  });
}

}  // namespace nvfp4_tool
