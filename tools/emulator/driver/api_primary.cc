// SPDX-License-Identifier: MIT
// The primary context. Its handle stays the same for the process; between the last release (or a
// reset) and the next retain it is destroyed, and threads that have it current get
// CONTEXT_IS_DESTROYED.
#include "tools/emulator/driver/call.h"

using namespace emu::driver;

namespace {

constexpr unsigned known_flags = CU_CTX_FLAGS_MASK;

void end_primary(State& s) {
  Context& primary = *s.contexts.find(s.primary);
  s.release_objects(s.primary);
  primary.destroyed = true;
  primary.sticky = CUDA_SUCCESS;
}

template <class Body>
CUresult on_primary(Entry entry, CUdevice device, Body&& body) {
  std::lock_guard running(state().execution);
  return initialised(entry, [&](State& s) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return body(s, *s.contexts.find(s.primary));
  });
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return on_primary(Entry::cuDevicePrimaryCtxRetain, device, [&](State& s, Context& primary) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (primary.sticky) return primary.sticky;
    primary.destroyed = false;
    ++s.primary_retained;
    *context = s.primary;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return on_primary(Entry::cuDevicePrimaryCtxRelease_v2, device, [&](State& s, Context&) {
    if (!s.primary_retained) return CUDA_ERROR_INVALID_CONTEXT;
    if (--s.primary_retained == 0) end_primary(s);
    return CUDA_SUCCESS;
  });
}

// The retains stay counted (measured: a release after a reset succeeds).
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return on_primary(Entry::cuDevicePrimaryCtxReset_v2, device, [&](State& s, Context&) {
    end_primary(s);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return on_primary(Entry::cuDevicePrimaryCtxSetFlags_v2, device, [&](State&, Context& primary) {
    if (flags & ~known_flags) return CUDA_ERROR_INVALID_VALUE;
    primary.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return on_primary(Entry::cuDevicePrimaryCtxGetState, device, [&](State&, Context& primary) {
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    *flags = primary.flags & ~unsigned(CU_CTX_MAP_HOST);
    *active = !primary.destroyed;
    return CUDA_SUCCESS;
  });
}
