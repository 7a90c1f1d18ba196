// SPDX-License-Identifier: MIT
// A libcuda.so.1 with launches switched off: one B200 and a current context, every call succeeds at
// once and only counts. What a call of the library costs on it is the library's own time.
#include <cstring>

#include "bench/idle_driver.h"
#include "host/cuda/driver.h"

namespace {

IdleCounts counts;

CUresult version(int* value) {
  *value = 13000;
  return CUDA_SUCCESS;
}

CUresult device_count(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult device_attribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 10 : 0;
  return CUDA_SUCCESS;
}

CUresult current_context(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&counts);
  ++counts.others;
  return CUDA_SUCCESS;
}

CUresult context_device(CUdevice* device) {
  *device = 0;
  ++counts.others;
  return CUDA_SUCCESS;
}

CUresult stream_context(CUstream, CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&counts);
  ++counts.others;
  return CUDA_SUCCESS;
}

CUresult load(CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*,
              void**, unsigned) {
  *library = reinterpret_cast<CUlibrary>(&counts);
  ++counts.loads;
  return CUDA_SUCCESS;
}

CUresult get_kernel(CUkernel* kernel, CUlibrary, const char*) {
  *kernel = reinterpret_cast<CUkernel>(&counts);
  ++counts.loads;
  return CUDA_SUCCESS;
}

CUresult encode(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  memset(map, 0, sizeof *map);
  ++counts.encodes;
  return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig*, CUfunction, void**, void**) {
  ++counts.launches;
  return CUDA_SUCCESS;
}

// Whatever else the library asks for succeeds without reading its arguments.
CUresult other() {
  ++counts.others;
  return CUDA_SUCCESS;
}

struct Entry {
  const char* name;
  void* function;
};
const Entry entries[] = {
    {"cuDriverGetVersion", reinterpret_cast<void*>(version)},
    {"cuDeviceGetCount", reinterpret_cast<void*>(device_count)},
    {"cuDeviceGetAttribute", reinterpret_cast<void*>(device_attribute)},
    {"cuCtxGetCurrent", reinterpret_cast<void*>(current_context)},
    {"cuCtxGetDevice", reinterpret_cast<void*>(context_device)},
    {"cuStreamGetCtx", reinterpret_cast<void*>(stream_context)},
    {"cuLibraryLoadData", reinterpret_cast<void*>(load)},
    {"cuLibraryGetKernel", reinterpret_cast<void*>(get_kernel)},
    {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(encode)},
    {"cuLaunchKernelEx", reinterpret_cast<void*>(launch)},
};

}  // namespace

extern "C" CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                                        CUdriverProcAddressQueryResult* found) {
  *function = reinterpret_cast<void*>(other);
  for (const Entry& entry : entries) {
    if (strcmp(name, entry.name) == 0) *function = entry.function;
  }
  *found = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

extern "C" const IdleCounts* idle_counts() { return &counts; }
