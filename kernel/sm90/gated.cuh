// SPDX-License-Identifier: MIT
// The weights of gated products on Hopper: half of a tile's rows are rows of b, half the same rows
// of b2, so that a CTA has both sums of an element of D. Each half of a stage has its own tiles of
// scales, of 128 rows.
#pragma once

#include <cstdint>

#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm90/cta.cuh"

namespace nvfp4 {

// Offset in a stage of the scales of a row of the tile.
template <typename Tile>
__device__ uint32_t scales_of_row(const TileCoordinate& tile, uint32_t row) {
  if constexpr (Tile::kGated) {
    const uint32_t place = tile.weight_tile * Tile::kColumnsOfD % kScaleTileRows;
    const uint32_t scale_row = place + row % Tile::kColumnsOfD;
    return row / Tile::kColumnsOfD * Tile::kHalfScaleBytes + scale_lane(scale_row) +
           scale_band(scale_row);
  } else {
    const uint32_t scale_row = tile.weight_tile * Tile::kWeights % kScaleTileRows + row;
    return scale_lane(scale_row) + scale_band(scale_row);
  }
}

// Loads the codes of a stage, both halves.
template <typename Tile>
__device__ void load_gated_codes(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t bar) {
  const Sm90GatedParams& p = gated_params(cta.p);
  const uint32_t k = (cta.stage_begin + i) * (Tile::kK / 2);
  const uint32_t n = cta.tile.weight_tile * Tile::kColumnsOfD;
  ptx::cp_async_bulk_tensor_3d(cta.weights(at), &p.gemm.weights, k, n, cta.tile.batch, bar,
                               ptx::kEvictFirst);
  ptx::cp_async_bulk_tensor_3d(cta.weights(at) + Tile::kWeightBytes / 2, &p.weights2, k, n,
                               cta.tile.batch, bar, ptx::kEvictFirst);
}

// Loads the scales of a stage, `bytes` for each half. `bar` counts the bytes.
template <typename Tile>
__device__ void load_gated_weights(const Cta90<Tile>& cta, uint32_t i, uint32_t at, uint32_t bar,
                                   uint64_t tile, uint32_t bytes) {
  const Sm90GatedParams& p = gated_params(cta.p);
  ptx::mbarrier_arrive_expect_tx(bar, Tile::kWeightBytes + 2 * bytes);
  load_gated_codes(cta, i, at, bar);
  const uint64_t from = cta.tile.batch * p.gemm.weight_scales_batch_bytes + tile * kScaleTileBytes;
  ptx::cp_async_bulk(cta.scales(at), p.gemm.weight_scales + from, bytes, bar, ptx::kEvictFirst);
  ptx::cp_async_bulk(cta.scales(at) + Tile::kHalfScaleBytes, p.weight_scales2 + from, bytes, bar,
                     ptx::kEvictFirst);
}

}  // namespace nvfp4
