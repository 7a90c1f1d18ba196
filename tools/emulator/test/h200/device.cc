// SPDX-License-Identifier: MIT
// See device.h.
#include "tools/emulator/test/h200/device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <iterator>

namespace h200 {

void* entry(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) throw DriverError("no libcuda.so.1 is found", CUDA_ERROR_NOT_INITIALIZED);
  void* const found = dlsym(library, name);
  if (!found) throw DriverError(std::string("the driver has no ") + name, CUDA_ERROR_NOT_FOUND);
  return found;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (H200_ENTRY(cuGetErrorName)(result, &name) != CUDA_SUCCESS || !name) name = "an unknown error";
  throw DriverError(
      std::string(call) + " answered " + name + " (" + std::to_string(int(result)) + ")", result);
}

std::string beside_this_program(const std::string& path) {
  char own[PATH_MAX] = "";
  const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  const std::string text(own, size_t(std::max<ssize_t>(n, 0)));
  return text.substr(0, text.rfind('/') + 1) + path;
}

Device::Device() {
  H200_CALL(cuInit, 0);
  H200_CALL(cuDeviceGet, &device_, 0);
  char text[256] = "";
  H200_CALL(cuDeviceGetName, text, sizeof text, device_);
  name = text;
  int major = 0, minor = 0;
  H200_CALL(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_);
  H200_CALL(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_);
  capability = 10 * major + minor;
  CUcontext context = nullptr;
  H200_CALL(cuDevicePrimaryCtxRetain, &context, device_);
  H200_CALL(cuCtxSetCurrent, context);
}

Device::~Device() {
  H200_ENTRY(cuCtxSetCurrent)(nullptr);
  H200_ENTRY(cuDevicePrimaryCtxRelease)(device_);
}

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  H200_CALL(cuMemAlloc, &base_, bytes + 2 * guard);
  H200_CALL(cuMemsetD8, base_, 0xFF, bytes + 2 * guard);
}

Buffer::~Buffer() { H200_ENTRY(cuMemFree)(base_); }

void Buffer::upload(const void* from) { H200_CALL(cuMemcpyHtoD, address(), from, bytes_); }
void Buffer::download(void* to) const { H200_CALL(cuMemcpyDtoH, to, address(), bytes_); }

bool Buffer::guards_intact() const {
  std::vector<uint8_t> bytes(guard);
  for (const CUdeviceptr at : {base_, address() + bytes_}) {
    H200_CALL(cuMemcpyDtoH, bytes.data(), at, guard);
    if (std::any_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b != 0xFF; })) return false;
  }
  return true;
}

Module::Module(const std::string& text) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  const CUresult result =
      H200_ENTRY(cuModuleLoadDataEx)(&module_, text.c_str(), 2, options, values);
  const std::string what =
      log[0] ? "cuModuleLoadDataEx, \"" + std::string(log) + "\"," : "cuModuleLoadDataEx";
  check(result, what.c_str());
}

Module Module::from_build(const std::string& path) {
  std::ifstream in(beside_this_program(path));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) throw std::runtime_error(path + " cannot be read");
  return Module(text);
}

// Fails after a sticky error, and then there is nothing left to unload.
Module::~Module() {
  if (module_) H200_ENTRY(cuModuleUnload)(module_);
}

void Module::launch(const char* function, uint32_t grid, uint32_t block,
                    uint32_t dynamic_shared_bytes, void** arguments) const {
  CUfunction kernel = nullptr;
  H200_CALL(cuModuleGetFunction, &kernel, module_, function);
  H200_CALL(cuFuncSetAttribute, kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            int(dynamic_shared_bytes));
  H200_CALL(cuLaunchKernel, kernel, grid, 1, 1, block, 1, 1, dynamic_shared_bytes, nullptr,
            arguments, nullptr);
  H200_CALL(cuCtxSynchronize);
}

}  // namespace h200
