// SPDX-License-Identifier: MIT
// Modules and functions as the entry points for modules, libraries, kernels and launches share
// them.
#pragma once

#include "tools/emulator/driver/image.h"
#include "tools/emulator/driver/state.h"

namespace emu::driver {

// Puts code into a context: memory for its variables, one CUfunction per entry. `image.code` is
// taken for the first module and parsed again for others, as each has variables of its own.
CUresult make_module(State& s, CUcontext context, CUlibrary library, LoadedImage& image,
                     CUmodule* module);

// The context's module of a library, loaded at first use.
CUresult library_module(State& s, Context& context, CUlibrary library, CUmodule* module);

// The context's function of a kernel.
CUresult kernel_function(State& s, Context& context, CUkernel kernel, CUfunction* function);

// A variable's address and size; NOT_FOUND if the module has none of that name.
CUresult module_variable(const Module& module, const char* name, CUdeviceptr* address,
                         size_t* bytes);

// Attributes of a function: its own setting, else its kernel's, else the default.
struct EffectiveAttributes {
  int dynamic_shared = 0;  // most that a launch may ask for
  int carveout = -1, policy = 0;
  bool non_portable = false;
};
EffectiveAttributes effective(const State& s, const ptx::Function& entry,
                              const FunctionAttributes* own, CUkernel kernel);

// How many blocks an SM holds at once; registers are not known. 0 where a launch is refused.
int blocks_per_sm(const State& s, const Function& f, int threads, size_t dynamic_shared);

// cuFuncGetAttribute and cuKernelGetAttribute.
CUresult get_attribute(const State& s, const ptx::Module& code, const ptx::Function& entry,
                       const EffectiveAttributes& now, CUfunction_attribute attribute, int* value);
CUresult set_attribute(const State& s, const ptx::Function& entry, FunctionAttributes& own,
                       CUfunction_attribute attribute, int value);

// What cu..SetCacheConfig and cu..SetSharedMemConfig take.
inline bool is_cache_config(CUfunc_cache config) {
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}
inline bool is_bank_config(CUsharedconfig config) {
  return config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
         config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
}

}  // namespace emu::driver
