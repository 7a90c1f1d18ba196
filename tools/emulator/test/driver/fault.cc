// SPDX-License-Identifier: MIT
// Faults: reported on stderr in full, answered by every later call of the context. Which calls
// still work under a sticky error was measured on an H200, driver 580; there the error ends the
// process, here the context.
#include <sys/resource.h>

#include "tools/emulator/test/support/driver_session.h"

namespace {

const char* const kernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 p) {
  .reg .u64 a;
  ld.param.u64 a, [p];
  st.global.u32 [a], 1;
  ret;
}
.visible .entry traps(.param .u64 p) { trap; ret; }
)";

}  // namespace

TEST_CASE("A kernel that strays leaves ILLEGAL_ADDRESS behind and says where") {
  std::string report = in_child([](Session& s) {
    CUcontext context = s.start(), current = nullptr;
    CUmodule module = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr p = 0, q = 0;
    CUlibrary library = nullptr;
    int value = 0;
    constexpr auto sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    OK(s, s.cuModuleLoadData(&module, kernels));
    OK(s, s.cuStreamCreate(&stream, 0));
    OK(s, s.cuMemAlloc(&p, 64));
    CUfunction f = s.function(module, "store");
    OK(s, s.launch(f, p + 60));
    OK(s, s.cuCtxSynchronize());

    OK(s, s.launch(f, p + 64));
    IS(s, s.cuCtxSynchronize(), sticky);
    IS(s, s.cuCtxSynchronize(), sticky);
    IS(s, s.cuMemAlloc(&q, 64), sticky);
    IS(s, s.cuMemFree(p), sticky);
    IS(s, s.cuMemcpyDtoH(&value, p, 4), sticky);
    IS(s, s.launch(f, p), sticky);
    IS(s, s.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), sticky);
    IS(s, s.cuModuleUnload(module), sticky);
    IS(s, s.cuStreamQuery(stream), sticky);
    IS(s, s.cuStreamDestroy(stream), sticky);
    IS(s, s.cuCtxCreate(&current, nullptr, 0, 0), sticky);
    OK(s, s.cuCtxGetCurrent(&current));
    IS(s, current == context, 1);
    OK(s, s.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    OK(s, s.cuLibraryLoadData(&library, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  });
  CHECK(report.find("kernel store") != std::string::npos);
  CHECK(report.find("0x0 bytes beyond the end of") != std::string::npos);
  CHECK(report.find("line 7") != std::string::npos);
}

TEST_CASE("Each kind of fault has the status that hardware gives it") {
  in_child([](Session& s) {
    CUmodule module = s.load(kernels);
    CUdeviceptr p = 0;
    OK(s, s.cuMemAlloc(&p, 64));
    OK(s, s.launch(s.function(module, "store"), p + 2));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
  });
  in_child([](Session& s) {
    OK(s, s.launch(s.function(s.load(kernels), "traps")));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  });
}

TEST_CASE("Resetting the primary context clears its error and ends what lived in it") {
  in_child([](Session& s) {
    CUmodule module = s.load(kernels);
    CUcontext context = nullptr;
    CUdeviceptr p = 0;
    OK(s, s.launch(s.function(module, "traps")));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    OK(s, s.cuDevicePrimaryCtxReset(0));
    IS(s, s.cuMemAlloc(&p, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(s, s.cuDevicePrimaryCtxRelease(0));
    OK(s, s.cuDevicePrimaryCtxRetain(&context, 0));
    OK(s, s.cuMemAlloc(&p, 64));
    IS(s, s.cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_CASE("A context's error stays its own") {
  in_child([](Session& s) {
    CUcontext bad = nullptr;
    CUmodule module = s.load(kernels);
    CUdeviceptr p = 0;
    OK(s, s.cuCtxCreate(&bad, nullptr, 0, 0));
    CUmodule inner = nullptr;
    OK(s, s.cuModuleLoadData(&inner, kernels));
    OK(s, s.launch(s.function(inner, "traps")));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    OK(s, s.cuCtxDestroy(bad));
    OK(s, s.cuMemAlloc(&p, 64));
    OK(s, s.launch(s.function(module, "store"), p));
    OK(s, s.cuCtxSynchronize());
  });
}

TEST_CASE("A host that runs out of memory or threads fails the launch and not the process") {
  const char* const greedy = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u64 a;
  .local .align 8 .b8 x[524288];
  mov.u64 a, x;
  st.local.u32 [a], 1;
  bar.sync 0;
  ret;
}
)";
  std::string report = in_child({{"EMU_WORKERS", "4"}}, [&](Session& s) {
    CUfunction f = s.function(s.load(greedy), "k");
    const rlimit one_gibibyte = {1u << 30, 1u << 30};  // each block needs 1 GiB
    setrlimit(RLIMIT_AS, &one_gibibyte);
    uint64_t parameter = 0;
    void* parameters[] = {&parameter};
    OK(s, s.cuLaunchKernel(f, 8, 1, 1, 1024, 1, 1, 0, nullptr, parameters, nullptr));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  });
  CHECK(report.find("too little memory") != std::string::npos);
}
