// SPDX-License-Identifier: MIT
// Copies of a few bytes by a thread that does not wait for them: one wrapper per PTX instruction
// (PTX ISA 9.7.9.25.3). They are ordered by the barrier that counts them, or by their group.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// cp.async.ca.shared.global  [dst], [src], 4, src-size;                           PTX 7.0, sm_80
// Zeros where there is nothing to read.
__device__ inline void cp_async_4_if(uint32_t dst, const void* src, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src)), "r"(there ? 4 : 0)
               : "memory");
}

// cp.async.cg.shared.global  [dst], [src], 16;                                    PTX 7.0, sm_80
// dst, src: 16-byte aligned.
__device__ inline void cp_async_16(uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src))
               : "memory");
}

// cp.async.cg.shared.global  [dst], [src], 16, src-size;                          PTX 7.0, sm_80
// The first `bytes` of them, and zeros.
__device__ inline void cp_async_16_of(uint32_t dst, const void* src, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst),
               "l"(__cvta_generic_to_global(src)), "r"(bytes)
               : "memory");
}

// @p cp.async.cg.shared.global  [dst], [src], 16, src-size;                       PTX 7.0, sm_80
// Nothing, not even zeros, where `wanted` is false: a branch for each of many copies would make the
// compiler compute its addresses there.
__device__ inline void cp_async_16_of_if(uint32_t dst, const void* src, uint32_t bytes,
                                         bool wanted) {
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %3, 0;\n\t"
      "@p cp.async.cg.shared.global [%0], [%1], 16, %2; }" ::"r"(dst),
      "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(static_cast<uint32_t>(wanted))
      : "memory");
}

// cp.async.commit_group;                                                          PTX 7.0, sm_80
__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// cp.async.wait_group  n;                                                         PTX 7.0, sm_80
// Until all but this thread's last n groups have arrived. Other threads see them after a barrier.
template <uint32_t kGroups>
__device__ inline void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

// cp.async.mbarrier.arrive.noinc.shared.b64  [bar];                               PTX 7.1, sm_80
// Arrives when this thread's copies up to here have arrived; the barrier was initialised to count
// it.
__device__ inline void cp_async_mbarrier_arrive_noinc(uint32_t bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory");
}

}  // namespace nvfp4::ptx
