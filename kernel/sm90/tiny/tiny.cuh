// SPDX-License-Identifier: MIT
// The consumer warps of a tiny tile on Hopper. They decode weights from shared memory to e5m2 in
// registers, multiply with wgmma, and add the sums of blocks of 16, times both scales, in fp32.
//
// ORDER OF K. A lane 4g+c takes chunk c of half a stage, 32 neighbouring elements of a weight row,
// eight to a word, two words to a block. wgmma j multiplies word j of the four lanes' chunks: bytes
// 4c .. 4c+3 (even elements) and 16 + 4c .. (odd ones) of its 32. The column of B for chunk c has
// zeros in the other chunks' bytes, so that D's column is the sum over a block of that chunk.
//
//   1 token      column c + 4b        block b of chunk c; four wgmmas fill the eight columns
//   more tokens  column c + 4 token   block b of chunk c; two wgmmas
#pragma once

#include <cstdint>

#include "kernel/common/clocks.cuh"
#include "kernel/common/ring.cuh"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/wgmma.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/descriptor.h"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/add.cuh"
#include "kernel/sm90/tiny/formats.cuh"

namespace nvfp4 {

// Sums of a lane: rows x and x + 32, blocks of 8 columns.
template <typename Tile>
using TinySums = float[2][Tile::kColumns / 8];

// Row of the tile that is D's row 16w+g. D's row 16w+g+8 is 32 rows further on, with its scales
// beside it. A quarter warp's two rows differ in the upper bit of the 128-byte swizzle, so eight
// 16-byte reads hit all banks.
__device__ inline uint32_t tiny_row(uint32_t warp, uint32_t lane) {
  const uint32_t g = lane / 4;
  return warp % 4 * 8 + g % 2 * 4 + g / 2;
}

// Addresses that a lane reads in stage 0.
struct TinyLane {
  uint32_t codes, scales, first_scales, factors;
  uint32_t scale_bytes[2];  // select the scales of two chunks, in an even and in an odd unit
  bool of_32;               // elements to a scale
};

// A lane multiplies a block of chunks 2 (c % 2) and the next one. They belong to the half's step of
// 64 number c % 2, whose four scales have a tile of their own, or two bytes of the half's tile if
// 32 elements share a scale.
template <typename Format, typename Tile>
__device__ TinyLane tiny_lane(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  const uint32_t c = lane % 4;
  const uint32_t row = tiny_row(warp, lane);
  const uint32_t first = cta.tile.weight_tile * Tile::kColumnsOfD % kScaleTileRows;
  const uint32_t scales = cta.scales(0) + scale_lane(row) + scale_band(first);
  const bool of_32 = Format::kUe8m0 && log2_steps_per_scale_tile<Tile>(cta.p) != 0;
  const auto keep = [&](uint32_t value) { return __shfl_sync(0xFFFFFFFF, value, lane); };
  const auto select = [&](uint32_t unit) {
    if (of_32) return c % 2 == 0 ? Format::kScales01 : Format::kScales23;
    const uint32_t block = Tile::kTokenColumns == 8 ? c / 2 : unit;
    return block == 0 ? Format::kScales02 : Format::kScales13;
  };
  return {keep(cta.weights(0) + row * (Tile::kK / 2) + (c ^ row % 8) * 16),
          keep(scales + (of_32 ? 0 : c % 2 * kScaleTileBytes)),
          keep(scales),
          keep(cta.smem + Tile::kFactorsAt + 4 * c),
          {keep(select(0)), keep(select(1))},
          of_32};
}

// Half a k-block: codes and scale words of both rows.
struct TinyRows {
  uint4 codes[2];
  uint2 scales;
};

template <typename Tile, typename Format>
__device__ TinyRows load_half(const TinyLane& at, uint32_t stage, uint32_t half, bool beyond_k) {
  TinyRows rows;
  const uint32_t codes = (at.codes + stage * Tile::kWeightBytes) ^ half * 64;
  rows.codes[0] = ptx::ld_shared_v4_b32(codes);
  rows.codes[1] = ptx::ld_shared_v4_b32(codes + 32 * Tile::kK / 2);
  // Steps beyond K have zero codes (filled by TMA) and no scales, so any scales will do.
  const uint32_t tiles = at.of_32 ? half : half * 2;
  const uint32_t scales = (beyond_k ? at.first_scales : at.scales + tiles * kScaleTileBytes) +
                          stage * Tile::kScaleBytes;
  if constexpr (Tile::kGated) {
    rows.scales =
        make_uint2(ptx::ld_shared_b32(scales), ptx::ld_shared_b32(scales + Tile::kHalfScaleBytes));
  } else {
    rows.scales = ptx::ld_shared_v2_b32(scales);
  }
  // The upper two bytes of the first tile's words may be beyond K, too, and any one may be NaN.
  if (Format::kUe8m0 && beyond_k) rows.scales = make_uint2(0, 0);
  return rows;
}

// The wgmmas of a unit form one group.
template <typename Tile>
__device__ void issue_unit(const Cta90<Tile>& cta, const TinyRows& rows, uint32_t stage,
                           uint32_t unit, float (&d)[Tile::kColumns / 2]) {
  uint32_t a[Tile::kUnitWgmmas][4];
#pragma unroll
  for (uint32_t j = 0; j < Tile::kUnitWgmmas; ++j) {
    const uint32_t i = (unit * Tile::kUnitWgmmas + j) % 4;
    uint32_t upper[2], lower[2];
    place_bytes(word(rows.codes[0], i), upper);
    place_bytes(word(rows.codes[1], i), lower);
    a[j][0] = upper[0];
    a[j][1] = lower[0];
    a[j][2] = upper[1];
    a[j][3] = lower[1];
  }
  const uint64_t b = wgmma_plain_descriptor(
      cta.tokens(stage) + unit * Tile::kUnitWgmmas * Tile::kOperandBytes, 128, 256);
  ptx::wgmma_fence();
#pragma unroll
  for (uint32_t j = 0; j < Tile::kUnitWgmmas; ++j) {
    ptx::wgmma_e5m2(d, a[j], b + j * (Tile::kOperandBytes / 16), j > 0);
  }
  ptx::wgmma_commit_group();
}

// sums += the unit's sums of blocks times both scales.
template <typename Tile, typename Format>
__device__ void add_unit(const TinyLane& at, const TinyRows& rows, uint32_t stage, uint32_t unit,
                         const float (&d)[Tile::kColumns / 2], TinySums<Tile>& sums) {
  uint32_t selector = at.scale_bytes[unit % 2];
  if (!Format::kUe8m0 && Tile::kTokenColumns == 4) {
    selector = unit % 2 == 0 ? Format::kScales02 : Format::kScales13;
  }
  const uint32_t scales[2] = {Format::weight_factors(rows.scales.x, selector),
                              Format::weight_factors(rows.scales.y, selector)};
#pragma unroll
  for (uint32_t n = 0; n < Tile::kColumns / 8; ++n) {
    const uint32_t token = ptx::ld_shared_b32(at.factors + stage * Tile::kFactorBytes +
                                              (unit * Tile::kColumns + 8 * n) * 2);
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      sums[r][n] =
          Format::add(sums[r][n], d[4 * n + 2 * r], d[4 * n + 2 * r + 1], scales[r], token);
    }
  }
}

