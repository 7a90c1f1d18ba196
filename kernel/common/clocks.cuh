// SPDX-License-Identifier: MIT
// Timestamps of the points of clocks.def in a CTA. `make CLOCKS=1` builds kernels that record them,
// in a folder of their own, for `nvfp4_bench clocks`. Without CLOCKS these calls compile to
// nothing, so the shipped code has the same bytes with and without them.
#pragma once

#include <cstdint>

namespace nvfp4 {

enum ClockPoint : uint32_t {
#define CLOCK_POINT(name, text) kClock_##name,
#include "kernel/common/clocks.def"
#undef CLOCK_POINT
  kClockPoints
};

#ifdef NVFP4_CLOCKS

// CTAs beyond this number are not recorded. The host finds the array, and its size, by name.
constexpr uint32_t kClockCtas = 8192;
extern "C" {
__device__ unsigned long long nvfp4_clocks[kClockCtas][kClockPoints];
}

__device__ inline unsigned long long* clock_of(ClockPoint point) {
  const uint32_t cta = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  return cta < kClockCtas ? &nvfp4_clocks[cta][point] : nullptr;
}

__device__ inline unsigned long long read_clock(ClockPoint point) {
  unsigned long long now;
  if (point == kClock_begin_ns || point == kClock_end_ns) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  } else {
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  }
  return now;
}

// For a point that a single thread of the CTA reaches, once.
__device__ inline void note_clock(ClockPoint point) {
  if (unsigned long long* clock = clock_of(point)) *clock = read_clock(point);
}

// For a point that several threads reach: the last one counts.
__device__ inline void note_last_clock(ClockPoint point) {
  if (unsigned long long* clock = clock_of(point)) atomicMax(clock, read_clock(point));
}

#else

__device__ inline void note_clock(ClockPoint) {}
__device__ inline void note_last_clock(ClockPoint) {}

#endif

}  // namespace nvfp4
