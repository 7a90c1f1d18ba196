// SPDX-License-Identifier: MIT
// tcgen05, the fifth-generation tensor core: one wrapper per PTX instruction (PTX ISA 9.7.16).
// All of them are cta_group::1; one kernel may not mix groups. A tensor memory address is
// lane << 16 | column.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32  [dst], columns;        PTX 8.6, sm_100a
// One warp. columns: 32, 64, 128, 256 or 512. Blocks until they are free; the address of the first
// column is written to shared memory, which other warps see after a CTA barrier.
template <uint32_t kColumns>
__device__ inline void tcgen05_alloc(uint32_t dst) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(dst),
               "n"(kColumns)
               : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;                      PTX 8.6, sm_100a
// This CTA allocates no more; another CTA of the SM may.
__device__ inline void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// tcgen05.dealloc.cta_group::1.sync.aligned.b32  taddr, columns;                  PTX 8.6, sm_100a
// One warp, before the CTA exits, after every use of the columns has been synchronised with.
template <uint32_t kColumns>
__device__ inline void tcgen05_dealloc(uint32_t taddr) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(taddr), "n"(kColumns)
               : "memory");
}

// tcgen05.cp.cta_group::1.32x128b.warpx4  [taddr], s-desc;                        PTX 8.6, sm_100a
// 32 rows of 16 bytes from shared memory to 4 columns of each of the four 32-lane bands. One
// thread; asynchronous, ordered before a later tcgen05.mma of the same thread.
__device__ inline void tcgen05_cp_32x128b_warpx4(uint32_t taddr, uint64_t s_desc) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(taddr), "l"(s_desc)
               : "memory");
}

// tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
//     [d-tmem], a-desc, b-desc, idesc, [scale-A-tmem], [scale-B-tmem], enable-input-d;
//                                                                    PTX 8.8, sm_100a, sm_100f
// D = A*B (+ D if accumulate), K = 64. One thread; asynchronous until a commit has been waited for.
// .block16 is the spelling of .scale_vec::4X that the family target accepts.
__device__ inline void tcgen05_mma_mxf4nvf4_block16(uint32_t d, uint64_t a_desc, uint64_t b_desc,
                                                    uint32_t idesc, uint32_t scale_a,
                                                    uint32_t scale_b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %6, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
      "[%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),
      "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(scale_a), "r"(scale_b),
      "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64  [bar];   PTX 8.6, sm_100a
// One arrival on bar when all earlier tcgen05 mma and cp of this thread have completed.
__device__ inline void tcgen05_commit(uint32_t bar) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar)
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

// tcgen05.ld.sync.aligned.32x32b.x32.b32  {r0 .. r31}, [taddr];                   PTX 8.6, sm_100a
// tcgen05.wait::ld.sync.aligned;
// Thread t of the warp gets lane t of its warp's band (32 * (warp % 4)), columns taddr .. taddr
// + 31. One statement: the registers have no value before the wait, and at -O0 the compiler stores
// them right behind a statement.
__device__ inline void tcgen05_ld_32x32b_x32(uint32_t (&r)[32], uint32_t taddr) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];\n\t"
      "tcgen05.wait::ld.sync.aligned;"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15]), "=r"(r[16]), "=r"(r[17]), "=r"(r[18]), "=r"(r[19]), "=r"(r[20]),
        "=r"(r[21]), "=r"(r[22]), "=r"(r[23]), "=r"(r[24]), "=r"(r[25]), "=r"(r[26]), "=r"(r[27]),
        "=r"(r[28]), "=r"(r[29]), "=r"(r[30]), "=r"(r[31])
      : "r"(taddr)
      : "memory");
}

}  // namespace nvfp4::ptx
