// SPDX-License-Identifier: MIT
#include "tools/model/forecast.h"

#include <algorithm>

namespace model {
namespace {

constexpr double kFaster = 1.25;
constexpr double kShortUs = 40;
constexpr int kLaunches = 6;
constexpr int kFewestStages = 4;

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

std::vector<Way> ways() {
  std::vector<Way> all;
  const std::vector<Kernel> kernels = sm100_kernels(kB200, Tail::kPlain);
  for (size_t i = 0; i < kernels.size(); ++i) all.push_back({kernels[i].name, i, 1});
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].width > 1 || kernels[i].tile_tokens > 128) continue;
    for (const int parts : {2, 4})
      all.push_back({kernels[i].name + "/" + std::to_string(parts), i, parts});
  }
  return all;
}

namespace {

// Parts of K are taken where all run at once, of four stages or more, as the planner takes them.
bool may_take(const Way& way, const Kernel& kernel, const Shape& shape) {
  const int64_t stages = (shape.k + kernel.stage_k - 1) / kernel.stage_k;
  return way.parts == 1 ||
         (kernel.tiles(shape) <= clusters_of(way.parts) && way.parts * kFewestStages <= stages);
}

struct Least {
  std::vector<double> us;
  double best_us = 1e300, clock = 0;
  Kernel kernel;
};

Least least_of(const Machine& machine, const Shape& shape, Tail tail) {
  Least least;
  const std::vector<Kernel> whole = sm100_kernels(machine, tail, shape.m);
  for (const Way& way : ways()) {
    Kernel kernel = whole[way.variant];
    least.us.push_back(0);
    if (!may_take(way, kernel, shape)) continue;
    if (way.parts > 1) kernel = sm100_split(machine, kernel, tail, way.parts, shape.m);
    kernel.name = way.name;
    const Result result = simulate(machine, kernel, shape);
    least.us.back() = result.us;
    if (result.us >= least.best_us) continue;
    least.best_us = result.us;
    least.clock = result.clock;
    least.kernel = kernel;
  }
  return least;
}

}  // namespace

Forecast forecast(const Machine& machine, const Shape& shape) {
  Least least = least_of(machine, shape, Tail::kPlain);
  Forecast f;
  f.shape = shape;
  f.us = least.us;
  f.best_us = least.best_us;
  f.clock = least.clock;
  f.engine_us = least_of(machine, shape, Tail::kEngine).best_us;
  f.formula_us = least_of(machine, shape, Tail::kFormula).best_us;
  Kernel& best = least.kernel;
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
