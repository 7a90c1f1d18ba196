// SPDX-License-Identifier: MIT
// Questions about the start of a CTA, which 9.0 has as well, a kernel each. What an answer decides
// says start.cc. Clocks are those of the CTA that writes them.
#include "kernel/common/params.h"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"

using namespace nvfp4;

extern __shared__ __align__(1024) uint8_t shared[];

__device__ inline unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

// What does a CTA wait for before its first load, beside its instructions? clocks: 16 parameters
// read one after the other, 64 bytes apart, and a barrier initialised and published; then the same
// again, when code and parameters are cached.
constexpr uint32_t kParameters = 16;
struct Spread {
  uint32_t next[kParameters][16];
};
extern "C" __global__ void __launch_bounds__(320)
    probe_setup(unsigned long long* clocks, const __grid_constant__ Spread spread) {
  const long long start = clock64();
  const uint32_t bar = ptx::shared_address(shared);
  if (threadIdx.x != 0) return;
  long long begin = start;
#pragma unroll 1
  for (uint32_t pass = 0; pass < 2; ++pass) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < kParameters; ++i) at = spread.next[at % kParameters][0];
    ptx::mbarrier_init(bar + 8 * pass, 1 + at / kParameters);
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async_shared_cta();
    const long long end = clock64();
    if (blockIdx.x == 0) clocks[pass] = end - begin;
    begin = clock64();
  }
}

// How long does a load take through a tensor map that is not cached, and through the same one
// again? Rows are cold, and a copy without a map has found their page. clocks: the first load, the
// least of the others.
constexpr uint32_t kRows = 32, kRowBytes = 128;
extern "C" __global__ void __launch_bounds__(32)
    probe_map_fetch(unsigned long long* clocks, const uint8_t* page,
                    const __grid_constant__ TensorMap map, uint32_t loads) {
  const uint32_t smem = ptx::shared_address(shared), bar = smem + kRows * kRowBytes;
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(bar, 1);
  ptx::fence_mbarrier_init();
  ptx::fence_proxy_async_shared_cta();
  ptx::mbarrier_arrive_expect_tx(bar, kRowBytes);
  ptx::cp_async_bulk(smem, page, kRowBytes, bar, ptx::kEvictFirst);
  ptx::mbarrier_wait(bar, 0);
  unsigned long long first = 0, least = ~0ull;
  for (uint32_t i = 0; i < loads; ++i) {
    const long long start = clock64();
    ptx::mbarrier_arrive_expect_tx(bar, kRows * kRowBytes);
    ptx::cp_async_bulk_tensor_3d(smem, &map, 0, (i + 1) * kRows, 0, bar, ptx::kEvictFirst);
    ptx::mbarrier_wait(bar, (i + 1) % 2);
    const unsigned long long took = clock64() - start;
    if (i == 0) first = took;
    if (i > 0) least = min(least, took);
  }
  clocks[0] = first, clocks[1] = least;
}

// How long does an SM take from one CTA to the next, if each has all of shared memory, reads a word
// and ends? times: the earliest start as its complement, and the latest end.
extern "C" __global__ void __launch_bounds__(320)
    probe_empty_cta(unsigned long long* times, const uint32_t* word) {
  if (threadIdx.x != 0) return;
  atomicMax(&times[0], ~nanoseconds());
  if (*reinterpret_cast<const volatile uint32_t*>(word) != 0) return;
  atomicMax(&times[1], nanoseconds());
}
