// SPDX-License-Identifier: MIT
// <cuda.h> as a driver includes it: every ABI name is declared (cuMemAlloc_v2, and no macro that
// renames cuMemAlloc) and exported, although the emulator is compiled with hidden visibility.
#pragma once

#ifdef __cuda_cuda_h__
#error "include cuda_api.h before anything that includes <cuda.h>"
#endif

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
