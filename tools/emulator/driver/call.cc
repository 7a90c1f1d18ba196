// SPDX-License-Identifier: MIT
// The way into the driver.
#include "tools/emulator/driver/call.h"

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

namespace {

// Calls that wait for work, or may: what a capture's mode forbids
// (cuThreadExchangeStreamCaptureMode). The manual names examples, not all; loading code is here
// because it may wait for the device.
bool is_unsafe_in_capture(Entry entry) {
  switch (entry) {
#define EMU_UNSAFE(symbol) case Entry::symbol:
#include "tools/emulator/driver/unsafe.def"
#undef EMU_UNSAFE
    return true;
    default: return false;
  }
}

// Every other call is assumed to wait for earlier work, or to issue work that a later launch waits
// for.
bool leaves_work_alone(Entry entry) {
  switch (entry) {
#define EMU_NO_WAIT(symbol) case Entry::symbol:
#include "tools/emulator/driver/no_wait.def"
#undef EMU_NO_WAIT
    return true;
    default: return false;
  }
}

}  // namespace

CUresult enter(State& s, Entry entry) {
  if (!leaves_work_alone(entry)) s.unfinished.clear();
  std::optional<CUresult> planned = s.record.note(entry);
  if (!planned) return is_unsafe_in_capture(entry) ? check_unsafe(s) : CUDA_SUCCESS;
  Context* context = nullptr;
  if (is_asynchronous(*planned) && s.current(&context) == CUDA_SUCCESS) context->sticky = *planned;
  return *planned;
}

}  // namespace emu::driver
