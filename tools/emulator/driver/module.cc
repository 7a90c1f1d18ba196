// SPDX-License-Identifier: MIT
// Modules and functions.
#include "tools/emulator/driver/module.h"

#include <algorithm>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/op/load.h"

namespace emu::driver {
namespace {

bool allocate_variables(State& s, CUcontext owner, ptx::Module& code) {
  for (ptx::Variable& v : code.variables) {
    v.address = s.allocate(owner, v.bytes, format("the variable %s", v.name.c_str()));
    if (!v.address) return false;
  }
  for (const ptx::Variable& v : code.variables)
    code.initialise(v, s.memory->at(v.address, v.bytes, 1, "initialisation"));
  return true;
}

}  // namespace

CUresult make_module(State& s, CUcontext context, CUlibrary library, LoadedImage& image,
                     CUmodule* module) {
  if (image.status) return image.status;
  std::shared_ptr<ptx::Module> code = std::move(image.code);
  if (!code) code = ops::load(image.text, s.device->capability, ptx::Reading::when_asked);
  if (!allocate_variables(s, context, *code)) {
    for (const ptx::Variable& v : code->variables)
      if (v.address) s.release(v.address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto made = std::make_unique<Module>();
  made->context = context;
  made->library = library;
  made->code = code;
  Module& object = *made;
  *module = s.modules.insert(std::move(made));
  Library* from = s.libraries.find(library);
  for (const auto& entry : code->functions) {
    if (!entry->is_entry) continue;
    auto function = std::make_unique<Function>();
    function->module = *module;
    function->context = context;
    function->code = code;
    function->entry = entry.get();
    if (from) function->kernel = from->kernels.at(entry->name);
    object.functions.emplace(entry->name, s.functions.insert(std::move(function)));
  }
  return CUDA_SUCCESS;
}

CUresult library_module(State& s, Context& context, CUlibrary handle, CUmodule* module) {
  Library* library = s.libraries.find(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  auto known = library->modules.find(context.handle);
  if (known == library->modules.end()) {
    // A module without variables can share the library's parse: nothing in it belongs to a context.
    LoadedImage image = {library->status, {}, nullptr};
    if (library->code && library->code->variables.empty())
      image.code = library->code;
    else
      image.text = library->text;
    CUmodule made = nullptr;
    if (CUresult r = make_module(s, context.handle, handle, image, &made)) return r;
    known = library->modules.emplace(context.handle, made).first;
  }
  *module = known->second;
  return CUDA_SUCCESS;
}

CUresult kernel_function(State& s, Context& context, CUkernel handle, CUfunction* function) {
  Kernel* kernel = s.kernels.find(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  CUmodule module = nullptr;
  if (CUresult r = library_module(s, context, kernel->library, &module)) return r;
  *function = s.modules.find(module)->functions.at(kernel->entry->name);
  return CUDA_SUCCESS;
}

CUresult module_variable(const Module& module, const char* name, CUdeviceptr* address,
                         size_t* bytes) {
  if (!name || (!address && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  for (const ptx::Variable& v : module.code->variables) {
    if (v.name != name) continue;
    if (address) *address = v.address;
    if (bytes) *bytes = v.bytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

EffectiveAttributes effective(const State& s, const ptx::Function& entry,
                              const FunctionAttributes* own, CUkernel kernel) {
  const Kernel* from = s.kernels.find(kernel);
  auto value = [&](std::optional<int> FunctionAttributes::*field, int otherwise) {
    if (own && (own->*field).has_value()) return *(own->*field);
    return from ? (from->attributes.*field).value_or(otherwise) : otherwise;
  };
  EffectiveAttributes now;
  now.dynamic_shared =
      value(&FunctionAttributes::dynamic_shared, shared_default - int(entry.static_shared_bytes));
  now.carveout = value(&FunctionAttributes::carveout, -1);
  now.policy = value(&FunctionAttributes::policy, 0);
  now.non_portable = value(&FunctionAttributes::non_portable, 0) != 0;
  return now;
}

int blocks_per_sm(const State& s, const Function& f, int threads, size_t dynamic_shared) {
  const DeviceRow& d = *s.device;
  const size_t shared = f.entry->static_shared_bytes + dynamic_shared;
  const auto most = size_t(effective(s, *f.entry, &f.attributes, f.kernel).dynamic_shared);
  if (threads > threads_per_block || dynamic_shared > most) return 0;
  int reserved = 0;
  device_attribute(d, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &reserved);
  const int by_threads = d.threads_per_sm / ((threads + 31) / 32 * 32);
  const size_t each = shared + size_t(reserved);
  const int by_shared = each ? int((size_t(d.shared_per_sm_kib) << 10) / each) : d.blocks_per_sm;
  return std::min({d.blocks_per_sm, by_threads, by_shared});
}

namespace {

int max_threads(const ptx::Function& f) {
  const uint32_t* given = f.reqntid[0] ? f.reqntid : f.maxntid;
  uint32_t product = 1;
  for (int i = 0; i < 3; ++i) product *= given[i] ? given[i] : 1;
  return given[0] ? int(product) : threads_per_block;
}

// Registers are not allocated here. The answer is the most that a thread may have for a block to
// fit: programs divide by it, and multiply it by threads.
int most_registers(const ptx::Function& f) {
  constexpr int of_thread = 255, of_block = 65536, unit = 8;
  if (f.maxnreg) return int(f.maxnreg);
  return std::min(of_thread, of_block / max_threads(f) / unit * unit);
}

int target_version(const ptx::Module& code) {  // "sm_100a" -> 100
  size_t at = code.target.find('_');
  return at == std::string::npos ? 0 : atoi(code.target.c_str() + at + 1);
}

}  // namespace

CUresult get_attribute(const State& s, const ptx::Module& code, const ptx::Function& entry,
                       const EffectiveAttributes& now, CUfunction_attribute attribute, int* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  auto answer = [&](int v) { return *value = v, CUDA_SUCCESS; };
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return answer(max_threads(entry));
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return answer(int(entry.static_shared_bytes));
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return answer(0);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return answer(int(entry.local_bytes));
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return answer(most_registers(entry));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: return answer(target_version(code));
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return answer(s.device->capability);
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: return answer(0);
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return answer(now.dynamic_shared);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return answer(now.carveout);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return answer(entry.explicit_cluster && !entry.reqnctapercluster[0]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return answer(int(entry.reqnctapercluster[0]));
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return answer(int(entry.reqnctapercluster[1]));
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return answer(int(entry.reqnctapercluster[2]));
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return answer(now.non_portable);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return answer(now.policy);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// A cluster size set at run time is refused: it is an attribute of the launch here.
CUresult set_attribute(const State& s, const ptx::Function& entry, FunctionAttributes& own,
                       CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value > s.device->shared_optin() - int(entry.static_shared_bytes))
        return CUDA_ERROR_INVALID_VALUE;
      own.dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      own.carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      own.non_portable = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      own.policy = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace emu::driver
