// SPDX-License-Identifier: MIT
// Marks constexpr functions of plain headers that kernels, host and tests all use.
#pragma once

#ifdef __CUDACC__
#define NVFP4_HOST_DEVICE __host__ __device__
#else
#define NVFP4_HOST_DEVICE
#endif
