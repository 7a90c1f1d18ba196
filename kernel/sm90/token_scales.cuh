// SPDX-License-Identifier: MIT
// Where the scales of packed tokens lie, in either layout, for the warps and the kernel that decode
// them on Hopper.
#pragma once

#include <cstdint>

#include "kernel/common/scale_tile.h"
#include "kernel/sm90/params.h"

namespace nvfp4 {

// The four scales of a token's 64-step, and how far it is to those of the next one.
struct TokenScales {
  const uint8_t* first;
  uint32_t step_bytes;
};

__device__ inline TokenScales linear_token_scales(const Sm90Params& p, uint32_t batch, uint32_t row,
                                                  uint32_t step) {
  return {p.token_scales + batch * p.token_scales_batch_bytes +
              static_cast<uint64_t>(row) * (p.k / 16) + step * 4,
          4};
}

__device__ inline TokenScales tiled_token_scales(const Sm90Params& p, uint32_t batch, uint32_t row,
                                                 uint32_t step) {
  const uint32_t k_steps = (p.k + kScaleTileK - 1) / kScaleTileK;
  const uint64_t tile = scale_tile_number(row / kScaleTileRows, k_steps, step);
  return {p.token_scales + batch * p.token_scales_batch_bytes + tile * kScaleTileBytes +
              scale_lane(row) + scale_band(row % kScaleTileRows),
          kScaleTileBytes};
}

// Where loads follow, the layout is asked about once, before all of them: between them a thread
// would wait for those before.
template <bool kLinear>
__device__ TokenScales token_scales_at(const Sm90Params& p, uint32_t batch, uint32_t row,
                                       uint32_t step) {
  if constexpr (kLinear) return linear_token_scales(p, batch, row, step);
  return tiled_token_scales(p, batch, row, step);
}

}  // namespace nvfp4
