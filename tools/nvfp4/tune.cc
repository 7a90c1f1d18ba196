// SPDX-License-Identifier: MIT
// nvfp4 tune: for each shape, times of the variants that give the planner's bits; a table of those
// that win, or one of every variant beside the planner's prediction.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>

#include "tools/harness/device_gemm.h"
#include "tools/harness/gpu_timer.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/candidates.h"
#include "tools/nvfp4/chooser.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/every.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/output_files.h"
#include "tools/nvfp4/report.h"
#include "tools/nvfp4/shapes.h"
#include "tools/nvfp4/table.h"

namespace nvfp4_tool {

namespace {

using support::Driver;

// A shape's operands on the device, where each variant is timed with cold weights.
class TimedShape {
 public:
  TimedShape(const support::Driver& driver, const RunOptions& options, uint64_t workspace_bytes);

  // Times the variants interleaved, by graphs of launches that rotate over copies. "": the
  // planner's choice.
  std::vector<Measured> time(const std::vector<std::string>& variants, int replays);

 private:
  support::Series series_of(const std::string& variant) const;

  support::GpuTimer timer_;
  support::DeviceBuffer workspace_;
  std::vector<std::unique_ptr<support::DeviceGemm>> copies_;
};

constexpr int kMostCopies = 128;

// Very small operands would need more than kMostCopies.
int count_copies(const support::Driver& driver, const support::Shape& shape) {
  int l2 = 0;
  driver.check(driver.cuDeviceGetAttribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0),
               "cuDeviceGetAttribute");
  return std::min(kMostCopies, support::cold_copies(device_bytes(shape, {}), l2));
}

TimedShape::TimedShape(const support::Driver& driver, const RunOptions& options,
                       uint64_t workspace_bytes)
    : timer_(driver), workspace_(driver, std::max<uint64_t>(workspace_bytes, 256)) {
  const support::Problem problem = problem_from(options);
  const size_t count = size_t(count_copies(driver, options.shape()));
  copies_.push_back(std::make_unique<support::DeviceGemm>(driver, problem));
  while (copies_.size() < count)
    copies_.push_back(std::make_unique<support::DeviceGemm>(*copies_[0]));
  for (const auto& copy : copies_) {
    copy->desc.workspace = workspace_.pointer();
    copy->desc.workspace_bytes = workspace_.bytes();
  }
}

std::vector<Measured> TimedShape::time(const std::vector<std::string>& variants, int replays) {
  std::vector<support::Series> series;
  for (const std::string& variant : variants) series.push_back(series_of(variant));
  const auto samples = timer_.interleaved(series, replays);
  std::vector<Measured> all;
  for (size_t i = 0; i < variants.size(); ++i) all.push_back({variants[i], samples[i]});
  return all;
}

support::Series TimedShape::series_of(const std::string& variant) const {
  return support::in_turns(copies_, [variant](const support::DeviceGemm& copy, CUstream stream) {
    nvfp4_gemm_desc desc = copy.desc;
    desc.variant = variant.empty() ? nullptr : variant.c_str();
    if (nvfp4_gemm_run(&desc, stream) != NVFP4_SUCCESS) {
      throw std::runtime_error(nvfp4_last_error());
    }
  });
}

constexpr int kScreened = 7, kReplays = 41;
constexpr size_t kFinalists = 3;

// The names that may be timed: "" is the planner's choice.
std::vector<std::string> admitted(const Candidates& candidates, bool any_bits) {
  std::vector<std::string> names = {""};
  for (const Candidate& each : candidates.others) {
    if (any_bits || each.same_bits) names.push_back(each.name);
  }
  return names;
}

struct Tuned {
  Statistic planned;
  std::optional<Measured> won;
};

// Times all briefly, then the fastest few and the planner's choice for longer.
Tuned measure(const Driver& driver, const RunOptions& options, const Candidates& candidates,
              bool any_bits) {
  const std::string shape = to_string(options.shape());
  std::vector<std::string> names = admitted(candidates, any_bits);
  TimedShape timed(driver, options, candidates.workspace_bytes);
  support::progress(shape + ": timing " + std::to_string(names.size()) + " variants");
  std::vector<Measured> screened = timed.time(names, kScreened);
  screened.erase(screened.begin());
  names.assign(1, "");
  for (const size_t i : finalists(screened, kFinalists)) names.push_back(screened[i].variant);
  support::progress(shape + ": timing the fastest " + std::to_string(names.size() - 1) + " again");
  std::vector<Measured> last = timed.time(names, kReplays);
  support::progress_done();
  const Measured planned = last.front();
  last.erase(last.begin());
  Tuned tuned{statistic_of(planned.us), {}};
  if (const Measured* won = choose_variant(planned, last)) tuned.won = *won;
  return tuned;
}

// Times every variant briefly, then the fastest and the planner's choice for longer.
std::vector<EveryRow> measure_every(const Driver& driver, const RunOptions& options,
                                    const Candidates& candidates) {
  const std::string shape = to_string(options.shape());
  std::vector<EveryRow> rows = every_row(options.shape(), options.product.a_type, candidates);
  TimedShape timed(driver, options, candidates.workspace_bytes);
  const auto time = [&](const std::vector<size_t>& which, int replays) {
    support::progress(shape + ": timing " + std::to_string(which.size()) + " variants");
    std::vector<std::string> names;
    for (const size_t i : which) names.push_back(rows[i].name);
    const std::vector<Measured> all = timed.time(names, replays);
    for (size_t i = 0; i < which.size(); ++i) rows[which[i]].us = all[i].us;
  };
  time(worth_timing(rows), kEveryScreened);
  time(worth_timing_again(rows), kEveryReplays);
  support::progress_done();
  return rows;
}

RunOptions problem_of(const TuneOptions& options, const support::Shape& shape) {
  RunOptions one;
  one.set_shape(shape);
  one.product.a_type = options.a_type;
  one.data = support::Data::random;
  return one;
}

Json json_of(const support::Shape& s, const Candidates& candidates) {
  Json all = Json::array();
  for (const Candidate& each : candidates.others) {
    all.push_back({{"variant", each.name}, {"same_bits", each.same_bits}});
  }
  return {{"m", s.m},         {"n", s.n}, {"k", s.k}, {"l", s.l}, {"planned", candidates.planned},
          {"candidates", all}};
}

void print_candidates(const support::Shape& shape, const Candidates& candidates) {
  std::printf("%s: %s by the planner\n", to_string(shape).c_str(), candidates.planned.c_str());
  Table table({{""}, {""}, {""}});
  const auto row_of = [](const Candidate& each) -> std::vector<std::string> {
    return {"", each.name, each.same_bits ? "the same bits" : "other bits"};
  };
  for (const Candidate& each : candidates.others) table.expect(row_of(each));
  for (const Candidate& each : candidates.others) table.print(row_of(each));
}

std::string number(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Shapes, numbers, words.
Table table_of(const std::vector<support::Shape>& shapes, const char* largest) {
  Table table({{""}, {"", true}, {""}});
  for (const support::Shape& shape : shapes) table.expect({to_string(shape), largest});
  return table;
}

void print_tuned(const support::Shape& shape, const Candidates& candidates, const Tuned& tuned,
                 Table& table) {
  table.print({to_string(shape), number(tuned.planned.median, "%.2f us"), candidates.planned});
  if (!tuned.won) {
    table.print({"", "", "stays: nothing is faster beyond the spread"});
    return;
  }
  const double us = statistic_of(tuned.won->us).median;
  table.print(
      {"", number(us, "%.2f us"),
       tuned.won->variant + ": " + number(100 * (1 - us / tuned.planned.median), "%.1f %% less")});
}

void add_times(const Tuned& tuned, Json& row) {
  row["planned_us"] = tuned.planned.median;
  row["planned_us_p10"] = tuned.planned.p10;
  row["planned_us_p90"] = tuned.planned.p90;
  row["variant"] = tuned.won ? Json(tuned.won->variant) : Json();
  row["us"] = tuned.won ? Json(statistic_of(tuned.won->us).median) : Json();
}

void refuse_emulated(const TuneOptions& options, const support::DeviceInfo& device) {
  if (options.candidates || !device.emulated()) return;
  throw std::runtime_error(device.name +
                           ": there is no time to measure here; nvfp4 tune --candidates lists the "
                           "variants and whether they give the same bits");
}

std::vector<support::Shape> shapes_of(const TuneOptions& options) {
  const std::vector<support::Shape> shapes = read_shapes(options.shapes, options.list);
  if (shapes.empty()) throw UsageError("which shapes? MxNxK, or --shapes FILE");
  if (options.out.empty() && options.every.empty() && !options.candidates) {
    throw UsageError("--out FILE: where the table goes; or --candidates, which times nothing");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const support::Shape &x = shapes[i], &y = shapes[j];
      if (x.m == y.m && x.n == y.n && x.k == y.k && x.l == y.l) {
        throw UsageError(to_string(x) + " stands twice in the list");
      }
    }
  }
  return shapes;
}

// Handles one shape after the other and collects the winners in a table.
class Tuner {
 public:
  Tuner(const TuneOptions& options, const Driver& driver, const support::DeviceInfo& device,
        const std::vector<support::Shape>& shapes)
      : options_(options),
        driver_(driver),
        device_(device),
        text_(table_of(shapes, options.every.empty() ? "99999.99 us" : "999 variants")) {}

