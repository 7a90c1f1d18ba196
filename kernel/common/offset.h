// SPDX-License-Identifier: MIT
// OFFSET_IS(type, member, bytes): for assertions that host and device compilers agree on a struct.
// NVRTC has no offsetof and compares sizes alone; the host's compiler has checked the rest.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC_RTC__
#define NVFP4_OFFSET_IS(type, member, bytes) true
#else
#define NVFP4_OFFSET_IS(type, member, bytes) (offsetof(type, member) == bytes)
#endif

// OFFSET_OF(type, member): bytes, for addresses in device code. `type` must not contain a comma.
#ifdef __CUDACC_RTC__
#define NVFP4_OFFSET_OF(type, member) \
  static_cast<uint32_t>(reinterpret_cast<uint64_t>(&static_cast<type*>(nullptr)->member))
#else
#define NVFP4_OFFSET_OF(type, member) static_cast<uint32_t>(offsetof(type, member))
#endif
