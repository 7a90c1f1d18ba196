// SPDX-License-Identifier: MIT
// Loads and stores by threads: one wrapper per PTX instruction (PTX ISA 9.7.9). `address` is a
// .shared::cta address, but for ld_global_*.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// The 32-bit .shared::cta address of a generic pointer. In a cluster bits 24 and up hold the CTA
// rank.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// @p ld.global.{b32,u16,u8}  d, [a];                                              PTX 1.0
// ld_global_b32_if, ld_global_u16_if, ld_global_u8_if: 0 where there is nothing to load. A branch
// around a load would make the thread wait for it before the next one.
#define NVFP4_LD_GLOBAL_IF(type)                                                      \
  __device__ inline uint32_t ld_global_##type##_if(const void* address, bool there) { \
    uint32_t value;                                                                   \
    asm volatile(                                                                     \
        "{ .reg .pred p;\n\t"                                                         \
        "setp.ne.b32 p, %2, 0;\n\t"                                                   \
        "mov.b32 %0, 0;\n\t"                                                          \
        "@p ld.global." #type " %0, [%1]; }"                                          \
        : "=r"(value)                                                                 \
        : "l"(__cvta_generic_to_global(address)), "r"(static_cast<uint32_t>(there))   \
        : "memory");                                                                  \
    return value;                                                                     \
  }
NVFP4_LD_GLOBAL_IF(b32)
NVFP4_LD_GLOBAL_IF(u16)
NVFP4_LD_GLOBAL_IF(u8)
#undef NVFP4_LD_GLOBAL_IF

// @p ld.global.v4.b32  {d0, d1, d2, d3}, [a];                                     PTX 1.0
// Zeros where there is nothing to load.
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

// With 2 halves or more all of it, with 1 the lower one and zeros, with fewer zeros: nothing else
// is read.
//
// @p ld.global.v4.b32  {d0, d1, d2, d3}, [a];  @q ld.global.v2.b32  {d0, d1}, [a];  PTX 1.0
__device__ inline uint4 ld_global_v4_b32_halves(const void* address, int32_t halves) {
  uint4 v;
  asm volatile(
      "{ .reg .pred p, q;\n\t"
      "setp.ge.s32 p, %5, 2;\n\tsetp.eq.s32 q, %5, 1;\n\t"
      "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
      "@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n\t"
      "@q ld.global.v2.b32 {%0, %1}, [%4]; }"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(__cvta_generic_to_global(address)), "r"(halves)
      : "memory");
  return v;
}

// ld.global.v2.b32  {d0, d1}, [a];                                                PTX 1.0
__device__ inline uint2 ld_global_v2_b32(const void* address) {
  uint2 v;
  asm volatile("ld.global.v2.b32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return v;
}

// red.relaxed.gpu.global.max.s32  [a], b;                                         PTX 6.0, sm_70
// *a = max(*a, b), by threads of the whole GPU.
__device__ inline void red_global_max_s32(void* address, int32_t value) {
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "r"(value)
               : "memory");
}

// prefetch.global.L1  [a];                                                        PTX 2.0
// The line is asked for, and nothing waits for it.
__device__ inline void prefetch_global_l1(const void* address) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(address)) : "memory");
}

// ld.shared.u8  d, [a];                                                           PTX 1.0
__device__ inline uint32_t ld_shared_u8(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// ld.shared.u16  d, [a];                                                          PTX 1.0
__device__ inline uint32_t ld_shared_u16(uint32_t address) {
  uint16_t value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
  return value;
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

// ld.shared.v4.f32  {d0, d1, d2, d3}, [a];                                        PTX 1.0
__device__ inline float4 ld_shared_v4_f32(uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// st.shared.b16  [a], b;                                                          PTX 1.0
__device__ inline void st_shared_b16(uint32_t address, uint16_t value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}

// st.shared.b32  [a], b;                                                          PTX 1.0
__device__ inline void st_shared_b32(uint32_t address, uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// st.shared.v2.b32  [a], {b0, b1};                                                PTX 1.0
__device__ inline void st_shared_v2_b32(uint32_t address, uint2 v) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(v.x), "r"(v.y) : "memory");
}

// st.shared.v4.b32  [a], {b0, b1, b2, b3};                                        PTX 1.0
__device__ inline void st_shared_v4_b32(uint32_t address, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

// st.shared.f32  [a], b;                                                          PTX 1.0
__device__ inline void st_shared_f32(uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

// st.shared.v4.f32  [a], {b0, b1, b2, b3};                                        PTX 1.0
__device__ inline void st_shared_v4_f32(uint32_t address, float4 v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

// stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16  [a], {r0, r1, r2, r3};     PTX 7.8, sm_90
// Four matrices of 8x8 halves, of which lane 4 i + c holds row i, columns 2 c and 2 c + 1,
// transposed: column j of matrix x goes to the 16 bytes at lane 8 x + j's address.
__device__ inline void stmatrix_x4_trans(uint32_t address, const uint32_t (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

// stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16  [a], {r0, r1};             PTX 7.8, sm_90
// Two matrices; the addresses are those of lanes 0 to 15.
__device__ inline void stmatrix_x2_trans(uint32_t address, const uint32_t (&r)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};" ::"r"(address),
               "r"(r[0]), "r"(r[1])
               : "memory");
}

}  // namespace nvfp4::ptx
