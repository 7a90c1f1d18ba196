// SPDX-License-Identifier: MIT
// One stage's loads as a GEMM kernel makes them, and shared memory written out as it then lies.
// Built for plain sm_90, so that the same PTX runs on a Hopper GPU and in the emulator:
// tools/emulator/test/h200/load_probe.cc. One function per instruction, which nvcc -G calls.
#include <cstdint>

namespace probe {

struct alignas(64) TensorMap {
  uint64_t words[16];
};

// Cache policies as createpolicy.fractional writes them for fraction 1.0 (read back on an H200).
constexpr uint64_t kEvictFirst = 0x12F0000000000000, kEvictLast = 0x14F0000000000000;

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ inline bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "elect.sync _|p, 0xFFFFFFFF;\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(elected)::"memory");
  return elected != 0;
}
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void mbarrier_init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ inline void mbarrier_arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
               "r"(bytes)
               : "memory");
}
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
__device__ inline void mbarrier_wait(uint32_t bar, uint32_t parity) {
  while (!mbarrier_try_wait_parity(bar, parity)) {
  }
}
__device__ inline void prefetch_tensormap(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ inline void cp_async_bulk_tensor_3d(uint32_t to, const void* map, int c0, int c1, int c2,
                                               uint32_t bar, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar), "l"(policy)
      : "memory");
}
__device__ inline void cp_async_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t bar,
                                     uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bar), "l"(policy)
      : "memory");
}

constexpr uint32_t kRows = 64;
constexpr uint32_t kTileBytes = kRows * 128;
constexpr uint32_t kScaleBytes = 1536;

}  // namespace probe

// out: kTileBytes of the box at (c0, c1, c2), then kScaleBytes from `scales`. Twice, for both
// phases of the barrier; the second round starts `step` bytes further along the first coordinate.
extern "C" __global__ void __launch_bounds__(32, 1)
    load_probe(const __grid_constant__ probe::TensorMap map, const uint8_t* scales, int c0, int c1,
               int c2, int step, uint8_t* out) {
  using namespace probe;
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ __align__(8) uint64_t full;
  // With -G ptxas 13.0 gives the section of static and dynamic shared memory an alignment of 16,
  // and `shared` begins at 1040: TMA answered with a misaligned address (H200, 2026-11-21).
  const uint32_t begin = shared_address(shared), base = (begin + 1023) / 1024 * 1024;
  const uint32_t bar = shared_address(&full);
  const bool leader = elect_sync();
  if (leader) {
    prefetch_tensormap(&map);
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    fence_proxy_async_shared_cta();
  }
  __syncwarp();
  for (uint32_t round = 0; round < 2; ++round) {
    if (leader) {
      // The second round overwrites what the threads have just read through the generic proxy.
      fence_proxy_async_shared_cta();
      mbarrier_arrive_expect_tx(bar, kTileBytes + kScaleBytes);
      cp_async_bulk_tensor_3d(base, &map, c0 + static_cast<int>(round) * step, c1, c2, bar,
                              kEvictFirst);
      cp_async_bulk(base + kTileBytes, scales, kScaleBytes, bar, kEvictLast);
    }
    mbarrier_wait(bar, round);
    for (uint32_t i = threadIdx.x; i < kTileBytes + kScaleBytes; i += 32) {
      out[round * (kTileBytes + kScaleBytes) + i] = shared[base - begin + i];
    }
    __syncwarp();
  }
}
