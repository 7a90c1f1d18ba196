// SPDX-License-Identifier: MIT
#include "tools/model/forecast.h"

#include <algorithm>

#include "kernel/common/hardware.h"

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
       m->gpu_fence /= kFaster;
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

const std::vector<Groups>& published_groups() {
  // flashinfer-ai/flashinfer, pull request 2503, and issue 1502 for the last.
  static const std::vector<Groups> all = {{18, 28, 4096, 7168, 67},   {18, 28, 7168, 2048, 38},
                                          {18, 113, 4096, 7168, 72},  {18, 227, 4096, 7168, 96},
                                          {18, 455, 4096, 7168, 153}, {6, 980, 4096, 7168, 87}};
  return all;
}

const std::vector<Layer>& expert_layers() {
  static const std::vector<Layer> all = {
#define EXPERTS(name, experts, n, k) {name, experts, n, k},
#include "bench/experts.def"
  };
  return all;
}

double empty_cta_us(const Machine& m, int64_t groups) {
  return (m.next_cta + walk_ns(m, groups)) / 1e3;
}

double tiling_us(const Machine& m, int64_t groups, int64_t rows, int64_t k) {
  constexpr int64_t kWarpK = 512;  // of a row, by a warp
  const double hit = m.copy_latency - m.hit_saves;
  const double life = m.skew + m.setup / m.clock + m.copy_latency + hit + m.end_told;
  if (groups == 0) return (life + double(rows * k) / 8 / m.dram_rate) / 1e3;
  const double steps = double((groups + 31) / 32);
  const double walks = double(rows) * double((k + kWarpK - 1) / kWarpK) * steps;
  const double issue = walks * m.row_walk / (4 * m.sms * m.clock);
  return (life + std::max(walk_ns(m, groups), issue)) / 1e3;
}

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// CTAs as host/plan/grouped.cc counts them. By ends, the worst division of all rows has a tile of
// each group, and all other rows in one.
void add_empty_ctas(const Machine& m, const Groups& g, int64_t tokens, GroupedForecast* f) {
  const int64_t weight_tiles = ceil_div(g.n, 128);
  const int64_t with_rows = g.count * ceil_div(g.m, tokens) * weight_tiles;
  f->ctas = (g.count + (g.m - 1) * g.count / tokens) * weight_tiles;
  f->counts_ctas = g.count * ceil_div(kCapacity, tokens) * weight_tiles;
  const auto empty = [&](int64_t ctas) {
    return double(std::max<int64_t>(0, ctas - with_rows)) / m.sms * empty_cta_us(m, g.count);
  };
  f->counts_us = f->us + empty(f->counts_ctas);
  f->us += empty(f->ctas);
}

}  // namespace

// No tile has rows of two groups. So a product that has the weights of all groups one below the
// other, and the tokens of one group, has as many tiles and loads the same weights. It leaves out
// the tokens of the other groups. These are 1 % of the bytes if a group has 28 rows, and a sixth of
// them if it has 980. CTAs that find no tile come after all others.
GroupedForecast grouped_forecast(const Machine& machine, const Groups& groups) {
  GroupedForecast least;
  const Shape all{groups.m, groups.count * groups.n, groups.k};
  for (const int64_t tokens : {64, 128}) {
    const Kernel kernel = sm100_grouped(machine, tokens, groups.count, groups.m);
    GroupedForecast f;
    f.us = simulate(machine, kernel, all).us;
    f.kernel = kernel.name;
    add_empty_ctas(machine, groups, tokens, &f);
    if (f.us < least.us) least = f;
  }
  least.linear_us = tiling_us(machine, groups.count, groups.count * groups.m, groups.k);
  least.reading_us = 0.5625 * double(all.n) * double(all.k) / machine.dram_rate / 1e3;
  return least;
}

