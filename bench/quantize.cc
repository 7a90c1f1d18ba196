// SPDX-License-Identifier: MIT
// nvfp4_bench quantize: what makes NVFP4 on the device, compared with the host bit by bit and then
// timed beside a copy. One CSV row per operation, type and shape; docs/performance.md explains the
// columns.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/figures.h"
#include "bench/head.h"
#include "bench/quantize_set.h"
#include "bench/yardsticks.h"
#include "tools/harness/parallel.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::Driver;

// ---- Random values -----------------------------------------------------------------------------

// Blocks of neighbouring exponents, so that elements of every size meet a scale, one in eight of
// any.
std::vector<uint8_t> random_elements(int32_t type, int64_t rows, int64_t k, uint64_t seed) {
  const size_t bytes = element_bytes(type);
  const uint32_t mask = type == NVFP4_TYPE_F16    ? 0x7C00
                        : type == NVFP4_TYPE_BF16 ? 0x7F80
                                                  : 0x7F800000;
  const uint32_t step = mask & -mask;
  std::vector<uint8_t> out(size_t(rows * k) * bytes);
  support::parallel_for(rows, [&](int64_t row) {
    support::Random random(seed + uint64_t(row) * 7919);
    for (int64_t block = 0; block < k / 16; ++block) {
      const uint32_t exponent = uint32_t(random.next()) & mask;
      const bool near = random.next() % 8 != 0 && exponent < mask - 8 * step;
      for (int64_t i = 0; i < 16; ++i) {
        auto bits = uint32_t(random.next());
        if (near) bits = (bits & ~mask) | (exponent + uint32_t(random.next() % 6) * step);
        std::memcpy(&out[size_t(row * k + block * 16 + i) * bytes], &bits, bytes);
      }
    }
  });
  return out;
}

// `values` of each type under tensor scales of many sizes: codes and scales of the host?
void verify_random(const Driver& driver, double values) {
  constexpr int64_t kRows = 512;
  const int64_t k = values < 1e6 ? 64 : 4096;
  int64_t done = 0;
  for (uint64_t seed = 1; double(done) < values; ++seed) {
    for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
      support::Random random(seed);
      const uint32_t range = seed % 4 == 0 ? 200 : 24;
      QuantizeSet set(driver, {QuantizeSet::quantize, NVFP4_TENSOR_SCALE_VALUE, type, kRows, k});
      set.x.upload(random_elements(type, kRows, k, random.next()));
      set.set_tensor_scale(std::ldexp(1 + float(random.below(1 << 23)) * 0x1p-23f,
                                      int(random.below(range)) - int(range) / 2));
      set.run(nullptr);
      std::vector<int64_t> rows;
      for (int64_t row = 0; row < kRows; ++row) rows.push_back(row);
      set.require_host_bits(rows);
    }
    done += kRows * k;
    support::progress("random values: " + std::to_string(done) + " of each type");
  }
  std::printf("# random    %lld values of each type have the host's bits\n",
              static_cast<long long>(done));
}

// ---- Timing ------------------------------------------------------------------------------------

struct Machine {
  double copy_bytes_per_us = 0, node_us = 0;
};

// Rows spread over all of the matrix, the last one among them.
std::vector<int64_t> checked_rows(int64_t rows) {
  std::vector<int64_t> some;
  const int64_t count = std::min<int64_t>(rows, 16);
  for (int64_t i = 1; i <= count; ++i) some.push_back(i * rows / count - 1);
  return some;
}

constexpr int kMostSets = 512;  // a row of 7168 elements comes back from the L2

