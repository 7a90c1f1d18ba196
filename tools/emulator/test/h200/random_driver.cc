// SPDX-License-Identifier: MIT
// See random_driver.h.
#include "tools/emulator/test/h200/random_driver.h"

#include <dlfcn.h>

#include <stdexcept>

#include "tools/emulator/test/h200/device.h"

namespace h200 {

#define RANDOM_CALL(call, ...) check(entry<decltype(&::call)>(H200_NAME(call))(__VA_ARGS__), #call)

template <class F>
F RandomDriver::entry(const char* name) const {
  void* const found = dlsym(library_, name);
  if (!found) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F>(found);
}

RandomDriver::RandomDriver(const std::string& library)
    : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) throw std::runtime_error(dlerror());
  char name[256] = "";
  CUdevice device = 0;
  RANDOM_CALL(cuInit, 0);
  RANDOM_CALL(cuDeviceGet, &device, 0);
  RANDOM_CALL(cuDeviceGetName, name, sizeof name, device);
  RANDOM_CALL(cuDevicePrimaryCtxRetain, &context_, device);
  device_ = name;
}

std::vector<uint32_t> RandomDriver::run(const std::vector<RandomProgram>& programs) const {
  std::vector<uint32_t> values;
  for (const RandomProgram& p : programs) {
    const std::vector<uint32_t> of_it = random_values(p.number);
    values.insert(values.end(), of_it.begin(), of_it.end());
  }
  static_assert(kRandomResults == 32 * kRandomWords + 32);
  std::vector<uint32_t> results(values.size());
  const size_t bytes = values.size() * sizeof values[0];
  RANDOM_CALL(cuCtxSetCurrent, context_);
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* log_values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  CUmodule module = nullptr;
  const auto load = entry<decltype(&::cuModuleLoadDataEx)>("cuModuleLoadDataEx");
  check(load(&module, random_module(programs).c_str(), 2, options, log_values), log);
  CUdeviceptr from = 0, to = 0;
  RANDOM_CALL(cuMemAlloc, &from, bytes);
  RANDOM_CALL(cuMemAlloc, &to, bytes);
  RANDOM_CALL(cuMemcpyHtoD, from, values.data(), bytes);
  RANDOM_CALL(cuMemsetD8, to, 0xFF, bytes);
  void* arguments[] = {&from, &to};
  for (size_t i = 0; i < programs.size(); ++i) {
    CUfunction function = nullptr;
    RANDOM_CALL(cuModuleGetFunction, &function, module, ("p" + std::to_string(i)).c_str());
    RANDOM_CALL(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  }
  RANDOM_CALL(cuCtxSynchronize);
  RANDOM_CALL(cuMemcpyDtoH, results.data(), to, bytes);
  RANDOM_CALL(cuMemFree, from);
  RANDOM_CALL(cuMemFree, to);
  RANDOM_CALL(cuModuleUnload, module);
  return results;
}

}  // namespace h200
