// SPDX-License-Identifier: MIT
// Libraries: code that belongs to no context and is loaded into each at first use.
//
// Measured (driver 580): cuLibraryLoadData succeeds with any image, garbage included, and fills the
// JIT log; the status comes from cuLibraryGetKernel and cuLibraryGetModule.
#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/module.h"

using namespace emu::driver;

namespace {

template <class Body>
CUresult on_library(Entry entry, CUlibrary handle, Body&& body) {
  return initialised(entry, [&](State& s) {
    Library* library = s.libraries.find(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    return body(s, *library);
  });
}

bool known_options(const CUlibraryOption* options, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) return false;
  return true;
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options,
                           void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                           void** option_values, unsigned int count) {
  return initialised(Entry::cuLibraryLoadData, [&](State& s) {
    if (!library || !image || (count && !options)) return CUDA_ERROR_INVALID_VALUE;
    (void)option_values;  // of BINARY_IS_PRESERVED: the text is copied either way
    if (!known_options(options, count)) return CUDA_ERROR_NOT_SUPPORTED;
    JitOptions jit;
    if (CUresult r = jit.read(jit_count, jit_options, jit_values)) return r;
    LoadedImage loaded = load_image(image, *s.device, s.driver_version(), s.known_code, jit);
    auto made = std::make_unique<Library>();
    made->status = loaded.status;
    made->text = std::move(loaded.text);
    made->code = std::move(loaded.code);
    Library& object = *made;
    *library = s.libraries.insert(std::move(made));
    if (!object.code) return CUDA_SUCCESS;
    for (const auto& entry : object.code->functions) {
      if (!entry->is_entry) continue;
      auto kernel = std::make_unique<Kernel>();
      kernel->library = *library;
      kernel->entry = entry.get();
      object.kernels.emplace(entry->name, s.kernels.insert(std::move(kernel)));
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  std::lock_guard running(state().execution);
  return on_library(Entry::cuLibraryUnload, handle, [&](State& s, Library& library) {
    for (auto [context, module] : library.modules) s.unload_module(module);
    s.kernels.erase_if([&](const Kernel& k) { return k.library == handle; });
    s.libraries.erase(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return on_library(Entry::cuLibraryGetKernel, handle, [&](State&, Library& library) {
    if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
    if (library.status) return library.status;
    auto it = library.kernels.find(name);
    if (it == library.kernels.end()) return CUDA_ERROR_NOT_FOUND;
    *kernel = it->second;
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  return on_library(Entry::cuLibraryGetKernelCount, handle, [&](State&, Library& library) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = unsigned(library.kernels.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int most, CUlibrary handle) {
  return on_library(Entry::cuLibraryEnumerateKernels, handle, [&](State&, Library& library) {
    if (!kernels || !most) return CUDA_ERROR_INVALID_VALUE;
    if (library.status) return library.status;
    for (const auto& [name, kernel] : library.kernels) {
      if (most-- == 0) break;
      *kernels++ = kernel;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
  return in_context(Entry::cuLibraryGetModule, [&](State& s, Context& context) {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    return library_module(s, context, handle, module);
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                            const char* name) {
  return in_context(Entry::cuLibraryGetGlobal, [&](State& s, Context& context) {
    CUmodule module = nullptr;
    if (CUresult r = library_module(s, context, handle, &module)) return r;
    return module_variable(*s.modules.find(module), name, address, bytes);
  });
}
