// SPDX-License-Identifier: MIT
// Questions about what the tensor core, its memory and a pair of CTAs do beside each other on 10.x,
// a kernel each. What an answer decides says pipes.cc.
#include "tools/probe/tensor.cuh"

using namespace nvfp4;
using namespace nvfp4::probe;

extern __shared__ __align__(1024) uint8_t shared[];

// Does an MMA of M = 128 multiply `n` tokens where n is no multiple of 16? Row i of the tokens has
// 1, 2 or 4. wrong: columns of a lane that have another sum, or beyond n another value than before.
constexpr uint32_t kMostTokens = 64, kBefore = 0x46000000;  // 8192.0f
extern "C" __global__ void __launch_bounds__(128)
    probe_n_multiple_of_8(uint32_t* wrong, uint32_t n) {
  const Bench<1> at(ptx::shared_address(shared));
  for (uint32_t row = 0; row < kMostTokens; ++row) {
    ptx::st_shared_b32(at.smem + kTokensAt + row * 128 + threadIdx.x % 32 * 4,
                       kOnes * (1 + row % 3));  // E2M1: 2, 4, 6 are 1, 2, 4
  }
  for (uint32_t i = 0; i < 4; ++i) {
    at.store(kWeightScalesAt + i, kScaleOnes);
    at.store(kTokenScalesAt + i, kScaleOnes);
  }
  for (uint32_t column = 0; column < kMostTokens; ++column) at.store(column, kBefore);
  at.meet();
  if (threadIdx.x == 0) {
    at.multiply(instruction_descriptor<128>(n), false);
    at.commit();
  }
  at.wait();
  uint32_t count = 0;
  for (uint32_t column = 0; column < kMostTokens; ++column) {
    const float sum = __uint_as_float(at.load(column));
    const float right = static_cast<float>(kSumOfOnes << column % 3);
    count += sum != (column < n ? right : __uint_as_float(kBefore));
  }
  wrong[threadIdx.x] = count;
  at.finish();
}

// What does a tcgen05.cp of 512 bytes take beside MMAs that wait for their operands (N = 64)?
// clocks of `rounds` rounds of so many copies to columns that nobody reads, and an MMA.
extern "C" __global__ void __launch_bounds__(128)
    probe_scale_copy(unsigned long long* clocks, uint32_t rounds, uint32_t copies) {
  const Bench<1> at(ptx::shared_address(shared));
  at.fill(kScalesAt, 512, kScaleOnes);
  for (uint32_t i = 0; i < 4; ++i) {
    at.store(kWeightScalesAt + i, kScaleOnes);
    at.store(kTokenScalesAt + i, kScaleOnes);
  }
  at.meet();
  const long long start = clock64();
  if (threadIdx.x == 0) {
    for (uint32_t round = 0; round < rounds; ++round) {
      for (uint32_t i = 0; i < copies; ++i) {
        ptx::tcgen05_cp_32x128b_warpx4<1>(at.tmem + kTokenScalesAt + 8 + 4 * i,
                                          scale_descriptor(at.smem + kScalesAt));
      }
      at.multiply(instruction_descriptor<128>(64), round != 0);
    }
    at.commit();
  }
  at.wait();
  if (threadIdx.x == 0) *clocks = clock64() - start;
  at.finish();
}

// What do 32 columns of tensor memory take to a warp's registers while the tensor core is busy?
// clocks of so many loads by each of four warps, beside so many MMAs to other columns.
extern "C" __global__ void __launch_bounds__(128)
    probe_load_drain(unsigned long long* clocks, uint32_t loads, uint32_t mmas) {
  const Bench<1> at(ptx::shared_address(shared));
  for (uint32_t i = 0; i < 4; ++i) {
    at.store(kWeightScalesAt + i, kScaleOnes);
    at.store(kTokenScalesAt + i, kScaleOnes);
  }
  for (uint32_t column = 128; column < 160; ++column) at.store(column, column);
  at.meet();
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < mmas; ++i) at.multiply(instruction_descriptor<128>(128), i != 0);
    at.commit();
  }
  __syncwarp();
  uint32_t all = 0;
  const long long start = clock64();
  for (uint32_t i = 0; i < loads; ++i) {
    uint32_t r[32];
    ptx::tcgen05_ld_32x32b(r, at.tmem + tmem_address(at.band * 32, 128));
    all += r[i % 2];
  }
  const long long took = clock64() - start;
  if (threadIdx.x == 0) clocks[0] = took, clocks[1] = all;
  at.wait();
  at.finish();
}
