// SPDX-License-Identifier: MIT
// Allocation of device and pinned host memory, and what pointers are.
#include "tools/emulator/driver/call.h"

using namespace emu::driver;

namespace {

CUresult allocate(State& s, Context& context, CUdeviceptr* address, size_t bytes) {
  if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr made =
      s.allocate(context.handle, bytes, emu::format("an allocation of %zu bytes", bytes));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = made;
  return CUDA_SUCCESS;
}

// Rows of a rectangle begin this far apart, or at a multiple of it: as an H200 has them.
constexpr size_t row_alignment = 512;

CUresult free_at(State& s, CUdeviceptr address) {
  if (!address) return CUDA_SUCCESS;
  auto it = s.allocations.find(address);
  if (it == s.allocations.end()) return CUDA_ERROR_INVALID_VALUE;  // middle of one, or freed before
  s.release(address);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return in_context(Entry::cuMemGetInfo_v2, [&](State& s, Context&) {
    if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
    *total = s.memory->capacity();
    *free_bytes = s.memory->capacity() - s.memory->used();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return in_context(Entry::cuMemAlloc_v2, [&](State& s, Context& context) {
    return allocate(s, context, address, bytes);
  });
}

// The element only says which accesses will be aligned: every row begins at a multiple of all.
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  return in_context(Entry::cuMemAllocPitch_v2, [&](State& s, Context& context) {
    if (!pitch || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
    if (!width || !height || width > SIZE_MAX - row_alignment) return CUDA_ERROR_INVALID_VALUE;
    const size_t row = (width + row_alignment - 1) / row_alignment * row_alignment;
    if (height > SIZE_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult r = allocate(s, context, address, row * height);
    if (r == CUDA_SUCCESS) *pitch = row;
    return r;
  });
}

// The host reads and writes it at the same addresses. Kernels have ended when their launch returns,
// so the two sides never meet.
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  return in_context(Entry::cuMemAllocManaged, [&](State& s, Context& context) {
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
      return CUDA_ERROR_INVALID_VALUE;
    const CUdeviceptr made =
        s.memory->allocate_managed(bytes, emu::format("a managed allocation of %zu bytes", bytes));
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    s.allocations.emplace(made, context.handle);
    *address = made;
    return CUDA_SUCCESS;
  });
}

// The one call on device memory that needs no current context (measured); a sticky error of the
// current one still comes first.
CUresult cuMemFree_v2(CUdeviceptr address) {
  std::lock_guard running(state().execution);
  return initialised(Entry::cuMemFree_v2, [&](State& s) {
    Context* context = nullptr;
    if (CUresult r = s.current(&context); is_asynchronous(r)) return r;
    return free_at(s, address);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return on_device(Entry::cuMemFreeAsync, [&](State& s, Context&) {
    if (!s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult r = check_not_capturing(s, stream)) return r;
    return free_at(s, address);
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return in_context(Entry::cuMemGetAddressRange_v2, [&](State& s, Context&) {
    const emu::Allocation* a = s.memory->find(address);
    if (!a) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = a->address;
    if (bytes) *bytes = a->bytes;
    return CUDA_SUCCESS;
  });
}

namespace {

// Pinned memory is ordinary memory here and stays invisible to kernels: device addresses are no
// host addresses. CAN_MAP_HOST_MEMORY is 0, and who asks for a mapping all the same is refused.
CUresult allocate_host(Entry entry, void** pointer, size_t bytes, unsigned flags) {
  return in_context(entry, [&](State& s, Context& context) {
    constexpr unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!pointer || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTALLOC_DEVICEMAP) return CUDA_ERROR_NOT_SUPPORTED;
    HostBlock block;
    block.context = context.handle;
    block.bytes = bytes;
    if (bytes) block.data = std::make_unique<uint8_t[]>(bytes);
    *pointer = block.data.get();
    if (bytes) s.host_blocks.emplace(uintptr_t(*pointer), std::move(block));
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return allocate_host(Entry::cuMemAllocHost_v2, pointer, bytes, 0);
}
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return allocate_host(Entry::cuMemHostAlloc, pointer, bytes, flags);
}

CUresult cuMemFreeHost(void* pointer) {
  return on_device(Entry::cuMemFreeHost, [&](State& s, Context&) {
    if (!pointer || s.host_blocks.erase(uintptr_t(pointer))) return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
  });
}

namespace {

CUresult device_pointer_attribute(State& s, const emu::Allocation& a, void* data,
                                  CUpointer_attribute attribute, CUdeviceptr pointer) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = s.allocations[a.address];
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {  // nullptr: from none
      const auto pool = s.pool_of.find(a.address);
      *static_cast<CUmemoryPool*>(data) = pool == s.pool_of.end() ? nullptr : pool->second;
      break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(data) = pointer; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = a.address;  // no address is used twice
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(data) = a.managed; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!a.managed) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(data) = reinterpret_cast<void*>(pointer);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(data) = a.address; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<size_t*>(data) = a.bytes; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult host_pointer_attribute(const HostBlock& block, void* data, CUpointer_attribute attribute,
                                CUdeviceptr pointer) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(data) = block.context; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = CU_MEMORYTYPE_HOST;
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<void**>(data) = reinterpret_cast<void*>(pointer);
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

// Needs no context (measured); ordinary host memory is INVALID_VALUE.
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return initialised(Entry::cuPointerGetAttribute, [&](State& s) {
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    if (const emu::Allocation* a = s.memory->find(pointer))
      return device_pointer_attribute(s, *a, data, attribute, pointer);
    auto it = s.host_blocks.upper_bound(pointer);
    if (it == s.host_blocks.begin()) return CUDA_ERROR_INVALID_VALUE;
    --it;
    if (pointer - it->first >= it->second.bytes) return CUDA_ERROR_INVALID_VALUE;
    return host_pointer_attribute(it->second, data, attribute, pointer);
  });
}
