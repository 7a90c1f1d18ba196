// SPDX-License-Identifier: MIT
// nvfp4 run --headline.
#include "tools/nvfp4/outcome.h"

#include <cstdio>
#include <stdexcept>

#include "nvfp4_gemm.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/table.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

namespace {

std::string text(const char* format, double first, double second) {
  char made[64];
  std::snprintf(made, sizeof made, format, first, second);
  return made;
}

// The columns, as wide as what is known of the rows before the first one is computed.
Table headline_table(const std::vector<support::Shape>& shapes, const support::DeviceInfo& device) {
  Table table({{"M x N x K"},
               {"image"},
               {"variant"},
               {"equal"},
               {"error / bound"},
               {"over 1e-3", true},
               {"time"},
               {"verdict"}});
  for (const support::Shape& shape : shapes) {
    RunOptions one;
    one.set_shape(shape);
    const nvfp4_plan_info plan =
        support::plan_info(describe(one), device.compute_capability(), device.sms);
    const double all = double(shape.m) * double(shape.n);
    table.expect({to_string(shape), plan.image ? plan.image : "", plan.variant ? plan.variant : "",
                  text("%.0f of %.0f", all, all), text("%.1e / %.1e", 1, 1)});
  }
  return table;
}

// One row: on the task's data all bits must be equal, with random scales errors must stay within
// the bound.
bool headline_row(const support::Shape& shape, const RunOptions& options,
                  const support::Driver& driver, const support::DeviceInfo& device, Table& table) {
  require_memory(shape, {}, device);
  const auto problem = [&](support::Data data) {
    support::progress(to_string(shape) + ": data");
    return support::make_problem(shape, data, options.seed);
  };
  const Verified task = verify(driver, device, problem(support::Data::gpumode));
  const Verified random = verify(driver, device, problem(support::Data::random));
  if (!task.exact) throw std::logic_error("the data of the task are not exact at this shape");
  const bool passed = task.passed() && random.passed();
  table.print({to_string(shape), task.names.image, task.names.variant,
               text("%.0f of %.0f", double(task.bits.equal), double(task.bits.total)),
               text("%.1e / %.1e", random.bound.largest_error, random.bound.bound_there),
               std::to_string(random.bound.outside_tolerance),
               duration(task.wall_seconds, task.device_seconds, task.light_us),
               passed ? "PASS" : "FAIL"});
  for (const Verified* v : {&task, &random}) {
    if (!v->passed()) std::printf("  %s\n", v->complaint().c_str());
  }
  return passed;
}

}  // namespace

int headline(const RunOptions& options, const support::Driver& driver,
             const support::DeviceInfo& device) {
  const std::vector<support::Shape> shapes = {
      {128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}};
  std::printf("%s on %s, seed %llu\n", nvfp4_build_info(), device.name.c_str(),
              static_cast<unsigned long long>(options.seed));
  std::printf("equal: scales 0..3, every sum exact, bits compared with the reference\n");
  std::printf("error / bound: random scales, the largest error and its bound\n");
  std::printf("%s\n\n", time_legend(device));
  std::fflush(stdout);
  Table table = headline_table(shapes, device);
  bool passed = true;
  for (const support::Shape& shape : shapes) {
    passed = headline_row(shape, options, driver, device, table) && passed;
  }
  return passed ? kPassed : kFailed;
}

}  // namespace nvfp4_tool
