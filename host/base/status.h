// SPDX-License-Identifier: MIT
// Statuses, and the message of the last error of each thread.
#pragma once

#include <cstddef>

#include "nvfp4_gemm.h"

namespace nvfp4 {

// Keeps the message for nvfp4_last_error() of this thread, logs it, and returns `status`.
__attribute__((format(printf, 2, 3))) nvfp4_status fail(nvfp4_status status, const char* format,
                                                        ...);

// Room for the driver's JIT log, the longest text that a message quotes.
constexpr size_t kErrorBytes = 2048;

const char* last_error();

// While it exists, this thread's last error may change; its destructor restores it.
class KeptError {
 public:
  KeptError();
  ~KeptError();
  KeptError(const KeptError&) = delete;
  KeptError& operator=(const KeptError&) = delete;

 private:
  char text_[kErrorBytes];
};

const char* status_name(nvfp4_status status);
const char* status_sentence(nvfp4_status status);

}  // namespace nvfp4

// Returns a failure to the caller; its message has already been kept.
#define NVFP4_TRY(expression)                                       \
  do {                                                              \
    const nvfp4_status nvfp4_try_status = (expression);             \
    if (nvfp4_try_status != NVFP4_SUCCESS) return nvfp4_try_status; \
  } while (false)
