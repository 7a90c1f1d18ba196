// SPDX-License-Identifier: MIT
// Contexts and the calling thread's stack of them.
#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/module.h"

using namespace emu::driver;

namespace {

CUresult push(CUcontext context) {
  ThreadContexts& mine = thread_contexts();
  if (mine.count == ThreadContexts::depth) return CUDA_ERROR_OUT_OF_MEMORY;
  mine.stack[mine.count++] = context;
  return CUDA_SUCCESS;
}

CUresult create(Entry entry, CUcontext* context, unsigned flags, CUdevice device) {
  return initialised(entry, [&](State& s) {
    if (!context || flags & ~unsigned(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    // Measured: under a context with a sticky error no other one can be made.
    Context* now = nullptr;
    if (CUresult r = s.current(&now); is_asynchronous(r)) return r;
    auto made = std::make_unique<Context>();
    Context& object = *made;
    object.flags |= flags;
    object.handle = s.contexts.insert(std::move(made));
    if (CUresult r = push(object.handle)) {
      s.contexts.erase(object.handle);
      return r;
    }
    *context = thread_contexts().stack[thread_contexts().count - 1];
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return create(Entry::cuCtxCreate_v2, context, flags, device);
}

// Parameters ask for execution affinity or CIG, which one emulated device does not have.
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned int flags,
                        CUdevice device) {
  if (count == 0) return create(Entry::cuCtxCreate_v3, context, flags, device);
  return initialised(Entry::cuCtxCreate_v3, [](State&) { return CUDA_ERROR_NOT_SUPPORTED; });
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device) {
  if (!params) return create(Entry::cuCtxCreate_v4, context, flags, device);
  return initialised(Entry::cuCtxCreate_v4, [](State&) { return CUDA_ERROR_NOT_SUPPORTED; });
}

// Leaves the handle in other threads' stacks, where it answers CONTEXT_IS_DESTROYED.
CUresult cuCtxDestroy_v2(CUcontext context) {
  std::lock_guard running(state().execution);
  return initialised(Entry::cuCtxDestroy_v2, [&](State& s) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (context == s.primary || !s.contexts.find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    s.release_objects(context);
    s.contexts.erase(context);
    if (s.current_handle() == context) --thread_contexts().count;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return initialised(Entry::cuCtxPushCurrent_v2, [&](State& s) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!s.contexts.find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    return push(context);
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return initialised(Entry::cuCtxPopCurrent_v2, [&](State& s) {
    CUcontext top = s.current_handle();
    if (!top) return CUDA_ERROR_INVALID_CONTEXT;
    --thread_contexts().count;
    if (context) *context = top;
    return CUDA_SUCCESS;
  });
}

// Replaces the stack's top; null pops it. A destroyed primary context can be set (measured).
CUresult cuCtxSetCurrent(CUcontext context) {
  return initialised(Entry::cuCtxSetCurrent, [&](State& s) {
    ThreadContexts& mine = thread_contexts();
    if (context && !s.contexts.find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (mine.count) --mine.count;
    return context ? push(context) : CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return initialised(Entry::cuCtxGetCurrent, [&](State& s) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = s.current_handle();
    return CUDA_SUCCESS;
  });
}

namespace {

// Works in a destroyed context and under a sticky error (measured).
CUresult get_device(Entry entry, CUdevice* device, const CUcontext* given) {
  return initialised(entry, [&](State& s) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (given && *given && !s.contexts.find(*given)) return CUDA_ERROR_INVALID_CONTEXT;
    if ((!given || !*given) && !s.current_handle()) return CUDA_ERROR_INVALID_CONTEXT;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuCtxGetDevice(CUdevice* device) {
  return get_device(Entry::cuCtxGetDevice, device, nullptr);
}
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return get_device(Entry::cuCtxGetDevice_v2, device, &context);
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return in_context(Entry::cuCtxGetFlags, [&](State&, Context& context) {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize(void) {
  return on_device(Entry::cuCtxSynchronize, [](State&, Context&) { return CUDA_SUCCESS; });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (!context)
    return on_device(Entry::cuCtxSynchronize_v2, [](State&, Context&) { return CUDA_SUCCESS; });
  std::lock_guard running(state().execution);
  return initialised(Entry::cuCtxSynchronize_v2, [&](State& s) {
    Context* c = s.contexts.find(context);
    if (!c) return CUDA_ERROR_INVALID_CONTEXT;
    return c->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : c->sticky;
  });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  return initialised(Entry::cuCtxGetApiVersion, [&](State& s) {
    CUcontext which = context ? context : s.current_handle();
    if (!s.contexts.find(which)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;  // what every driver since CUDA 3.2 answers
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return in_context(Entry::cuCtxGetLimit, [&](State&, Context& context) {
    if (!value || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    auto it = context.limits.find(limit);
    if (it == context.limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = it->second;
    return CUDA_SUCCESS;
  });
}

// Limits are stored. Only that of the heap for malloc in kernels has an effect, since emulated
// kernels have no stack and no printf buffer that could run out.
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return in_context(Entry::cuCtxSetLimit, [&](State& s, Context& context) {
    if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    auto it = context.limits.find(limit);
    if (it == context.limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    it->second = value;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) s.memory->limit_heap(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return in_context(Entry::cuCtxGetStreamPriorityRange, [&](State&, Context&) {
    if (least) *least = least_priority;
    if (greatest) *greatest = greatest_priority;
    return CUDA_SUCCESS;
  });
}

// A preference, which is remembered. No device here has caches that a program could share out.
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return in_context(Entry::cuCtxGetCacheConfig, [&](State&, Context& context) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = context.cache;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return in_context(Entry::cuCtxSetCacheConfig, [&](State&, Context& context) {
    if (!is_cache_config(config)) return CUDA_ERROR_INVALID_VALUE;
    context.cache = config;
    return CUDA_SUCCESS;
  });
}

// Banks have four bytes on every device here, and setting another width changes nothing.
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return in_context(Entry::cuCtxGetSharedMemConfig, [&](State&, Context&) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return in_context(Entry::cuCtxSetSharedMemConfig, [&](State&, Context&) {
    return is_bank_config(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
