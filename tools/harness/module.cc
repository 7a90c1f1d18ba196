// SPDX-License-Identifier: MIT
#include "tools/harness/module.h"

#include <algorithm>
#include <fstream>

namespace support {

Global global_of(const Driver& driver, CUmodule module, const char* name) {
  Global found;
  const CUresult result = driver.cuModuleGetGlobal(&found.address, &found.bytes, module, name);
  if (result == CUDA_ERROR_NOT_FOUND) return {};
  driver.check(result, "cuModuleGetGlobal");
  return found;
}

Module::Module(const Driver& driver, const std::string& path) : driver_(driver) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? std::streamoff(in.tellg()) : 0;
  std::string text(size_t(std::max<std::streamoff>(size, 0)), '\0');
  in.seekg(0).read(text.data(), size);
  if (text.empty()) throw std::runtime_error(path + " cannot be read");
  load(text);
}

Module Module::from_text(const Driver& driver, const std::string& text) {
  Module module(driver);
  module.load(text);
  return module;
}

void Module::load(const std::string& text) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  const CUresult result = driver_.cuModuleLoadDataEx(&module_, text.c_str(), 2, options, values);
  const std::string what =
      log[0] ? "cuModuleLoadDataEx, \"" + std::string(log) + "\"," : "cuModuleLoadDataEx";
  driver_.check(result, what.c_str());
}

// Fails after a sticky error, and then there is nothing left to unload.
Module::~Module() {
  if (module_) driver_.cuModuleUnload(module_);
}

CUfunction Module::function(const char* entry) const {
  CUfunction found = nullptr;
  driver_.check(driver_.cuModuleGetFunction(&found, module_, entry), "cuModuleGetFunction");
  return found;
}

void Module::launch(const char* entry, uint32_t grid, uint32_t block, uint32_t dynamic_shared_bytes,
                    void** arguments) const {
  const CUfunction kernel = function(entry);
  driver_.check(driver_.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           int(dynamic_shared_bytes)),
                "cuFuncSetAttribute");
  driver_.check(driver_.cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, dynamic_shared_bytes,
                                       nullptr, arguments, nullptr),
                "cuLaunchKernel");
  driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace support
