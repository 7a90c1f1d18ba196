// SPDX-License-Identifier: MIT
// mbarrier: one wrapper per PTX instruction (PTX ISA 9.7.13.15). `bar` is a .shared::cta address.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// mbarrier.init.shared::cta.b64  [bar], count;                                    PTX 7.8, sm_80
__device__ inline void mbarrier_init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

// mbarrier.arrive.expect_tx.release.cta.shared::cta.b64  _, [bar], bytes;         PTX 8.0, sm_90
// One arrival, and the phase also waits for `bytes` more bytes.
__device__ inline void mbarrier_arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
               "r"(bytes)
               : "memory");
}

// mbarrier.arrive.release.cta.shared::cta.b64  _, [bar];                          PTX 8.0, sm_90
__device__ inline void mbarrier_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

// mbarrier.try_wait.parity.acquire.cta.shared::cta.b64  p, [bar], parity;         PTX 8.0, sm_90
// True once the phase of that parity is over. False may come after a short sleep, so callers loop.
__device__ inline bool mbarrier_try_wait_parity(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}

// mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64  p, [bar], parity;     PTX 8.0, sm_90
// The same for what other CTAs of the cluster have released: st.async counts its bytes at .cluster
// scope (PTX ISA 9.7.9.14). SASS has one CCTL.IVALL more.
__device__ inline bool mbarrier_try_wait_parity_cluster(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}

// Returns when the phase of that parity is over. A fresh barrier is in phase 0: parity 1 passes.
__device__ inline void mbarrier_wait(uint32_t bar, uint32_t parity) {
  while (!mbarrier_try_wait_parity(bar, parity)) {
  }
}
__device__ inline void mbarrier_wait_cluster(uint32_t bar, uint32_t parity) {
  while (!mbarrier_try_wait_parity_cluster(bar, parity)) {
  }
}

}  // namespace nvfp4::ptx
