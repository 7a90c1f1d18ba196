// SPDX-License-Identifier: MIT
// Questions about a pair of CTAs (cta_group::2), a kernel each. What an answer decides says
// pipes.cc.
#include "kernel/ptx/push.cuh"
#include "tools/probe/tensor.cuh"

using namespace nvfp4;
using namespace nvfp4::probe;

extern __shared__ __align__(1024) uint8_t shared[];

// Copies the scales of 256 tokens from a buffer to tensor memory of both CTAs, and multiplies. By
// one thread of the pair's leader.
__device__ inline void copy_and_multiply(const Bench<2>& at, uint32_t buffer, bool accumulate) {
  const uint64_t scales = scale_descriptor(at.smem + kScalesAt + buffer * 512);
  ptx::tcgen05_cp_32x128b_warpx4<2>(at.tmem + kTokenScalesAt, scales);
  ptx::tcgen05_cp_32x128b_warpx4<2>(at.tmem + kTokenScalesAt + 4, scales);
  at.multiply(instruction_descriptor<256>(256), accumulate);
}

// How many of a lane's 256 sums are not those of `rounds` products with scales of 1 and 2 in turn.
__device__ inline uint32_t count_wrong(const Bench<2>& at, uint32_t rounds) {
  uint32_t count = 0;
  for (uint32_t column = 0; column < 256; ++column) {
    const float sum = __uint_as_float(at.load(column));
    count += sum != static_cast<float>(kSumOfOnes * 3 * (rounds / 2));
  }
  return count;
}

// probe_mma_before_cp of tensor.cu, by a pair: its copies write the tensor memory of both CTAs.
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128)
    probe_mma_before_cp_pair(uint32_t* wrong, uint32_t rounds) {
  const Bench<2> at(ptx::shared_address(shared));
  at.fill(kScalesAt, 512, kScaleOnes);
  at.fill(kScalesAt + 512, 512, kScaleOnes + 0x08080808);
  for (uint32_t i = 0; i < 4; ++i) at.store(kWeightScalesAt + i, kScaleOnes);
  at.meet();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (uint32_t round = 0; round < rounds; ++round) {
      copy_and_multiply(at, round % 2, round != 0);
    }
    at.commit();
  }
  at.wait();
  wrong[blockIdx.x * 128 + threadIdx.x] = count_wrong(at, rounds);
  at.finish();
}

// The K tail of a pair (kernel/sm100/k_tail.cuh): a warp of each CTA writes scales to its own
// shared memory, where NaN were, and signals the leader, whose copies then take them from both
// CTAs. Two buffers; each has a barrier for 64 lanes, and one for the commit after which it is
// written again.
constexpr uint32_t kReadyAt = kSharedBytes, kDoneAt = kReadyAt + 16, kNans = 0x7F7F7F7F;
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128)
    probe_pair_tail(uint32_t* wrong, uint32_t rounds) {
  const uint32_t smem = ptx::shared_address(shared);
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < 2; ++i) {
      ptx::mbarrier_init(smem + kReadyAt + 8 * i, 64);
      ptx::mbarrier_init(smem + kDoneAt + 8 * i, 1);
    }
    ptx::fence_mbarrier_init();
  }
  const Bench<2> at(smem);
  at.fill(kScalesAt, 1024, kNans);
  for (uint32_t i = 0; i < 4; ++i) at.store(kWeightScalesAt + i, kScaleOnes);
  at.meet();
  if (at.band == 1) {
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t buffer = round % 2, phase = round / 2;
      if (phase > 0) ptx::mbarrier_wait(smem + kDoneAt + 8 * buffer, (phase - 1) % 2);
      for (uint32_t i = threadIdx.x % 32 * 4; i < 512; i += 128) {
        ptx::st_shared_b32(smem + kScalesAt + buffer * 512 + i, kScaleOnes + buffer * 0x08080808);
      }
      ptx::fence_proxy_async_shared_cta();
      ptx::mbarrier_arrive_cluster(ptx::mapa(smem + kReadyAt + 8 * buffer, 0));
    }
  } else if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (uint32_t round = 0; round < rounds; ++round) {
      ptx::mbarrier_wait_cluster(smem + kReadyAt + 8 * (round % 2), round / 2 % 2);
      ptx::tcgen05_fence_after_thread_sync();
      copy_and_multiply(at, round % 2, round != 0);
      ptx::tcgen05_commit_to_pair(smem + kDoneAt + 8 * (round % 2));
    }
    at.commit();
  }
  at.wait();
  wrong[blockIdx.x * 128 + threadIdx.x] = count_wrong(at, rounds);
  at.finish();
}
