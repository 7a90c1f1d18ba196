// SPDX-License-Identifier: MIT
#include "host/run/image.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include <algorithm>

#include "host/base/log.h"
#include "host/plan/family.h"

#define IMAGE(family, name, file, label) \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char nvfp4_image_##name[];
#include "host/plan/images.def"
#undef IMAGE
#define QUANTIZER_IMAGE(family, major, name, file, label) \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char nvfp4_image_##name[];
#include "host/plan/quantizer_images.def"
#undef QUANTIZER_IMAGE
// Bytes of each image, first those of images.def; 0: this library does not have it.
extern "C" __attribute__((visibility("hidden"))) const uint64_t nvfp4_image_bytes[];
extern "C" __attribute__((visibility("hidden"))) const char nvfp4_image_gpus[];
extern "C" __attribute__((visibility("hidden"))) const char nvfp4_image_compiler[];

namespace nvfp4 {

namespace {

struct Image {
  const char* label;
  const void* data;
  const uint64_t* bytes;

  bool built() const { return *bytes != 0; }
};

#define IMAGE(family, name, file, label) \
  {label, nvfp4_image_##name, &nvfp4_image_bytes[kImage_##name]},
const Image kImages[] = {
#include "host/plan/images.def"
};
#undef IMAGE
constexpr const char* kTokensEntry = "nvfp4_tokens_sm90";
constexpr const char* kGroupTokensEntry = "nvfp4_group_tokens_sm90";

struct QuantizerImage {
  Image image;
  const Family* family;  // family of the architectures that it serves
  int32_t major;         // major number of their capabilities; 0: any

  bool serves(const Architecture& arch) const {
    return family == arch.family && (major == 0 || major == arch.capability / 10);
  }
};
enum QuantizerIndex : uint32_t {
#define QUANTIZER_IMAGE(family, major, name, file, label) kQuantizerImage_##name,
#include "host/plan/quantizer_images.def"
#undef QUANTIZER_IMAGE
};
#define QUANTIZER_IMAGE(family, major, name, file, label)                                 \
  {{label, nvfp4_image_##name, &nvfp4_image_bytes[kImageCount + kQuantizerImage_##name]}, \
   &kFamily_##family,                                                                     \
   major},
const QuantizerImage kQuantizerImages[] = {
#include "host/plan/quantizer_images.def"
};
#undef QUANTIZER_IMAGE
constexpr size_t kQuantizerImageCount = sizeof kQuantizerImages / sizeof kQuantizerImages[0];
constexpr const char* kQuantizerEntries[] = {
#define QUANTIZER_ENTRY(name) "nvfp4_" #name,
#include "host/run/quantizer_entries.def"
#undef QUANTIZER_ENTRY
};

// Only a process that owns the driver takes the lock (open_driver comes first), so a forked child
// never finds it held.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
CUlibrary libraries[kImageCount];
LoadedKernel kernels[kArchitectureCount][kVariantCount];
int kernel_ready[kArchitectureCount][kVariantCount];
CUlibrary quantizer_libraries[kQuantizerImageCount];
CUkernel quantizer_kernels[kArchitectureCount][kQuantizerEntryCount];  // NULL until loaded

// Static, and so are the options: the driver may load lazily and write the log and its size after
// cuLibraryLoadData has returned.
char jit_log[1024];
CUjit_option jit_options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
void* jit_values[2];

// The beginning of a file by fatbinary: the head of the container, then that of its one entry.
// test/oracle/test_images.py checks it against the PTX.
struct FatBinary {
  uint32_t magic;
  uint16_t version, head_bytes;
  uint64_t bytes;
  uint16_t kind, entry_version;
  uint32_t entry_head_bytes;
  uint64_t stored_bytes;
  uint32_t packed_bytes, options_at;
  uint16_t isa_minor, isa_major;  // PTX version
};
constexpr uint16_t kPtxEntry = 1;

// Oldest driver that unpacks zstd and has every entry of driver.def.
constexpr int kOldestDriver = 12040;

// PTX 8.8 came with CUDA 12.9, and each 9.y with 13.y. Text that says 7.0 only needs a driver that
// unpacks it. 0: a cubin.
int driver_for_ptx(const Image& image) {
  FatBinary head;
  memcpy(&head, image.data, sizeof head);
  if (head.kind != kPtxEntry) return 0;
  const int needed = head.isa_major == 8 ? 12010 + 10 * head.isa_minor
                                         : 1000 * (head.isa_major + 4) + 10 * head.isa_minor;
  return needed < kOldestDriver ? kOldestDriver : needed;
}

// The CUDA version of the compiler that made the cubins: 13000 for "nvcc 13.0.88".
int driver_of_compiler() {
  const char* at = nvfp4_image_compiler;
  int numbers[2] = {0, 0};
  while (*at != '\0' && (*at < '0' || *at > '9')) ++at;
  for (int& number : numbers) {
    for (; *at >= '0' && *at <= '9'; ++at) number = 10 * number + (*at - '0');
    if (*at == '.') ++at;
  }
  return 1000 * numbers[0] + 10 * numbers[1];
}

// The name sm_110f came with CUDA 13.0, whose ptxas makes these cubins in every build
// (kernel/kernel.mk).
constexpr int kDriverOfSm110f = 13000;
bool is_sm_110f(const Image& image) {
  return image.data == nvfp4_image_sm_110f || image.data == nvfp4_image_quantize_sm_110f;
}

int driver_for(const Image& image) {
  const int ptx = driver_for_ptx(image);
  if (ptx != 0) return ptx;
  return is_sm_110f(image) ? std::max(kDriverOfSm110f, driver_of_compiler()) : driver_of_compiler();
}

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

struct Wanted {
  const char* entry;  // NULL: no kernel
  CUkernel* kernel;
};
constexpr size_t kMostWanted = 3 + kOperationCount;

// A cubin of another architecture may load and only fail here with 209, because loading is lazy.
CUresult get_kernels(const Driver& driver, const Image& image, CUlibrary* slot,
                     const Wanted (&wanted)[kMostWanted], const char** call) {
  *call = "cuLibraryLoadData";
  CUlibrary library = *slot;
  CUresult result = CUDA_SUCCESS;
  if (library == nullptr) {
    result = load_library(driver, image, &library);
    if (result != CUDA_SUCCESS) return result;
  }
  *call = "cuLibraryGetKernel";
  for (const Wanted& row : wanted) {
    if (result == CUDA_SUCCESS && row.entry != nullptr) {
      result = driver.cuLibraryGetKernel(row.kernel, library, row.entry);
    }
  }
  if (result == CUDA_SUCCESS) {
    *slot = library;
  } else if (*slot == nullptr) {
    driver.cuLibraryUnload(library);  // best effort: the reason to report is the one above
  }
  return result;
}

// Tries images in order until one has the wanted kernels. Images that do not serve the device, or
// that need a newer driver, are skipped.
struct Attempt {
  const Driver& driver;
  const Wanted (&wanted)[kMostWanted];
  int32_t capability;
  const Image* last = nullptr;
  CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  const char* call = "";
  int oldest = 0;  // driver version that a skipped image needs

  // True if trying the next image makes no sense.
  bool ends_with(const Image& image, CUlibrary* slot) {
    if (!image.built()) return false;
    const int needed = driver_for(image);
    if (needed > driver.version) {
      if (oldest == 0 || needed < oldest) oldest = needed;
      return false;
    }
    last = &image;
    result = get_kernels(driver, image, slot, wanted, &call);
    log_line(LogLevel::detail, "%s: %s %s", image.label, call,
             result == CUDA_SUCCESS ? "succeeds" : "refuses");
    return result != CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  nvfp4_status status() const {
    if (last == nullptr && oldest == 0) return refuse_gpu(capability);
    if (last == nullptr)
      return refuse_driver(driver.version, "the kernels for this GPU need", oldest);
    return result == CUDA_SUCCESS ? NVFP4_SUCCESS : refused(driver, *last, call, result);
  }
};

nvfp4_status load_first_that_serves(const Driver& driver, const Plan& plan, LoadedKernel* loaded) {
  const Variant& variant = *plan.variant;
  const auto add_entry = variant.family->add_entry;
  const char* const tokens = variant.workspace_tokens ? kTokensEntry : nullptr;
  const char* const add = add_entry == nullptr ? nullptr : add_entry(plan.arch(), variant);
  const bool takes_groups = variant.has(operation_of(true, false, false));
  const char* const group_tokens =
      variant.workspace_tokens && takes_groups ? kGroupTokensEntry : nullptr;
  Wanted wanted[kMostWanted] = {
      {tokens, &loaded->tokens}, {group_tokens, &loaded->group_tokens}, {add, &loaded->add}};
  for (uint32_t i = 0; i < kOperationCount; ++i) {
    if (is_of_packed(i) && !has_packed_entries(*plan.arch().family)) continue;
    wanted[3 + i] = {variant.entries[i].name, &loaded->kernels[i]};
  }
  Attempt attempt{driver, wanted, plan.arch().capability};
  for (uint32_t i = 0; i < kImageCount; ++i) {
    if (!plan.arch().takes(i, variant.family)) continue;
    if (attempt.ends_with(kImages[i], &libraries[i])) break;
  }
  if (attempt.last != nullptr) loaded->image = attempt.last->label;
  return attempt.status();
}

nvfp4_status load_quantizer_entry(const Driver& driver, const Architecture& arch,
                                  QuantizerEntry entry, CUkernel* kernel) {
  const Wanted wanted[kMostWanted] = {{kQuantizerEntries[entry], kernel}};
  Attempt attempt{driver, wanted, arch.capability};
  for (size_t i = 0; i < kQuantizerImageCount; ++i) {
    const QuantizerImage& row = kQuantizerImages[i];
    if (row.serves(arch) && attempt.ends_with(row.image, &quantizer_libraries[i])) break;
  }
  return attempt.status();
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

nvfp4_status load_quantizer(const Driver& driver, uint32_t arch_index, QuantizerEntry entry,
                            CUkernel* kernel) {
  CUkernel* slot = &quantizer_kernels[arch_index][entry];
  *kernel = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (*kernel != nullptr) return NVFP4_SUCCESS;
  const LinesAfterRelease lines;
  pthread_mutex_lock(&mutex);
  nvfp4_status status = NVFP4_SUCCESS;
  *kernel = *slot;
  if (*kernel == nullptr) {
    const RelaxedCapture relaxed(driver);
    status = load_quantizer_entry(driver, kArchitectures[arch_index], entry, kernel);
    if (status == NVFP4_SUCCESS) __atomic_store_n(slot, *kernel, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
  return status;
}

bool has_quantizer_entry(uint32_t arch_index, QuantizerEntry entry) {
  const Family* const family = kArchitectures[arch_index].family;
  switch (entry) {
#define QUANTIZER_ENTRY(name)
#define QUANTIZER_ENTRY_OF(of, name) \
  case kQuantizer_##name:            \
    return family == &kFamily_##of;
#include "host/run/quantizer_entries.def"
#undef QUANTIZER_ENTRY
    default: return true;
  }
}

int oldest_driver() { return kOldestDriver; }

const char* image_label(uint32_t image) { return kImages[image].label; }

bool has_image(uint32_t image) { return kImages[image].built(); }

bool has_image_for(const Architecture& arch, const Family* family) {
  for (uint32_t i = 0; i < kImageCount; ++i) {
    if (has_image(i) && arch.takes(i, family)) return true;
  }
  return false;
}

const char* gpus_of_images() { return nvfp4_image_gpus; }

nvfp4_status refuse_gpu(int32_t capability) {
  return fail(NVFP4_STATUS_UNSUPPORTED_ARCH,
              "this library was built with GPUS=\"%s\", without a kernel image for this call on "
              "compute capability %s; make GPUS=%d builds one that has it",
              nvfp4_image_gpus, capability_text(capability).text, capability);
}

int driver_for_image(uint32_t image) { return driver_for(kImages[image]); }

bool has_quantizer(uint32_t image) { return kQuantizerImages[image].image.built(); }

uint32_t quantizer_images() { return kQuantizerImageCount; }

const char* quantizer_label(uint32_t image) { return kQuantizerImages[image].image.label; }

int driver_for_quantizer(uint32_t image) { return driver_for(kQuantizerImages[image].image); }

int driver_for_row(const Architecture& arch) {
  int oldest = INT_MAX;
  for (uint32_t i = 0; i < kImageCount; ++i) {
    if (has_image(i) && arch.takes(i, arch.family)) oldest = std::min(oldest, driver_for_image(i));
  }
  return oldest;
}

}  // namespace nvfp4
