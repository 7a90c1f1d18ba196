// SPDX-License-Identifier: MIT
// Stores D in E2M1 with generated scales, in the entries that have no other D. Complete sums come
// from registers, without shared memory; others come from where they were added. Each step is the
// same as in kernel/common/scaled_d.cuh, so the bits are, too.
//
// A warp's fragment has 16 columns of D, which are a block. Lane 4g+c has columns g and g+8 of two
// tokens in eight. Eight lanes together reduce the magnitudes of up to eight tokens. In the end
// each lane has the maximum of one token and computes its scale alone. Codes are exchanged the same
// way.
#pragma once

#include <cstdint>

#include "kernel/common/scaled_d.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"

namespace nvfp4 {

constexpr uint32_t kAllLanes = 0xFFFFFFFF;

// Slot i of a lane's kSlots is token i/2*8 + 2c + i%2. Eight lanes reduce their slots to the
// largest value of each. The result of a slot ends in the lanes with g % kSlots equal to that slot;
// a lane gives away the slots that are not its own.
template <uint32_t kSlots>
__device__ float largest_of_slots(float (&largest)[kSlots], uint32_t lane) {
#pragma unroll
  for (uint32_t kept = kSlots / 2; kept > 0; kept /= 2) {
    const bool upper = (lane & kept * 4) != 0;
#pragma unroll
    for (uint32_t i = 0; i < kept; ++i) {
      const float own = upper ? largest[i + kept] : largest[i];
      const float others = upper ? largest[i] : largest[i + kept];
      largest[i] = max_nan(own, __shfl_xor_sync(kAllLanes, others, kept * 4));
    }
  }
#pragma unroll
  for (uint32_t g = kSlots; g < 8; g *= 2) {
    largest[0] = max_nan(largest[0], __shfl_xor_sync(kAllLanes, largest[0], g * 4));
  }
  return largest[0];
}

// Eight codes of each of eight lanes: lane g gets the g-th ones, that of g = 0 in the lowest bits.
// First halves of a word change place between g and g ^ 4, then bytes, then codes.
__device__ inline uint32_t transpose_codes(uint32_t own, uint32_t lane) {
  constexpr uint32_t kLow = 0x0F0F0F0F;
  uint32_t other = __shfl_xor_sync(kAllLanes, own, 16);
  own = __byte_perm(own, other, (lane & 16) == 0 ? 0x5410 : 0x3276);
  other = __shfl_xor_sync(kAllLanes, own, 8);
  own = __byte_perm(own, other, (lane & 8) == 0 ? 0x6240 : 0x3715);
  other = __shfl_xor_sync(kAllLanes, own, 4);
  return (lane & 4) == 0 ? (own & kLow) | (other & kLow) << 4 : (other >> 4 & kLow) | (own & ~kLow);
}

// The codes of a lane's slots in column g, then in g + 8, eight to a word. Turned, a lane of eight
// slots has all of its token; of fewer, the eight columns of token g % kSlots from g / kSlots * 8.
template <uint32_t kSlots>
struct TokenCodes {
  static constexpr uint32_t kWords = kSlots == 8 ? 2 : 1;
  uint32_t word[kWords];

  __device__ explicit TokenCodes(const float (&x)[2][kSlots]) {
    if constexpr (kSlots == 8) {
      word[0] = eight_e2m1(x[0]);
      word[1] = eight_e2m1(x[1]);
    } else if constexpr (kSlots == 4) {
      word[0] = four_e2m1(x[0]) | four_e2m1(x[1]) << 16;
    } else {
      word[0] = four_e2m1({x[0][0], x[0][1], x[1][0], x[1][1]});
    }
  }
};

// Divides each slot by its token's step. `s` is that of the lane's own token.
template <bool kAllByQuotients, uint32_t kColumns, uint32_t kSlots>
__device__ void divide_slots(const ScaleOfD& s, uint32_t lane, float (&x)[kColumns][kSlots]) {
#pragma unroll
  for (uint32_t i = 0; i < kSlots; ++i) {
    const uint32_t from = i * 4 + lane % 4;
    ScaleOfD of_slot{};
    of_slot.step = __shfl_sync(kAllLanes, s.step, from);
    of_slot.reciprocal = __shfl_sync(kAllLanes, s.reciprocal, from);
    of_slot.by_quotients = kAllByQuotients || __shfl_sync(kAllLanes, s.by_quotients, from) != 0;
#pragma unroll
    for (uint32_t column = 0; column < kColumns; ++column) {
      x[column][i] = divided(x[column][i], of_slot);
    }
  }
}

// The scale of the lane's token, whose block has that largest magnitude; slots are divided by
// theirs.
template <uint32_t kColumns, uint32_t kSlots>
__device__ ScaleOfD scale_slots(const EpilogueParams& e, float largest, const TensorScale& t,
                                uint32_t lane, float (&x)[kColumns][kSlots]) {
  ScaleOfD s = scale_of_d_by_quotients(e, largest, t);
  if (__all_sync(kAllLanes, s.by_quotients)) {
    divide_slots<true>(s, lane, x);
  } else {
    s = scale_of_d(e, largest, t);
    divide_slots<false>(s, lane, x);
  }
  return s;
}

// A warp's place in a tile, and what all of its turns there have in common: the sums of kSlots * 4
// tokens each.
template <typename Tile, uint32_t kSlots>
struct ScaledWarp {
  const Sm90Params& p;
  const TileCoordinate& tile;
  uint32_t n;         // its first column
  uint32_t exchange;  // in shared memory, where warps share blocks: 128 bytes a warp, twice
  uint32_t warp, lane;
  ColumnTerms<Tile, 2, 8> terms;
  TensorScale t;

