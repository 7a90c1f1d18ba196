// SPDX-License-Identifier: MIT
// Start, version, entry points by name, error names.
#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/entries.h"

using namespace emu::driver;

CUresult cuInit(unsigned int flags) {
  return without_init(Entry::cuInit, [&](State& s) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return s.initialise();
  });
}

CUresult cuDriverGetVersion(int* version) {
  return without_init(Entry::cuDriverGetVersion, [&](State& s) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = s.driver_version();
    return CUDA_SUCCESS;
  });
}

namespace {

// Measured (driver 580): a version above the driver's is INVALID_VALUE and touches nothing, an
// unknown name and a version too old succeed with a null pointer, ABI names (cuMemAlloc_v2) are
// unknown. Eager execution makes the per-thread default stream equal to the legacy one, so both
// flags find the same functions.
CUresult get_proc_address(State& s, const char* symbol, void** address, int version,
                          cuuint64_t flags, CUdriverProcAddressQueryResult* found) {
  constexpr cuuint64_t known =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !address || flags & ~known || version > s.driver_version())
    return CUDA_ERROR_INVALID_VALUE;
  Lookup answer = find_entry(symbol, version);
  *address = answer.address;
  if (found) *found = answer.found;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
  return without_init(Entry::cuGetProcAddress_v2, [&](State& s) {
    return get_proc_address(s, symbol, address, version, flags, found);
  });
}

// The form of CUDA 11.3 has no place for the reason, so "not found" is a status.
CUresult cuGetProcAddress(const char* symbol, void** address, int version, cuuint64_t flags) {
  return without_init(Entry::cuGetProcAddress, [&](State& s) {
    CUresult r = get_proc_address(s, symbol, address, version, flags, nullptr);
    return r == CUDA_SUCCESS && !*address ? CUDA_ERROR_NOT_FOUND : r;
  });
}

namespace {

struct ErrorText {
  const char *name, *text;
};

ErrorText error_text(CUresult error) {
  switch (error) {
#define EMU_ERROR(name, text) \
  case name:                  \
    return {#name, text};
#include "tools/emulator/driver/errors.def"
#undef EMU_ERROR
    default: return {nullptr, nullptr};
  }
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** name) {
  return without_init(Entry::cuGetErrorName, [&](State&) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = error_text(error).name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return without_init(Entry::cuGetErrorString, [&](State&) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = error_text(error).text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
