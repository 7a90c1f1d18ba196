// SPDX-License-Identifier: MIT
// What the probes of tensor memory start from: a CTA of 128 threads, or a pair of them, that has
// all columns, operands of ones in shared memory, and a word of scales in every lane of a column.
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/sm100/descriptor.h"

namespace nvfp4::probe {

constexpr uint32_t kColumns = 512, kWeightScalesAt = 256, kTokenScalesAt = 264;
constexpr uint32_t kOnes = 0x22222222;       // E2M1
constexpr uint32_t kScaleOnes = 0x38383838;  // UE4M3
constexpr uint32_t kSumOfOnes = 64;          // of a product of ones

// One after the other in dynamic shared memory. Operands of equal codes look the same under any
// swizzle.
constexpr uint32_t kWeightsAt = 0, kTokensAt = 16384, kScalesAt = kTokensAt + 32768,
                   kBarrierAt = kScalesAt + 1024, kTmemAt = kBarrierAt + 8,
                   kSharedBytes = kBarrierAt + 16;

// tcgen05.st.sync.aligned.32x32b.x1.b32  [taddr], {r};  tcgen05.wait::st.sync.aligned;
//                                                                                PTX 8.6, sm_100a
__device__ inline void tcgen05_st_32x32b(uint32_t taddr, uint32_t word) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};\n\t"
      "tcgen05.wait::st.sync.aligned;" ::"r"(taddr),
      "r"(word)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x1.b32  {r}, [taddr];  tcgen05.wait::ld.sync.aligned;
//                                                                                PTX 8.6, sm_100a
__device__ inline uint32_t tcgen05_ld_32x32b(uint32_t taddr) {
  uint32_t word;
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\n\t"
      "tcgen05.wait::ld.sync.aligned;"
      : "=r"(word)
      : "r"(taddr)
      : "memory");
  return word;
}

template <int kCtas>
struct Bench {
  uint32_t smem, tmem, band;

  __device__ explicit Bench(uint32_t shared) : smem(shared), band(threadIdx.x / 32) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(smem + kBarrierAt, 1);
      ptx::fence_mbarrier_init();
    }
    fill(kWeightsAt, 16384, kOnes);
    fill(kTokensAt, 32768, kOnes);
    meet();
    if (band == 0) {
      ptx::tcgen05_alloc<kCtas, kColumns>(smem + kTmemAt);
      ptx::tcgen05_relinquish_alloc_permit<kCtas>();
    }
    meet();
    tmem = ptx::ld_shared_b32(smem + kTmemAt);
  }

  // All threads of it, and what they wrote for copies and tensor cores.
  __device__ void meet() const {
    ptx::fence_proxy_async_shared_cta();
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    if (kCtas == 2) ptx::cluster_sync();
    ptx::tcgen05_fence_after_thread_sync();
  }
  __device__ void fill(uint32_t at, uint32_t bytes, uint32_t word) const {
    for (uint32_t i = threadIdx.x * 4; i < bytes; i += blockDim.x * 4) {
      ptx::st_shared_b32(smem + at + i, word);
    }
  }
  // In this warp's lanes.
  __device__ void store(uint32_t column, uint32_t word) const {
    tcgen05_st_32x32b(tmem + tmem_address(band * 32, column), word);
  }
  __device__ uint32_t load(uint32_t column) const {
    return tcgen05_ld_32x32b(tmem + tmem_address(band * 32, column));
  }
  // By one thread.
  __device__ void multiply(uint32_t instruction, bool accumulate) const {
    ptx::tcgen05_mma_mxf4nvf4_block16<kCtas>(
        tmem, operand_descriptor(smem + kWeightsAt), operand_descriptor(smem + kTokensAt),
        instruction, tmem + kWeightScalesAt, tmem + kTokenScalesAt, accumulate);
  }
  __device__ void commit() const {
    if constexpr (kCtas == 2) {
      ptx::tcgen05_commit_to_pair(smem + kBarrierAt);
    } else {
      ptx::tcgen05_commit<1>(smem + kBarrierAt);
    }
  }
  __device__ void wait() const {
    ptx::mbarrier_wait(smem + kBarrierAt, 0);
    __syncwarp();
    ptx::tcgen05_fence_after_thread_sync();
  }
  __device__ void finish() const {
    meet();
    if (band == 0) ptx::tcgen05_dealloc<kCtas, kColumns>(tmem);
  }
};

}  // namespace nvfp4::probe
