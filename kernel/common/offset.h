// SPDX-License-Identifier: MIT
// OFFSET_IS(type, member, bytes): for assertions that host and device compilers agree on a struct.
// NVRTC has no offsetof; there sizes are compared alone, and the host's compiler has looked at the
// rest.
#pragma once

#include <cstddef>

#ifdef __CUDACC_RTC__
#define NVFP4_OFFSET_IS(type, member, bytes) true
#else
#define NVFP4_OFFSET_IS(type, member, bytes) (offsetof(type, member) == bytes)
#endif
