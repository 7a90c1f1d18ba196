// SPDX-License-Identifier: MIT
// A libcuda.so.1 that computes nothing: it answers what the environment says and prints every call
// to stdout, so that tests see what the library asks of a driver. Not the emulator: it knows no
// rule.
//
//   FAKE_VERSION=13000      what cuDriverGetVersion answers
//   FAKE_DEVICES=1          how many devices there are
//   FAKE_CAPABILITY=100     of the device
//   FAKE_SECOND_CAPABILITY=103   of device 1, which every context but the first asked belongs to
//   FAKE_CONTEXT=1          0: no current context
//   FAKE_MISSING=name       this entry point is not there
//   FAKE_ANSWERS=name:first:code,...   call number `first` and all later ones of `name` answer
//   `code` FAKE_JIT_LOG=text       written to the error log when cuLibraryLoadData fails
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "host/cuda/driver.h"
#include "kernel/sm100/params.h"

namespace {

std::mutex mutex;

int setting(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text != nullptr ? atoi(text) : otherwise;
}

// The planned answer of this call.
CUresult answer(const std::string& name) {
  static std::map<std::string, int> calls;
  const int call = ++calls[name];
  const char* text = getenv("FAKE_ANSWERS");
  std::string plan = std::string(",") + (text != nullptr ? text : "");
  CUresult result = CUDA_SUCCESS;
  for (size_t at = 0; (at = plan.find("," + name + ":", at)) != std::string::npos; ++at) {
    int first, code;
    if (sscanf(plan.c_str() + at + name.size() + 2, "%d:%d", &first, &code) == 2 && call >= first) {
      result = static_cast<CUresult>(code);
    }
  }
  return result;
}

struct Call {
  std::lock_guard<std::mutex> lock;
  CUresult result;
  explicit Call(const char* name) : lock(mutex), result(answer(name)) { printf("call %s", name); }
  ~Call() {
    printf(" -> %d\n", static_cast<int>(result));
    fflush(stdout);
  }
};

CUlibrary library_number(size_t n) { return reinterpret_cast<CUlibrary>(n); }
CUkernel const the_kernel = reinterpret_cast<CUkernel>(0x4B00);

CUresult fake_init(unsigned flags) {
  Call call("cuInit");
  printf(" flags=%u", flags);
  return call.result;
}

CUresult fake_driver_version(int* version) {
  *version = setting("FAKE_VERSION", 13000);
  return CUDA_SUCCESS;
}

CUresult fake_error_name(CUresult result, const char** text) {
  static char name[32];
  snprintf(name, sizeof name, "FAKE_ERROR_%d", static_cast<int>(result));
  *text = name;
  return CUDA_SUCCESS;
}

CUresult fake_error_string(CUresult, const char** text) {
  *text = "a planned answer";
  return CUDA_SUCCESS;
}

CUresult fake_device_count(int* count) {
  Call call("cuDeviceGetCount");
  *count = setting("FAKE_DEVICES", 1);
  return call.result;
}

CUresult fake_device_attribute(int* value, CUdevice_attribute which, CUdevice device) {
  Call call("cuDeviceGetAttribute");
  const int capability = setting(device == 0 ? "FAKE_CAPABILITY" : "FAKE_SECOND_CAPABILITY", 100);
  printf(" attribute=%d device=%d", static_cast<int>(which), device);
  *value =
      which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability / 10 : capability % 10;
  if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 8;
  return call.result;
}

CUresult fake_context(CUcontext* context) {
  Call call("cuCtxGetCurrent");
  *context = setting("FAKE_CONTEXT", 1) != 0 ? reinterpret_cast<CUcontext>(0xC000) : nullptr;
  return call.result;
}

CUresult fake_context_device(CUdevice* device) {
  static int asked = 0;
  Call call("cuCtxGetDevice");
  *device = getenv("FAKE_SECOND_CAPABILITY") != nullptr && asked++ > 0 ? 1 : 0;
  return call.result;
}

CUresult fake_stream_context(CUstream, CUcontext* context) {
  Call call("cuStreamGetCtx");
  *context = reinterpret_cast<CUcontext>(0xC000);
  return call.result;
}

CUresult fake_exchange(CUstreamCaptureMode* mode) {
  static CUstreamCaptureMode now = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Call call("cuThreadExchangeStreamCaptureMode");
  printf(" mode=%d", static_cast<int>(*mode));
  std::swap(*mode, now);
  return call.result;
}

CUresult fake_load(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                   unsigned count, CUlibraryOption*, void**, unsigned) {
  static size_t loaded = 0;
  Call call("cuLibraryLoadData");
  *library = library_number(++loaded);
  // A fat binary: its magic, and what its first entry is, 1 for PTX, 2 for a cubin.
  uint32_t magic = 0;
  uint16_t kind = 0;
  memcpy(&magic, code, sizeof magic);
  memcpy(&kind, static_cast<const char*>(code) + 16, sizeof kind);
  printf(" %s", magic != 0xBA55ED50u ? "text" : kind == 2 ? "cubin" : kind == 1 ? "ptx" : "other");
  const char* log = getenv("FAKE_JIT_LOG");
  if (call.result == CUDA_SUCCESS || log == nullptr) return call.result;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(static_cast<char*>(values[i]), log);
  }
  return call.result;
}

