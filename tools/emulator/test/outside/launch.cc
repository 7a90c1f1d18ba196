// SPDX-License-Identifier: MIT
// What nvcc's host code registers and launches.
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/emulator/test/outside/runtime.h"

namespace {

// As in nvcc's fatbinary_section.h: what __cudaRegisterFatBinary is given.
struct Wrapper {
  int magic, version;
  const void* image;
  void* names;
};

struct Binary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
  void** handle = nullptr;  // its address is what the host code holds
};

struct Symbol {
  Binary* binary;
  std::string name;
};

// Static constructors of other files come here before this file's own.
struct Registry {
  std::deque<Binary> binaries;
  std::map<const void*, Symbol> kernels, variables;
  std::map<const void*, CUkernel> found;
};
Registry& registry() {
  static Registry& the = *new Registry;
  return the;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

CUresult load(Binary& b) {
  if (b.library) return CUDA_SUCCESS;
  return cuLibraryLoadData(&b.library, b.image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

thread_local cudaError_t last = cudaSuccess;

}  // namespace

namespace runtime {

cudaError_t failed(cudaError_t error) { return last = error; }
cudaError_t done(CUresult result) {
  const cudaError_t error = static_cast<cudaError_t>(result);
  return result && result != CUDA_ERROR_NOT_READY ? failed(error) : error;
}

CUresult ready() {
  static CUcontext context = nullptr;
  static const CUresult started = [] {
    CUdevice first = 0;
    if (CUresult r = cuInit(0)) return r;
    if (CUresult r = cuDeviceGet(&first, 0)) return r;
    return cuDevicePrimaryCtxRetain(&context, first);
  }();
  if (started) return started;
  CUcontext current = nullptr;
  if (CUresult r = cuCtxGetCurrent(&current)) return r;
  return current ? CUDA_SUCCESS : cuCtxSetCurrent(context);
}

CUkernel kernel_of(const void* address) {
  Registry& r = registry();
  if (const auto known = r.found.find(address); known != r.found.end()) return known->second;
  const auto it = r.kernels.find(address);
  // A handle that __cudaGetKernel gave stands for itself.
  if (it == r.kernels.end()) return static_cast<CUkernel>(const_cast<void*>(address));
  CUkernel kernel = nullptr;
  if (ready() || load(*it->second.binary) ||
      cuLibraryGetKernel(&kernel, it->second.binary->library, it->second.name.c_str()))
    return nullptr;
  r.found[address] = kernel;
  return kernel;
}

CUfunction function_of(const void* address) {
  CUfunction function = nullptr;
  const CUkernel kernel = kernel_of(address);
  return kernel && !cuKernelGetFunction(&function, kernel) ? function : nullptr;
}

bool variable_at(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  Registry& r = registry();
  const auto it = r.variables.find(symbol);
  return it != r.variables.end() && !ready() && !load(*it->second.binary) &&
         !cuLibraryGetGlobal(address, bytes, it->second.binary->library, it->second.name.c_str());
}

}  // namespace runtime

using namespace runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Registry& r = registry();
  Binary& b = r.binaries.emplace_back();
  b.image = static_cast<const Wrapper*>(wrapper)->image;
  b.handle = reinterpret_cast<void**>(&b);
  return b.handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  registry().kernels[host] = {reinterpret_cast<Binary*>(binary), name};
}
void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int, size_t, int, int) {
  registry().variables[host] = {reinterpret_cast<Binary*>(binary), name};
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return failed(cudaErrorMissingConfiguration);
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* address) {
  *kernel = kernel_of(address);
  return *kernel ? cudaSuccess : failed(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* address, void** args) {
  const CUkernel kernel = kernel_of(address);
  if (!kernel) return failed(cudaErrorInvalidDeviceFunction);
  CUlaunchConfig config = {};
  config.gridDimX = c->gridDim.x, config.gridDimY = c->gridDim.y, config.gridDimZ = c->gridDim.z;
  config.blockDimX = c->blockDim.x, config.blockDimY = c->blockDim.y;
  config.blockDimZ = c->blockDim.z;
  config.sharedMemBytes = unsigned(c->dynamicSmemBytes);
  config.hStream = c->stream;
  config.attrs = reinterpret_cast<CUlaunchAttribute*>(c->attrs);  // the same structure
  config.numAttrs = c->numAttrs;
  return call([&] {
    return cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), args, nullptr);
  });
}

cudaError_t cudaLaunchKernel(const void* address, dim3 grid, dim3 block, void** args, size_t shared,
                             cudaStream_t stream) {
  cudaLaunchConfig_t c = {};
  c.gridDim = grid, c.blockDim = block, c.dynamicSmemBytes = shared, c.stream = stream;
  return cudaLaunchKernelExC(&c, address, args);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* address, dim3 grid, dim3 block, void** args,
                                        size_t shared, cudaStream_t stream) {
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t c = {grid, block, shared, stream, &cooperative, 1};
  return cudaLaunchKernelExC(&c, address, args);
}

cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last; }

}  // extern "C"
