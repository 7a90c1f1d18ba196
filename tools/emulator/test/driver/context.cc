// SPDX-License-Identifier: MIT
// Contexts, streams and events. Statuses as measured on an H200, driver 580.
#include <thread>

#include "tools/emulator/test/support/driver_session.h"

TEST_CASE("Without a current context work is refused with INVALID_CONTEXT") {
  in_child([](Session& s) {
    CUcontext context = reinterpret_cast<CUcontext>(1);
    CUdeviceptr address = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    OK(s, s.cuInit(0));
    OK(s, s.cuCtxGetCurrent(&context));
    IS(s, context == nullptr, 1);
    IS(s, s.cuMemAlloc(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuMemcpyHtoD(0x1000, &address, 4), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuModuleLoadData(&module, "garbage"), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuCtxPushCurrent(nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuMemFree(0));
    IS(s, s.cuMemFree(0x1234), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("The primary context lives from the first retain to the last release") {
  in_child([](Session& s) {
    CUcontext first = nullptr, second = nullptr, current = nullptr;
    CUdeviceptr address = 0;
    unsigned flags = 0;
    int active = -1;
    OK(s, s.cuInit(0));
    IS(s, s.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    OK(s, s.cuDevicePrimaryCtxGetState(0, &flags, &active));
    IS(s, active, 0);
    OK(s, s.cuDevicePrimaryCtxRetain(&first, 0));
    OK(s, s.cuDevicePrimaryCtxRetain(&second, 0));
    IS(s, first == second, 1);
    OK(s, s.cuCtxSetCurrent(first));
    OK(s, s.cuMemAlloc(&address, 64));
    IS(s, s.cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
    OK(s, s.cuDevicePrimaryCtxRelease(0));
    OK(s, s.cuMemAlloc(&address, 64));
    OK(s, s.cuDevicePrimaryCtxRelease(0));
    IS(s, s.cuMemAlloc(&address, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(s, s.cuCtxGetCurrent(&current));
    IS(s, current == first, 1);
    OK(s, s.cuDevicePrimaryCtxRetain(&second, 0));
    OK(s, s.cuMemAlloc(&address, 64));
  });
}

TEST_CASE("Each thread has a stack of contexts of its own") {
  in_child([](Session& s) {
    CUcontext primary = s.start(), made = nullptr, seen = nullptr;
    OK(s, s.cuCtxCreate(&made, nullptr, 0, 0));
    OK(s, s.cuCtxGetCurrent(&seen));
    IS(s, seen == made, 1);
    std::thread([&] {
      OK(s, s.cuCtxGetCurrent(&seen));
      IS(s, seen == nullptr, 1);
      OK(s, s.cuCtxPushCurrent(made));
    }).join();
    OK(s, s.cuCtxPopCurrent(&seen));
    IS(s, seen == made, 1);
    OK(s, s.cuCtxGetCurrent(&seen));
    IS(s, seen == primary, 1);
    OK(s, s.cuCtxPushCurrent(made));
    OK(s, s.cuCtxDestroy(made));
    OK(s, s.cuCtxGetCurrent(&seen));
    IS(s, seen == primary, 1);
    IS(s, s.cuCtxPushCurrent(made), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST_CASE("A context that another thread destroyed is reported as destroyed") {
  in_child([](Session& s) {
    CUcontext made = nullptr;
    CUdeviceptr address = 0;
    OK(s, s.cuInit(0));
    OK(s, s.cuCtxCreate(&made, nullptr, 0, 0));
    std::thread([&] { OK(s, s.cuCtxDestroy(made)); }).join();
    IS(s, s.cuMemAlloc(&address, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  });
}

TEST_CASE("Stream and event handles that do not exist are refused") {
  in_child([](Session& s) {
    s.start();
    CUstream stream = nullptr;
    CUevent event = nullptr;
    IS(s, s.cuStreamCreate(&stream, 99), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    IS(s, s.cuEventCreate(&event, 99), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuEventCreate(&event, 0));
    OK(s, s.cuStreamWaitEvent(stream, event, 0));
    IS(s, s.cuStreamWaitEvent(stream, nullptr, 0), CUDA_ERROR_INVALID_HANDLE);
    IS(s, s.cuEventRecord(nullptr, stream), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuStreamSynchronize(CU_STREAM_LEGACY));
    OK(s, s.cuStreamSynchronize(CU_STREAM_PER_THREAD));
    IS(s, s.cuStreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuStreamDestroy(stream));
    IS(s, s.cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    IS(s, s.cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuEventDestroy(event));
    IS(s, s.cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_CASE("The time between two events needs both recorded and timed") {
  in_child([](Session& s) {
    s.start();
    CUevent a = nullptr, b = nullptr, untimed = nullptr;
    float ms = -1;
    OK(s, s.cuEventCreate(&a, 0));
    OK(s, s.cuEventCreate(&b, 0));
    OK(s, s.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(s, s.cuEventQuery(a));
    IS(s, s.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuEventRecord(a, nullptr));
    OK(s, s.cuEventRecord(b, nullptr));
    OK(s, s.cuEventRecord(untimed, nullptr));
    OK(s, s.cuEventElapsedTime(&ms, a, b));
    IS(s, ms >= 0, 1);
    IS(s, s.cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
  });
}
