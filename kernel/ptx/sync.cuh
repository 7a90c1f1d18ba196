// SPDX-License-Identifier: MIT
// Election, fences, thread barriers and dependent launch: one wrapper per PTX instruction.
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

// griddepcontrol.wait;                                                            PTX 7.8, sm_90
// Blocks until the grids this one depends on have completed and their writes are visible. No effect
// in a launch without the programmatic-serialization attribute.
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// griddepcontrol.launch_dependents;                                               PTX 7.8, sm_90
// Lets the dependent grid start once every CTA has said so or exited.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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

// The 32-bit .shared::cta address of a generic pointer. In a cluster bits 24 and up hold the CTA
// rank.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// @p ld.global.b32  d, [a];                                                       PTX 1.0
// 0 where there is nothing to load.
__device__ inline uint32_t ld_global_b32_if(const void* address, bool there) {
  uint32_t value;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %2, 0;\n\t"
      "mov.b32 %0, 0;\n\t"
      "@p ld.global.b32 %0, [%1]; }"
      : "=r"(value)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<uint32_t>(there))
      : "memory");
  return value;
}

// @p ld.global.u8  d, [a];                                                        PTX 1.0
__device__ inline uint32_t ld_global_u8_if(const void* address, bool there) {
  uint32_t value;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %2, 0;\n\t"
      "mov.b32 %0, 0;\n\t"
      "@p ld.global.u8 %0, [%1]; }"
      : "=r"(value)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<uint32_t>(there))
      : "memory");
  return value;
}

// @p ld.global.u16  d, [a];                                                       PTX 1.0
__device__ inline uint32_t ld_global_u16_if(const void* address, bool there) {
  uint32_t value;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %2, 0;\n\t"
      "mov.b32 %0, 0;\n\t"
      "@p ld.global.u16 %0, [%1]; }"
      : "=r"(value)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<uint32_t>(there))
      : "memory");
  return value;
}

// @p ld.global.v4.b32  {d0, d1, d2, d3}, [a];                                     PTX 1.0
__device__ inline uint4 ld_global_v4_b32_if(const void* address, bool there) {
  uint4 v;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "setp.ne.b32 p, %5, 0;\n\t"
      "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
      "@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<uint32_t>(there))
      : "memory");
  return v;
}

// ld.shared.b32  d, [a];                                                          PTX 1.0
__device__ inline uint32_t ld_shared_b32(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// ld.shared.v2.b32  {d0, d1}, [a];                                                PTX 1.0
__device__ inline uint2 ld_shared_v2_b32(uint32_t address) {
  uint2 v;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
  return v;
}

// ld.shared.v4.b32  {d0, d1, d2, d3}, [a];                                        PTX 1.0
__device__ inline uint4 ld_shared_v4_b32(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// st.shared.v4.b32  [a], {b0, b1, b2, b3};                                        PTX 1.0
__device__ inline void st_shared_v4_b32(uint32_t address, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

// st.shared.b32  [a], b;                                                          PTX 1.0
__device__ inline void st_shared_b32(uint32_t address, uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// st.shared.f32  [a], b;                                                          PTX 1.0
__device__ inline void st_shared_f32(uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

// ld.shared.v4.f32  {d0, d1, d2, d3}, [a];                                        PTX 1.0
__device__ inline float4 ld_shared_v4_f32(uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// st.shared.v4.f32  [a], {b0, b1, b2, b3};                                        PTX 1.0
__device__ inline void st_shared_v4_f32(uint32_t address, float4 v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
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

// st.shared.b16  [a], b;                                                          PTX 1.0
__device__ inline void st_shared_b16(uint32_t address, uint16_t value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}

// cvt.rn.f16.f32  d, a;                                                           PTX 1.0
// Nearest even; overflow gives infinity, subnormal results are kept.
__device__ inline uint16_t cvt_rn_f16_f32(float a) {
  uint16_t d;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(a));
  return d;
}

}  // namespace nvfp4::ptx
