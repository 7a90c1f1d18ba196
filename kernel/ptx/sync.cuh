// SPDX-License-Identifier: MIT
// Election, fences, barriers of threads, dependent launch, registers: one wrapper per PTX
// instruction (PTX ISA 9.7.13).
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// elect.sync  _|p, membermask;                                                    PTX 8.0, sm_90
// True in one lane of a converged warp, always the same one for the same mask.
__device__ inline bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "elect.sync _|p, 0xFFFFFFFF;\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(elected)::"memory");
  return elected != 0;
}

// fence.mbarrier_init.release.cluster;                                            PTX 8.0, sm_90
// Publishes earlier mbarrier.init of this thread to its cluster.
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// fence.proxy.async.shared::cta;                                                  PTX 8.0, sm_90
// Earlier generic accesses of this thread to shared memory come before its later async-proxy ones.
__device__ inline void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// bar.sync  id, threads;                                                          PTX 1.0
// The named barrier of some warps; id 0 is __syncthreads().
template <uint32_t kId, uint32_t kThreads>
__device__ inline void named_barrier_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
}

// bar.arrive  id, threads;                                                        PTX 1.0
// Counts this warp without waiting.
template <uint32_t kId, uint32_t kThreads>
__device__ inline void named_barrier_arrive() {
  asm volatile("bar.arrive %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
}

// griddepcontrol.wait;                                                            PTX 7.8, sm_90
// Blocks until the grids this one depends on have completed and their writes are visible. No effect
// in a launch without the programmatic-serialization attribute; none either below 9.0, where the
// instruction does not exist and a grid starts only after the one before it.
__device__ inline void griddepcontrol_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// griddepcontrol.launch_dependents;                                               PTX 7.8, sm_90
// Lets the dependent grid start once every CTA has said so or exited. It does nothing below 9.0.
__device__ inline void griddepcontrol_launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// setmaxnreg.{inc,dec}.sync.aligned.u32  n;                                       PTX 8.0, sm_90a
// From here on this warpgroup's threads have n registers; inc waits until others gave them up.
template <uint32_t kRegisters>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <uint32_t kRegisters>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace nvfp4::ptx
