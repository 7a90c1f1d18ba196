// SPDX-License-Identifier: MIT
// What the kernels of rates.cu say.
#include <algorithm>
#include <cstdio>

#include "tools/harness/module.h"
#include "tools/probe/probe.h"

namespace probe {

namespace {

support::Module kernels(const Gpu& gpu) {
  return support::Module(gpu.driver, NVFP4_PROBE_PTX "/rates.ptx");
}

std::string number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.1f", value);
  return text;
}
std::string whole(double value) { return std::to_string(static_cast<long long>(value + 0.5)); }

// Rows of 128 bytes in the matrix and in the box.
double box_clocks(const Gpu& gpu, uint32_t rows, uint32_t box_rows) {
  const Values<uint8_t> matrix(gpu, 128 * 128);
  const cuuint64_t dims[] = {128, rows, 1}, strides[] = {128, 128 * 128};
  const cuuint32_t box[] = {128, box_rows, 1}, steps[] = {1, 1, 1};
  alignas(64) CUtensorMap map;
  gpu.driver.check(
      gpu.driver.cuTensorMapEncodeTiled(
          &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, reinterpret_cast<void*>(matrix.address()), dims,
          strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
          CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled");
  const Values<uint64_t> clocks(gpu, 1);
  CUdeviceptr to = clocks.address();
  uint32_t bytes = box_rows * 128, boxes = 256;
  void* arguments[] = {&to, &map, &bytes, &boxes};
  kernels(gpu).launch("probe_rows_beyond", 1, 32, 4 * 16384 + 32, arguments);
  return double(clocks.get()[0]) / boxes;
}

// Bytes a clock of what a longer run moves more than a shorter one.
double slope(double bytes, double shorter, double longer) {
  return longer > shorter ? bytes / (longer - shorter) : 0;
}

double copy_clocks(const Gpu& gpu, uint32_t copies) {
  const Values<uint8_t> from(gpu, 8 * 16384);
  const Values<uint64_t> clocks(gpu, 1);
  CUdeviceptr to = clocks.address(), at = from.address();
  void* arguments[] = {&to, &at, &copies};
  kernels(gpu).launch("probe_port_rate", 1, 32, 8 * 16384 + 64, arguments);
  return double(clocks.get()[0]);
}

// The slowest of so many CTAs, in pairs.
double push_clocks(const Gpu& gpu, uint32_t ctas, uint32_t pieces) {
  const Values<uint64_t> clocks(gpu, ctas);
  CUdeviceptr to = clocks.address();
  void* arguments[] = {&to, &pieces};
  kernels(gpu).launch("probe_push_rate", ctas, 32, 17 * 8192 + 8, arguments);
  const std::vector<uint64_t> all = clocks.get();
  return double(*std::max_element(all.begin(), all.end()));
}

Answer clusters_of(const Gpu& gpu, uint32_t ctas, const char* kernel, const char* sets) {
  const Values<uint32_t> state(gpu, 2);
  CUdeviceptr to = state.address();
  uint32_t clocks = 200000;
  void* arguments[] = {&to, &clocks};
  kernels(gpu).launch(kernel, uint32_t(gpu.info.sms) * ctas, 32, 200 * 1024, arguments);
  const uint32_t found = state.get()[1];
  Answer a;
  if (found > 0) a.word = std::to_string(found);
  a.figures = std::to_string(found) + " clusters of " + std::to_string(ctas) + " on " +
              std::to_string(gpu.info.sms) + " SMs";
  a.sets = sets;
  return a;
}

}  // namespace

Answer fence_in_flight(const Gpu& gpu) {
  constexpr size_t kTryBytes = 4 * 16384;
  uint32_t tries = gpu.info.emulated() ? 4 : 64;
  const Values<uint8_t> cold(gpu, tries * kTryBytes);
  // What the L2 holds of it makes room for this.
  const Values<uint8_t> flood(gpu, gpu.info.emulated() ? 1 : size_t{512} << 20);
  const Values<uint64_t> found(gpu, 4);
  CUdeviceptr to = found.address(), from = cold.address();
  void* arguments[] = {&to, &from, &tries};
  kernels(gpu).launch("probe_fence_in_flight", 1, 32, kTryBytes + 8, arguments);
  const std::vector<uint64_t> f = found.get();
  Answer a;
  a.figures = "after the fence " + std::to_string(f[1]) + " of " + std::to_string(f[0]) +
              " loads that were under way had landed; clocks " +
              number(f[0] ? double(f[2]) / double(f[0]) : 0) + ", without a load " +
              number(double(f[3]) / tries);
  if (f[0] * 2 >= tries && f[1] == f[0]) a.word = "waits";
  if (f[0] * 2 >= tries && f[1] < f[0]) a.word = "goes_on";
  a.sets = a.word == "waits"
               ? "EMU_FENCE_WAITS=1; arrivals without .release where only tensor memory or "
                 "barriers are handed on (kernel/sm100/gemm.cu)"
               : "EMU_FENCE_WAITS=0; arrivals with .release cost no load in kernel/sm100/gemm.cu";
  return a;
}

Answer rows_beyond(const Gpu& gpu) {
  const double few = box_clocks(gpu, 8, 8), beyond = box_clocks(gpu, 8, 128),
               there = box_clocks(gpu, 128, 128);
  const double row = (beyond - few) / 120;
  Answer a;
  a.word = row >= 0.5 ? "cost" : "free";
  a.figures = number(row) + " clocks for a row of 128 bytes beyond the matrix, " +
              number((there - few) / 120) + " for one of it";
  a.sets = row >= 0.5 ? "box_tokens() of kernel/sm100/tile.h: M rounded up to 8"
                      : "box_tokens() of kernel/sm100/tile.h may be the tile's";
  return a;
}

Answer port_rate(const Gpu& gpu) {
  const double rate = slope(64 * 16384, copy_clocks(gpu, 64), copy_clocks(gpu, 128));
  Answer a;
  if (rate > 0) a.word = whole(rate);
  a.figures = number(rate) + " bytes a clock into one SM";
  a.sets = "port_rate and port_limit of tools/model/parameters.def, kPort of host/family/sm100.cc";
  return a;
}

Answer push_rate(const Gpu& gpu) {
  const auto rate = [&](uint32_t ctas) {
    return slope(12 * 8192, push_clocks(gpu, ctas, 4), push_clocks(gpu, ctas, 16));
  };
  const double one = rate(2), all = rate(uint32_t(gpu.info.sms) / 2 * 2);
  Answer a;
  if (all > 0) a.word = whole(all);
  a.figures = number(one) + " bytes a clock into each CTA of one pair, " + number(all) +
              " where every SM has one";
  a.sets = "push_rate of tools/model/parameters.def, kPushed of host/family/sm100.cc";
  return a;
}

Answer clusters_at_once(const Gpu& gpu) {
  return clusters_of(
      gpu, 2, "probe_clusters_at_once",
      "count_ctas() of host/plan/plan.cc, where a pair takes one tile after the other");
}

Answer clusters_of_4(const Gpu& gpu) {
  return clusters_of(gpu, 4, "probe_clusters_of_4",
                     "kSplits of host/family/sm100.cc and clusters_of() of tools/model/kernels.cc");
}

}  // namespace probe
