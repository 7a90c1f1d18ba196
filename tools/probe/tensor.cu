// SPDX-License-Identifier: MIT
// Questions about the tensor core of 10.x and its memory that no manual answers, a kernel each.
// What an answer decides says probes.cc.
#include "tools/probe/tensor.cuh"

using namespace nvfp4;
using namespace nvfp4::probe;

extern __shared__ __align__(1024) uint8_t shared[];

// A word of scales has to be in all four bands of 32 lanes. Which one is read where they differ?
// Band i has 2^i, in the scales of the weights or of the tokens: D[lane][0] names it.
extern "C" __global__ void __launch_bounds__(128) probe_lane_bands(float* d, uint32_t of_tokens) {
  const Bench<1> at(ptx::shared_address(shared));
  const uint32_t of_band = kScaleOnes + at.band * 0x08080808;
  for (uint32_t i = 0; i < 4; ++i) {
    at.store(kWeightScalesAt + i, of_tokens ? kScaleOnes : of_band);
  }
  at.store(kTokenScalesAt, of_tokens ? of_band : kScaleOnes);
  at.meet();
  if (threadIdx.x == 0) {
    at.multiply(instruction_descriptor<128>(8), false);
    at.commit();
  }
  at.wait();
  d[threadIdx.x] = __uint_as_float(at.load(0)) / kSumOfOnes;
  at.finish();
}

// A pair with 64 weights in each CTA, M = 128, has the upper half of 128 tokens in the lanes from
// 64 on. Where are the scales of these? Column i has 1 + i/8 in all lanes: D[lane][0] names it.
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128) probe_pair_scales(float* d) {
  const Bench<2> at(ptx::shared_address(shared));
  for (uint32_t i = 0; i < 4; ++i) {
    at.store(kWeightScalesAt + i, kScaleOnes);
    at.store(kTokenScalesAt + i, kScaleOnes + i * 0x01010101);
  }
  at.meet();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    at.multiply(instruction_descriptor<128>(128), false);
    at.commit();
  }
  at.wait();
  const float sum = __uint_as_float(at.load(0)) / kSumOfOnes;
  if (blockIdx.x == 0) d[threadIdx.x] = sum;
  at.finish();
}

// May tcgen05.cp overwrite scales as soon as the MMA that reads them has been issued? Rounds have
// scales of 1 and 2 in turn. d: how many columns of a lane have another sum than 3 for two of them.
extern "C" __global__ void __launch_bounds__(128)
    probe_mma_before_cp(uint32_t* wrong, uint32_t rounds) {
  const Bench<1> at(ptx::shared_address(shared));
  at.fill(kScalesAt, 512, kScaleOnes);
  at.fill(kScalesAt + 512, 512, kScaleOnes + 0x08080808);
  for (uint32_t i = 0; i < 4; ++i) at.store(kWeightScalesAt + i, kScaleOnes);
  at.meet();
  if (threadIdx.x == 0) {
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint64_t scales = scale_descriptor(at.smem + kScalesAt + round % 2 * 512);
      ptx::tcgen05_cp_32x128b_warpx4<1>(at.tmem + kTokenScalesAt, scales);
      ptx::tcgen05_cp_32x128b_warpx4<1>(at.tmem + kTokenScalesAt + 4, scales);
      at.multiply(instruction_descriptor<128>(256), round != 0);
    }
    at.commit();
  }
  at.wait();
  uint32_t count = 0;
  for (uint32_t column = 0; column < 256; ++column) {
    const float sum = __uint_as_float(at.load(column));
    count += sum != static_cast<float>(kSumOfOnes * 3 * (rounds / 2));
  }
  wrong[threadIdx.x] = count;
  at.finish();
}

// One row of 64 codes on either side, 32 bytes each, their four scales and a sum to add to. What
// does a block of 16 that has only zeros do to how the others are aligned?
struct OneSum {
  uint32_t weights[8], tokens[8], weight_scales, token_scales, c;
};
extern "C" __global__ void __launch_bounds__(128)
    probe_zero_groups(uint32_t* d, const __grid_constant__ OneSum of) {
  const Bench<1> at(ptx::shared_address(shared));
  at.fill(kWeightsAt, 16384, 0);
  at.fill(kTokensAt, 32768, 0);
  __syncthreads();
  for (uint32_t i = 0; threadIdx.x == 0 && i < 8; ++i) {  // row 0, which a swizzle leaves in place
    ptx::st_shared_b32(at.smem + kWeightsAt + i * 4, of.weights[i]);
    ptx::st_shared_b32(at.smem + kTokensAt + i * 4, of.tokens[i]);
  }
  for (uint32_t i = 0; i < 4; ++i) at.store(kWeightScalesAt + i, of.weight_scales);
  at.store(kTokenScalesAt, of.token_scales);
  for (uint32_t i = 0; i < 8; ++i) at.store(i, of.c);
  at.meet();
  if (threadIdx.x == 0) {
    at.multiply(instruction_descriptor<128>(8), true);
    at.commit();
  }
  at.wait();
  const uint32_t sum = at.load(0);
  if (threadIdx.x == 0) *d = sum;
  at.finish();
}

// Two CTAs of an SM want tensor memory, the first one all of it. sms: for each SM how many CTAs
// came, whether the first one has its columns, whether the second one asks, whether it was given
// some before the first one's were free (1) or after (2).
struct OfSm {
  uint32_t came, held, asks, given, freed;
};
__device__ inline uint32_t look(const uint32_t* word) {
  uint32_t now;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
  return now;
}
__device__ inline void tell(uint32_t* word, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
extern "C" __global__ void __launch_bounds__(32) probe_alloc_beside(OfSm* sms, uint32_t clocks) {
  const uint32_t at = ptx::shared_address(shared);
  uint32_t sm, place = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  OfSm* const mine = sms + sm;
  if (threadIdx.x == 0) place = atomicAdd(&mine->came, 1);
  place = __shfl_sync(0xFFFFFFFF, place, 0);
  if (place > 1) return;
  const auto wait_for = [&](const uint32_t* word, uint32_t most) {
    const long long start = clock64();
    while (__shfl_sync(0xFFFFFFFF, look(word), 0) == 0) {
      if (__shfl_sync(0xFFFFFFFF, static_cast<int>(clock64() - start > most), 0)) return;
    }
  };
  constexpr uint32_t kLong = 1 << 20;
  if (place == 0) {
    ptx::tcgen05_alloc<1, kColumns>(at);
    ptx::tcgen05_relinquish_alloc_permit<1>();
    if (threadIdx.x == 0) tell(&mine->held, 1);
    wait_for(&mine->asks, kLong);
    wait_for(&mine->given, clocks);
    if (threadIdx.x == 0) tell(&mine->freed, 1);
    __syncwarp();
    ptx::tcgen05_dealloc<1, kColumns>(ptx::ld_shared_b32(at));
  } else {
    wait_for(&mine->held, kLong);
    if (threadIdx.x == 0) tell(&mine->asks, 1);
    __syncwarp();
    ptx::tcgen05_alloc<1, 32>(at);
    ptx::tcgen05_relinquish_alloc_permit<1>();
    if (threadIdx.x == 0) tell(&mine->given, 1 + look(&mine->freed));
    __syncwarp();
    ptx::tcgen05_dealloc<1, 32>(ptx::ld_shared_b32(at));
  }
}
