// SPDX-License-Identifier: MIT
// For what kernels, host and tests compute alike: constexpr functions of plain headers.
#pragma once

#ifdef __CUDACC__
#define NVFP4_HOST_DEVICE __host__ __device__
#else
#define NVFP4_HOST_DEVICE
#endif
