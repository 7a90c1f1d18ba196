// SPDX-License-Identifier: MIT
// From whole sums to D on Hopper: alpha, rounding to fp16, 8-byte stores along n; or the general
// epilogue, from shared memory.
#pragma once

#include <cstdint>

#include "kernel/epilogue.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/params.h"

namespace nvfp4 {

// The factor of the decoding: a power of two, so nothing is rounded when it comes back.
template <typename Tile>
constexpr float kDecodingScale = Tile::kBlockSums       ? kBlockSumScale
                                 : Tile::kNaturalTokens ? kWeightScale
                                                        : kSumScale;

// Four neighbouring weights of any token, from n on, to D in fp16 or bf16. What becomes of a sum is
// said in finish() alone, and store() alone writes D.
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

  // Two sums to two elements. The factor of the decoding comes back first.
  static __device__ uint32_t finish(float low, float high, const Sm90Params& p) {
    constexpr float kScale = kDecodingScale<Tile>;
    const float first = __fmul_rn(p.alpha, low * kScale),
                second = __fmul_rn(p.alpha, high * kScale);
    return p.epilogue.kind == kEpilogueBf16 ? ptx::cvt_rn_bf16x2_f32(second, first)
                                            : ptx::cvt_rn_f16x2_f32(second, first);
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
    store(m, make_uint2(finish(sum.x, sum.y, p), finish(sum.z, sum.w, p)));
  }
};

// A thread's whole sum of one token, put where it has read the first part of it, to D.
template <typename Tile>
__device__ void store_one_sum(const Cta90<Tile>& cta, uint32_t n, uint32_t m, uint32_t at,
                              const float4& sum) {
  if (!has_general_epilogue<Tile>(cta.p)) {
    Epilogue90<Tile>(cta.p, cta.tile, n).store_sums(m, sum);
    return;
  }
  ptx::st_shared_v4_f32(at, sum);
  store_general(cta.p, SumRows{at, 0, cta.tile.batch, n, m, 1, m + 1}, kDecodingScale<Tile>);
}

}  // namespace nvfp4
