// SPDX-License-Identifier: MIT
#include "tools/model/hopper.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "kernel/sm90/params.h"

namespace model {
namespace {

struct Row {
  const char* tile;
  int weights, tokens, stages, ahead;
};

// Weights and ring from kernel/sm90/tiles.def.
const Row kRows[] = {
#define SM90_TINY_TILE(weights, tokens, columns, groups, stages, ahead, ...) \
  {#weights "x" #tokens, weights, tokens, stages, ahead},
#define SM90_WIDE_TILE(weights, tokens, source, sums, groups, stages, ahead, ...) \
  {#weights "x" #tokens, weights, tokens, stages, ahead},
#include "kernel/sm90/tiles.def"
};

struct Traced {
  const char* variant;
  double loads, load_bytes, copies, copy_bytes, global_bytes, stored;
};
const Traced kTraced[] = {
#define TRACED(variant, loads, load_bytes, copies, copy_bytes, global_bytes, products, scales, \
               stored)                                                                         \
  {#variant, loads, load_bytes, copies, copy_bytes, global_bytes, stored},
#include "tools/model/traced.def"
};

double stage_clocks(const std::string& tile) {
#define SM90_STAGE(name, clocks) \
  if (tile == #name) return clocks;
#include "tools/model/parameters.def"
  return 0;
}

// From the last product to the last store.
double end_clocks(const Machine& m, const Row& row, int split) {
  const double sums = 4.0 * row.weights * row.tokens;
  const double pushed = sums * (split - 1) / split / (m.push_rate / m.clock);
  if (row.tokens <= 4)
    return m.tiny_end + (m.tiny_part + m.tiny_token * row.tokens) * std::log2(split);
  if (row.tokens <= 16) return m.few_end + m.few_part * std::log2(split) + pushed;
  return m.sums_end + sums / m.sums_rate + (split > 1 ? m.sums_parts + pushed : 0);
}

}  // namespace

bool sm90_kernel(const Machine& m, const std::string& tile, int split, Kernel* kernel) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& r) { return tile == r.tile; });
  const auto traced = std::find_if(std::begin(kTraced), std::end(kTraced), [&](const Traced& t) {
    return "sm90_" + tile + "x256" == t.variant;
  });
  if (row == std::end(kRows) || traced == std::end(kTraced) || stage_clocks(tile) == 0)
    return false;
  Kernel& k = *kernel;
  k = {};
  k.name = "sm90_" + tile;
  k.tile_weights = row->weights;
  k.tile_tokens = row->tokens;
  k.stage_k = nvfp4::kSm90StageK;
  k.split = split;
  k.stages = row->stages;
  k.ahead = row->ahead;
  // A scale tile holds 128 rows, whatever the tile has of them. The rest of the copies are tokens.
  const double scales = 2048;
  k.weights = {traced->load_bytes, scales, 2};
  k.tokens = {0, traced->copy_bytes - scales + traced->global_bytes,
              std::max(1.0, traced->copies - 1)};
  k.stage_clocks = stage_clocks(tile);
  k.stored_bytes = traced->stored;
  k.epilogue_clocks = end_clocks(m, *row, split);
  if (row->tokens > 16) k.tokens_ns = m.tokens_there;
  k.persistent = row->tokens >= 128 && row->weights == 128 && split == 1;
  // CTAs of a cluster run together, one to an SM.
  k.units = int64_t(m.sms) / split * split;
  return true;
}

namespace {

struct Clocked {
  Shape shape;
  std::string tile;
  Kernel kernel;
  double us;
};

// Rows of up to 128 tokens whose tile the model has.
std::vector<Clocked> read_clocks(const Machine& machine, const std::string& file) {
  std::vector<Clocked> all;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    long long rows, n, k, ctas;
    char name[64];
    Clocked row;
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%63[^,],%lld,%lf", &rows, &n, &k, name, &ctas,
                    &row.us) != 6)
      continue;
    const std::string entry = name;
    row.tile = entry.substr(entry.rfind('_') + 1);
    row.shape = {rows, n, k};
    if (rows > 128 || !sm90_kernel(machine, row.tile, 1, &row.kernel)) continue;
    const int split = int(std::max<int64_t>(1, ctas / row.kernel.tiles(row.shape)));
    sm90_kernel(machine, row.tile, split, &row.kernel);
    all.push_back(row);
  }
  return all;
}

std::string name_of(const Clocked& row) {
  std::ostringstream name;
  name << row.shape.m << 'x' << row.shape.n << 'x' << row.shape.k << ' ' << row.tile << " in "
       << row.kernel.split;
  return name.str();
}

constexpr int kLaunches = 8;

}  // namespace

std::vector<Comparison> measured_spans(const Machine& machine, const std::string& clocks) {
  std::vector<Comparison> all;
  for (const Clocked& row : read_clocks(machine, clocks))
    all.push_back({name_of(row), row.us, simulate(machine, row.kernel, row.shape).us});
  return all;
}

std::vector<Comparison> measured_launches(const Machine& machine, const std::string& gpu,
                                          const std::string& clocks, bool programmatic) {
  std::vector<Comparison> all;
  const std::vector<Clocked> clocked = read_clocks(machine, clocks);
  std::ifstream text(gpu);
  for (std::string line; std::getline(text, line);) {
    long long m, n, k;
    double us, programmatic_us;
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%*[^,],%lf,%*f,%*f,%*f,%*f,%lf", &m, &n, &k, &us,
                    &programmatic_us) != 5)
      continue;
    for (const Clocked& row : clocked) {
      if (row.shape.m != m || row.shape.n != n || row.shape.k != k || m > 16) continue;
      const Result result = simulate(machine, row.kernel, row.shape, {kLaunches, programmatic, 1});
      all.push_back({name_of(row) + (programmatic ? ", programmatic" : ", each on its own"),
                     programmatic ? programmatic_us : us, result.interval_us});
    }
  }
  return all;
}

Errors errors_of(const std::vector<Comparison>& comparisons) {
  std::vector<double> off, ratio;
  for (const Comparison& c : comparisons) {
    off.push_back(std::abs(c.ratio() - 1));
    ratio.push_back(c.ratio());
  }
  if (off.empty()) return {};
  std::sort(off.begin(), off.end());
  std::sort(ratio.begin(), ratio.end());
  const auto within = std::upper_bound(off.begin(), off.end(), 0.2) - off.begin();
  return {off[off.size() / 2], double(within) / double(off.size()), ratio[ratio.size() / 2] - 1};
}

}  // namespace model