GatedForecast gated_forecast(const Machine& machine, const Shape& shape) {
  GatedForecast least;
  for (const int64_t tokens : {64, 128}) {
    const Kernel kernel = sm100_gated(machine, tokens, shape.m);
    const double us = simulate(machine, kernel, shape).us;
    if (us < least.us) least.us = us, least.kernel = kernel.name;
  }
  const Shape both{shape.m, 2 * shape.n, shape.k};
  least.product_us = least_of(machine, both, Tail::kEngine).best_us;
  return least;
}

KindForecast kind_forecast(const Machine& machine, const Shape& shape, Tail tail) {
  const Least least = least_of(machine, shape, tail);
  return {least.kernel.name, least.us, least.best_us};
}

namespace {

constexpr double kScaleAtom = 2048;  // of 128 rows and a stage of 256
constexpr double kRowBytes = 128;    // of a stage

int stages_in(const Kernel& k, double shared_bytes) {
  return int(shared_bytes / (k.weights.code_bytes + k.weights.scale_bytes + k.tokens.code_bytes +
                             k.tokens.scale_bytes));
}

// cta_group::2: weights of both CTAs together, tokens halved, the scales of all tokens in both.
Kernel pair(const Machine& m, const Kernel& like, int weights, int tokens) {
  Kernel k = like;
  k.name = "pair " + std::to_string(weights) + "x" + std::to_string(tokens);
  k.width = 2;
  k.tile_weights = weights;
  k.tile_tokens = tokens;
  k.weights = {weights / 2 * kRowBytes, kScaleAtom, 2};
  k.tokens = {tokens / 2 * kRowBytes, kScaleAtom * (tokens > 128 ? 2 : 1),
              tokens > 128 ? 3.0 : 2.0};
  k.stages = stages_in(k, nvfp4::kMaxSharedBytes);
  const Mma mma{weights, tokens, 2, false, tokens > 128 ? 3 : 2};
  k.stage_clocks = 4 * interval(m, mma);
  k.latency_clocks = latency(mma) - interval(m, mma);
  k.start_clocks += m.cluster_barrier * m.clock;
  k.stored_bytes = double(weights) * tokens;  // 2 bytes of half the tile
  k.epilogue_clocks = tokens / 16 * m.load_drain + k.stored_bytes / m.epilogue_rate;
  return k;
}

}  // namespace

const std::vector<Cut>& cuts() {
  static const std::vector<Cut> all{{64, 1, false},  {64, 2, false},  {64, 4, false},
                                    {128, 1, false}, {128, 2, false}, {128, 4, false},
                                    {64, 1, true},   {64, 2, true},   {64, 4, true},
                                    {128, 1, true},  {128, 2, true},  {128, 4, true}};
  return all;
}

Kernel cut_kernel(const Machine& m, const Cut& cut, const Shape& shape) {
  Kernel k = sm100_kernels(m, Tail::kFormula)[cut.tokens == 64 ? 0 : 1];
  // The second of two loads is asked for before the first is worked off.
  if (cut.ahead) k.epilogue_clocks -= cut.tokens / 32 * m.load_drain;
  return cut.parts == 1 ? k : split(m, k, cut.parts, clusters_of(cut.parts), shape.m);
}

std::vector<Step> steps(const Machine& m) {
  const std::vector<Kernel> now = sm100_kernels(m, Tail::kFormula);
  std::vector<Step> all{{now[0]}, {now[1]}};
  for (Kernel half : {now[0], now[1]}) {
    half.name += " half ring";
    half.stages = stages_in(half, nvfp4::kMaxSharedBytes / 2.0);
    all.push_back({half, 2});
  }
  all.push_back({split(m, now[0], 2, clusters_of(2))});
  all.push_back({split(m, now[1], 2, clusters_of(2))});
  all.push_back({split(m, now[1], 4, clusters_of(4))});
  all.push_back({pair(m, now[1], 128, 128)});
  all.push_back({pair(m, now[1], 256, 128)});
  all.push_back({split(m, pair(m, now[1], 128, 128), 2, 36)});
  all.push_back({split(m, pair(m, now[1], 256, 128), 2, 36)});
  return all;
}

}  // namespace model
