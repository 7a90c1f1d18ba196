// SPDX-License-Identifier: MIT
#include "tools/model/forecast.h"

#include <algorithm>

namespace model {
namespace {

constexpr double kFaster = 1.25;
constexpr double kShortUs = 40;
constexpr int kLaunches = 6;

struct Resource {
  const char* name;
  void (*speed_up)(Machine* machine, Kernel* kernel);
};

const Resource kResources[] = {
    {"DRAM", [](Machine* m, Kernel*) { m->dram_rate *= kFaster; }},
    {"L2 to SM",
     [](Machine* m, Kernel*) {
       m->fabric_rate *= kFaster;
       m->port_rate *= kFaster;
     }},
    {"tensor core", [](Machine*, Kernel* k) { k->stage_clocks /= kFaster; }},
    {"issue", [](Machine*, Kernel* k) { k->issue_clocks /= kFaster; }},
    {"latency",
     [](Machine* m, Kernel* k) {
       m->copy_latency /= kFaster;
       m->map_fetch /= kFaster;
       m->setup /= kFaster;
       m->next_cta /= kFaster;
       k->start_clocks /= kFaster;
       k->latency_clocks /= kFaster;
     }},
    {"epilogue",
     [](Machine* m, Kernel* k) {
       k->epilogue_clocks /= kFaster;
       m->store_rate *= kFaster;
     }},
};

// Each operand, its scales and D once.
double bytes_of(const Shape& s) {
  return 0.5625 * double(s.n + s.m) * double(s.k) + 2.0 * double(s.m) * double(s.n);
}

}  // namespace

std::string binding(const Machine& machine, const Kernel& kernel, const Shape& shape) {
  const char* name = "";
  double least = 1e300;
  for (const Resource& resource : kResources) {
    Machine m = machine;
    Kernel k = kernel;
    resource.speed_up(&m, &k);
    const double us = simulate(m, k, shape).us;
    if (us < least) name = resource.name;
    least = std::min(least, us);
  }
  return name;
}

Forecast forecast(const Machine& machine, const Shape& shape) {
  Forecast f;
  f.shape = shape;
  f.best_us = 1e300;
  Kernel best;
  for (const Kernel& kernel : sm100_kernels(machine)) {
    const Result result = simulate(machine, kernel, shape);
    f.us.push_back(result.us);
    if (result.us >= f.best_us) continue;
    f.best_us = result.us;
    f.clock = result.clock;
    best = kernel;
  }
  f.kernel = best.name;
  // A pair that has one tile ends as a CTA of any other kernel does.
  if (best.persistent && best.tiles(shape) * best.width <= int64_t(machine.sms))
    best.persistent = false;
  if (f.best_us < kShortUs && !best.persistent)
    f.programmatic_us = simulate(machine, best, shape, {kLaunches, true, 1}).interval_us;
  f.binds = binding(machine, best, shape);
  const double products = double(shape.m) * double(shape.n) * double(shape.k);
  f.light_us = std::max(bytes_of(shape) / 7.68e6, products / (16384e3 * machine.sms * f.clock));
  return f;
}

std::vector<Shape> forecast_shapes() {
  std::vector<Shape> shapes;
  const Shape headline[] = {{128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}};
  for (const Shape& s : headline) shapes.push_back(s);
  const Shape decode[] = {
      {0, 7168, 16384}, {0, 4096, 7168}, {0, 7168, 2048}, {0, 4096, 4096}, {0, 8192, 8192}};
  for (const Shape& s : decode)
    for (const int64_t m : {1, 2, 4, 8, 16, 32, 64}) shapes.push_back({m, s.n, s.k});
  for (const Shape& s : headline)
    for (const int64_t m : {256, 512, 1024, 2048, 4096}) shapes.push_back({m, s.n, s.k});
  for (const int64_t size : {1024, 2048, 4096, 6144, 8192, 12288, 16384})
    shapes.push_back({size, size, size});
  return shapes;
}

}  // namespace model
