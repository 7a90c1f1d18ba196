// SPDX-License-Identifier: MIT
// nvfp4 bench: a list of shapes, each verified and then timed on the device, one row each.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "tools/harness/cublaslt.h"
#include "tools/harness/driver.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/shapes.h"
#include "tools/nvfp4/table.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

using support::CublasLt;
using support::GemmType;

// Times of other libraries for the same shapes: cuBLASLt, if it is installed.
class Peers {
 public:
  Peers(const support::Driver& driver, const support::DeviceInfo& device);

  // "cuBLASLt 130100", or why there is none.
  std::string names() const;

  // One row per type that the device multiplies: fp16 and fp8, and NVFP4 from 10.0 on. No times if
  // cuBLASLt is missing or refuses the shape.
  struct Row {
    support::GemmType type;
    std::optional<Times> times;  // the best of its first eight proposals, timed again
  };
  std::vector<Row> time(const support::Shape& shape) const;

 private:
  std::optional<Times> time(support::GemmType type, const support::Shape& shape) const;

  const support::Driver& driver_;
  std::vector<support::GemmType> types_;
  std::string why_not_;
  std::unique_ptr<support::CublasLt> library_;
};

Peers::Peers(const support::Driver& driver, const support::DeviceInfo& device)
    : driver_(driver), types_({GemmType::f16}) {
  if (device.compute_capability() >= 89) types_.push_back(GemmType::e4m3);
  if (device.compute_capability() >= 100) types_.push_back(GemmType::nvfp4);
  library_ = CublasLt::open(&why_not_);
}

std::string Peers::names() const {
  return library_ ? "cuBLASLt " + std::to_string(library_->version()) : why_not_;
}

std::optional<Times> Peers::time(GemmType type, const support::Shape& s) const {
  constexpr int kProposals = 8;
  constexpr size_t kWorkspace = size_t(32) << 20;
  const support::CublasOperands operands(driver_, type, s.m, s.n, s.k);
  const support::DeviceBuffer workspace(driver_, kWorkspace);
  const auto plan = library_->plan({type, s.m, s.n, s.k}, operands.addresses(), kProposals,
                                   workspace.address(), workspace.bytes());
  const auto times = [&](int candidate) {
    return time_on_device(driver_, [&] { plan->run(candidate, operands.addresses(), nullptr); });
  };
  if (plan->candidates() == 0) return {};
  int best = 0;
  double fastest = 0;
  for (int i = 0; i < plan->candidates(); ++i) {
    const double seconds = times(i).median;
    if (i == 0 || seconds < fastest) best = i, fastest = seconds;
  }
  return times(best);
}

// cuBLASLt's batches would not be ours.
std::vector<Peers::Row> Peers::time(const support::Shape& shape) const {
  std::vector<Row> rows;
  for (const GemmType type : types_) {
    support::progress(to_string(shape) + ": cuBLASLt " + to_string(type));
    rows.push_back({type, library_ && shape.l == 1 ? time(type, shape) : std::nullopt});
  }
  support::progress_done();
  return rows;
}

// The task's three shapes, used when none is named.
const std::vector<std::string> kHeadline = {"128x7168x16384", "128x4096x7168", "128x7168x2048"};

std::vector<support::Shape> shapes_of(const BenchOptions& options) {
  const bool none = options.shapes.empty() && options.list.empty();
  return read_shapes(none ? kHeadline : options.shapes, options.list);
}

