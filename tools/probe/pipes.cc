// SPDX-License-Identifier: MIT
// What the kernels of pipes.cu and pair.cu say.
#include <cstdio>
#include <numeric>

#include "tools/harness/module.h"
#include "tools/probe/probe.h"

namespace probe {

namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kSharedBytes = 16384 + 32768 + 1024 + 16;  // tensor.cuh

support::Module kernels(const Gpu& gpu, const char* file) {
  return support::Module(gpu.driver, std::string(NVFP4_PROBE_PTX "/") + file);
}

uint64_t sum(const std::vector<uint32_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

// Sums that are wrong where an MMA has so many tokens.
uint64_t wrong_of(const Gpu& gpu, uint32_t n) {
  const Values<uint32_t> wrong(gpu, kThreads);
  CUdeviceptr to = wrong.address();
  void* arguments[] = {&to, &n};
  kernels(gpu, "pipes.ptx").launch("probe_n_multiple_of_8", 1, kThreads, kSharedBytes, arguments);
  return sum(wrong.get());
}

// Sums of both CTAs of a pair that are wrong in eight runs of 64 rounds.
uint64_t wrong_of_pair(const Gpu& gpu, const char* kernel) {
  uint64_t all = 0;
  for (int run = 0; run < 8; ++run) {
    const Values<uint32_t> wrong(gpu, 2 * kThreads);
    CUdeviceptr to = wrong.address();
    uint32_t rounds = 64;
    void* arguments[] = {&to, &rounds};
    kernels(gpu, "pair.ptx").launch(kernel, 2, kThreads, kSharedBytes + 32, arguments);
    all += sum(wrong.get());
  }
  return all;
}

std::string of_sums(uint64_t wrong) {
  return std::to_string(wrong) + " of " + std::to_string(8 * 2 * kThreads * 256) +
         " sums are wrong";
}

std::string number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.1f", value);
  return text;
}

uint64_t clocks_of(const Gpu& gpu, const char* kernel, uint32_t first, uint32_t second) {
  const Values<uint64_t> clocks(gpu, 2);
  CUdeviceptr to = clocks.address();
  void* arguments[] = {&to, &first, &second};
  kernels(gpu, "pipes.ptx").launch(kernel, 1, kThreads, kSharedBytes, arguments);
  return clocks.get()[0];
}

}  // namespace

// A fault is an answer, too, and ends the questions to this process.
Answer n_multiple_of_8(const Gpu& gpu) {
  Answer a;
  a.sets = "kTokenStep of kernel/sm100/tile.h stays 16";
  for (const uint32_t n : {32, 48, 64}) {
    if (wrong_of(gpu, n) == 0) continue;
    a.figures = std::to_string(n) + " tokens, which are known to work, have wrong sums";
    return a;
  }
  for (const uint32_t n : {24, 40, 56}) {
    a.figures += (a.figures.empty() ? "" : ", ") + std::to_string(n) + " tokens: ";
    try {
      const uint64_t wrong = wrong_of(gpu, n);
      a.figures += std::to_string(wrong) + " wrong sums";
      if (wrong != 0) a.word = "no";
    } catch (const support::DriverError& error) {
      a.figures += error.what();
      a.word = "faults";
      return a;
    }
  }
  if (a.word.empty()) {
    a.word = "yes";
    a.sets = "kTokenStep of kernel/sm100/tile.h may be 8";
  }
  return a;
}

Answer mma_before_cp_pair(const Gpu& gpu) {
  const uint64_t wrong = wrong_of_pair(gpu, "probe_mma_before_cp_pair");
  Answer a;
  a.word = wrong == 0 ? "ordered" : "overtakes";
  a.figures = of_sums(wrong);
  a.sets = wrong == 0 ? "EMU_CP_OVERTAKES=0; NVFP4_MMA_BEFORE_CP of kernel/sm100/tile.h stays 1"
                      : "EMU_CP_OVERTAKES=1; NVFP4_MMA_BEFORE_CP of kernel/sm100/tile.h becomes 0: "
                        "256x256 has one accumulator";
  return a;
}

Answer pair_tail(const Gpu& gpu) {
  const uint64_t wrong = wrong_of_pair(gpu, "probe_pair_tail");
  Answer a;
  a.word = wrong == 0 ? "ordered" : "wrong";
  a.figures = of_sums(wrong);
  a.sets = wrong == 0 ? "nothing to change: pairs take any K (kernel/sm100/cut.cuh)"
                      : "pairs refuse K that is no multiple of 64, until cut.cuh has another way";
  return a;
}

Answer scale_copy(const Gpu& gpu) {
  constexpr uint32_t kRounds = 64, kFew = 2, kMany = 10;
  const uint64_t few = clocks_of(gpu, "probe_scale_copy", kRounds, kFew),
                 many = clocks_of(gpu, "probe_scale_copy", kRounds, kMany);
  const double each = (double(many) - double(few)) / (kRounds * (kMany - kFew));
  Answer a;
  if (each >= 0) a.word = std::to_string(int(each + 0.5));
  a.figures = number(each) + " clocks for a copy of 512 bytes beside MMAs of 64 tokens";
  a.sets = "scale_copy of tools/model/parameters.def";
  return a;
}

Answer load_drain(const Gpu& gpu) {
  constexpr uint32_t kLoads = 64, kMmas = 256;  // these take longer
  const double alone = double(clocks_of(gpu, "probe_load_drain", kLoads, 1)) / (2 * kLoads),
               beside = double(clocks_of(gpu, "probe_load_drain", kLoads, kMmas)) / (2 * kLoads);
  Answer a;
  a.word = std::to_string(int(beside + 0.5));
  a.figures = number(beside) + " clocks for 16 columns by each of four warps beside MMAs, " +
              number(alone) + " alone";
  a.sets = "load_drain of tools/model/parameters.def";
  return a;
}

}  // namespace probe
