// SPDX-License-Identifier: MIT
// Some calls of the CUDA runtime over the driver API, so that programs of others with <<<>>> run on
// the emulator in make check-outside. It is never installed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {

// The numbers of the runtime's errors are the driver's. Remembered for cudaGetLastError.
cudaError_t done(CUresult result);
cudaError_t failed(cudaError_t error);  // one that the runtime alone has

// cuInit and device 0's primary context, current in the calling thread; 0: it is.
CUresult ready();

// What a kernel's address on the host, or its handle, stands for; nullptr: nothing.
CUkernel kernel_of(const void* address);
CUfunction function_of(const void* address);
// Where a __device__ or __constant__ variable lies; false: there is none.
bool variable_at(const void* symbol, CUdeviceptr* address, size_t* bytes);

template <class Call>
cudaError_t call(Call&& f) {
  CUresult r = ready();
  return done(r ? r : f());
}

inline CUdeviceptr device(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace runtime
