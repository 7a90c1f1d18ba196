// SPDX-License-Identifier: MIT
// The argument of a GEMM kernel, which the host writes and the kernel reads: a struct of its
// family. This file has the parts that all families share. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.h"
#include "kernel/common/offset.h"

namespace nvfp4 {

// A CUtensorMap: 128 opaque bytes. The hardware requires 64-byte alignment; cuda.h gives it 128.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

// Host and device compilers agree on the layout. Fields that the fast epilogue does not read come
// last.
#define NVFP4_CHECK_PARAMS(Params, bytes)                                                 \
  static_assert(sizeof(Params) == (bytes) && alignof(Params) == 128);                     \
  static_assert(NVFP4_OFFSET_IS(Params, tokens, 128) && NVFP4_OFFSET_IS(Params, d, 288)); \
  static_assert(NVFP4_OFFSET_IS(Params, m, 312) && NVFP4_OFFSET_IS(Params, alpha, 332));  \
  static_assert(NVFP4_OFFSET_IS(Params, weights_are_static, 336));                        \
  static_assert(NVFP4_OFFSET_IS(Params, split, 340))

}  // namespace nvfp4
