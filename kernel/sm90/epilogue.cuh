// SPDX-License-Identifier: MIT
// From whole sums to D on Hopper: alpha, rounding to fp16, 8-byte stores along n.
#pragma once

#include <cstdint>

#include "kernel/ptx/convert.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/params.h"

namespace nvfp4 {

// Four neighbouring weights of any token, from n on, to D. What becomes of a sum is said in
// finish() alone, and store() alone writes D.
template <typename Tile>
struct Epilogue90 {
  const Sm90Params& p;
  uint32_t n;
  bool vectors;
  uint16_t* d;

  __device__ Epilogue90(const Sm90Params& params, const TileCoordinate& tile, uint32_t first)
      : p(params),
        n(first),
        vectors(((p.d_ld | p.d_batch_stride) & 3) == 0 && n + 4 <= p.n),
        d(static_cast<uint16_t*>(p.d) + tile.batch * p.d_batch_stride + n) {}

  // Two sums to two elements.
  // The factor of the decoding comes back first: a power of two, so nothing is rounded.
  static __device__ uint32_t finish(float low, float high, float alpha) {
    constexpr float kScale = Tile::kBlockSums ? kBlockSumScale : kSumScale;
    return ptx::cvt_rn_f16x2_f32(__fmul_rn(alpha, high * kScale), __fmul_rn(alpha, low * kScale));
  }

  __device__ void store(uint32_t m, const uint2& four) const {
    uint16_t* out = d + m * p.d_ld;
    if (vectors) {
      *reinterpret_cast<uint2*>(out) = four;
      return;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t word = k < 2 ? four.x : four.y;
      if (n + k < p.n) out[k] = static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16);
    }
  }

  __device__ void store_sums(uint32_t m, const float4& sum) const {
    store(m, make_uint2(finish(sum.x, sum.y, p.alpha), finish(sum.z, sum.w, p.alpha)));
  }
};

}  // namespace nvfp4
