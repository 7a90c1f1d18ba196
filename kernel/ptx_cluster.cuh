// SPDX-License-Identifier: MIT
// Clusters: one wrapper per PTX instruction (PTX ISA 9.7.13.4, 9.7.9).
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

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

// barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;   PTX 8.0, sm_90
// All threads of the cluster that have not exited.
__device__ inline void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;           PTX 8.0, sm_90
// The same without ordering memory: for what has only been read.
__device__ inline void cluster_sync_relaxed() {
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;\n\t"
      "barrier.cluster.wait.aligned;" ::
          : "memory");
}

}  // namespace nvfp4::ptx
