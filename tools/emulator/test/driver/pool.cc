// SPDX-License-Identifier: MIT
// Memory pools: arguments as the manual of CUDA 13.0 has them, accounts, and the end of a pool.
#include "tools/emulator/test/support/driver_session.h"

namespace {

using GetPool = decltype(&cuMemGetMemPool);

CUmemPoolProps properties() {
  CUmemPoolProps p = {};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return p;
}

CUmemoryPool made(Session& s, size_t most = 0) {
  CUmemPoolProps p = properties();
  p.maxSize = most;
  CUmemoryPool pool = nullptr;
  OK(s, s.cuMemPoolCreate(&pool, &p));
  return pool;
}

long long bytes(Session& s, CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 77;
  OK(s, s.cuMemPoolGetAttribute(pool, attribute, &value));
  return static_cast<long long>(value);
}

}  // namespace

TEST_CASE("cuMemAllocAsync takes from the pool of the device until another one is set") {
  in_child([](Session& s) {
    s.start();
    CUmemoryPool own = nullptr, now = nullptr, of_pointer = nullptr;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUdeviceptr p = 0, q = 0, plain = 0;
    // Newer than the version that the session asks for.
    const auto get = s.extension<GetPool>("cuMemGetMemPool");
    const auto get_own = s.extension<GetPool>("cuMemGetDefaultMemPool");
    const auto set = s.extension<decltype(&cuMemSetMemPool)>("cuMemSetMemPool");
    OK(s, s.cuDeviceGetDefaultMemPool(&own, 0));
    OK(s, s.cuDeviceGetMemPool(&now, 0));
    IS(s, own && own == now, 1);
    OK(s, s.cuMemAllocAsync(&p, 1000, nullptr));
    IS(s, bytes(s, own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000);
    const CUmemoryPool other = made(s);
    OK(s, s.cuDeviceSetMemPool(0, other));
    OK(s, get(&now, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    IS(s, now == other, 1);
    OK(s, get_own(&now, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    IS(s, now == own, 1);
    OK(s, s.cuMemAllocAsync(&q, 64, nullptr));
    IS(s, bytes(s, other, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 64);
    OK(s, s.cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q + 8));
    IS(s, of_pointer == other, 1);
    OK(s, s.cuMemAlloc(&plain, 64));
    OK(s, s.cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain));
    IS(s, of_pointer == nullptr, 1);
    OK(s, set(&here, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    IS(s, set(nullptr, CU_MEM_ALLOCATION_TYPE_PINNED, own), CUDA_ERROR_INVALID_VALUE);
    IS(s, get(&now, &here, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
    IS(s, get(&now, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuMemFreeAsync(p, nullptr));
    IS(s, bytes(s, own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    IS(s, bytes(s, own, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000);
  });
}

TEST_CASE("A pool has a limit and outlives its end while it has allocations") {
  in_child([](Session& s) {
    s.start();
    const CUmemoryPool pool = made(s, 4096);
    CUmemoryPool now = nullptr;
    CUdeviceptr p = 0, q = 0;
    OK(s, s.cuMemAllocFromPoolAsync(&p, 4000, pool, nullptr));
    IS(s, s.cuMemAllocFromPoolAsync(&q, 97, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    OK(s, s.cuMemAllocFromPoolAsync(&q, 96, pool, nullptr));
    OK(s, s.cuMemFree(q));
    OK(s, s.cuDeviceSetMemPool(0, pool));
    OK(s, s.cuMemPoolDestroy(pool));
    OK(s, s.cuDeviceGetMemPool(&now, 0));
    IS(s, now != pool, 1);
    IS(s, s.cuMemAllocFromPoolAsync(&q, 1, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuMemsetD8(p, 1, 4000));
    OK(s, s.cuMemFreeAsync(p, nullptr));
  });
}

TEST_CASE("Attributes of a pool are those of the manual and its accounts cannot be set") {
  in_child([](Session& s) {
    s.start();
    const CUmemoryPool pool = made(s);
    CUdeviceptr p = 0;
    int flag = 7;
    cuuint64_t none = 0, some = 1 << 20;
    OK(s, s.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag));
    IS(s, flag, 1);
    flag = 0;
    OK(s, s.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag));
    OK(s, s.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag));
    IS(s, flag, 0);
    OK(s, s.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &flag));
    IS(s, flag, 1);
    IS(s, bytes(s, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    OK(s, s.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &some));
    IS(s, bytes(s, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 1 << 20);
    OK(s, s.cuMemAllocFromPoolAsync(&p, 256, pool, nullptr));
    OK(s, s.cuMemFree(p));
    IS(s, bytes(s, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 256);
    IS(s, s.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &some),
       CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &none));
    IS(s, bytes(s, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
    IS(s, bytes(s, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 256);
    IS(s, s.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &none),
       CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemPoolGetAttribute(pool, CUmemPool_attribute(99), &some), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, nullptr),
       CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuMemPoolTrimTo(pool, 0));
  });
}

TEST_CASE("What no pool can be is refused: other places and processes and unknown handles") {
  in_child([](Session& s) {
    s.start();
    CUmemoryPool pool = nullptr, own = nullptr;
    const auto refused = [&](const char* what, CUresult wanted, auto change) {
      CUmemPoolProps p = properties();
      change(p);
      s.is(what, s.cuMemPoolCreate(&pool, &p), wanted);
    };
    const auto invalid = CUDA_ERROR_INVALID_VALUE, missing = CUDA_ERROR_NOT_SUPPORTED;
    refused("no type", invalid, [](auto& p) { p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID; });
    refused("managed", missing, [](auto& p) { p.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED; });
    refused("no place", invalid, [](auto& p) { p.location.type = CU_MEM_LOCATION_TYPE_INVALID; });
    refused("host", missing, [](auto& p) { p.location.type = CU_MEM_LOCATION_TYPE_HOST; });
    refused("device 1", CUDA_ERROR_INVALID_DEVICE, [](auto& p) { p.location.id = 1; });
    refused("a file", missing,
            [](auto& p) { p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR; });
    refused("a handle", invalid, [](auto& p) { p.handleTypes = CUmemAllocationHandleType(64); });
    refused("reserved", invalid, [](auto& p) { p.reserved[53] = 1; });
    refused("usage", invalid, [](auto& p) { p.usage = 1; });
    refused("security", invalid, [](auto& p) { p.win32SecurityAttributes = &p; });
    CUmemPoolProps p = properties();
    IS(s, s.cuMemPoolCreate(nullptr, &p), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemPoolCreate(&pool, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuDeviceGetDefaultMemPool(&own, 1), CUDA_ERROR_INVALID_DEVICE);
    IS(s, s.cuDeviceGetMemPool(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuDeviceGetDefaultMemPool(&own, 0));
    IS(s, s.cuMemPoolDestroy(own), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemPoolDestroy(nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuDeviceSetMemPool(1, own), CUDA_ERROR_INVALID_DEVICE);
    CUdeviceptr address = 0;
    IS(s, s.cuMemAllocFromPoolAsync(&address, 1, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemAllocFromPoolAsync(nullptr, 1, own, nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuMemAllocFromPoolAsync(&address, 0, own, nullptr));
    IS(s, address, 0);
  });
}

TEST_CASE("The device that holds a pool has its access and keeps it") {
  in_child([](Session& s) {
    s.start();
    const CUmemoryPool pool = made(s);
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}, there = here;
    there.id = 1;
    auto flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(s, s.cuMemPoolGetAccess(&flags, pool, &here));
    IS(s, flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    IS(s, s.cuMemPoolGetAccess(&flags, pool, &there), CUDA_ERROR_INVALID_DEVICE);
    CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(s, s.cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    IS(s, s.cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemPoolSetAccess(pool, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  });
}
