// SPDX-License-Identifier: MIT
// Adds partial sums in one fixed order, that of K or of the groups, so that equal inputs give equal
// bits.
#pragma once

#include <cstdint>

namespace nvfp4 {

__device__ inline float4 add(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// Adds from first to last.
template <uint32_t kPartials>
__device__ float4 add_partials(const float4 (&partial)[kPartials]) {
  float4 sum = partial[0];
#pragma unroll
  for (uint32_t i = 1; i < kPartials; ++i) sum = add(sum, partial[i]);
  return sum;
}

// Adds the partial sums of each CTA, then the sums of the CTAs.
template <uint32_t kCtas, uint32_t kPartials>
__device__ float4 add_partials_of_ctas(const float4 (&partial)[kCtas][kPartials]) {
  float4 sums[kCtas];
#pragma unroll
  for (uint32_t i = 0; i < kCtas; ++i) sums[i] = add_partials(partial[i]);
  return add_partials(sums);
}

}  // namespace nvfp4
