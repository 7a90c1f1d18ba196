// SPDX-License-Identifier: MIT
// tcgen05, the fifth-generation tensor core: one wrapper per PTX instruction (PTX ISA 9.7.16).
// kCtaGroup: 1, or 2 for a pair of CTAs; one kernel may not mix them. A tensor memory address is
// lane << 16 | column.
#pragma once

#include <cstdint>

#include "kernel/ptx/registers.cuh"

namespace nvfp4::ptx {

// tcgen05.alloc.cta_group::g.sync.aligned.shared::cta.b32  [dst], columns;        PTX 8.6, sm_100a
// One warp, of each CTA of a pair. columns: 32, 64, 128, 256 or 512. Blocks until they are free;
// the address of the first column is written to shared memory, which other warps see after a CTA
// barrier.
template <int kCtaGroup, uint32_t kColumns>
__device__ inline void tcgen05_alloc(uint32_t dst) {
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(dst),
               "n"(kColumns), "n"(kCtaGroup)
               : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::g.sync.aligned;                      PTX 8.6, sm_100a
// This CTA allocates no more; another CTA of the SM may.
template <int kCtaGroup>
__device__ inline void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kCtaGroup)
               : "memory");
}

// tcgen05.dealloc.cta_group::g.sync.aligned.b32  taddr, columns;                  PTX 8.6, sm_100a
// One warp, before the CTA exits, after every use of the columns has been synchronised with.
template <int kCtaGroup, uint32_t kColumns>
__device__ inline void tcgen05_dealloc(uint32_t taddr) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(taddr), "n"(kColumns),
               "n"(kCtaGroup)
               : "memory");
}

// tcgen05.cp.cta_group::g.32x128b.warpx4  [taddr], s-desc;                        PTX 8.6, sm_100a
// 32 rows of 16 bytes from shared memory to 4 columns of each of the four 32-lane bands. One
// thread; asynchronous, ordered before a later tcgen05.mma of the same thread.
template <int kCtaGroup>
__device__ inline void tcgen05_cp_32x128b_warpx4(uint32_t taddr, uint64_t s_desc) {
  asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;" ::"r"(taddr), "l"(s_desc),
               "n"(kCtaGroup)
               : "memory");
}

// tcgen05.mma.cta_group::g.kind::mxf4nvf4.block_scale.block16
//     [d-tmem], a-desc, b-desc, idesc, [scale-A-tmem], [scale-B-tmem], enable-input-d;
//                                                                    PTX 8.8, sm_100a, sm_100f
// D = A*B (+ D if accumulate), K = 64. One thread; asynchronous until a commit has been waited for.
// .block16 is the spelling of .scale_vec::4X that the family target accepts.
template <int kCtaGroup>
__device__ inline void tcgen05_mma_mxf4nvf4_block16(uint32_t d, uint64_t a_desc, uint64_t b_desc,
                                                    uint32_t idesc, uint32_t scale_a,
                                                    uint32_t scale_b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %6, 0;\n\t"
      "tcgen05.mma.cta_group::%7.kind::mxf4nvf4.block_scale.block16 "
      "[%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),
      "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(scale_a), "r"(scale_b),
      "r"(static_cast<uint32_t>(accumulate)), "n"(kCtaGroup)
      : "memory");
}

// tcgen05.mma.cta_group::g.kind::mxf4.block_scale.block32  as above              PTX 8.8, sm_100f
// UE8M0 scales, each of 32 elements: two for K = 64.
template <int kCtaGroup>
__device__ inline void tcgen05_mma_mxf4_block32(uint32_t d, uint64_t a_desc, uint64_t b_desc,
                                                uint32_t idesc, uint32_t scale_a, uint32_t scale_b,
                                                bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %6, 0;\n\t"
      "tcgen05.mma.cta_group::%7.kind::mxf4.block_scale.block32 "
      "[%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),
      "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(scale_a), "r"(scale_b),
      "r"(static_cast<uint32_t>(accumulate)), "n"(kCtaGroup)
      : "memory");
}

// tcgen05.commit.cta_group::g.mbarrier::arrive::one.shared::cluster.b64  [bar];   PTX 8.6, sm_100a
// One arrival on bar when all earlier tcgen05 mma and cp of this thread have completed.
template <int kCtaGroup>
__device__ inline void tcgen05_commit(uint32_t bar) {
  asm volatile(
      "tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar),
      "n"(kCtaGroup)
      : "memory");
}

// tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
//     [bar], mask;                                                                PTX 8.6, sm_100a
// One arrival on the barrier at bar's offset in both CTAs of a cluster of two: the mask is one of
// ranks in the cluster.
__device__ inline void tcgen05_commit_to_pair(uint32_t bar) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(bar),
      "h"(static_cast<uint16_t>(0b11))
      : "memory");
}

// tcgen05.fence::before_thread_sync;                                              PTX 8.6, sm_100a
// Before the barrier or arrive by which another thread's tcgen05 work is ordered after this
// thread's.
__device__ inline void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// tcgen05.fence::after_thread_sync;                                               PTX 8.6, sm_100a
// After the barrier or wait, before this thread's tcgen05 work.
__device__ inline void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x16.b32  {r0 .. r15}, [taddr];                   PTX 8.6, sm_100a
// tcgen05.ld.sync.aligned.32x32b.x32.b32  {r0 .. r31}, [taddr];
// tcgen05.wait::ld.sync.aligned;
// Thread t of the warp gets lane t of its warp's band (32 * (warp % 4)), columns taddr .. taddr
// + 15 or + 31. Two instructions in one statement: the registers have no value before the wait, and
// at -O0 the compiler stores them right after a statement.
__device__ inline void tcgen05_ld_32x32b(uint32_t (&r)[8], uint32_t taddr) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {" NVFP4_OPERANDS_8
               "}, [%8];\n\t"
               "tcgen05.wait::ld.sync.aligned;"
               : NVFP4_REGISTERS_8("=r", r, 0)
               : "r"(taddr)
               : "memory");
}
__device__ inline void tcgen05_ld_32x32b(uint32_t (&r)[16], uint32_t taddr) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {" NVFP4_OPERANDS_16
               "}, [%16];\n\t"
               "tcgen05.wait::ld.sync.aligned;"
               : NVFP4_REGISTERS_16("=r", r, 0)
               : "r"(taddr)
               : "memory");
}
__device__ inline void tcgen05_ld_32x32b(uint32_t (&r)[32], uint32_t taddr) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {" NVFP4_OPERANDS_32
               "}, [%32];\n\t"
               "tcgen05.wait::ld.sync.aligned;"
               : NVFP4_REGISTERS_32("=r", r, 0)
               : "r"(taddr)
               : "memory");
}

}  // namespace nvfp4::ptx