  // Sums to what is quantized.
  __device__ void finish(uint32_t m_first, float (&x)[2][kSlots]) const {
    const bool of_rows = has_row_terms<Tile>(p);
    const float b_scale = of_rows ? terms.b_scale(p, n + lane / 4) : 1;
#pragma unroll
    for (uint32_t i = 0; i < kSlots; ++i) {
      const uint32_t m = m_first + i / 2 * 8 + lane % 4 * 2 + i % 2;
      const float scale = of_rows ? terms.of_row(p, tile.batch, m, b_scale) : terms.scale;
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        x[half][i] = Epilogue90<Tile>::scaled(p, x[half][i], scale);
        x[half][i] = __fadd_rn(x[half][i], terms.bias[half]);
      }
    }
  }

  // Blocks of 32 columns are those of two warps, which give each other the largest.
  __device__ float of_both_warps(float largest, uint32_t iteration) const {
    const uint32_t at = exchange + iteration % 2 * Tile::kConsumerWarps * 128 + lane * 4;
    ptx::st_shared_f32(at + warp * 128, largest);
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
    return max_nan(largest, __uint_as_float(ptx::ld_shared_b32(at + (warp ^ 1) * 128)));
  }

  // Sums of rows m_first and on.
  __device__ void store(uint32_t m_first, uint32_t iteration, float (&x)[2][kSlots]) const {
    const EpilogueParams& e = p.epilogue;
    const bool is_wide = e.d_type == kTypeMxfp4;
    const uint32_t g = lane / 4, slot = g % kSlots;
    const uint32_t m = m_first + slot / 2 * 8 + lane % 4 * 2 + slot % 2;
    const bool stores = n < p.n && m < row_end<Tile>(p, tile);
    finish(m_first, x);
    float largest[kSlots];
#pragma unroll
    for (uint32_t i = 0; i < kSlots; ++i) largest[i] = max_nan(fabsf(x[0][i]), fabsf(x[1][i]));
    float of_token = largest_of_slots(largest, lane);
    if (is_wide) of_token = of_both_warps(of_token, iteration);
    if (!stores) of_token = 1;  // whatever is there, nobody divides for it
    const ScaleOfD s = scale_slots(e, of_token, t, lane, x);
    TokenCodes<kSlots> codes(x);
#pragma unroll
    for (uint32_t& word : codes.word) {
      word = transpose_codes(word, lane);
      if (s.zeros) word = 0;
    }
    if (!stores) return;
    uint8_t* const to =
        static_cast<uint8_t*>(p.d) + (tile.batch * p.d_batch_stride + m * p.d_ld + n) / 2;
    if constexpr (kSlots == 8) {
      *reinterpret_cast<uint2*>(to) = make_uint2(codes.word[0], codes.word[1]);
    } else if (g < 2 * kSlots) {
      *reinterpret_cast<uint32_t*>(to + g / kSlots * 4) = codes.word[0];
    }
    if (g >= kSlots || (is_wide && warp % 2 != 0)) return;
    store_scale_of_d(e, tile.batch, m, n, s);
  }
};

