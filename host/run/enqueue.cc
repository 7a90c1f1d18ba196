// SPDX-License-Identifier: MIT
#include "host/run/enqueue.h"

#include "host/plan/family.h"

namespace nvfp4 {

nvfp4_status check_stream(const Site& site, CUstream stream) {
  CUcontext context = nullptr;
  if (stream == nullptr || site.driver->cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
      context == site.context) {
    return NVFP4_SUCCESS;
  }
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "stream = %p belongs to another CUDA context than the current one",
              static_cast<void*>(stream));
}

// False on a GPU that has no row in arch.def: its kernel would not be one of ours.
static bool waits_for_earlier_work(const Site& site) {
  return site.arch_index < kArchitectureCount &&
         kArchitectures[site.arch_index].family->waits_for_earlier_work;
}

nvfp4_status launch(const Site& site, CUkernel kernel, const Grid& grid, const void* params,
                    CUstream stream) {
  CUlaunchAttribute attributes[2]{};
  CUlaunchConfig config{};
  config.gridDimX = grid.ctas;
  config.gridDimY = grid.rows;
  config.gridDimZ = 1;
  config.blockDimX = grid.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = grid.shared_bytes;
  config.hStream = stream;
  config.attrs = attributes;
  // The kernel may start before earlier work of the stream has finished.
  if (grid.early && waits_for_earlier_work(site)) {
    CUlaunchAttribute& early = attributes[config.numAttrs++];
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
  }
  if (grid.cluster > 1) {
    CUlaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {grid.cluster, 1, 1};
  }
  void* arguments[] = {const_cast<void*>(params)};  // the call reads it and never writes it
  // A CUkernel stands for its CUfunction in the current context (cuLaunchKernelEx, driver API).
  const CUresult result = site.driver->cuLaunchKernelEx(
      &config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr);
  return result == CUDA_SUCCESS ? NVFP4_SUCCESS
                                : driver_failure(*site.driver, "cuLaunchKernelEx", result);
}

}  // namespace nvfp4
