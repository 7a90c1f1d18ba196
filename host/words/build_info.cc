// SPDX-License-Identifier: MIT
#include "host/words/build_info.h"

#include <pthread.h>

#include "host/base/growing_text.h"
#include "host/run/image.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

namespace {

#define NVFP4_TEXT_OF(number) #number
#define NVFP4_TEXT(number) NVFP4_TEXT_OF(number)
#define NVFP4_VERSION_TEXT        \
  NVFP4_TEXT(NVFP4_VERSION_MAJOR) \
  "." NVFP4_TEXT(NVFP4_VERSION_MINOR) "." NVFP4_TEXT(NVFP4_VERSION_PATCH)

// The build sets NVFP4_COMPILER, e.g. "nvcc 13.0.88". It contains no date and no path, so builds
// are reproducible.
constexpr char kHead[] = "nvfp4gemm " NVFP4_VERSION_TEXT ", kernels by " NVFP4_COMPILER;

char line[sizeof kHead + 2048];
int written;  // 1 once `line` may be read
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// Where both rows of a capability take an image it is named once.
bool is_named(uint32_t row, uint32_t image) {
  const int32_t capability = kArchitectures[row].capability;
  for (uint32_t i = 0; i < row; ++i) {
    const Architecture& before = kArchitectures[i];
    if (before.capability == capability && before.takes(image)) return true;
  }
  return false;
}

void add_capabilities(uint32_t image, Text* text) {
  const char* before = "";
  for (uint32_t row = 0; row < kArchitectureCount; ++row) {
    const Architecture& arch = kArchitectures[row];
    if (!arch.takes(image) || is_named(row, image)) continue;
    text->add("%s%s", before, capability_text(arch.capability).text);
    before = " ";
  }
}

void write_line() {
  Text text(line, sizeof line);
  text.add("%s, for GPUS=\"%s\"", kHead, gpus_of_images());
  for (uint32_t i = 0; i < kImageCount; ++i) {
    if (!has_image(i)) continue;
    const CudaText cuda = cuda_text(driver_for_image(i));
    text.add(", %s (", image_label(i));
    add_capabilities(i, &text);
    text.add("; CUDA %s)", cuda.text);
  }
  for (uint32_t i = 0; i < quantizer_images(); ++i) {
    if (!has_quantizer(i)) continue;
    text.add(", %s (CUDA %s)", quantizer_label(i), cuda_text(driver_for_quantizer(i)).text);
  }
}

}  // namespace

const char* build_info() {
  if (__atomic_load_n(&written, __ATOMIC_ACQUIRE) != 0) return line;
  pthread_mutex_lock(&mutex);
  if (written == 0) write_line();
  __atomic_store_n(&written, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&mutex);
  return line;
}

}  // namespace nvfp4
