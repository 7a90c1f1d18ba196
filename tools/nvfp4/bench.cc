// SPDX-License-Identifier: MIT
// nvfp4 bench: a list of shapes, each verified and then timed on the device, one row each.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "tools/harness/driver.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/peers.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

// The task's three shapes, for who names none.
const char* const kHeadline[] = {"128x7168x16384", "128x4096x7168", "128x7168x2048"};

support::Shape shape_of(const std::string& text) {
  support::Shape s{0, 0, 0, 1};
  char rest = 0;
  const int read = std::sscanf(text.c_str(), "%" SCNd64 "x%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%c",
                               &s.m, &s.n, &s.k, &s.l, &rest);
  const int64_t crosses = std::count(text.begin(), text.end(), 'x');
  const bool sizes = s.m > 0 && s.n > 0 && s.k > 0 && s.l > 0;
  if (!sizes || read < 3 || read > 4 || read != crosses + 1) {
    throw UsageError(text + " is no shape; MxNxK or MxNxKxL is, 128x7168x2048 for example");
  }
  if (s.k % 64 != 0) throw UsageError(text + ": K is not a multiple of 64");
  return s;
}

// One shape a line; empty lines and those that begin with # are left out.
void read_list(const std::string& path, std::vector<support::Shape>* shapes) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') shapes->push_back(shape_of(line));
  }
  if (!file.eof()) throw UsageError(path + " cannot be read");
}

std::vector<support::Shape> shapes_of(const BenchOptions& options) {
  std::vector<support::Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(shape_of(text));
  if (!options.list.empty()) read_list(options.list, &shapes);
  if (!options.shapes.empty() || !options.list.empty()) return shapes;
  for (const char* text : kHeadline) shapes.push_back(shape_of(text));
  return shapes;
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

void print_text(const support::Shape& s, const Verified& v, const std::vector<Peers::Row>& others,
                bool first) {
  if (first) {
    std::printf("%-24s %10s %19s %8s  %s\n", "M x N x K", "us", "10th to 90th", "of light",
                "variant");
  }
  std::printf("%-24s %10.2f %8.2f to %8.2f %6.1f %%  %s\n", to_string(s).c_str(),
              1e6 * v.device_seconds, 1e6 * v.device_p10, 1e6 * v.device_p90, v.light_percent(),
              v.names.variant.c_str());
  for (const Peers::Row& other : others) {
    if (!other.times) continue;
    std::printf("%-24s %10.2f %8.2f to %8.2f %6.2f times ours\n",
                (std::string("  cuBLASLt ") + to_string(other.type)).c_str(),
                1e6 * other.times->median, 1e6 * other.times->p10, 1e6 * other.times->p90,
                other.times->median / v.device_seconds);
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
  Json rows = Json::array();
  for (const support::Shape& shape : shapes) {
    require_memory(shape, {}, device);
    RunOptions one;
    one.shape = shape;
    const Verified v = verify(driver, device, problem_from(one));
    if (!v.kept()) throw std::runtime_error(to_string(shape) + ": FAIL, " + v.complaint());
    const auto others = peers ? peers->time(shape) : std::vector<Peers::Row>();
    const bool first = rows.empty();
    rows.push_back(row_of(shape, v, others));
    if (options.csv) print_csv(rows.back(), first);
    if (!options.csv && !options.json) print_text(shape, v, others, first);
  }
  report["shapes"] = rows;
  report.finish();
  return kPassed;
}

}  // namespace nvfp4_tool
