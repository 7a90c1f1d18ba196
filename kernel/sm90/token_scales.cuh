// SPDX-License-Identifier: MIT
// Addresses of the scales of packed tokens, in either layout, for the warps and the kernel that
// decode tokens on Hopper.
#pragma once

#include <cstdint>

#include "kernel/common/scale_tile.h"
#include "kernel/sm90/params.h"

namespace nvfp4 {

// The four scales of a token's step, and the distance to those of the next one. A step is 64
// elements, or 128 if 32 share a scale, in which case `shift` is 1.
struct TokenScales {
  const uint8_t* first;
  uint32_t step_bytes;
};

__device__ inline TokenScales linear_token_scales(const Sm90Params& p, uint32_t batch, uint32_t row,
                                                  uint32_t step, uint32_t shift = 0) {
  return {p.token_scales + batch * p.token_scales_batch_bytes +
              static_cast<uint64_t>(row) * (p.k / 16 >> shift) + step * 4,
          4};
}

__device__ inline TokenScales tiled_token_scales(const Sm90Params& p, uint32_t batch, uint32_t row,
                                                 uint32_t step, uint32_t shift = 0) {
  const uint32_t k_steps = ((p.k + kScaleTileK - 1) / kScaleTileK + shift) >> shift;
  const uint64_t tile = scale_tile_number(row / kScaleTileRows, k_steps, step);
  return {p.token_scales + batch * p.token_scales_batch_bytes + tile * kScaleTileBytes +
              scale_lane(row) + scale_band(row % kScaleTileRows),
          kScaleTileBytes};
}

// The layout is a template parameter, so that it is tested once before all loads: a branch between
// loads would make a thread wait for the earlier ones.
template <bool kLinear>
__device__ TokenScales token_scales_at(const Sm90Params& p, uint32_t batch, uint32_t row,
                                       uint32_t step, uint32_t shift = 0) {
  if constexpr (kLinear) return linear_token_scales(p, batch, row, step, shift);
  return tiled_token_scales(p, batch, row, step, shift);
}

}  // namespace nvfp4
