// SPDX-License-Identifier: MIT
// wgmma, Hopper's tensor core: one wrapper per PTX instruction (PTX ISA 9.7.15). All of them are
// for a whole warpgroup: four warps, the first one's index a multiple of four.
#pragma once

#include <cstdint>

#include "kernel/ptx/registers.cuh"

namespace nvfp4::ptx {

// wgmma.fence.sync.aligned;                                                       PTX 8.0, sm_90a
// Before the first wgmma, and whenever the threads wrote registers that the next one uses.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// wgmma.commit_group.sync.aligned;                                                PTX 8.0, sm_90a
// The wgmmas since the last commit become one group.
__device__ inline void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group.sync.aligned  n;                                               PTX 8.0, sm_90a
// Until at most n of the latest groups are in flight: the registers and the shared memory of the
// others may be used again.
template <int kGroups>
__device__ inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

// One wrapper of wgmma.mma_async for each N: how many sums a lane has, N, and the numbers of the
// operands that follow the sums in the text: A's four registers, B's descriptor, `accumulate`.
#define NVFP4_WGMMA(name, form, tail, sums, n, a0, a1, a2, a3, b_number, p_number)    \
  __device__ inline void name(float(&d)[sums], const uint32_t(&a)[4], uint64_t b,     \
                              uint32_t accumulate) {                                  \
    asm volatile(                                                                     \
        "{ .reg .pred p;\n\t"                                                         \
        "setp.ne.b32 p, %" #p_number                                                  \
        ", 0;\n\t"                                                                    \
        "wgmma.mma_async.sync.aligned.m64n" #n form " {" NVFP4_OPERANDS_##sums        \
        "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_number ", p, " tail "; }" \
        : NVFP4_REGISTERS_##sums("+f", d, 0)                                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate)         \
        : "memory");                                                                  \
  }

// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16  d, a, b-desc, p, 1, 1, 0;    PTX 8.0, sm_90a
// D = A*B (+ D if accumulate). A is 64 x 16 in registers: lane 4g+c of warp w holds of rows 16w+g
// (a[0], a[2]) and 16w+g+8 (a[1], a[3]) the columns 2c, 2c+1 (a[0], a[1]) and 2c+8, 2c+9. B is N
// rows of 16 elements of K. The lane's d[4i+0..3] are rows g, g, g+8, g+8 and columns 8i+2c, +1,
// +0, +1.
#define NVFP4_WGMMA_F16(...) NVFP4_WGMMA(wgmma, "k16.f32.f16.f16", "1, 1, 0", __VA_ARGS__)
NVFP4_WGMMA_F16(4, 8, 4, 5, 6, 7, 8, 9)
NVFP4_WGMMA_F16(8, 16, 8, 9, 10, 11, 12, 13)
NVFP4_WGMMA_F16(16, 32, 16, 17, 18, 19, 20, 21)
NVFP4_WGMMA_F16(32, 64, 32, 33, 34, 35, 36, 37)
NVFP4_WGMMA_F16(64, 128, 64, 65, 66, 67, 68, 69)
NVFP4_WGMMA_F16(96, 192, 96, 97, 98, 99, 100, 101)
NVFP4_WGMMA_F16(128, 256, 128, 129, 130, 131, 132, 133)
#undef NVFP4_WGMMA_F16

// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16  d, a, b-desc, p, 1, 1, 0;  PTX 8.0, sm_90a
#define NVFP4_WGMMA_BF16(...) NVFP4_WGMMA(wgmma_bf16, "k16.f32.bf16.bf16", "1, 1, 0", __VA_ARGS__)
NVFP4_WGMMA_BF16(4, 8, 4, 5, 6, 7, 8, 9)
NVFP4_WGMMA_BF16(8, 16, 8, 9, 10, 11, 12, 13)
NVFP4_WGMMA_BF16(16, 32, 16, 17, 18, 19, 20, 21)
NVFP4_WGMMA_BF16(32, 64, 32, 33, 34, 35, 36, 37)
NVFP4_WGMMA_BF16(64, 128, 64, 65, 66, 67, 68, 69)
NVFP4_WGMMA_BF16(96, 192, 96, 97, 98, 99, 100, 101)
NVFP4_WGMMA_BF16(128, 256, 128, 129, 130, 131, 132, 133)
#undef NVFP4_WGMMA_BF16

// wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e5m2  d, a, b-desc, p, 1, 1;       PTX 8.0, sm_90a
// A is 64 x 32 bytes: lane 4g+c of warp w holds of rows 16w+g (a[0], a[2]) and 16w+g+8 (a[1], a[3])
// the columns 4c .. 4c+3 (a[0], a[1]) and 16 more. D as above.
#define NVFP4_WGMMA_E5M2(...) NVFP4_WGMMA(wgmma_e5m2, "k32.f32.e5m2.e5m2", "1, 1", __VA_ARGS__)
NVFP4_WGMMA_E5M2(4, 8, 4, 5, 6, 7, 8, 9)
NVFP4_WGMMA_E5M2(8, 16, 8, 9, 10, 11, 12, 13)
#undef NVFP4_WGMMA_E5M2
#undef NVFP4_WGMMA

}  // namespace nvfp4::ptx
