// SPDX-License-Identifier: MIT
// The way into the driver.
#include "call.h"

namespace emu::driver {

bool is_asynchronous(CUresult status) {
  switch (status) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK: return true;
    default: return false;
  }
}

CUresult enter(State& s, Entry entry) {
  std::optional<CUresult> planned = s.record.note(entry);
  if (!planned) return CUDA_SUCCESS;
  Context* context = nullptr;
  if (is_asynchronous(*planned) && s.current(&context) == CUDA_SUCCESS) context->sticky = *planned;
  return *planned;
}

}  // namespace emu::driver
