// SPDX-License-Identifier: MIT
// Questions about copies, fences and clusters, which 9.0 has as well, a kernel each. What an answer
// decides says probes.cc. Clocks are those of the CTA that writes them.
#include "kernel/common/params.h"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/push.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"

using namespace nvfp4;

extern __shared__ __align__(1024) uint8_t shared[];

// So many barriers of one arrival, at an address.
__device__ inline void init_barriers(uint32_t at, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) ptx::mbarrier_init(at + 8 * i, 1);
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();
}

// mbarrier.test_wait.parity.shared::cta.b64  p, [bar], parity;                     PTX 7.8, sm_80
__device__ inline bool is_over(uint32_t bar, uint32_t parity) {
  uint32_t over;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(over)
      : "r"(bar), "r"(parity)
      : "memory");
  return over != 0;
}

// Does a fence of a thread wait for the bulk loads that it has under way? found: in how many tries
// the loads were under way before the fence, in how many of these they were not any more after it,
// clocks of these fences, clocks of as many without a load. `cold`: 64 KB for each try.
constexpr uint32_t kLoads = 4, kLoadBytes = 16384;
extern "C" __global__ void __launch_bounds__(32)
    probe_fence_in_flight(unsigned long long* found, const uint8_t* cold, uint32_t tries) {
  const uint32_t smem = ptx::shared_address(shared), bar = smem + kLoads * kLoadBytes;
  if (threadIdx.x != 0) return;
  init_barriers(bar, 1);
  unsigned long long under_way = 0, landed = 0, clocks = 0, alone = 0;
  for (uint32_t i = 0; i < tries; ++i) {
    long long start = clock64();
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    alone += clock64() - start;
    ptx::mbarrier_arrive_expect_tx(bar, kLoads * kLoadBytes);
    for (uint32_t load = 0; load < kLoads; ++load) {
      ptx::cp_async_bulk(smem + load * kLoadBytes, cold + (i * kLoads + load) * kLoadBytes,
                         kLoadBytes, bar, ptx::kEvictFirst);
    }
    const bool before = !is_over(bar, i % 2);
    start = clock64();
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    const long long end = clock64();
    const bool after = !is_over(bar, i % 2);
    under_way += before, landed += before && !after;
    if (before) clocks += end - start;
    ptx::mbarrier_wait(bar, i % 2);
  }
  found[0] = under_way, found[1] = landed, found[2] = clocks, found[3] = alone;
}

// What a box takes whose rows a matrix has, or has not: clocks of so many boxes of `bytes`, four of
// them under way.
constexpr uint32_t kBoxes = 4, kBoxBytes = 16384;
extern "C" __global__ void __launch_bounds__(32)
    probe_rows_beyond(unsigned long long* clocks, const __grid_constant__ TensorMap map,
                      uint32_t bytes, uint32_t boxes) {
  const uint32_t smem = ptx::shared_address(shared), bars = smem + kBoxes * kBoxBytes;
  if (threadIdx.x != 0) return;
  init_barriers(bars, kBoxes);
  long long start = 0;
  for (uint32_t i = 0; i < 2 * boxes; ++i) {  // the first half warms up
    const uint32_t slot = i % kBoxes, turn = i / kBoxes;
    if (turn > 0) ptx::mbarrier_wait(bars + 8 * slot, (turn - 1) % 2);
    if (i == boxes) start = clock64();
    ptx::mbarrier_arrive_expect_tx(bars + 8 * slot, bytes);
    ptx::cp_async_bulk_tensor_3d(smem + slot * kBoxBytes, &map, 0, 0, 0, bars + 8 * slot,
                                 ptx::kEvictLast);
  }
  const uint32_t last = 2 * boxes / kBoxes - 1;
  for (uint32_t i = 0; i < kBoxes; ++i) ptx::mbarrier_wait(bars + 8 * i, last % 2);
  *clocks = clock64() - start;
}

// What comes into one SM: clocks of so many copies of 16 KB from 128 KB that the L2 has, eight of
// them under way.
constexpr uint32_t kSlots = 8;
extern "C" __global__ void __launch_bounds__(32)
    probe_port_rate(unsigned long long* clocks, const uint8_t* from, uint32_t copies) {
  const uint32_t smem = ptx::shared_address(shared), bars = smem + kSlots * kLoadBytes;
  if (threadIdx.x != 0) return;
  init_barriers(bars, kSlots);
  long long start = 0;
  for (uint32_t i = 0; i < kSlots + copies; ++i) {  // the first ones fill the L2
    const uint32_t slot = i % kSlots, turn = i / kSlots;
    if (turn > 0) ptx::mbarrier_wait(bars + 8 * slot, (turn - 1) % 2);
    if (i == kSlots) start = clock64();
    ptx::mbarrier_arrive_expect_tx(bars + 8 * slot, kLoadBytes);
    ptx::cp_async_bulk(smem + slot * kLoadBytes, from + slot * kLoadBytes, kLoadBytes,
                       bars + 8 * slot, ptx::kEvictLast);
  }
  const uint32_t last = (kSlots + copies) / kSlots - 1;
  for (uint32_t i = 0; i < kSlots; ++i) ptx::mbarrier_wait(bars + 8 * i, last % 2);
  *clocks = clock64() - start;
}

// What a CTA pushes into the other one of its cluster, both at once: clocks until the `pieces` of
// 8 KB of the other one have come. Each has a place of its own, all are of the same 8 KB.
constexpr uint32_t kPieceBytes = 8192, kMostPieces = 16;
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(32)
    probe_push_rate(unsigned long long* clocks, uint32_t pieces) {
  const uint32_t smem = ptx::shared_address(shared), to = smem + kPieceBytes,
                 bar = to + kMostPieces * kPieceBytes, peer = blockIdx.x % 2 ^ 1;
  for (uint32_t i = threadIdx.x * 4; i < kPieceBytes; i += 128) ptx::st_shared_b32(smem + i, 1);
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x == 0) init_barriers(bar, 1);
  __syncwarp();
  ptx::cluster_sync();
  const long long start = clock64();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(bar, pieces * kPieceBytes);
    for (uint32_t i = 0; i < pieces; ++i) {
      ptx::cp_async_bulk_to_cluster(ptx::mapa(to + i * kPieceBytes, peer), smem, kPieceBytes,
                                    ptx::mapa(bar, peer));
    }
  }
  ptx::mbarrier_wait_cluster(bar, 0);
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - start;
  __syncwarp();
  ptx::cluster_sync();
}

// How many clusters of CTAs, each with an SM of its own, run at once? state: clusters that came;
// how many had come when the first one had waited for so many clocks.
template <uint32_t kCtas>
__device__ void count_clusters(uint32_t* state, uint32_t clocks) {
  if (threadIdx.x == 0 && blockIdx.x % kCtas == 0) {
    atomicAdd(&state[0], 1);
    const long long start = clock64();
    while (clock64() - start < clocks && atomicAdd(&state[1], 0) == 0) {
    }
    atomicCAS(&state[1], 0, atomicAdd(&state[0], 0));
  }
  __syncwarp();
  ptx::cluster_sync();
}
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(32)
    probe_clusters_at_once(uint32_t* state, uint32_t clocks) {
  count_clusters<2>(state, clocks);
}
extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(32)
    probe_clusters_of_4(uint32_t* state, uint32_t clocks) {
  count_clusters<4>(state, clocks);
}
