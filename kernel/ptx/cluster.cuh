// SPDX-License-Identifier: MIT
// Clusters: one wrapper per PTX instruction (PTX ISA 9.7.13.4, 9.7.9).
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// mov.u32  d, %clusterid.x; mov.u32  d, %cluster_ctarank;                          PTX 7.8, sm_90
// A CTA of a launch without clusters is one of its own. Volatile: what follows from them is
// computed where it is used, and keeps no register until then.
__device__ inline uint32_t clusterid_x() {
  uint32_t index;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
  return index;
}
__device__ inline uint32_t cluster_ctarank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// mov.u32  d, %ctaid.x; mov.u32  d, %nctaid.x;                                     PTX 1.0
// blockIdx.x and gridDim.x, volatile as those.
__device__ inline uint32_t ctaid_x() {
  uint32_t index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}
__device__ inline uint32_t nctaid_x() {
  uint32_t count;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(count));
  return count;
}

// mapa.shared::cluster.u32  d, a, rank;                                           PTX 7.8, sm_90
// The address that a, a shared address of this CTA, has in the CTA of that rank.
__device__ inline uint32_t mapa(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// ld.shared::cluster.v4.f32  {d0, d1, d2, d3}, [a];                               PTX 7.8, sm_90
__device__ inline float4 ld_shared_cluster_v4_f32(uint32_t address) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32  [a], b, [bar];    PTX 8.1, sm_90
// Both addresses in the same CTA of the cluster. Four bytes are counted on the barrier.
__device__ inline void st_async_f32(uint32_t address, float value, uint32_t bar) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
          address),
      "f"(value), "r"(bar)
      : "memory");
}

// st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32  [a], {b0, b1, b2, b3}, [bar];
//                                                                                 PTX 8.1, sm_90
// Likewise with sixteen bytes.
__device__ inline void st_async_v4_f32(uint32_t address, float4 v, uint32_t bar) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address),
      "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(bar)
      : "memory");
}

// barrier.cluster.arrive.release.aligned;                                         PTX 8.0, sm_90
__device__ inline void cluster_arrive_release() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// barrier.cluster.arrive.relaxed.aligned;                                         PTX 8.0, sm_90
// Orders no memory but what fence.mbarrier_init published. With .release a warp waits for its
// loads, and in SASS for all loads of its CTA: thousands of clocks until the first weights arrive.
__device__ inline void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// barrier.cluster.wait.acquire.aligned;                                           PTX 8.0, sm_90
// Until all threads of the cluster that have not exited arrived.
__device__ inline void cluster_wait_acquire() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// All threads of the cluster that have not exited, and what they wrote.
__device__ inline void cluster_sync() {
  cluster_arrive_release();
  cluster_wait_acquire();
}
// The same without ordering memory: for what has only been read.
__device__ inline void cluster_sync_relaxed() {
  cluster_arrive_relaxed();
  cluster_wait_acquire();
}

}  // namespace nvfp4::ptx
