// SPDX-License-Identifier: MIT
#include "host/image.h"

#include <pthread.h>

#include "host/log.h"

#define IMAGE(name, file, label) \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char nvfp4_image_##name[];
#include "host/images.def"
#undef IMAGE

namespace nvfp4 {

namespace {

struct Image {
  const char* label;
  const void* data;
};

#define IMAGE(name, file, label) {label, nvfp4_image_##name},
const Image kImages[] = {
#include "host/images.def"
};
#undef IMAGE
constexpr const char* kTokensEntry = "nvfp4_tokens_sm90";

// The lock is only taken by a process that owns the driver (open_driver comes first), so a forked
// child never meets it held.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
CUlibrary libraries[kImageCount];
LoadedKernel kernels[kArchitectureCount][kVariantCount];
int kernel_ready[kArchitectureCount][kVariantCount];

// Static, options too: the driver may load lazily and write the log and its size after
// cuLibraryLoadData has returned.
char jit_log[1024];
CUjit_option jit_options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
void* jit_values[2];

nvfp4_status refused(const Driver& driver, const Image& image, const char* call, CUresult result) {
  const nvfp4_status status = status_of(result, NVFP4_STATUS_IMAGE_LOAD);
  if (status != NVFP4_STATUS_IMAGE_LOAD) return driver_failure(driver, call, result);
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an error";
  return fail(status, "%s refuses the %s with %s (%d)%s%s", call, image.label, name,
              static_cast<int>(result), jit_log[0] != '\0' ? ": " : "", jit_log);
}

CUresult load_library(const Driver& driver, const Image& image, CUlibrary* library) {
  jit_values[0] = jit_log;
  jit_values[1] = reinterpret_cast<void*>(sizeof jit_log);
  jit_log[0] = '\0';
  return driver.cuLibraryLoadData(library, image.data, jit_options, jit_values, 2, nullptr, nullptr,
                                  0);
}

// A cubin of another architecture may load and only fail here with 209: loading is lazy.
CUresult get_kernel(const Driver& driver, size_t index, const Variant& variant,
                    LoadedKernel* loaded, const char** call) {
  *call = "cuLibraryLoadData";
  CUlibrary library = libraries[index];
  if (library == nullptr) {
    const CUresult result = load_library(driver, kImages[index], &library);
    if (result != CUDA_SUCCESS) return result;
  }
  *call = "cuLibraryGetKernel";
  CUresult result = driver.cuLibraryGetKernel(&loaded->kernel, library, variant.entry);
  if (result == CUDA_SUCCESS && variant.workspace_tokens) {
    result = driver.cuLibraryGetKernel(&loaded->tokens, library, kTokensEntry);
  }
  if (result == CUDA_SUCCESS) {
    libraries[index] = library;
  } else if (libraries[index] == nullptr) {
    driver.cuLibraryUnload(library);  // best effort: the reason to report is the one above
  }
  return result;
}

nvfp4_status load_first_that_serves(const Driver& driver, const Plan& plan, LoadedKernel* loaded) {
  CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  const char* call = "";
  uint32_t last = 0;
  for (uint32_t i = 0; i < kImageCount; ++i) {
    if (!plan.arch().takes(i)) continue;
    last = i;
    result = get_kernel(driver, i, *plan.variant, loaded, &call);
    log_line(LogLevel::detail, "%s: %s %s", kImages[i].label, call,
             result == CUDA_SUCCESS ? "succeeds" : "refuses");
    if (result == CUDA_SUCCESS) {
      loaded->image = kImages[i].label;
      return NVFP4_SUCCESS;
    }
    if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) break;
  }
  return refused(driver, kImages[last], call, result);
}

}  // namespace

nvfp4_status load_kernel(const Driver& driver, const Plan& plan, LoadedKernel* loaded) {
  int* ready = &kernel_ready[plan.arch_index][index_of(*plan.variant)];
  LoadedKernel* slot = &kernels[plan.arch_index][index_of(*plan.variant)];
  if (__atomic_load_n(ready, __ATOMIC_ACQUIRE) == 0) {
    const LinesAfterRelease lines;
    pthread_mutex_lock(&mutex);
    nvfp4_status status = NVFP4_SUCCESS;
    if (*ready == 0) {
      const RelaxedCapture relaxed(driver);
      status = load_first_that_serves(driver, plan, slot);
      if (status == NVFP4_SUCCESS) __atomic_store_n(ready, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
    NVFP4_TRY(status);
  }
  *loaded = *slot;
  return NVFP4_SUCCESS;
}

const char* image_label(uint32_t image) { return kImages[image].label; }

}  // namespace nvfp4
