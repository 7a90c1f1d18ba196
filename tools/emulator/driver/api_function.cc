// SPDX-License-Identifier: MIT
// Functions (in a context) and kernels (in a library): attributes, names, occupancy.
#include <algorithm>

#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/module.h"

using namespace emu::driver;

namespace {

// A kernel's handle serves wherever a function's does, in the current context.
template <class Body>
CUresult on_unread_function(Entry entry, CUfunction handle, Body&& body) {
  return in_context(entry, [&](State& s, Context& context) {
    if (s.kernels.find(reinterpret_cast<CUkernel>(handle)))
      if (CUresult r = kernel_function(s, context, reinterpret_cast<CUkernel>(handle), &handle))
        return r;
    Function* function = s.functions.find(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    return body(s, *function);
  });
}

template <class Body>
CUresult on_function(Entry entry, CUfunction handle, Body&& body) {
  return on_unread_function(entry, handle, [&](State& s, Function& function) {
    function.code->whole(*function.entry);
    return body(s, function);
  });
}

template <class Body>
CUresult on_unread_kernel(Entry entry, CUkernel handle, Body&& body) {
  return initialised(entry, [&](State& s) {
    Kernel* kernel = s.kernels.find(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    return body(s, *kernel, *s.libraries.find(kernel->library)->code);
  });
}

template <class Body>
CUresult on_kernel(Entry entry, CUkernel handle, Body&& body) {
  return on_unread_kernel(entry, handle,
                          [&](State& s, Kernel& kernel, const emu::ptx::Module& code) {
                            code.whole(*kernel.entry);
                            return body(s, kernel);
                          });
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return on_function(Entry::cuFuncGetAttribute, handle, [&](State& s, Function& f) {
    EffectiveAttributes now = effective(s, *f.entry, &f.attributes, f.kernel);
    return get_attribute(s, *f.code, *f.entry, now, attribute, value);
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return on_function(Entry::cuFuncSetAttribute, handle, [&](State& s, Function& f) {
    return set_attribute(s, *f.entry, f.attributes, attribute, value);
  });
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  return on_function(Entry::cuFuncGetName, handle, [&](State&, Function& f) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = f.entry->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return on_function(Entry::cuFuncGetModule, handle, [&](State&, Function& f) {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = f.module;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  return on_function(Entry::cuFuncGetParamInfo, handle, [&](State&, Function& f) {
    if (!offset || index >= f.entry->params.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = f.entry->params[index].offset;
    if (bytes) *bytes = f.entry->params[index].bytes;
    return CUDA_SUCCESS;
  });
}

// Preferences that no device here heeds.
CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return on_unread_function(Entry::cuFuncSetCacheConfig, handle, [&](State&, Function&) {
    return is_cache_config(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  return on_unread_function(Entry::cuFuncSetSharedMemConfig, handle, [&](State&, Function&) {
    return is_bank_config(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  return on_unread_kernel(
      Entry::cuKernelSetCacheConfig, handle, [&](State&, Kernel&, const emu::ptx::Module&) {
        if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
        return is_cache_config(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
      });
}

// A GPU loads code lazily. Here the code of a module was checked when the module was loaded, and a
// launch parses the bodies that it runs.
CUresult cuFuncLoad(CUfunction handle) {
  return on_unread_function(Entry::cuFuncLoad, handle,
                            [](State&, Function&) { return CUDA_SUCCESS; });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return in_context(Entry::cuKernelGetFunction, [&](State& s, Context& context) {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    return kernel_function(s, context, kernel, function);
  });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice device) {
  return on_kernel(Entry::cuKernelGetAttribute, handle, [&](State& s, Kernel& kernel) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    EffectiveAttributes now = effective(s, *kernel.entry, nullptr, handle);
    const emu::ptx::Module& code = *s.libraries.find(kernel.library)->code;
    return get_attribute(s, code, *kernel.entry, now, attribute, value);
  });
}

// Programs set the attributes of all their kernels, most of which never run. So the body is not
// parsed if the dynamic shared memory fits beside whatever a body may declare.
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice device) {
  return on_unread_kernel(
      Entry::cuKernelSetAttribute, handle,
      [&](State& s, Kernel& kernel, const emu::ptx::Module& code) {
        if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
        const int64_t left = s.device->shared_optin() - int64_t(code.most_shared(*kernel.entry));
        if (value > left) code.whole(*kernel.entry);
        return set_attribute(s, *kernel.entry, kernel.attributes, attribute, value);
      });
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
  return on_kernel(Entry::cuKernelGetName, handle, [&](State&, Kernel& kernel) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.entry->name.c_str();
    return CUDA_SUCCESS;
  });
}

namespace {

constexpr int warp_threads = 32, most_warps = threads_per_block / warp_threads;

CUresult active_blocks(Entry entry, int* blocks, CUfunction handle, int threads,
                       size_t dynamic_shared, unsigned flags) {
  return on_function(entry, handle, [&](State& s, Function& f) {
    if (!blocks || threads <= 0 || flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
      return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocks_per_sm(s, f, threads, dynamic_shared);
    return CUDA_SUCCESS;
  });
}

// The block with which most threads fit on an SM, the largest of such.
CUresult potential_block(Entry entry, int* grid, int* block, CUfunction handle,
                         CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit,
                         unsigned flags) {
  size_t shared[most_warps];  // asked before the driver is locked, which it may call
  for (int w = 0; w < most_warps; ++w)
    shared[w] = shared_of ? shared_of((w + 1) * warp_threads) : dynamic_shared;
  return on_function(entry, handle, [&](State& s, Function& f) {
    if (!grid || !block || limit < 0 || flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
      return CUDA_ERROR_INVALID_VALUE;
    int most = threads_per_block, best = 0;
    EffectiveAttributes now = effective(s, *f.entry, &f.attributes, f.kernel);
    get_attribute(s, *f.code, *f.entry, now, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &most);
    if (limit) most = std::min(most, limit);
    *grid = *block = 0;
    for (int threads = (most + warp_threads - 1) / warp_threads * warp_threads; threads > 0;
         threads -= warp_threads) {
      const int size = std::min(threads, most);
      const int blocks = blocks_per_sm(s, f, size, shared[threads / warp_threads - 1]);
      if (blocks * size <= best) continue;
      best = blocks * size;
      *block = size;
      *grid = blocks * s.device->sms;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

// 0 blocks where a launch is refused, which depends on the function's attribute (measured).
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads,
                                                     size_t dynamic_shared) {
  return active_blocks(Entry::cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, handle, threads,
                       dynamic_shared, 0);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int threads, size_t dynamic_shared,
                                                              unsigned flags) {
  return active_blocks(Entry::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, handle,
                       threads, dynamic_shared, flags);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle,
                                          CUoccupancyB2DSize shared_of, size_t dynamic_shared,
                                          int limit) {
  return potential_block(Entry::cuOccupancyMaxPotentialBlockSize, grid, block, handle, shared_of,
                         dynamic_shared, limit, 0);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of,
                                                   size_t dynamic_shared, int limit,
                                                   unsigned flags) {
  return potential_block(Entry::cuOccupancyMaxPotentialBlockSizeWithFlags, grid, block, handle,
                         shared_of, dynamic_shared, limit, flags);
}

// All SMs are taken as one group. A GPU has several, and SMs that are left over in one have no
// cluster; which GPU has how many is not known.
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                      const CUlaunchConfig* config) {
  return on_function(Entry::cuOccupancyMaxActiveClusters, handle, [&](State& s, Function& f) {
    if (!clusters || !config || (config->numAttrs && !config->attrs))
      return CUDA_ERROR_INVALID_VALUE;
    unsigned ctas = 1;
    for (const uint32_t own : f.entry->reqnctapercluster) ctas *= std::max(own, 1u);
    for (unsigned i = 0; i < config->numAttrs; ++i)
      if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        const auto& dim = config->attrs[i].value.clusterDim;
        ctas = dim.x * dim.y * dim.z;
      }
    const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (!ctas || !threads) return CUDA_ERROR_INVALID_VALUE;
    const int blocks = blocks_per_sm(s, f, int(threads), config->sharedMemBytes);
    *clusters = blocks * s.device->sms / int(ctas);
    return CUDA_SUCCESS;
  });
}

// Dynamic shared memory that each block may have if `blocks` of them share an SM.
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                 int threads) {
  constexpr Entry entry = Entry::cuOccupancyAvailableDynamicSMemPerBlock;
  return on_function(entry, handle, [&](State& s, Function& f) {
    if (!bytes || blocks <= 0 || threads <= 0 || blocks_per_sm(s, f, threads, 0) < blocks)
      return CUDA_ERROR_INVALID_VALUE;
    int reserved = 0;
    device_attribute(*s.device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &reserved);
    const size_t all = size_t(s.device->shared_per_sm_kib) << 10;
    const size_t own = f.entry->static_shared_bytes + size_t(reserved);
    const auto most = size_t(effective(s, *f.entry, &f.attributes, f.kernel).dynamic_shared);
    *bytes = std::min(all / size_t(blocks) - own, most);
    return CUDA_SUCCESS;
  });
}
