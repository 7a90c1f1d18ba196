// SPDX-License-Identifier: MIT
// To other CTAs of a cluster: one wrapper per PTX instruction (PTX ISA 9.7.13.15, 9.7.9.25).
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// mbarrier.arrive.release.cluster.shared::cluster.b64  _, [bar];                  PTX 8.0, sm_90
// The barrier of any CTA of the cluster.
__device__ inline void mbarrier_arrive_cluster(uint32_t bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
               : "memory");
}

// mbarrier.arrive.relaxed.cluster.shared::cluster.b64  _, [bar];                   PTX 8.0, sm_90
// Orders no access to memory: for what tcgen05 fences order.
__device__ inline void mbarrier_arrive_cluster_relaxed(uint32_t bar) {
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
               : "memory");
}

// cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
//     [dst], [src], bytes, [bar];                                                 PTX 8.0, sm_90
// From this CTA to another of the cluster, whose barrier counts the bytes. Multiples of 16.
__device__ inline void cp_async_bulk_to_cluster(uint32_t dst, uint32_t src, uint32_t bytes,
                                                uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(dst),
      "r"(src), "r"(bytes), "r"(bar)
      : "memory");
}

// fence.release.sync_restrict::shared::cta.cluster;                               PTX 8.6, sm_90
// Earlier accesses of this thread to its CTA's shared memory come before a later relaxed arrival.
__device__ inline void fence_release_own_shared() {
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
}

}  // namespace nvfp4::ptx