// A group's whole sums, of its share of the tile's tokens.
template <typename Tile, uint32_t kSums>
__device__ void store_scaled_sums(const Sm90Params& p, const TileCoordinate& tile,
                                  uint32_t exchange, uint32_t warp, uint32_t lane,
                                  const float (&sums)[kSums]) {
  constexpr uint32_t kBlocks = kSums < 16 ? kSums / 4 : 4;  // of eight tokens, a turn
  constexpr uint32_t kSlots = kBlocks * 2, kIterations = kSums / 4 / kBlocks;
  static_assert(kIterations * kBlocks * 4 == kSums && (kSlots & (kSlots - 1)) == 0);
  const uint32_t m_first =
      tile.token_tile * Tile::kTokenStep + warp / Tile::kConsumersPerStage * kSums * 2;
  const uint32_t n = tile.weight_tile * Tile::kWeights + warp % Tile::kConsumersPerStage * 16;
  const ColumnTerms<Tile, 2, 8> terms(p, p.alpha, n + lane / 4);  // waits for earlier grids
  const ScaledWarp<Tile, kSlots> out{p,    tile, n,     exchange,
                                     warp, lane, terms, tensor_scale_of_d(p.epilogue)};
#pragma unroll 1
  for (uint32_t iteration = 0; iteration < kIterations; ++iteration) {
    const uint32_t m = m_first + iteration * kBlocks * 8;
    // Groups have rows of their own, and warps meet for blocks of 32 columns.
    if (Tile::kGroups == 1 && m >= row_end<Tile>(p, tile)) break;
    float x[2][kSlots];
    // Registers have no index: the sums are chosen by branches, and what follows is there once. The
    // empty statement keeps those from becoming 112 selections of 128 sums.
#pragma unroll
    for (uint32_t i = 0; i < kIterations; ++i) {
      if (i != iteration) continue;
      asm volatile("");
#pragma unroll
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        const uint32_t at = (i * kBlocks + slot / 2) * 4 + slot % 2;
        x[0][slot] = sums[at];
        x[1][slot] = sums[at + 2];
      }
    }
    out.store(m, iteration, x);
    __syncwarp();  // some lanes have stored
  }
  // The next tile's turns begin with the first place again.
  if (Tile::kSeveralTiles && p.epilogue.d_type == kTypeMxfp4) {
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  }
}

// Four columns of a row, from shared memory to what is quantized.
template <typename Tile>
__device__ void load_scaled_four(const Sm90Params& p, const SumRows& rows,
                                 const FourTerms<Tile>& terms, uint32_t at, uint32_t m,
                                 float (&x)[4]) {
  const float4 sum = ptx::ld_shared_v4_f32(at);
  float scale = terms.scale;
  if (has_row_terms<Tile>(p)) scale = terms.of_row(p, rows.batch, m, terms.b_scale(p, rows.n));
  const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    x[i] = __fadd_rn(Epilogue90<Tile>::scaled(p, sums[i], scale), terms.bias[i]);
  }
}

// Sums that were added in shared memory, four columns a lane. Some rows at once, or each would wait
// for what the one before does; those that need divisions one after the other.
template <typename Tile>
__device__ void store_scaled_rows(const Sm90Params& p, SumRows rows) {
  constexpr uint32_t kAtOnce = 4;
  const EpilogueParams& e = p.epilogue;
  if (rows.m < rows.m_end && rows.n < p.n) {
    const FourTerms<Tile> terms(p, p.alpha, rows.n);
    const TensorScale t = tensor_scale_of_d(e);
    const int64_t first = rows.batch * p.d_batch_stride + rows.n;
    for (; rows.m < rows.m_end; rows.m += kAtOnce * rows.m_step, rows.at += kAtOnce * rows.step) {
      const uint32_t left = (rows.m_end - rows.m + rows.m_step - 1) / rows.m_step;
      float x[kAtOnce][4];
      ScaleOfD s[kAtOnce];
      bool by_quotients = true;
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t row = i < left ? i : 0;
        load_scaled_four(p, rows, terms, rows.at + row * rows.step, rows.m + row * rows.m_step,
                         x[i]);
      }
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const float largest = largest_of_block(x[i], e.d_type == kTypeMxfp4);
        s[i] = scale_of_d_by_quotients(e, largest, t);
        by_quotients = by_quotients && s[i].by_quotients;
      }
      if (by_quotients) {
#pragma unroll
        for (uint32_t i = 0; i < kAtOnce; ++i) {
          const uint32_t m = rows.m + i * rows.m_step;
#pragma unroll
          for (float& one : x[i]) one = quotient(one, s[i].step, s[i].reciprocal);
          const uint32_t codes = s[i].zeros ? 0 : four_e2m1(x[i]);
          if (i >= left) break;
          put_scaled_four(e, p.d, first + m * p.d_ld, rows.batch, m, rows.n, true, codes, s[i]);
        }
        continue;
      }
#pragma unroll 1
      for (uint32_t i = 0; i < min(left, kAtOnce); ++i) {
        const uint32_t m = rows.m + i * rows.m_step;
        load_scaled_four(p, rows, terms, rows.at + i * rows.step, m, x[0]);
        store_scaled_four(e, p.d, first + m * p.d_ld, rows.batch, m, rows.n, true, x[0]);
      }
    }
  }
  __syncwarp();  // some lanes have stored
}

}  // namespace nvfp4
