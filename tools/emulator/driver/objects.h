// SPDX-License-Identifier: MIT
// What the driver's handles stand for. A handle is a number that is never used twice, so a stale
// one is caught instead of followed.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tools/emulator/driver/graph.h"
#include "tools/emulator/ptx/module.h"

namespace emu::driver {

// Objects of one kind by handle. All tables draw from one sequence of numbers: a CUkernel is never
// equal to a CUfunction, which lets cuLaunchKernel take either.
template <class Handle, class Object>
class Table {
 public:
  Handle insert(std::unique_ptr<Object> object) {
    static_assert(sizeof(Handle) == sizeof(uintptr_t));
    Handle handle = reinterpret_cast<Handle>(next());
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  Object* find(Handle handle) const {
    auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second.get();
  }
  bool erase(Handle handle) { return objects_.erase(handle) != 0; }
  size_t size() const { return objects_.size(); }

  template <class Predicate>
  void erase_if(Predicate wanted) {
    std::erase_if(objects_, [&](const auto& item) { return wanted(*item.second); });
  }
  auto begin() const { return objects_.begin(); }
  auto end() const { return objects_.end(); }

 private:
  static uintptr_t next();
  std::map<Handle, std::unique_ptr<Object>> objects_;
};

// Handles are numbers far above CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2) and far below any
// address, so that nothing takes one for the other.
uintptr_t next_handle();
template <class Handle, class Object>
uintptr_t Table<Handle, Object>::next() {
  return next_handle();
}

struct Context {
  CUcontext handle = nullptr;
  unsigned flags = CU_CTX_MAP_HOST;  // what an H200's primary context reports
  bool destroyed = false;            // a primary context that was released and not retained again
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUresult sticky = CUDA_SUCCESS;  // of an asynchronous error; every later call answers it
  std::map<CUlimit, size_t> limits = {{CU_LIMIT_STACK_SIZE, 1024},
                                      {CU_LIMIT_PRINTF_FIFO_SIZE, 8650752},
                                      {CU_LIMIT_MALLOC_HEAP_SIZE, 8388608},
                                      {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                                      {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                                      {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
};

constexpr int least_priority = 0, greatest_priority = -5;  // as on an H200

struct Stream {
  CUcontext context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  CapturePoint point;
};

struct Event {
  CUcontext context = nullptr;
  unsigned flags = 0;
  std::optional<std::chrono::steady_clock::time_point> recorded;
  CapturePoint point;  // of the last record, if that was in a capture
};

// What cuFuncSetAttribute and cuKernelSetAttribute can change; empty = never set.
struct FunctionAttributes {
  std::optional<int> dynamic_shared, carveout, non_portable, policy;
};

struct Module {
  CUcontext context = nullptr;
  CUlibrary library = nullptr;        // that loaded the module; nullptr: cuModuleLoadData did
  std::shared_ptr<ptx::Module> code;  // shared with a launch that is running
  std::map<std::string, CUfunction, std::less<>> functions;
};

struct Function {
  CUmodule module = nullptr;
  CUcontext context = nullptr;
  CUkernel kernel = nullptr;  // of the library it came from, or nullptr
  std::shared_ptr<ptx::Module> code;
  const ptx::Function* entry = nullptr;
  FunctionAttributes attributes;  // win over the kernel's
};

struct Library {
  CUresult status = CUDA_SUCCESS;  // why it has no code, told by cuLibraryGetKernel
  std::string text;                // the PTX
  std::shared_ptr<ptx::Module> code;
  std::map<std::string, CUkernel, std::less<>> kernels;
  std::map<CUcontext, CUmodule> modules;  // one per context that used it
};

struct Kernel {
  CUlibrary library = nullptr;
  const ptx::Function* entry = nullptr;
  FunctionAttributes attributes;
};

struct HostBlock {
  CUcontext context = nullptr;
  std::unique_ptr<uint8_t[]> data;
  size_t bytes = 0;
};

}  // namespace emu::driver
