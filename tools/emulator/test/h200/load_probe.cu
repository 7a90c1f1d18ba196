// SPDX-License-Identifier: MIT
// One stage's loads as the GEMM kernels make them, with the kernels' own wrappers, and shared
// memory written out as it then lies. Built for plain sm_90, so that the same PTX runs on a Hopper
// GPU and in the emulator: tools/emulator/test/h200/load_probe.cc.
#include "kernel/params.h"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"

constexpr uint32_t kRows = 64;
constexpr uint32_t kTileBytes = kRows * 128;
constexpr uint32_t kScaleBytes = 1536;

// out: kTileBytes of the box at (c0, c1, c2), then kScaleBytes from `scales`. Twice, for both
// phases of the barrier; the second round starts `step` bytes further along the first coordinate.
extern "C" __global__ void __launch_bounds__(32, 1)
    load_probe(const __grid_constant__ nvfp4::TensorMap map, const uint8_t* scales, int c0, int c1,
               int c2, int step, uint8_t* out) {
  namespace ptx = nvfp4::ptx;
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ __align__(8) uint64_t full;
  // With -G ptxas 13.0 gives the section of static and dynamic shared memory an alignment of 16, and
  // `shared` begins at 1040: TMA answered with a misaligned address (H200, 2026-11-21).
  const uint32_t begin = ptx::shared_address(shared), base = (begin + 1023) / 1024 * 1024;
  const uint32_t bar = ptx::shared_address(&full);
  const bool leader = ptx::elect_sync();
  if (leader) {
    ptx::prefetch_tensormap(&map);
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async_shared_cta();
  }
  __syncwarp();
  for (uint32_t round = 0; round < 2; ++round) {
    if (leader) {
      // The second round overwrites what the threads have just read through the generic proxy.
      ptx::fence_proxy_async_shared_cta();
      ptx::mbarrier_arrive_expect_tx(bar, kTileBytes + kScaleBytes);
      ptx::cp_async_bulk_tensor_3d(base, &map, c0 + static_cast<int>(round) * step, c1, c2, bar,
                                   ptx::kEvictFirst);
      ptx::cp_async_bulk(base + kTileBytes, scales, kScaleBytes, bar, ptx::kEvictLast);
    }
    ptx::mbarrier_wait(bar, round);
    for (uint32_t i = threadIdx.x; i < kTileBytes + kScaleBytes; i += 32) {
      out[round * (kTileBytes + kScaleBytes) + i] = shared[base - begin + i];
    }
    __syncwarp();
  }
}
