// SPDX-License-Identifier: MIT
// Modules: code loaded into the current context.
#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/module.h"

#include <fstream>
#include <sstream>

using namespace emu::driver;

namespace {

CUresult load(Entry entry, CUmodule* module, const void* image, unsigned count,
              CUjit_option* options, void** values) {
  return in_context(entry, [&](State& s, Context& context) {
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    if (CUresult r = jit.read(count, options, values)) return r;
    LoadedImage loaded = load_image(image, *s.device, s.driver_version(), s.known_code, jit);
    return make_module(s, context.handle, nullptr, loaded, module);
  });
}

template <class Body>
CUresult on_module(Entry entry, CUmodule handle, Body&& body) {
  return in_context(entry, [&](State& s, Context&) {
    Module* module = s.modules.find(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    return body(s, *module);
  });
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return in_context(Entry::cuModuleLoad, [&](State& s, Context& context) {
    if (!module || !path) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::stringstream image;
    image << file.rdbuf();
    JitOptions jit;
    LoadedImage loaded =
        load_image(image.str().c_str(), *s.device, s.driver_version(), s.known_code, jit);
    return make_module(s, context.handle, nullptr, loaded, module);
  });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(Entry::cuModuleLoadData, module, image, 0, nullptr, nullptr);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  return load(Entry::cuModuleLoadDataEx, module, image, count, options, values);
}

CUresult cuModuleUnload(CUmodule handle) {
  std::lock_guard running(state().execution);
  return on_module(Entry::cuModuleUnload, handle, [&](State& s, Module& module) {
    if (module.library) return CUDA_ERROR_NOT_PERMITTED;
    s.unload_module(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return on_module(Entry::cuModuleGetFunction, handle, [&](State&, Module& module) {
    if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
    auto it = module.functions.find(name);
    if (it == module.functions.end()) return CUDA_ERROR_NOT_FOUND;
    *function = it->second;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                              const char* name) {
  return on_module(Entry::cuModuleGetGlobal_v2, handle, [&](State&, Module& module) {
    return module_variable(module, name, address, bytes);
  });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  return on_module(Entry::cuModuleGetFunctionCount, handle, [&](State&, Module& module) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = unsigned(module.functions.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int most, CUmodule handle) {
  return on_module(Entry::cuModuleEnumerateFunctions, handle, [&](State&, Module& module) {
    if (!functions || !most) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& [name, function] : module.functions) {
      if (most-- == 0) break;
      *functions++ = function;
    }
    return CUDA_SUCCESS;
  });
}

// PTX is parsed when it is loaded.
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return initialised(Entry::cuModuleGetLoadingMode, [&](State&) {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
  });
}