  Json take(const support::Shape& shape) {
    require_memory(shape, {}, device_);
    const RunOptions one = problem_of(options_, shape);
    Candidates candidates =
        list_candidates(describe(one), device_.compute_capability(), device_.sms);
    if (!options_.every.empty()) return take_every(one, candidates);
    compare_bits(driver_, one, &candidates);
    Json row = json_of(shape, candidates);
    if (options_.candidates) {
      if (!options_.json) print_candidates(shape, candidates);
      return row;
    }
    const Tuned tuned = measure(driver_, one, candidates, options_.any_bits);
    if (!options_.json) print_tuned(shape, candidates, tuned, text_);
    add_times(tuned, row);
    if (tuned.won) {
      table_.push_back({shape, options_.a_type, tuned.won->variant, tuned.planned.median,
                        statistic_of(tuned.won->us).median});
    }
    return row;
  }

  void save() const {
    const bool every = !options_.every.empty();
    const std::string text = every ? write_every(device_.name, device_.sms, every_)
                                   : write_table(device_.name, device_.compute_capability(),
                                                 device_.sms, options_.any_bits, table_);
    OutputFiles files;
    files.write(every ? options_.every : options_.out, {text});
    files.commit();
  }
  size_t rows() const { return table_.size(); }

 private:
  Json take_every(const RunOptions& one, const Candidates& candidates) {
    const std::vector<EveryRow> rows = options_.candidates
                                           ? every_row(one.shape(), one.product.a_type, candidates)
                                           : measure_every(driver_, one, candidates);
    every_.insert(every_.end(), rows.begin(), rows.end());
    const support::Shape s = one.shape();
    if (!options_.json) {
      text_.print({to_string(s), std::to_string(rows.size()) + " variants",
                   candidates.planned + " by the planner"});
    }
    return {{"m", s.m}, {"n", s.n}, {"k", s.k}, {"l", s.l}, {"variants", rows.size()}};
  }

  const TuneOptions& options_;
  const Driver& driver_;
  const support::DeviceInfo& device_;
  Table text_;
  std::vector<TunedRow> table_;
  std::vector<EveryRow> every_;
};

}  // namespace

int tune(const TuneOptions& options) {
  const std::vector<support::Shape> shapes = shapes_of(options);
  const Driver& driver = Driver::get();
  const support::DeviceInfo device = support::devices(driver).at(0);
  refuse_emulated(options, device);
  const support::Context context(driver);
  Report report(options.json);
  report["device"] = device.name;
  report["bits"] = options.any_bits || !options.every.empty() ? "any" : "same";
  Tuner tuner(options, driver, device, shapes);
  Json rows = Json::array();
  for (const support::Shape& shape : shapes) rows.push_back(tuner.take(shape));
  report["shapes"] = rows;
  if (!options.every.empty()) {
    tuner.save();
    report["every"] = options.every;
  } else if (!options.candidates) {
    tuner.save();
    report["table"] = options.out;
    report.line("table", "%s: %zu of %zu shapes gain", options.out.c_str(), tuner.rows(),
                shapes.size());
  }
  report.finish();
  return kPassed;
}

}  // namespace nvfp4_tool
