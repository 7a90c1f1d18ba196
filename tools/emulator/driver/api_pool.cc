// SPDX-License-Identifier: MIT
// Memory pools: the device's default and current one, those that a program makes, and allocation
// from them. Pools for other processes, on the host and of managed memory are not emulated.
#include "tools/emulator/driver/call.h"

#include <algorithm>
#include <iterator>

using namespace emu::driver;

namespace {

// A pool that its program has destroyed is unknown from then on.
template <class Body>
CUresult on_pool(Entry entry, CUmemoryPool handle, Body&& body) {
  return initialised(entry, [&](State& s) {
    MemoryPool* pool = s.pools.find(handle);
    if (!pool || pool->destroyed) return CUDA_ERROR_INVALID_VALUE;
    return body(s, *pool);
  });
}

CUresult check_location(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// A place and a kind of memory for which pools exist here.
CUresult check_pool_kind(const CUmemLocation& location, CUmemAllocationType type) {
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return check_location(location);
}

CUresult check_properties(const CUmemPoolProps& given) {
  if (CUresult r = check_pool_kind(given.location, given.allocType)) return r;
  constexpr unsigned known_handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
                                     CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT |
                                     CU_MEM_HANDLE_TYPE_FABRIC;
  if (unsigned(given.handleTypes) & ~known_handles) return CUDA_ERROR_INVALID_VALUE;
  if (given.handleTypes) return CUDA_ERROR_NOT_SUPPORTED;  // there is no other process
  const bool reserved_is_zero =
      std::all_of(std::begin(given.reserved), std::end(given.reserved), [](auto b) { return !b; });
  if (!reserved_is_zero || given.win32SecurityAttributes) return CUDA_ERROR_INVALID_VALUE;
  if (given.usage & ~CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS) return CUDA_ERROR_INVALID_VALUE;
  return given.usage ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult get_pool(Entry entry, CUmemoryPool* pool, CUdevice device, CUmemoryPool State::*which) {
  return initialised(entry, [&](State& s) {
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    *pool = s.*which;
    return CUDA_SUCCESS;
  });
}

CUresult get_pool_at(Entry entry, CUmemoryPool* pool, const CUmemLocation* location,
                     CUmemAllocationType type, CUmemoryPool State::*which) {
  return initialised(entry, [&](State& s) {
    if (!pool || !location) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult r = check_pool_kind(*location, type)) return r;
    *pool = s.*which;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return get_pool(Entry::cuDeviceGetDefaultMemPool, pool, device, &State::default_pool);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return get_pool(Entry::cuDeviceGetMemPool, pool, device, &State::current_pool);
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return on_pool(Entry::cuDeviceSetMemPool, pool, [&](State& s, MemoryPool&) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    s.current_pool = pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  return get_pool_at(Entry::cuMemGetDefaultMemPool, pool, location, type, &State::default_pool);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return get_pool_at(Entry::cuMemGetMemPool, pool, location, type, &State::current_pool);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return on_pool(Entry::cuMemSetMemPool, pool, [&](State& s, MemoryPool&) {
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult r = check_pool_kind(*location, type)) return r;
    s.current_pool = pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return initialised(Entry::cuMemPoolCreate, [&](State& s) {
    if (!pool || !properties) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult r = check_properties(*properties)) return r;
    const uint64_t most = properties->maxSize ? properties->maxSize : s.memory->capacity();
    *pool = s.pools.insert(std::make_unique<MemoryPool>(most));
    return CUDA_SUCCESS;
  });
}

// What was allocated from it stays, and the pool goes with the last of that.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return on_pool(Entry::cuMemPoolDestroy, handle, [&](State& s, MemoryPool& pool) {
    if (handle == s.default_pool) return CUDA_ERROR_INVALID_VALUE;
    if (handle == s.current_pool) s.current_pool = s.default_pool;
    pool.destroyed = true;
    if (pool.empty()) s.pools.erase(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return on_pool(Entry::cuMemPoolTrimTo, handle,
                 [](State&, MemoryPool&) { return CUDA_SUCCESS; });  // nothing is kept back
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return on_pool(Entry::cuMemPoolGetAttribute, handle,
                 [&](State&, MemoryPool& pool) { return pool.get(attribute, value); });
}
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return on_pool(Entry::cuMemPoolSetAttribute, handle,
                 [&](State&, MemoryPool& pool) { return pool.set(attribute, value); });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  return on_pool(Entry::cuMemPoolGetAccess, handle, [&](State&, MemoryPool&) {
    if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult r = check_location(*location)) return r;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

// The pool's own device always has access, and there is no second device that could get it.
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  return on_pool(Entry::cuMemPoolSetAccess, handle, [&](State&, MemoryPool&) {
    if (count && !map) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      if (CUresult r = check_location(map[i].location)) return r;
      if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

namespace {

// Measured of cuMemAllocAsync: 0 bytes succeed, and freeing the null pointer does.
CUresult allocate_from(State& s, Context& context, CUdeviceptr* address, size_t bytes,
                       CUmemoryPool handle, CUstream stream) {
  if (!s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
  // Memory nodes are not there.
  if (CUresult r = check_not_capturing(s, stream)) return r;
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  MemoryPool* pool = s.pools.find(handle);
  if (!pool || pool->destroyed) return CUDA_ERROR_INVALID_VALUE;
  if (!bytes) return *address = 0, CUDA_SUCCESS;
  if (!pool->has_room(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUdeviceptr made = s.allocate(context.handle, bytes,
                                      emu::format("an allocation of %zu bytes from a pool", bytes));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->take(bytes);
  s.pool_of.emplace(made, handle);
  *address = made;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return in_context(Entry::cuMemAllocAsync, [&](State& s, Context& context) {
    return allocate_from(s, context, address, bytes, s.current_pool, stream);
  });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return in_context(Entry::cuMemAllocFromPoolAsync, [&](State& s, Context& context) {
    return allocate_from(s, context, address, bytes, pool, stream);
  });
}