// Unit u's wgmmas run while unit u + 1 is decoded.
template <typename Format, typename Tile>
__device__ void multiply_tiny_stage(const Cta90<Tile>& cta, const TinyLane& at, uint32_t stage,
                                    const bool (&beyond_k)[2], TinySums<Tile>& sums) {
  constexpr uint32_t kPerHalf = Tile::kUnits / 2;
  const TinyRows rows[2] = {load_half<Tile, Format>(at, stage, 0, beyond_k[0]),
                            load_half<Tile, Format>(at, stage, 1, beyond_k[1])};
  float d[2][Tile::kColumns / 2];
#pragma unroll
  for (uint32_t u = 0; u < Tile::kUnits; ++u) {
    issue_unit(cta, rows[u / kPerHalf], stage, u, d[u % 2]);
    if (u > 0) {
      ptx::wgmma_wait_group<1>();
      add_unit<Tile, Format>(at, rows[(u - 1) / kPerHalf], stage, u - 1, d[(u - 1) % 2], sums);
    }
  }
  ptx::wgmma_wait_group<0>();
  add_unit<Tile, Format>(at, rows[1], stage, Tile::kUnits - 1, d[(Tile::kUnits - 1) % 2], sums);
}

// Group g's k-blocks: g, g + kGroups, .. of a tile whose first k-block is the CTA's k-block
// `first`.
template <typename Format, typename Tile>
__device__ void multiply_tiny_as(const Cta90<Tile>& cta, uint32_t first, uint32_t warp,
                                 uint32_t lane, TinySums<Tile>& sums) {
  const TinyLane at = tiny_lane<Format>(cta, warp, lane);
  const uint32_t group = warp / 4;
  const uint32_t last = cta.count - 1;
  const uint32_t step = lane % 2, steps = cta.steps(last);
  auto ring = RingPosition<Tile::kStages>::at(first + group);
  uint32_t before = 0;
#pragma unroll
  for (auto& row : sums)
    for (float& sum : row) sum = 0;
  for (uint32_t i = group; i < cta.count; i += Tile::kGroups, ring.advance(Tile::kGroups)) {
    const bool beyond_k[2] = {i == last && step >= steps, i == last && step + 2 >= steps};
    ptx::mbarrier_wait(cta.weights_full(ring.stage), ring.parity);
    note_stage(cta, i);
    // As in multiply.cuh: an arrival right after the loads would overtake some of them.
    if (i != group) ptx::mbarrier_arrive(cta.weights_empty(before));  // each lane for itself
    multiply_tiny_stage<Format>(cta, at, ring.stage, beyond_k, sums);
    before = ring.stage;
  }
  if (group < cta.count) ptx::mbarrier_arrive(cta.weights_empty(before));  // for the next tile
  if (lane == 0) note_last_clock(kClock_last_commit);
}

