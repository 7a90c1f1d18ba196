// SPDX-License-Identifier: MIT
// build/emulator_hw_test: instructions against the emulator's expectations, on a Hopper GPU and in
// the emulator alike. With --pair it runs one program of tools/emulator/test/pairs instead, in a
// process of its own, for compute-sanitizer.
#include <cstdio>

#include "tools/emulator/test/h200/device.h"
#include "tools/emulator/test/pairs/pairs.h"
#include "tools/testing/session.h"

namespace {

using h200::Device;
using h200::Module;

// Memory without guards, as compute-sanitizer is to see accesses beyond it.
CUdeviceptr zeros() {
  CUdeviceptr at = 0;
  H200_CALL(cuMemAlloc, &at, hazard_test::buffer_bytes);
  H200_CALL(cuMemsetD8, at, 0, hazard_test::buffer_bytes);
  return at;
}

void run(const hazard_test::Pair& pair, const std::string& text) {
  const Device device;
  const Module module(text);
  CUdeviceptr out = zeros(), in = zeros();
  alignas(64) CUtensorMap map;
  const cuuint64_t dims[] = {hazard_test::map_columns, hazard_test::map_rows};
  const cuuint64_t pitch[] = {hazard_test::map_columns * 4};
  const cuuint32_t box[] = {hazard_test::map_columns, hazard_test::map_box}, steps[] = {1, 1};
  H200_CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2,
            reinterpret_cast<void*>(out), dims, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  void* parameters[] = {&out, &in, &map};
  module.launch("k", pair.grid, pair.block, 0, parameters);
  H200_CALL(cuMemFree, out);
  H200_CALL(cuMemFree, in);
}

// emulator_hw_test --pair FOLDER                     the pairs that sm_90 can run, a name per line
// emulator_hw_test --pair FOLDER NAME racy|repaired  runs one program
// Returns what main returns.
int pair(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::fprintf(stderr, "emulator_hw_test --pair FOLDER [NAME racy|repaired]\n");
    return 2;
  }
  for (const hazard_test::Pair& pair : hazard_test::read_pairs(argv[2])) {
    if (argc == 3) {
      if (pair.target == 90) std::printf("%s\n", pair.name.c_str());
    } else if (pair.name == argv[3]) {
      try {
        run(pair, std::strcmp(argv[4], "racy") ? pair.repaired : pair.racy);
        return std::printf("ran\n"), 0;
      } catch (const std::exception& error) {
        return std::printf("%s\n", error.what()), 1;
      }
    }
  }
  return argc == 3 ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--pair") == 0) return pair(argc, argv);
  return support::run_tests(argc, argv);
}
