// SPDX-License-Identifier: MIT
#include "host/driver/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

#include "host/base/log.h"

namespace nvfp4 {

namespace {

Driver table;
int ready;    // 1 once `table` may be used
pid_t owner;  // the process that opens or has opened the driver; 0 = none

// ---- opening ------------------------------------------------------------------------------------

// A copy that the program already uses comes first. Otherwise the loader's rules choose, since we
// pass a bare soname: no path of ours, no variable of ours.
nvfp4_status open_library(void** library) {
  *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (*library == nullptr) *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (*library != nullptr) return NVFP4_SUCCESS;
  const char* why = dlerror();
  return fail(NVFP4_STATUS_NO_DRIVER, "libcuda.so.1 cannot be opened: %s", why ? why : "no reason");
}

nvfp4_status entry(decltype(&::cuGetProcAddress) get, const char* name, int version,
                   void** function) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = get(name, function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  if (result == CUDA_ERROR_STUB_LIBRARY) {
    return fail(NVFP4_STATUS_NO_DRIVER, "libcuda.so.1 is the toolkit's stub, not a driver");
  }
  if (result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && *function != nullptr) {
    return NVFP4_SUCCESS;
  }
  return fail(NVFP4_STATUS_DRIVER_TOO_OLD, "the CUDA driver has no %s of CUDA %s", name,
              cuda_text(version).text);
}

nvfp4_status check_version(decltype(&::cuGetProcAddress) get, int oldest) {
  decltype(&::cuDriverGetVersion) get_version = nullptr;
  NVFP4_TRY(entry(get, "cuDriverGetVersion", 2020, reinterpret_cast<void**>(&get_version)));
  int version = 0;
  const CUresult result = get_version(&version);
  if (result != CUDA_SUCCESS) {
    return fail(NVFP4_STATUS_NO_DRIVER, "cuDriverGetVersion answers %d", static_cast<int>(result));
  }
  table.version = version;
  return version >= oldest ? NVFP4_SUCCESS : refuse_driver(version, "this library needs", oldest);
}

nvfp4_status resolve(void* library, int oldest) {
  const auto get =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    return fail(NVFP4_STATUS_DRIVER_TOO_OLD,
                "the CUDA driver has no cuGetProcAddress_v2 of CUDA 12.0");
  }
  NVFP4_TRY(check_version(get, oldest));
#define ENTRY(name, version) \
  NVFP4_TRY(entry(get, #name, version, reinterpret_cast<void**>(&table.name)));
#include "host/driver/driver.def"
#undef ENTRY
  return NVFP4_SUCCESS;
}

nvfp4_status start() {
  CUresult result = table.cuInit(0);
  if (result != CUDA_SUCCESS) {
    return driver_failure(table, "cuInit", result, NVFP4_STATUS_NO_DRIVER);
  }
  int count = 0;
  result = table.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return driver_failure(table, "cuDeviceGetCount", result);
  if (count == 0) return fail(NVFP4_STATUS_NO_DEVICE, "the CUDA driver sees no GPU");
  log_line(LogLevel::detail, "driver opened, %d device(s)", count);
  return NVFP4_SUCCESS;
}

nvfp4_status open_and_start(int (*oldest_driver)()) {
  void* library;
  NVFP4_TRY(open_library(&library));
  NVFP4_TRY(resolve(library, oldest_driver()));
  return start();
}

// ---- results ------------------------------------------------------------------------------------

// Errors that stay with a context; earlier work caused them, not our call.
bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE: return true;
    default: return false;
  }
}

const char* text_or(CUresult (*get)(CUresult, const char**), CUresult result,
                    const char* otherwise) {
  const char* text = nullptr;
  return get(result, &text) == CUDA_SUCCESS && text != nullptr ? text : otherwise;
}

}  // namespace

nvfp4_status status_of(CUresult result, nvfp4_status otherwise) {
  if (is_sticky(result)) return NVFP4_STATUS_PRIOR_ERROR;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return NVFP4_STATUS_OUT_OF_MEMORY;
    case CUDA_ERROR_NO_DEVICE: return NVFP4_STATUS_NO_DEVICE;
    case CUDA_ERROR_STUB_LIBRARY: return NVFP4_STATUS_NO_DRIVER;
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return NVFP4_STATUS_NO_CONTEXT;
    default: return otherwise;
  }
}

CudaText cuda_text(int version) {
  CudaText text;
  snprintf(text.text, sizeof text.text, "%d.%d", version / 1000, version % 1000 / 10);
  return text;
}

nvfp4_status refuse_driver(int version, const char* needs, int oldest) {
  return fail(NVFP4_STATUS_DRIVER_TOO_OLD, "the CUDA driver supports CUDA %s; %s %s or newer",
              cuda_text(version).text, needs, cuda_text(oldest).text);
}

nvfp4_status driver_failure(const Driver& driver, const char* call, CUresult result,
                            nvfp4_status otherwise) {
  const char* name = text_or(driver.cuGetErrorName, result, "an unknown error");
  const char* text = text_or(driver.cuGetErrorString, result, "no description");
  const int number = static_cast<int>(result);
  const nvfp4_status status = status_of(result, otherwise);
  if (status == NVFP4_STATUS_PRIOR_ERROR) {
    return fail(status,
                "earlier work in the CUDA context failed with %s (%d): %s; %s only reports it",
                name, number, text, call);
  }
  return fail(status, "%s answers %s (%d): %s", call, name, number, text);
}

// The owner's pid is both the claim and the fork check. There is no lock, because a fork could
// leave the child with a held one. A second thread waits for the first, about 0.1 s while the
// driver opens.
nvfp4_status open_driver(int (*oldest)(), const Driver** driver) {
  const pid_t self = getpid();
  *driver = &table;
  for (;;) {
    const bool is_ready = __atomic_load_n(&ready, __ATOMIC_ACQUIRE) != 0;
    if (is_ready && __atomic_load_n(&owner, __ATOMIC_ACQUIRE) == self) return NVFP4_SUCCESS;
    pid_t claimed = 0;
    if (__atomic_compare_exchange_n(&owner, &claimed, self, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      const LinesAfterRelease lines;
      const nvfp4_status status = open_and_start(oldest);
      if (status == NVFP4_SUCCESS) {
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
      } else {
        __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
      }
      return status;
    }
    if (claimed != self) {
      return fail(NVFP4_STATUS_AFTER_FORK,
                  "process %d opened the CUDA driver and forked; its child %d cannot use it",
                  static_cast<int>(claimed), static_cast<int>(self));
    }
    usleep(100);
  }
}

}  // namespace nvfp4
