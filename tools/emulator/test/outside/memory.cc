// SPDX-License-Identifier: MIT
// Memory, copies and fills. Device addresses are none of the host's, so that the driver's cuMemcpy
// finds out by itself which way a copy goes.
#include "tools/emulator/test/outside/runtime.h"

using namespace runtime;

namespace {

CUdeviceptr* address_of(void** p) { return reinterpret_cast<CUdeviceptr*>(p); }

cudaError_t symbol_copy(const void* symbol, size_t offset, size_t bytes, const void* from,
                        void* to) {
  CUdeviceptr address = 0;
  size_t size = 0;
  if (!variable_at(symbol, &address, &size)) return failed(cudaErrorInvalidSymbol);
  if (offset + bytes > size) return failed(cudaErrorInvalidValue);
  return call([&] {
    return from ? cuMemcpy(address + offset, device(from), bytes)
                : cuMemcpy(device(to), address + offset, bytes);
  });
}

CUDA_MEMCPY2D rectangle(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                        size_t width, size_t height) {
  CUDA_MEMCPY2D c = {};
  c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  c.srcDevice = device(from), c.srcPitch = from_pitch;
  c.dstDevice = device(to), c.dstPitch = to_pitch;
  c.WidthInBytes = width, c.Height = height;
  return c;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** p, size_t bytes) {
  *p = nullptr;
  return call([&] { return bytes ? cuMemAlloc(address_of(p), bytes) : CUDA_SUCCESS; });
}
cudaError_t cudaMallocManaged(void** p, size_t bytes, unsigned flags) {
  return call([&] { return cuMemAllocManaged(address_of(p), bytes, flags); });
}
cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
  return call([&] { return cuMemAllocPitch(address_of(p), pitch, width, height, 4); });
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t stream) {
  return call([&] { return cuMemAllocAsync(address_of(p), bytes, stream); });
}
cudaError_t cudaFree(void* p) {
  return call([&] { return p ? cuMemFree(device(p)) : CUDA_SUCCESS; });
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return call([&] { return cuMemFreeAsync(device(p), stream); });
}
cudaError_t cudaMallocHost(void** p, size_t bytes) {
  return call([&] { return cuMemAllocHost(p, bytes); });
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags) {
  return call([&] { return cuMemHostAlloc(p, bytes, flags); });
}
cudaError_t cudaFreeHost(void* p) {
  return call([&] { return cuMemFreeHost(p); });
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&] { return cuMemGetInfo(free, total); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return call([&] { return cuMemcpy(device(to), device(from), bytes); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return call([&] { return cuMemcpyAsync(device(to), device(from), bytes, stream); });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind) {
  const CUDA_MEMCPY2D c = rectangle(to, to_pitch, from, from_pitch, width, height);
  return call([&] { return cuMemcpy2D(&c); });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
  return symbol_copy(symbol, offset, bytes, from, nullptr);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind) {
  return symbol_copy(symbol, offset, bytes, nullptr, to);
}
cudaError_t cudaGetSymbolAddress(void** p, const void* symbol) {
  size_t bytes = 0;
  return variable_at(symbol, address_of(p), &bytes) ? cudaSuccess : failed(cudaErrorInvalidSymbol);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return call([&] { return cuMemsetD8(device(to), (unsigned char)value, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return call([&] { return cuMemsetD8Async(device(to), (unsigned char)value, bytes, stream); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  *attributes = {};
  if (CUresult r = ready()) return done(r);
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device(p))) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(p);
    return cudaSuccess;
  }
  const bool host = type == CU_MEMORYTYPE_HOST;
  attributes->type = host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(p);
  attributes->hostPointer = host ? const_cast<void*>(p) : nullptr;
  return cudaSuccess;
}

}  // extern "C"
