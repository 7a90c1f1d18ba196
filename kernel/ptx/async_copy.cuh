// SPDX-License-Identifier: MIT
// Copies of a few bytes by a thread that does not wait for them: one wrapper per PTX instruction
// (PTX ISA 9.7.9.25.3). All are ordered by the barrier that counts them.
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

// cp.async.mbarrier.arrive.noinc.shared.b64  [bar];                               PTX 7.1, sm_80
// Arrives when this thread's copies up to here have arrived; the barrier was initialised to count
// it.
__device__ inline void cp_async_mbarrier_arrive_noinc(uint32_t bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory");
}

}  // namespace nvfp4::ptx