CUresult fake_unload(CUlibrary library) {
  Call call("cuLibraryUnload");
  printf(" library=%zu", reinterpret_cast<size_t>(library));
  return call.result;
}

CUresult fake_get_kernel(CUkernel* kernel, CUlibrary library, const char* name) {
  Call call("cuLibraryGetKernel");
  printf(" library=%zu name=%s", reinterpret_cast<size_t>(library), name);
  *kernel = the_kernel;
  return call.result;
}

CUresult fake_get_function(CUfunction* function, CUkernel kernel) {
  Call call("cuKernelGetFunction");
  printf(" kernel=%d", kernel == the_kernel);
  *function = reinterpret_cast<CUfunction>(0xF000);
  return call.result;
}

CUresult fake_load_function(CUfunction function) {
  Call call("cuFuncLoad");
  printf(" function=%d", function == reinterpret_cast<CUfunction>(0xF000));
  return call.result;
}

CUresult fake_set_attribute(CUfunction_attribute which, int value, CUkernel kernel,
                            CUdevice device) {
  Call call("cuKernelSetAttribute");
  printf(" attribute=%d value=%d kernel=%d device=%d", static_cast<int>(which), value,
         kernel == the_kernel, device);
  return call.result;
}

CUresult fake_clusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  Call call("cuOccupancyMaxActiveClusters");
  printf(" kernel=%d block=%u shared=%u attributes=%u cluster=%u",
         reinterpret_cast<CUkernel>(function) == the_kernel, config->blockDimX,
         config->sharedMemBytes, config->numAttrs, config->attrs[0].value.clusterDim.x);
  *clusters = 3;  // of the four that eight SMs might have
  return call.result;
}

CUresult fake_encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                     const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                     const cuuint32_t* steps, CUtensorMapInterleave interleave,
                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                     CUtensorMapFloatOOBfill fill) {
  Call call("cuTensorMapEncodeTiled");
  printf(" type=%d rank=%u address=%p dims=%llu,%llu,%llu strides=%llu,%llu box=%u,%u,%u",
         static_cast<int>(type), rank, address, (unsigned long long)dims[0],
         (unsigned long long)dims[1], (unsigned long long)dims[2], (unsigned long long)strides[0],
         (unsigned long long)strides[1], box[0], box[1], box[2]);
  printf(" steps=%u,%u,%u interleave=%d swizzle=%d promotion=%d fill=%d aligned=%d", steps[0],
         steps[1], steps[2], static_cast<int>(interleave), static_cast<int>(swizzle),
         static_cast<int>(promotion), static_cast<int>(fill),
         reinterpret_cast<size_t>(map) % 64 == 0);
  memset(map, 0, sizeof *map);
  map->opaque[0] = reinterpret_cast<size_t>(address);
  return call.result;
}

CUresult fake_launch(const CUlaunchConfig* config, CUfunction function, void** arguments,
                     void** extra) {
  Call call("cuLaunchKernelEx");
  nvfp4::Sm100Params p;
  memcpy(&p, arguments[0], sizeof p);
  printf(" grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%p attributes=%u kernel=%d extra=%d",
         config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
         config->blockDimZ, config->sharedMemBytes, static_cast<void*>(config->hStream),
         config->numAttrs, reinterpret_cast<CUkernel>(function) == the_kernel, extra != nullptr);
  printf(" weights=0x%llx tokens=0x%llx weight_scales=%p token_scales=%p",
         (unsigned long long)p.weights.opaque[0], (unsigned long long)p.tokens.opaque[0],
         static_cast<const void*>(p.weight_scales), static_cast<const void*>(p.token_scales));
  printf(" d=%p d_ld=%lld m=%u n=%u k=%u tiles=%u,%u alpha=%g kept=%d static=%u", p.d,
         (long long)p.d_ld, p.m, p.n, p.k, p.tiles_m, p.tiles_n, static_cast<double>(p.alpha),
         p.token_policy == nvfp4::kTokensEvictedLast, p.weights_are_static);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    printf(" attribute=%d,%d", static_cast<int>(config->attrs[i].id),
           config->attrs[i].value.programmaticStreamSerializationAllowed);
  }
  return call.result;
}

