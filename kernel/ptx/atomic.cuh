// SPDX-License-Identifier: MIT
// What threads of a CTA, or of the whole GPU, decide together: one wrapper per PTX instruction.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// bar.red.or.pred  p, id, threads, q;                                             PTX 1.0
// The barrier of named_barrier_sync, and whether any of its threads brought true.
template <uint32_t kId, uint32_t kThreads>
__device__ inline bool named_barrier_or(bool mine) {
  uint32_t any;
  asm volatile(
      "{ .reg .pred p, q;\n\t"
      "setp.ne.b32 q, %1, 0;\n\t"
      "bar.red.or.pred p, %2, %3, q;\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(any)
      : "r"(static_cast<uint32_t>(mine)), "n"(kId), "n"(kThreads)
      : "memory");
  return any != 0;
}

// atom.acq_rel.gpu.global.cas.b64  d, [a], b, c;                                  PTX 6.0, sm_70
// If *a is `expected`, it becomes `desired`; returns what it was. Publishes what this thread knows
// of earlier accesses, and takes over what other threads have published there.
__device__ inline uint64_t atom_global_cas_b64(uint64_t* address, uint64_t expected,
                                               uint64_t desired) {
  uint64_t old;
  asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(__cvta_generic_to_global(address)), "l"(expected), "l"(desired)
               : "memory");
  return old;
}

}  // namespace nvfp4::ptx
