// SPDX-License-Identifier: MIT
// The device, streams, events, functions' attributes and occupancy.
#include <cstring>

#include "tools/emulator/test/outside/runtime.h"

using namespace runtime;

namespace {

int attribute(CUdevice_attribute which) {
  int value = 0;
  cuDeviceGetAttribute(&value, which, 0);
  return value;
}

int of_function(CUfunction f, CUfunction_attribute which) {
  int value = 0;
  cuFuncGetAttribute(&value, which, f);
  return value;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&] { return cuDeviceGetCount(count); });
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return call([] { return CUDA_SUCCESS; });
}
cudaError_t cudaSetDevice(int device) {
  return device ? failed(cudaErrorInvalidDevice) : call([] { return CUDA_SUCCESS; });
}
cudaError_t cudaDeviceSynchronize() {
  return call([] { return cuCtxSynchronize(); });
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return call([&] { return cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}
cudaError_t cudaDriverGetVersion(int* version) { return done(cuDriverGetVersion(version)); }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* found) {
  auto answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const cudaError_t error =
      runtime::done(cuGetProcAddress(symbol, function, int(version), flags, &answer));
  if (found) *found = cudaDriverEntryPointQueryResult(answer);  // the same numbers
  return error;
}
// The numbers of the runtime's attributes are the driver's.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return call(
      [&] { return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device); });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (CUresult r = ready()) return done(r);
  if (device) return failed(cudaErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  cuDeviceGetName(p->name, sizeof p->name, device);
  cuDeviceTotalMem(&p->totalGlobalMem, device);
  p->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p->maxThreadsDim[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  p->maxThreadsDim[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  p->maxThreadsDim[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  p->maxGridSize[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  p->maxGridSize[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  p->maxGridSize[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  p->maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p->maxBlocksPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  p->sharedMemPerBlock = size_t(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  p->sharedMemPerBlockOptin =
      size_t(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  p->sharedMemPerMultiprocessor =
      size_t(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  p->reservedSharedMemPerBlock =
      size_t(attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  p->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p->regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p->concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  p->cooperativeLaunch = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  p->managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  p->l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p->memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p->asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  p->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = nullptr;
  cuGetErrorName(static_cast<CUresult>(error), &name);
  return name ? name : "an error of the runtime";
}
const char* cudaGetErrorString(cudaError_t error) {
  const char* text = nullptr;
  cuGetErrorString(static_cast<CUresult>(error), &text);
  return text ? text : "an error of the runtime";
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call([&] { return cuStreamCreate(stream, flags); });
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] { return cuStreamDestroy(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] { return cuStreamSynchronize(stream); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&] { return cuStreamQuery(stream); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call([&] { return cuStreamWaitEvent(stream, event, flags); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] {
    return cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status));
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&] { return cuEventCreate(event, flags); });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&] { return cuEventRecord(event, stream); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&] { return cuEventQuery(event); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&] { return cuEventSynchronize(event); });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return call([&] { return cuEventElapsedTime(ms, start, end); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] { return cuEventDestroy(event); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* address) {
  const CUfunction f = function_of(address);
  if (!f) return failed(cudaErrorInvalidDeviceFunction);
  memset(a, 0, sizeof *a);
  a->sharedSizeBytes = size_t(of_function(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  a->constSizeBytes = size_t(of_function(f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  a->localSizeBytes = size_t(of_function(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  a->maxThreadsPerBlock = of_function(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  a->numRegs = of_function(f, CU_FUNC_ATTRIBUTE_NUM_REGS);
  a->ptxVersion = of_function(f, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  a->binaryVersion = of_function(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  a->maxDynamicSharedSizeBytes = of_function(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* address, cudaFuncAttribute which, int value) {
  const CUfunction f = function_of(address);
  if (!f) return failed(cudaErrorInvalidDeviceFunction);
  return done(cuFuncSetAttribute(f, static_cast<CUfunction_attribute>(which), value));
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* address,
                                                                   int threads, size_t shared,
                                                                   unsigned flags) {
  const CUfunction f = function_of(address);
  if (!f) return failed(cudaErrorInvalidDeviceFunction);
  return done(
      cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, flags));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* address,
                                                          int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, address, threads, shared,
                                                                0);
}

}  // extern "C"
