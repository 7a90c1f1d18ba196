// SPDX-License-Identifier: MIT
// What the kernels of tensor.cu say.
#include <algorithm>
#include <cstdio>

#include "tools/harness/module.h"
#include "tools/probe/probe.h"

namespace probe {

namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kSharedBytes = 16384 + 32768 + 1024 + 16;  // tensor.cuh

support::Module kernels(const Gpu& gpu) {
  return support::Module(gpu.driver, NVFP4_PROBE_PTX "/tensor.ptx");
}

// For which band of 32 lanes, 0 to 3, the scales were that each lane's sum has; -1: of none.
std::vector<int> bands_read(const Gpu& gpu, uint32_t of_tokens) {
  const Values<float> d(gpu, kThreads);
  CUdeviceptr to = d.address();
  void* arguments[] = {&to, &of_tokens};
  kernels(gpu).launch("probe_lane_bands", 1, kThreads, kSharedBytes, arguments);
  std::vector<int> bands;
  for (const float sum : d.get()) {
    const int band = sum == 1 ? 0 : sum == 2 ? 1 : sum == 4 ? 2 : sum == 8 ? 3 : -1;
    bands.push_back(band);
  }
  return bands;
}

bool all_of(const std::vector<int>& bands, bool own) {
  for (size_t lane = 0; lane < bands.size(); ++lane) {
    if (bands[lane] != (own ? int(lane / 32) : 0)) return false;
  }
  return true;
}

std::string list(const std::vector<int>& bands) {
  std::string text;
  for (size_t lane = 0; lane < bands.size(); lane += 32) text += " " + std::to_string(bands[lane]);
  return text;
}

// Bytes in hexadecimal digits, in the order of memory.
template <size_t kBytes>
void read_hex(const char* digits, uint8_t (&bytes)[kBytes]) {
  const auto value = [](char c) { return uint8_t(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i < kBytes; ++i)
    bytes[i] = uint8_t(value(digits[2 * i]) << 4 | value(digits[2 * i + 1]));
}

// Rows of tools/emulator/test/golden/block_scaled_words.csv, which tell the models of a step apart
// (docs/numerics.md), and the word of each model: groups of 4, blocks of 16, these as read later.
struct Case {
  const char *a, *b, *a_scales, *b_scales;
  uint32_t c, words[3];
};
constexpr const char* kModels[] = {"groups", "blocks", "blocks_later"};
constexpr Case kCases[] = {
    {"8b0e7153bf7c3706d85c524e440066559a6656c90bd5482a8080888888880080",
     "bc0dbc0e15637ebb8e3b91d26ab4a829a95249f512c17b8ed411fa644d35db41",
     "0f0a057c",
     "0f080b7c",
     0xB858E88B,
     {0xBBBD59D1, 0xBBBD5000, 0xBBBD59D1}},
    {"357840fc1878d1fa0141312f12fa5a2bcc9b86ad340c251be61919f7d5e67f80",
     "d7d40ab83e3c3a30f47c123c50a303f99217331a52757ec8bbbb227755ffcc55",
     "020c0978",
     "05010177",
     0xBC75539E,
     {0xBC664C00, 0xBC664C00, 0xBC664F9E}},
    {"090000000b0000909a31eed34c5e34c84d7eaa22f1eca23183fea148b4804917",
     "0488b0c63a988f4c897d3b8d4e30b11d7cf5ed195f5d33cf1047abe3a2596e4f",
     "7e010302",
     "78030602",
     0x44AF4C86,
     {0xC75A859C, 0xC75A859D, 0xC75A859D}},
};

uint32_t sum_of(const Gpu& gpu, const Case& one) {
  struct {  // OneSum of tensor.cu
    uint8_t a[32], b[32], a_scales[4], b_scales[4];
    uint32_t c;
  } of;
  read_hex(one.a, of.a);
  read_hex(one.b, of.b);
  read_hex(one.a_scales, of.a_scales);
  read_hex(one.b_scales, of.b_scales);
  of.c = one.c;
  const Values<uint32_t> d(gpu, 1);
  CUdeviceptr to = d.address();
  void* arguments[] = {&to, &of};
  kernels(gpu).launch("probe_zero_groups", 1, kThreads, kSharedBytes, arguments);
  return d.get()[0];
}

}  // namespace

Answer lane_bands(const Gpu& gpu) {
  const std::vector<int> weights = bands_read(gpu, 0), tokens = bands_read(gpu, 1);
  Answer a;
  a.figures =
      "bands read for lanes 0, 32, 64, 96: weights" + list(weights) + ", tokens" + list(tokens);
  if (all_of(weights, true) && all_of(tokens, true)) a.word = "own";
  if (all_of(weights, false) && all_of(tokens, false)) a.word = "first";
  a.sets = "EMU_SCALE_BANDS=" + a.word + ", tools/emulator/base/settings.def";
  return a;
}

Answer pair_scales(const Gpu& gpu) {
  const Values<float> d(gpu, kThreads);
  CUdeviceptr to = d.address();
  void* arguments[] = {&to};
  kernels(gpu).launch("probe_pair_scales", 2, kThreads, kSharedBytes, arguments);
  const std::vector<float> sums = d.get();
  const auto all = [&](float lower, float upper) {
    return std::all_of(sums.begin(), sums.begin() + 64, [&](float s) { return s == lower; }) &&
           std::all_of(sums.begin() + 64, sums.end(), [&](float s) { return s == upper; });
  };
  Answer a;
  a.figures = "scale of token 0 " + std::to_string(sums[0]) + ", of token 64 " +
              std::to_string(sums[64]) + ", column i has 1 + i/8";
  if (all(1, 1)) a.word = "halves";
  if (all(1, 1.25)) a.word = "whole";
  a.sets = "EMU_PAIR_SCALES=" + a.word + ", and how a tile of pairs with 64 weights would copy";
  return a;
}

Answer mma_before_cp(const Gpu& gpu) {
  uint32_t rounds = 64;
  uint64_t wrong = 0;
  constexpr int kRuns = 8;
  for (int run = 0; run < kRuns; ++run) {
    const Values<uint32_t> d(gpu, kThreads);
    CUdeviceptr to = d.address();
    void* arguments[] = {&to, &rounds};
    kernels(gpu).launch("probe_mma_before_cp", 1, kThreads, kSharedBytes, arguments);
    for (const uint32_t count : d.get()) wrong += count;
  }
  Answer a;
  a.word = wrong == 0 ? "ordered" : "overtakes";
  a.figures =
      std::to_string(wrong) + " of " + std::to_string(kRuns * kThreads * 256) + " sums are wrong";
  a.sets = wrong == 0 ? "EMU_CP_OVERTAKES=0; NVFP4_MMA_BEFORE_CP of kernel/sm100/tile.h stays 1"
                      : "EMU_CP_OVERTAKES=1; NVFP4_MMA_BEFORE_CP of kernel/sm100/tile.h becomes 0: "
                        "256x256 has one accumulator";
  return a;
}

Answer zero_groups(const Gpu& gpu) {
  constexpr const char* kSettings[] = {"EMU_MMA_MODEL=groups",
                                       "EMU_MMA_MODEL=blocks, EMU_MMA_ZERO_GROUP=1",
                                       "EMU_MMA_MODEL=blocks, EMU_MMA_ZERO_GROUP=0"};
  bool fits[] = {true, true, true};
  Answer a;
  a.figures = "sums";
  for (const Case& one : kCases) {
    const uint32_t sum = sum_of(gpu, one);
    char text[16];
    snprintf(text, sizeof text, " %08X", sum);
    a.figures += text;
    for (int model = 0; model < 3; ++model) fits[model] &= sum == one.words[model];
  }
  for (int model = 0; model < 3; ++model) {
    if (fits[model]) a.word = kModels[model], a.sets = kSettings[model];
  }
  a.sets += ", and the model of a step in docs/numerics.md";
  return a;
}

Answer alloc_beside(const Gpu& gpu) {
  constexpr size_t kWords = 5;  // OfSm of tensor.cu
  const Values<uint32_t> sms(gpu, size_t(gpu.info.sms) * kWords);
  CUdeviceptr to = sms.address();
  uint32_t clocks = 400000;
  void* arguments[] = {&to, &clocks};
  kernels(gpu).launch("probe_alloc_beside", uint32_t(gpu.info.sms) * 2, 32, 1024, arguments);
  const std::vector<uint32_t> found = sms.get();
  uint32_t asked = 0, beside = 0, after = 0;
  for (size_t sm = 0; sm < found.size(); sm += kWords) {
    asked += found[sm + 2];
    beside += found[sm + 3] == 1;
    after += found[sm + 3] == 2;
  }
  Answer a;
  a.figures = "of " + std::to_string(asked) + " SMs with two CTAs " + std::to_string(after) +
              " gave columns when they were free, " + std::to_string(beside) + " before";
  if (asked > 0 && after == asked) a.word = "waits";
  if (beside > 0) a.word = "beside";
  a.sets = a.word == "waits" ? "EMU_SM_COLUMNS=1; dependents are launched once a CTA has its "
                               "columns (run_role, kernel/sm100/gemm.cu)"
                             : "EMU_SM_COLUMNS=0; dependents may be launched at once (run_role, "
                               "kernel/sm100/gemm.cu)";
  return a;
}

}  // namespace probe
