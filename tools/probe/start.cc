// SPDX-License-Identifier: MIT
// What the kernels of start.cu say.
#include "tools/harness/module.h"
#include "tools/probe/probe.h"

namespace probe {

namespace {

constexpr uint32_t kSharedBytes = 227 * 1024;  // what a CTA of the sm_100a kernel has, nearly

support::Module kernels(const Gpu& gpu) {
  return support::Module(gpu.driver, NVFP4_PROBE_PTX "/start.ptx");
}

}  // namespace

Answer setup(const Gpu& gpu) {
  const Values<uint64_t> clocks(gpu, 2);
  CUdeviceptr to = clocks.address();
  uint32_t spread[16][16] = {};
  for (uint32_t i = 0; i < 16; ++i) spread[i][0] = i + 1 < 16 ? i + 1 : 0;
  void* arguments[] = {&to, spread};
  kernels(gpu).launch("probe_setup", uint32_t(gpu.info.sms), 320, kSharedBytes, arguments);
  const std::vector<uint64_t> c = clocks.get();
  Answer a;
  if (c[0] > 0) a.word = std::to_string(c[0]);
  a.figures = std::to_string(c[0]) + " clocks of a CTA's first instructions, " +
              std::to_string(c[1]) + " of the same again";
  a.sets = "setup of tools/model/parameters.def: the difference";
  return a;
}

Answer map_fetch(const Gpu& gpu) {
  constexpr uint32_t kRows = 32, kLoads = 8;
  const Values<uint8_t> matrix(gpu, (kLoads + 1) * kRows * 128);
  const cuuint64_t dims[] = {128, (kLoads + 1) * kRows, 1},
                   strides[] = {128, (kLoads + 1) * kRows * 128};
  const cuuint32_t box[] = {128, kRows, 1}, steps[] = {1, 1, 1};
  alignas(64) CUtensorMap map;
  gpu.driver.check(
      gpu.driver.cuTensorMapEncodeTiled(
          &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, reinterpret_cast<void*>(matrix.address()), dims,
          strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled");
  // What the L2 holds of the matrix makes room for this.
  const Values<uint8_t> flood(gpu, gpu.info.emulated() ? 1 : size_t{512} << 20);
  const Values<uint64_t> clocks(gpu, 2);
  CUdeviceptr to = clocks.address(), page = matrix.address();
  uint32_t loads = kLoads;
  void* arguments[] = {&to, &page, &map, &loads};
  kernels(gpu).launch("probe_map_fetch", 1, 32, kRows * 128 + 8, arguments);
  const std::vector<uint64_t> c = clocks.get();
  Answer a;
  a.word = std::to_string(c[0] > c[1] ? c[0] - c[1] : 0);
  a.figures = std::to_string(c[0]) + " clocks of a load by a map that is not cached, " +
              std::to_string(c[1]) + " by one that is";
  a.sets = "map_fetch of tools/model/parameters.def, by the clock";
  return a;
}

Answer empty_cta(const Gpu& gpu) {
  const uint32_t each = gpu.info.emulated() ? 1 : 64;  // CTAs of an SM
  const Values<uint32_t> word(gpu, 1);
  uint64_t took = 0;
  for (int run = 0; run < 2; ++run) {  // the first one fetches the code
    const Values<uint64_t> times(gpu, 2);
    CUdeviceptr to = times.address(), from = word.address();
    void* arguments[] = {&to, &from};
    kernels(gpu).launch("probe_empty_cta", uint32_t(gpu.info.sms) * each, 320, kSharedBytes,
                        arguments);
    const std::vector<uint64_t> t = times.get();
    took = t[1] - ~t[0];
  }
  Answer a;
  if (took > 0) a.word = std::to_string(took / each);
  a.figures = std::to_string(took) + " ns for " + std::to_string(each) +
              " CTAs of an SM that read a word and end";
  a.sets =
      "next_cta of tools/model/parameters.def: less a read of the L2; and whether CTAs of a "
      "grouped product that find no tile need another way";
  return a;
}

}  // namespace probe
