// SPDX-License-Identifier: MIT
// Every entry point of the driver calls one of the functions below. They record the call, answer a
// planned failure (nvfp4emu_fail), take the locks and catch exceptions. They check in the order of
// the real driver: initialised, current context, its sticky error. The arguments come last.
#pragma once

#include "tools/emulator/driver/state.h"

#include <new>

#include "tools/emulator/base/fault.h"

namespace emu::driver {

bool is_asynchronous(CUresult status);  // an error that a kernel leaves behind in its context

// The part of the functions below that needs no template. Returns 0, or the status with which the
// call ends at once.
CUresult enter(State& s, Entry entry);

template <class Body>
CUresult contained(Body&& body) {
  try {
    return body();
  } catch (const Fault&) {  // of GlobalMemory::at: the caller's address is no device memory
    return CUDA_ERROR_INVALID_VALUE;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Needs nothing, not even cuInit.
template <class Body>
CUresult without_init(Entry entry, Body&& body) {
  State& s = state();
  std::lock_guard guard(s.lock);
  if (CUresult r = enter(s, entry)) return r;
  return contained([&] { return body(s); });
}

// Needs cuInit.
template <class Body>
CUresult initialised(Entry entry, Body&& body) {
  return without_init(entry, [&](State& s) {
    if (!s.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    return body(s);
  });
}

// Needs a usable current context.
template <class Body>
CUresult in_context(Entry entry, Body&& body) {
  return initialised(entry, [&](State& s) {
    Context* context = nullptr;
    if (CUresult r = s.current(&context)) return r;
    return body(s, *context);
  });
}

// The same, and it holds State::execution: no grid runs meanwhile.
template <class Body>
CUresult on_device(Entry entry, Body&& body) {
  std::lock_guard running(state().execution);
  return in_context(entry, body);
}

}  // namespace emu::driver
