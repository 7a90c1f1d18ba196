// SPDX-License-Identifier: MIT
// build/hazard_run FOLDER                     the pairs that sm_90 can run, a name per line
// build/hazard_run FOLDER NAME racy|repaired  runs one program on whatever driver the loader finds
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tools/emulator/test/pairs/pairs.h"

namespace {

void* library = nullptr;

#define STRING(x) #x
#define NAME(x) STRING(x)
#define CALL(name, ...)                                                               \
  do {                                                                                \
    const auto entry = reinterpret_cast<decltype(&name)>(dlsym(library, NAME(name))); \
    const CUresult result = entry ? entry(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND;        \
    if (result != CUDA_SUCCESS) {                                                     \
      printf("%s: status %d\n", NAME(name), int(result));                             \
      return 1;                                                                       \
    }                                                                                 \
  } while (0)

int run(const hazard_test::Pair& pair, const std::string& text) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return printf("no driver\n"), 1;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr out, in;
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, 0);
  CALL(cuDevicePrimaryCtxRetain, &context, device);
  CALL(cuCtxSetCurrent, context);
  CALL(cuModuleLoadData, &module, text.c_str());
  CALL(cuModuleGetFunction, &function, module, "k");
  CALL(cuMemAlloc, &out, hazard_test::buffer_bytes);
  CALL(cuMemAlloc, &in, hazard_test::buffer_bytes);
  CALL(cuMemsetD8, out, 0, hazard_test::buffer_bytes);
  CALL(cuMemsetD8, in, 0, hazard_test::buffer_bytes);
  alignas(64) CUtensorMap map;
  const cuuint64_t dims[] = {hazard_test::map_columns, hazard_test::map_rows};
  const cuuint64_t pitch[] = {hazard_test::map_columns * 4};
  const cuuint32_t box[] = {hazard_test::map_columns, hazard_test::map_box}, steps[] = {1, 1};
  CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2,
       reinterpret_cast<void*>(out), dims, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
       CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  void* parameters[] = {&out, &in, &map};
  CALL(cuLaunchKernel, function, pair.grid, 1, 1, pair.block, 1, 1, 0, nullptr, parameters,
       nullptr);
  CALL(cuCtxSynchronize);
  CALL(cuMemFree, out);
  CALL(cuMemFree, in);
  CALL(cuModuleUnload, module);
  CALL(cuDevicePrimaryCtxRelease, device);
  printf("ran\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return fprintf(stderr, "hazard_run FOLDER [NAME racy|repaired]\n"), 2;
  for (const hazard_test::Pair& pair : hazard_test::read_pairs(argv[1])) {
    if (argc == 2) {
      if (pair.target == 90) printf("%s\n", pair.name.c_str());
    } else if (pair.name == argv[2]) {
      return run(pair, strcmp(argv[3], "racy") ? pair.repaired : pair.racy);
    }
  }
  return argc == 2 ? 0 : 2;
}