void time_operation(const Gpu& gpu, GpuTimer& timer, const Machine& machine,
                    const QuantizeSet::Problem& problem, int replays) {
  support::progress(name(problem));
  const int count = std::min(kMostSets, cold_copies(moved_bytes(problem), gpu.l2_bytes));
  const Filler filler(gpu.driver, GemmType::f16);
  std::vector<std::unique_ptr<QuantizeSet>> sets;
  for (int i = 0; i < count; ++i) {
    sets.push_back(std::make_unique<QuantizeSet>(gpu.driver, problem));
    sets.back()->fill(filler);
  }
  sets[0]->run(nullptr);
  sets[0]->require_host_bits(checked_rows(problem.rows));
  const auto [launch, calls] =
      support::in_turns(sets, [](QuantizeSet& set, CUstream stream) { set.run(stream); });
  const std::vector<double> graph = timer.graph(launch, calls, replays);
  for (const auto& set : sets) set->set_pdl(NVFP4_PDL_ON);
  const double pdl_us = median(timer.graph(launch, calls, replays));
  const double us = median(graph), rate = moved_bytes(problem) / us;
  std::printf("%s,%.2f,%.2f,%.2f,%.2f,%.0f,%.2f,%.3f\n", name(problem).c_str(), us,
              quantile(graph, 0.1), quantile(graph, 0.9), pdl_us, moved_bytes(problem), rate / 1e6,
              rate / machine.copy_bytes_per_us);
  std::fflush(stdout);
}

void print_head(const QuantizeOptions& options, const support::DeviceInfo& info,
                const Machine& machine) {
  std::printf(
      "# Microseconds by graph replay, everything cold: working sets rotate over more than three "
      "times the L2.\n# date      %s\n# command   %s\n# device    %s, %d SMs\n# library   %s\n",
      today().c_str(), options.command.c_str(), info.name.c_str(), info.sms, nvfp4_build_info());
  std::printf("# copy      %.2f TB/s read and written, 1 GiB at a time\n",
              machine.copy_bytes_per_us / 1e6);
  std::printf("# node      %.2f us for an empty kernel in a graph\n", machine.node_us);
  std::printf("# pdl_us    launches with NVFP4_PDL_ON, one after the other\n");
  std::printf("# spread    10th and 90th percentile of %d replays\n", options.replays);
  std::printf("operation,scale,type,rows,k,us,p10_us,p90_us,pdl_us,bytes,tb_per_s,of_copy\n");
}

std::vector<QuantizeSet::Problem> problems_of(const QuantizeOptions& options) {
  constexpr int64_t kShapes[][2] = {{1, 7168},    {32, 7168},   {128, 7168},
                                    {1024, 7168}, {4096, 8192}, {16384, 8192}};
  std::vector<std::pair<int64_t, int64_t>> shapes;
  for (const std::string& text : options.shapes) {
    long long rows = 0, k = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%lldx%lld%c", &rows, &k, &rest) != 2 || rows < 1 || k < 16)
      throw std::invalid_argument("'" + text + "' is no shape; 128x7168 is one");
    shapes.emplace_back(rows, k);
  }
  if (shapes.empty())
    for (const auto& shape : kShapes) shapes.emplace_back(shape[0], shape[1]);
  std::vector<QuantizeSet::Problem> problems;
  for (const auto& [rows, k] : shapes)
    for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32})
      for (const auto& [operation, mode] : QuantizeSet::kOperations)
        if (type == NVFP4_TYPE_F16 || mode == NVFP4_TENSOR_SCALE_DEVICE)
          problems.push_back({operation, mode, type, rows, k});
  return problems;
}

}  // namespace

int time_quantize(const QuantizeOptions& options) {
  const std::vector<QuantizeSet::Problem> problems = problems_of(options);
  const Driver& driver = Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  const support::DeviceInfo& info = gpu.info;
  if (options.values > 0) verify_random(driver, options.values);
  if (info.emulated()) {
    std::printf("# %s: nothing is timed in the emulator\n", info.name.c_str());
    return 0;
  }
  GpuTimer timer(driver);
  Machine machine;
  machine.copy_bytes_per_us = copy_bytes_per_us(driver, timer, info.sms);
  machine.node_us = empty_node_us(driver, timer);
  print_head(options, info, machine);
  for (const auto& problem : problems)
    time_operation(gpu, timer, machine, problem, options.replays);
  support::progress_done();
  return 0;
}

}  // namespace bench
