// SPDX-License-Identifier: MIT
// Sixty-four threads make the first call of a process together; linked with host/ built for
// ThreadSanitizer, which ends the process with status 66 when two of them race.
//
//   first_use           0 = every call succeeded with the reference's bits
//   first_use planted   a race of this program's own, which ThreadSanitizer has to report
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "host/cuda/driver.h"
#include "nvfp4_gemm.h"

namespace {

constexpr int kThreads = 64;
constexpr int64_t kM = 8, kN = 16, kK = 64;
constexpr size_t kCodeBytes = kN * kK / 2, kScaleBytes = 512, kResultBytes = kM * kN * 2;

struct Driver {
  decltype(&::cuInit) init;
  decltype(&::cuDevicePrimaryCtxRetain) retain;
  decltype(&::cuCtxSetCurrent) set_current;
  decltype(&::cuCtxSynchronize) synchronize;
  decltype(&::cuMemAlloc) allocate;
  decltype(&::cuMemcpyHtoD) upload;
  decltype(&::cuMemcpyDtoH) download;
} driver;

template <class F>
bool find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) fprintf(stderr, "no %s in libcuda.so.1\n", name);
  return *function != nullptr;
}

bool open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fprintf(stderr, "%s\n", dlerror());
  return library != nullptr && find(library, "cuInit", &driver.init) &&
         find(library, "cuDevicePrimaryCtxRetain", &driver.retain) &&
         find(library, "cuCtxSetCurrent", &driver.set_current) &&
         find(library, "cuCtxSynchronize", &driver.synchronize) &&
         find(library, "cuMemAlloc_v2", &driver.allocate) &&
         find(library, "cuMemcpyHtoD_v2", &driver.upload) &&
         find(library, "cuMemcpyDtoH_v2", &driver.download) && driver.init(0) == CUDA_SUCCESS;
}

void* on_device(const std::vector<uint8_t>& content) {
  CUdeviceptr address = 0;
  if (driver.allocate(&address, content.size()) != CUDA_SUCCESS ||
      driver.upload(address, content.data(), content.size()) != CUDA_SUCCESS) {
    fprintf(stderr, "no device memory\n");
  }
  return reinterpret_cast<void*>(address);
}

// Codes of all kinds under scales of 1: sums are exact, so device and reference agree to the bit.
std::vector<uint8_t> codes() {
  std::vector<uint8_t> bytes(kCodeBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 16);
  return bytes;
}

nvfp4_gemm_desc problem(const void* codes, const void* scales, void* d, int thread) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = kM, g.n = kN, g.k = kK, g.l = 1;
  g.a = g.b = codes, g.a_ld = g.b_ld = kK;
  g.a_scales = g.b_scales = scales;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = d, g.d_ld = kN, g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f / static_cast<float>(1 + thread % 4);
  return g;
}

std::atomic<int> lines;
void count_line(void* count, int32_t, const char*) { ++*static_cast<std::atomic<int>*>(count); }

struct Caller {
  pthread_barrier_t* gate;
  CUcontext context;
  nvfp4_gemm_desc device, host;
  std::vector<uint8_t> expected;
  int number = 0;
  bool good = false;

  // By turns one of the four functions that load, so that each may be the first.
  nvfp4_status first(int turn) {
    nvfp4_gemm_plan* plan = nullptr;
    if (turn == 0) return nvfp4_gemm_run(&device, nullptr);
    if (turn == 1) return nvfp4_prepare();
    if (turn == 2) return nvfp4_set_log_callback(count_line, &lines, 2);
    const nvfp4_status status = nvfp4_gemm_plan_create(&device, &plan);
    nvfp4_gemm_plan_destroy(plan);
    return status;
  }

  nvfp4_status plan_run() {
    nvfp4_gemm_plan* plan = nullptr;
    nvfp4_status status = nvfp4_gemm_plan_create(&device, &plan);
    if (status == NVFP4_SUCCESS) status = nvfp4_gemm_plan_run(plan, nullptr, nullptr);
    nvfp4_gemm_plan_destroy(plan);
    return status;
  }

  // Everything with state of the process or of the thread.
  void operator()() {
    driver.set_current(context);
    pthread_barrier_wait(gate);
    good = first(number % 4) == NVFP4_SUCCESS &&
           nvfp4_gemm_run(&device, nullptr) == NVFP4_SUCCESS && plan_run() == NVFP4_SUCCESS;
    if (!good) fprintf(stderr, "%s\n", nvfp4_last_error());
    char text[2048];
    good &= nvfp4_gemm_explain(&device, 100, 148, text, sizeof text) == NVFP4_SUCCESS;
    nvfp4_plan_info info{};
    info.struct_size = sizeof info;
    good &= nvfp4_gemm_describe(&device, 100, 148, &info) == NVFP4_SUCCESS;
    good &= nvfp4_gemm_reference(&host) == NVFP4_SUCCESS;
    nvfp4_gemm_desc bad = host;
    bad.a_ld = kK + 1;
    good &= nvfp4_gemm_supported(&bad, 100) == NVFP4_STATUS_MISALIGNED &&
            strstr(nvfp4_last_error(), "a_ld") != nullptr && nvfp4_build_info() != nullptr;
  }
};

int race_for_first_use() {
  CUcontext context = nullptr;
  if (!open_driver() || driver.retain(&context, 0) != CUDA_SUCCESS ||
      driver.set_current(context) != CUDA_SUCCESS) {
    return 1;
  }
  const std::vector<uint8_t> elements = codes(), scales(kScaleBytes, 0x38);
  void* const elements_there = on_device(elements);
  void* const scales_there = on_device(scales);
  pthread_barrier_t gate;
  pthread_barrier_init(&gate, nullptr, kThreads);
  std::vector<Caller> callers(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    Caller& caller = callers[t];
    caller.gate = &gate, caller.context = context, caller.number = t;
    caller.expected.resize(kResultBytes);
    void* const d = on_device(std::vector<uint8_t>(kResultBytes, 0xFF));
    caller.device = problem(elements_there, scales_there, d, t);
    caller.host = problem(elements.data(), scales.data(), caller.expected.data(), t);
  }
  for (Caller& caller : callers) threads.emplace_back([&caller] { caller(); });
  for (std::thread& thread : threads) thread.join();
  bool good = driver.synchronize() == CUDA_SUCCESS && lines > 0;
  for (const Caller& caller : callers) {
    std::vector<uint8_t> d(kResultBytes);
    const auto address = reinterpret_cast<CUdeviceptr>(caller.device.d);
    good &= caller.good && driver.download(d.data(), address, d.size()) == CUDA_SUCCESS &&
            d == caller.expected;
  }
  if (!good) fprintf(stderr, "a call failed, or its result is not the reference's\n");
  return good ? 0 : 1;
}

int counter;

int planted() {
  std::thread other([] { ++counter; });
  ++counter;
  other.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return argc > 1 && strcmp(argv[1], "planted") == 0 ? planted() : race_for_first_use();
}