CUresult fake_memset(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                     size_t height, CUstream stream) {
  Call call("cuMemsetD2D16Async");
  printf(" to=0x%llx pitch=%zu value=0x%04x width=%zu height=%zu stream=%p", (unsigned long long)to,
         pitch, value, width, height, static_cast<void*>(stream));
  return call.result;
}

CUresult fake_upload(CUdeviceptr, const void*, size_t, CUstream) {
  return Call("cuMemcpyHtoDAsync").result;
}
CUresult fake_download(void*, CUdeviceptr, size_t, CUstream) {
  return Call("cuMemcpyDtoHAsync").result;
}
CUresult fake_capturing(CUstream, CUstreamCaptureStatus* status) {
  Call call("cuStreamIsCapturing");
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return call.result;
}
CUresult fake_synchronize(CUstream) { return Call("cuStreamSynchronize").result; }

struct Entry {
  const char* name;
  int version;  // the signature that the library has to ask for
  void* function;
};
const Entry entries[] = {
    {"cuDriverGetVersion", 2020, reinterpret_cast<void*>(fake_driver_version)},
    {"cuInit", 2000, reinterpret_cast<void*>(fake_init)},
    {"cuGetErrorName", 6000, reinterpret_cast<void*>(fake_error_name)},
    {"cuGetErrorString", 6000, reinterpret_cast<void*>(fake_error_string)},
    {"cuDeviceGetCount", 2000, reinterpret_cast<void*>(fake_device_count)},
    {"cuDeviceGetAttribute", 2000, reinterpret_cast<void*>(fake_device_attribute)},
    {"cuCtxGetCurrent", 4000, reinterpret_cast<void*>(fake_context)},
    {"cuCtxGetDevice", 2000, reinterpret_cast<void*>(fake_context_device)},
    {"cuStreamGetCtx", 9020, reinterpret_cast<void*>(fake_stream_context)},
    {"cuThreadExchangeStreamCaptureMode", 10010, reinterpret_cast<void*>(fake_exchange)},
    {"cuLibraryLoadData", 12000, reinterpret_cast<void*>(fake_load)},
    {"cuLibraryUnload", 12000, reinterpret_cast<void*>(fake_unload)},
    {"cuLibraryGetKernel", 12000, reinterpret_cast<void*>(fake_get_kernel)},
    {"cuKernelGetFunction", 12000, reinterpret_cast<void*>(fake_get_function)},
    {"cuKernelSetAttribute", 12000, reinterpret_cast<void*>(fake_set_attribute)},
    {"cuFuncLoad", 12040, reinterpret_cast<void*>(fake_load_function)},
    {"cuOccupancyMaxActiveClusters", 11070, reinterpret_cast<void*>(fake_clusters)},
    {"cuTensorMapEncodeTiled", 12000, reinterpret_cast<void*>(fake_encode)},
    {"cuLaunchKernelEx", 11060, reinterpret_cast<void*>(fake_launch)},
    {"cuMemsetD2D16Async", 3020, reinterpret_cast<void*>(fake_memset)},
    {"cuMemcpyHtoDAsync", 3020, reinterpret_cast<void*>(fake_upload)},
    {"cuMemcpyDtoHAsync", 3020, reinterpret_cast<void*>(fake_download)},
    {"cuStreamIsCapturing", 10000, reinterpret_cast<void*>(fake_capturing)},
    {"cuStreamSynchronize", 2000, reinterpret_cast<void*>(fake_synchronize)},
};

}  // namespace

extern "C" CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t,
                                        CUdriverProcAddressQueryResult* found) {
  const CUresult planned = answer("cuGetProcAddress");
  if (planned != CUDA_SUCCESS) return planned;
  const char* missing = getenv("FAKE_MISSING");
  *function = nullptr;
  *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for (const Entry& entry : entries) {
    if (strcmp(name, entry.name) != 0 || version != entry.version) continue;
    if (missing != nullptr && strcmp(name, missing) == 0) continue;
    *function = entry.function;
    *found = CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return CUDA_SUCCESS;
}