Json row_of(const support::Shape& s, const Verified& v, const std::vector<Peers::Row>& others) {
  const double us = 1e6 * v.device_seconds;
  const double operations = 2.0 * double(s.m) * double(s.n) * double(s.k) * double(s.l);
  Json row = {{"m", s.m},
              {"n", s.n},
              {"k", s.k},
              {"l", s.l},
              {"variant", v.names.variant},
              {"us", us},
              {"us_p10", 1e6 * v.device_p10},
              {"us_p90", 1e6 * v.device_p90},
              {"tflops", operations / v.device_seconds * 1e-12},
              {"light_us", v.light_us},
              {"light_percent", v.light_percent()},
              {"limit", v.limit}};
  for (const Peers::Row& other : others) {
    const std::string name = std::string("cublaslt_") + to_string(other.type);
    row[name + "_us"] = other.times ? Json(1e6 * other.times->median) : Json();
    row["x_" + name] = other.times ? Json(other.times->median / v.device_seconds) : Json();
  }
  return row;
}

void print_csv(const Json& row, bool first) {
  const char* before = "";
  for (const auto& [name, value] : row.items()) {
    if (first) std::printf("%s%s", before, name.c_str());
    before = ",";
  }
  before = first ? "\n" : "";
  for (const auto& [name, value] : row.items()) {
    std::printf("%s", before);
    if (value.is_number_float()) {
      std::printf("%.3f", value.get<double>());
    } else if (!value.is_null()) {
      std::printf("%s",
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    }
    before = ",";
  }
  std::printf("\n");
}

std::string text(const char* format, double first, double second = 0) {
  char made[64];
  std::snprintf(made, sizeof made, format, first, second);
  return made;
}

std::string name_of(const Peers::Row& other) {
  return std::string("  cuBLASLt ") + to_string(other.type);
}

Table table_of(const std::vector<support::Shape>& shapes) {
  Table table(
      {{"M x N x K"}, {"us", true}, {"10th to 90th", true}, {"of bound", true}, {"variant"}});
  table.expect({"  cuBLASLt bf16", "99999.99", "99999.99 to 99999.99"});
  for (const support::Shape& shape : shapes) table.expect({to_string(shape)});
  return table;
}

void print_text(const support::Shape& s, const Verified& v, const std::vector<Peers::Row>& others,
                Table& table) {
  table.print({to_string(s), text("%.2f", 1e6 * v.device_seconds),
               text("%.2f to %.2f", 1e6 * v.device_p10, 1e6 * v.device_p90),
               text("%.1f %%", v.light_percent()), v.names.variant});
  for (const Peers::Row& other : others) {
    if (!other.times) continue;
    table.print({name_of(other), text("%.2f", 1e6 * other.times->median),
                 text("%.2f to %.2f", 1e6 * other.times->p10, 1e6 * other.times->p90), "",
                 text("%.2f times ours", other.times->median / v.device_seconds)});
  }
}

}  // namespace

int bench(const BenchOptions& options) {
  const std::vector<support::Shape> shapes = shapes_of(options);
  const support::Driver& driver = support::Driver::get();
  const support::DeviceInfo device = support::devices(driver).at(0);
  if (device.emulated()) {
    throw std::runtime_error(device.name +
                             ": there is no time to measure here; nvfp4 run verifies, nvfp4 "
                             "explain --gpu H200 predicts");
  }
  const support::Context context(driver);
  std::optional<Peers> peers;
  if (!options.alone) peers.emplace(driver, device);
  Report report(options.json);
  report["device"] = device.name;
  report["peers"] = peers ? peers->names() : "not asked for";
  report["runs"] = kTimedRuns;
  Table table = table_of(shapes);
  Json rows = Json::array();
  for (const support::Shape& shape : shapes) {
    require_memory(shape, {}, device);
    RunOptions one;
    one.set_shape(shape);
    const Verified v = verify(driver, device, problem_from(one));
    if (!v.kept()) throw std::runtime_error(to_string(shape) + ": FAIL, " + v.complaint());
    const auto others = peers ? peers->time(shape) : std::vector<Peers::Row>();
    const bool first = rows.empty();
    rows.push_back(row_of(shape, v, others));
    if (options.csv) print_csv(rows.back(), first);
    if (!options.csv && !options.json) print_text(shape, v, others, table);
  }
  report["shapes"] = rows;
  report.finish();
  return kPassed;
}

}  // namespace nvfp4_tool