// Whether the operands have UE8M0 scales. An entry for plain products takes such or none.
template <typename Tile>
__device__ bool has_ue8m0_scales(const Sm90Params& p) {
  return Tile::kMxfp4 || (kTakesUe8m0<Tile> && p.weight_format != kFormatNvfp4);
}

template <typename Tile>
__device__ void multiply_tiny(const Cta90<Tile>& cta, uint32_t first, uint32_t warp, uint32_t lane,
                              TinySums<Tile>& sums) {
  if (has_ue8m0_scales<Tile>(cta.p)) {
    multiply_tiny_as<TinyUe8m0>(cta, first, warp, lane, sums);
  } else {
    multiply_tiny_as<TinyNvfp4>(cta, first, warp, lane, sums);
  }
}

// Place of the first partial sums of an unsplit tile. There are two such places, after those for
// four CTAs that share a tile.
template <typename Tile>
__device__ uint32_t own_partial(uint32_t tile) {
  return (kMaxClusterCtas - 2 + tile % 2) * Tile::kPartials;
}

// Adds the columns of each token. For a shared tile the sums go to the shared memory of the
// cluster's first CTA, where sums_full counts arrivals of its own warps and bytes of the others.
// All CTAs have synchronised before, so the barrier is initialised. `part` is the place of the
// first group's sums.
template <typename Tile>
__device__ void put_tiny_sums(const Cta90<Tile>& cta, uint32_t partial, uint32_t warp,
                              uint32_t lane, const TinySums<Tile>& sums) {
  const uint32_t c = lane % 4;
  const bool writes = c % (Tile::kTokenColumns / 2) == 0, here = !cta.shared() || cta.rank == 0;
  const uint32_t own = cta.smem + Tile::kSumsAt + (partial + warp / 4) * Tile::kPartialBytes +
                       tiny_row(warp, lane) * 4;
  const uint32_t first_cta = ptx::mapa(own, 0), full = ptx::mapa(cta.sums_full(), 0);
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
#pragma unroll
    for (uint32_t n = 0; n < Tile::kColumns / 8; ++n) {
      float sum = sums[r][n];
      sum = __fadd_rn(sum, __shfl_xor_sync(0xFFFFFFFF, sum, 1));
      if (Tile::kTokenColumns == 8) sum = __fadd_rn(sum, __shfl_xor_sync(0xFFFFFFFF, sum, 2));
      const uint32_t token = Tile::kTokenColumns == 8 ? 0 : 2 * n + c / 2;
      const uint32_t at = token * Tile::kSumRowBytes + r * 32 * 4;
      if (!writes) continue;
      if (here) {
        ptx::st_shared_f32(own + at, sum);
      } else {
        ptx::st_async_f32(first_cta + at, sum, full);
      }
    }
  }
  if (cta.shared() && cta.rank == 0 && writes) ptx::mbarrier_arrive(cta.sums_full());
}

// Each of 16 lanes stores four weights of a token; the partial sums are added in the order of K.
template <typename Tile, uint32_t kSplit>
__device__ SumRows store_tiny_sums(const Cta90<Tile>& cta, uint32_t first_partial, uint32_t warp,
                                   uint32_t lane, const FourTerms<Tile>& terms) {
  const Sm90Params& p = cta.p;
  const uint32_t token = warp, m = cta.tile.token_tile * Tile::kTokenStep + token;
  if (token >= Tile::kTokens || m >= row_end<Tile>(p, cta.tile) || lane >= Tile::kWeights / 4)
    return {};
  const uint32_t at = cta.smem + Tile::kSumsAt + first_partial * Tile::kPartialBytes +
                      token * Tile::kSumRowBytes + lane * 16;
  float4 partial[kSplit * Tile::kPartials];
#pragma unroll
  for (uint32_t i = 0; i < kSplit * Tile::kPartials; ++i) {
    partial[i] = ptx::ld_shared_v4_f32(at + i * Tile::kPartialBytes);
  }
  return store_one_sum(cta, cta.tile.weight_tile * Tile::kWeights + lane * 4, m, at,
                       add_partials(partial), terms);
}

}  // namespace nvfp4
