// SPDX-License-Identifier: MIT
// A tile of two CTAs, for which the even CTA issues the MMAs (cta_group::2): how their loads and
// commits differ from those of a single CTA.
//
//   TMA warps of both  --- bytes --->  full[s] of the leader  --->  its MMA thread
//          ^                                                             |
//          +------- empty[s] of each  <--- commit to both ---------------+--> accumulator_full of
//                                                                             each
//
//   full[s] counts 1 arrival (the leader's expect_tx) and the bytes of both CTAs, whose loads name
//   the leader's barrier. Bytes of the odd CTA may arrive before that arrival, but never a round
//   early: the odd CTA refills a stage only when its own empty[s] says that the pair's MMAs have
//   read the memory of both CTAs.
//   If K is not a multiple of 64, each CTA counts the bytes of the last k-block itself, on full[s]
//   of the leader and on k_tail_full of the other, one phase per tile. 64 arrivals on the leader's
//   k_tail_ready signal that both have cleared their scales.
//
//   A pair computes every P-th tile, P being the number of pairs (tiles.cuh), and its ring
//   continues from tile to tile. If two accumulators fit, one is stored while the other is
//   accumulated:
//
//   MMA thread  --- commit to both --->  accumulator_full[a] of each  --->  8 warps of each
//       ^                                                                        |
//       +------- accumulator_empty[a] of the leader  <--- 16 arrivals -----------+
//
//   A barrier is signalled only if some thread waits for it, because no arrival may outlive a CTA.
//   Only tensor copies may count bytes on a barrier of another CTA than the one that they write
//   (PTX ISA, .cta_group::2 of cp.async.bulk.tensor). So scales, too, are loaded through tensor
//   maps, which fill with zeros what lies beyond their rows or K.
#pragma once

#include <cstdint>

#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/k_tail.cuh"

namespace nvfp4 {

// Barrier that counts the bytes of a k-block, as a shared::cluster address. If scales have to be
// cleared, each CTA waits for its own bytes (k_tail.cuh).
template <typename Tile>
__device__ uint32_t full_of_pair(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  const bool by_itself = KTail<Tile>{cta}.is_in(k_block) && !cta.leads();
  if (by_itself) return ptx::mapa(cta.at.k_tail_full(), cta.rank);
  return ptx::mapa(cta.at.full(stage), 0);
}

template <typename Tile>
__device__ void expect_stage_of_pair(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  static_assert(2 * Tile::kStageBytes <= kMaxTransactionBytes);
  // A box of scales always has all tiles of a stage, including those beyond K.
  const uint32_t scale_bytes = (1 + cta.token_scale_blocks()) * Tile::kWeightScaleBytes;
  const uint32_t bytes =
      Tile::kWeightBytes + cta.token_bytes() + (scale_bytes >> cta.p.log2_steps_per_scale_tile);
  if (KTail<Tile>{cta}.is_in(k_block)) {
    ptx::mbarrier_arrive_expect_tx(cta.leads() ? cta.at.full(stage) : cta.at.k_tail_full(), bytes);
  } else if (cta.leads()) {
    ptx::mbarrier_arrive_expect_tx(cta.at.full(stage), 2 * bytes);
  }
}

// A box has the scales of one stage for a block of 128 rows. Batches that share their scales use
// one box.
__device__ inline void load_box_of_scales(uint32_t dst, const TensorMap& map, uint32_t block,
                                          uint32_t first_tile, uint32_t batch, uint32_t bar,
                                          uint64_t policy) {
  ptx::cp_async_bulk_tensor_3d_of_pair(dst, &map, first_tile * kScaleMapElements, block, batch, bar,
                                       policy);
}

// Packed weights have their scales with them. The box always has as many bytes as a whole k-block.
template <typename Tile>
__device__ void load_codes_of_pair(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  const Sm100Params& p = cta.p;
  const uint32_t bar = full_of_pair(cta, k_block, stage), n = cta.first_weight();
  int32_t x = cta.k.first_byte(k_block), y = n, batch = cta.tile().batch;
  if (cta.are_packed()) {
    const uint64_t unit = scale_tile_number(n / kScaleTileRows, scale_tiles(p, cta.k.k_steps),
                                            scale_tiles(p, cta.k.first_step(k_block)));
    x = 0, y = static_cast<int32_t>(unit * (p.weight_unit_bytes / kScaleTileBytes));
    if (p.weight_scales_batch_bytes == 0) batch = 0;
  }
  ptx::cp_async_bulk_tensor_3d_of_pair(cta.at.weights(stage), &p.weights, x, y, batch, bar,
                                       ptx::kEvictFirst);
}
template <typename Tile>
__device__ void load_scales_of_pair(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  const Sm100Params& p = cta.p;
  if (cta.are_packed()) return;
  load_box_of_scales(cta.at.weight_scales(stage), p.weight_scale_map,
                     cta.first_weight() / kScaleTileRows, scale_tiles(p, cta.k.first_step(k_block)),
                     p.weight_scales_batch_bytes == 0 ? 0 : cta.tile().batch,
                     full_of_pair(cta, k_block, stage), ptx::kEvictFirst);
}

template <typename Tile>
__device__ void load_weights_of_pair(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  load_codes_of_pair(cta, k_block, stage);
  load_scales_of_pair(cta, k_block, stage);
}

template <typename Tile>
__device__ void load_tokens_of_pair(const Cta<Tile>& cta, uint32_t k_block, uint32_t stage) {
  const Sm100Params& p = cta.p;
  const uint32_t bar = full_of_pair(cta, k_block, stage);
  cta.each_box_of_tokens(stage, [&](uint32_t to, uint32_t row) {
    ptx::cp_async_bulk_tensor_3d_of_pair(to, &p.tokens, cta.k.first_byte(k_block), row, cta.batch(),
                                         bar, p.token_policy);
  });
  for (uint32_t i = 0; i < cta.token_scale_blocks(); ++i) {
    load_box_of_scales(cta.at.token_scales(stage) + i * Tile::kSteps * kScaleTileBytes,
                       p.token_scale_map, cta.scale_row() / kScaleTileRows + i,
                       scale_tiles(p, cta.k.first_step(k_block)),
                       p.token_scales_batch_bytes == 0 ? 0 : cta.batch(), bar, p.token_policy);
  }
}

}  // namespace nvfp4
