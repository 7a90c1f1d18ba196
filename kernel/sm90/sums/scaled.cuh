// SPDX-License-Identifier: MIT
// Stores D in E2M1 with generated scales, in the entries that have no other D. Each step is the
// same as in kernel/common/scaled_d.cuh, so the bits are, too.
//
// A block has 16 columns of a token. Four neighbouring lanes have four columns each, of the same
// kSlots tokens. They reduce the magnitudes together, so that each lane has the maximum of one or
// two tokens and computes their scales alone; codes are exchanged the same way. Complete sums come
// from registers, where a lane has other columns, so they are turned in shared memory first, and
// their codes pass through shared memory to whole rows of the tile. Sums that were added in shared
// memory are read from there.
//
// What a warp does is a chain from sums to the largest, the scale, quotients and codes, and an SM
// has two such warps for each scheduler. So a lane takes two tokens at a time where it can.
#pragma once

#include <cstdint>

#include "kernel/common/scaled_d.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/scale_slots.cuh"

namespace nvfp4 {

// ---- Four columns a lane -----------------------------------------------------------------------

// The slots of four lanes: kEach for each token that a lane gets, at most four.
template <uint32_t kSlots>
struct SlotsOfFour {
  static constexpr uint32_t kEach = kSlots < 4 ? kSlots : 4, kOwn = kSlots / kEach;
  static_assert(kOwn * kEach == kSlots && kOwn <= 2);
};

// The codes of a lane's four columns in kEach slots, exchanged among four lanes: a lane gets those
// of the slot lane % kEach, of four columns for each slot that there is.
template <uint32_t kEach>
struct TokenCodes {
  static constexpr uint32_t kBytes = 2 * kEach;
  uint32_t word[kEach == 4 ? 2 : 1];

  // Those of slots kFirst and on.
  template <uint32_t kFirst, uint32_t kSlots>
  __device__ static TokenCodes of(const float (&x)[4][kSlots], uint32_t lane, bool zeros) {
    TokenCodes codes;
    if constexpr (kEach == 1) {
      codes.word[0] = four_e2m1({x[0][kFirst], x[1][kFirst], x[2][kFirst], x[3][kFirst]});
    } else {
      uint32_t low = of_two_slots(x, kFirst), high = 0;
      if constexpr (kEach == 4) exchange_pairs(of_two_slots(x, kFirst + 2), lane, low, high);
      codes.exchange_slots(lane, low, high);
    }
#pragma unroll
    for (uint32_t& one : codes.word) {
      if (zeros) one = 0;
    }
    return codes;
  }

  // To an address of shared memory.
  __device__ void put(uint32_t at) const {
    if constexpr (kEach == 4) {
      ptx::st_shared_v2_b32(at, make_uint2(word[0], word[1]));
    } else if constexpr (kEach == 2) {
      ptx::st_shared_b32(at, word[0]);
    } else {
      ptx::st_shared_b16(at, static_cast<uint16_t>(word[0]));
    }
  }

 private:
  // Half a word each.
  template <uint32_t kSlots>
  static __device__ uint32_t of_two_slots(const float (&x)[4][kSlots], uint32_t slot) {
    return eight_e2m1({x[0][slot], x[1][slot], x[2][slot], x[3][slot], x[0][slot + 1],
                       x[1][slot + 1], x[2][slot + 1], x[3][slot + 1]});
  }
  // Lanes two apart: slots 0 and 1 for the lower, 2 and 3 for the upper. `low` then has the columns
  // of the lower lane, `high` those of the upper.
  static __device__ void exchange_pairs(uint32_t upper_slots, uint32_t lane, uint32_t& low,
                                        uint32_t& high) {
    const bool upper = (lane & 2) != 0;
    const uint32_t other = __shfl_xor_sync(kAllLanes, upper ? low : upper_slots, 2);
    high = upper ? upper_slots : other;
    low = upper ? other : low;
  }
  // Neighbouring lanes: the lower halves for the even lane, the upper for the odd.
  __device__ void exchange_slots(uint32_t lane, uint32_t low, uint32_t high) {
    const bool odd = (lane & 1) != 0;
    if constexpr (kEach == 2) {
      const uint32_t other = __shfl_xor_sync(kAllLanes, low, 1);
      word[0] = __byte_perm(low, other, odd ? 0x3276 : 0x5410);
    } else {
      const uint32_t own = __byte_perm(low, high, odd ? 0x7632 : 0x5410);
      const uint32_t other =
          __shfl_xor_sync(kAllLanes, __byte_perm(low, high, odd ? 0x5410 : 0x7632), 1);
      word[0] = __byte_perm(own, other, odd ? 0x1054 : 0x5410);
      word[1] = __byte_perm(own, other, odd ? 0x3276 : 0x7632);
    }
  }
};

// What a lane's four columns have in common, from n on.
template <typename Tile>
struct ScaledColumns {
  const Sm90Params& p;
  uint32_t batch, n, lane;
  FourTerms<Tile> terms;
  TensorScale t;

  // Waits for earlier grids, before it reads the tensor scale of D.
  __device__ ScaledColumns(const Sm90Params& params, uint32_t of_batch, uint32_t first,
                           uint32_t own_lane)
      : p(params),
        batch(of_batch),
        n(first),
        lane(own_lane),
        terms(params, params.alpha, first),
        t(tensor_scale_of_d(params.epilogue)) {}

  __device__ bool has_wide_blocks() const { return p.epilogue.d_type == kTypeMxfp4; }

  // Sums of rows m, m + step and so on to what is quantized.
  template <uint32_t kSlots>
  __device__ void finish(uint32_t m, uint32_t step, float (&x)[4][kSlots]) const {
    float scale[kSlots];
#pragma unroll
    for (float& one : scale) one = terms.scale;
    if (has_row_terms<Tile>(p)) {
      const float b_scale = terms.b_scale(p, n);
#pragma unroll
      for (uint32_t i = 0; i < kSlots; ++i) {
        scale[i] = terms.of_row(p, batch, m + i * step, b_scale);
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < 4 * kSlots; ++i) {
      float& one = x[i / kSlots][i % kSlots];
      one = Epilogue90<Tile>::scaled(p, one, scale[i % kSlots]);
    }
    if (p.epilogue.bias_type == kTypeNone) return;
#pragma unroll
    for (uint32_t i = 0; i < 4 * kSlots; ++i) {
      float& one = x[i / kSlots][i % kSlots];
      one = __fadd_rn(one, terms.bias[i / kSlots]);
    }
  }

  // The largest magnitudes of the lane's tokens, in 16 columns.
  template <uint32_t kSlots, uint32_t kOwn>
  __device__ void find_largest(const float (&x)[4][kSlots], float (&largest)[kOwn]) const {
    constexpr uint32_t kEach = kSlots / kOwn;
#pragma unroll
    for (uint32_t own = 0; own < kOwn; ++own) {
      float of_slot[kEach];
#pragma unroll
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t slot = own * kEach + i;
        of_slot[i] = max_nan(max_nan(fabsf(x[0][slot]), fabsf(x[1][slot])),
                             max_nan(fabsf(x[2][slot]), fabsf(x[3][slot])));
      }
      largest[own] = largest_of_slots<FourLanes>(of_slot, lane);
    }
  }

  // The first lane that has a token of kEach stores its scale, which may be that of two blocks of
  // 16.
  template <uint32_t kEach>
  __device__ void store_scale(uint32_t m, const ScaleOfD& s) const {
    const uint32_t first = n / 16 * 16;
    if (lane % 4 >= kEach || (has_wide_blocks() && first % 32 != 0)) return;
    store_scale_of_d(p.epilogue, batch, m, first, s);
  }
};

// ---- From registers ----------------------------------------------------------------------------

// How a group stores whole sums, kSums a lane: in kTurns turns of kSlots * 8 tokens. Shared memory
// has eight tokens of 16 columns for each warp, in fp32, then the codes of a turn for each group.
// Beside the rings these take the place of those.
template <typename Tile, uint32_t kSums>
struct ScaledTurns {
  static constexpr uint32_t kBlocks = kSums / 4;  // of eight tokens
  static constexpr uint32_t kSlots = kBlocks < 8 ? kBlocks : 8, kTurns = kBlocks / kSlots;
  static constexpr uint32_t kEach = SlotsOfFour<kSlots>::kEach, kOwn = SlotsOfFour<kSlots>::kOwn;
  static constexpr uint32_t kTokens = kSlots * 8, kTokensApart = kEach * 8;  // of a turn; of a lane
  static constexpr uint32_t kWarpBytes = 512, kRowBytes = Tile::kColumnsOfD / 2;
  static constexpr uint32_t kCodeBytes = kTokens * kRowBytes;
  static constexpr bool kCodesTakePlace = Tile::kWholeSums;
  static constexpr uint32_t kCodesAt = kCodesTakePlace ? 0 : Tile::kConsumerWarps * kWarpBytes;
  static constexpr uint32_t kBytes =
      kCodesTakePlace ? Tile::kConsumerWarps * kWarpBytes : kCodesAt + Tile::kGroups * kCodeBytes;
  static_assert(kTurns * kSlots * 4 == kSums && (kSlots & (kSlots - 1)) == 0);
  static_assert(kCodesTakePlace ? kCodeBytes <= kBytes && kBytes <= Tile::kRowsBytes
                                : kTurns == 1 && Tile::kRowsAt + kBytes <= Tile::kWeightsFullAt);

  // A byte of a token's codes. Lanes that store the same columns of 32 tokens hit all banks, and so
  // do lanes that load whole rows.
  static __device__ uint32_t code(uint32_t token, uint32_t byte) {
    const uint32_t line = token ^ (token / 16 & 1);
    return line * kRowBytes + (byte / 8 ^ token / 2 % (kRowBytes / 8)) * 8 + byte % 8;
  }
  // All consumers of the CTA.
  static __device__ void meet() {
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  }
};

// A warp's sums of eight tokens, turned. Before, lane 4g+c has columns g and g+8 of tokens 2c and
// 2c+1; after, lane 4r+c has columns 4c to 4c+3 of token 2(r%4) + r/4, in row r of the shared
// memory. 16-byte columns are XOR r & 2, so that all lanes hit 32 banks both times.
struct TurnedTokens {
  uint32_t put[2], get;
  __device__ TurnedTokens(uint32_t at, uint32_t lane)
      : put{at + place(lane % 4, lane / 16) + lane / 4 % 4 * 4,
            at + place(lane % 4, lane / 16 + 2) + lane / 4 % 4 * 4},
        get(at + place(lane / 4, lane % 4)) {}

  static __device__ uint32_t place(uint32_t row, uint32_t four) {
    return row * 64 + (four ^ (row & 2)) * 16;
  }

  static __device__ uint32_t token(uint32_t lane) { return lane / 4 % 4 * 2 + lane / 16; }

  // Turn `which`, of those from kFirst to kEnd. Registers have no index: branches choose the sums.
  template <uint32_t kFirst, uint32_t kEnd, uint32_t kSlots, uint32_t kSums>
  __device__ void turn(uint32_t which, const float (&sums)[kSums], float (&x)[4][kSlots]) const {
    constexpr uint32_t kMiddle = (kFirst + kEnd) / 2;
    if constexpr (kEnd - kFirst == 1) {
      turn_from<kFirst * kSlots * 4>(sums, x);
    } else if (which < kMiddle) {
      turn<kFirst, kMiddle>(which, sums, x);
    } else {
      turn<kMiddle, kEnd>(which, sums, x);
    }
  }
  template <uint32_t kFirst, uint32_t kSlots, uint32_t kSums>
  __device__ void turn_from(const float (&sums)[kSums], float (&x)[4][kSlots]) const {
#pragma unroll
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        ptx::st_shared_f32(put[i / 2] + i % 2 * 256, sums[kFirst + slot * 4 + i]);
      }
      __syncwarp();
      const float4 four = ptx::ld_shared_v4_f32(get);
      __syncwarp();
      x[0][slot] = four.x;
      x[1][slot] = four.y;
      x[2][slot] = four.z;
      x[3][slot] = four.w;
    }
  }
};

// Blocks of 32 columns are those of two warps, which give each other the largest where they have
// turned their sums.
template <typename Turns>
__device__ void take_larger_of_warps(uint32_t at, uint32_t warp, uint32_t lane,
                                     float (&largest)[Turns::kOwn]) {
#pragma unroll
  for (uint32_t i = 0; i < Turns::kOwn; ++i) {
    ptx::st_shared_f32(at + warp * Turns::kWarpBytes + i * 128 + lane * 4, largest[i]);
  }
  Turns::meet();
#pragma unroll
  for (uint32_t i = 0; i < Turns::kOwn; ++i) {
    const uint32_t from = at + (warp ^ 1) * Turns::kWarpBytes + i * 128 + lane * 4;
    largest[i] = max_nan(largest[i], __uint_as_float(ptx::ld_shared_b32(from)));
  }
}

// Stores a group's codes of the turn whose first row is m. A thread stores as many bytes of a row
// as it has put there. Nothing of this is kept from turn to turn, for want of registers.
template <typename Tile, typename Turns>
__device__ void store_codes(const Sm90Params& p, const TileCoordinate& tile, uint32_t codes,
                            uint32_t m, uint32_t thread) {
  constexpr uint32_t kBytes = TokenCodes<Turns::kEach>::kBytes;
  constexpr uint32_t kThreads = Turns::kRowBytes / kBytes;  // for a row
  static_assert(Tile::kConsumersPerStage * 32 * kBytes * Turns::kOwn == Turns::kCodeBytes);
  const uint32_t token = thread / kThreads, byte = thread % kThreads * kBytes;
  const uint32_t n = tile.weight_tile * Tile::kWeights + byte * 2;
  const uint32_t from = codes + Turns::code(token, byte);
  uint8_t* to =
      static_cast<uint8_t*>(p.d) + (tile.batch * p.d_batch_stride + (m + token) * p.d_ld + n) / 2;
#pragma unroll
  for (uint32_t i = 0; i < Turns::kOwn; ++i) {
    const uint32_t further = i * Turns::kTokensApart, at = from + further * Turns::kRowBytes;
    if (n < p.n && m + further + token < row_end<Tile>(p, tile)) {
      if constexpr (kBytes == 8) {
        *reinterpret_cast<uint2*>(to) = ptx::ld_shared_v2_b32(at);
      } else if constexpr (kBytes == 4) {
        *reinterpret_cast<uint32_t*>(to) = ptx::ld_shared_b32(at);
      } else {
        *reinterpret_cast<uint16_t*>(to) = ptx::ld_shared_u16(at);
      }
    }
    to += Turns::kTokensApart * p.d_ld / 2;
  }
  __syncwarp();  // some lanes have stored
}

// A group's whole sums, of its share of the tile's tokens.
template <typename Tile, uint32_t kSums>
__device__ void store_scaled_sums(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                                  uint32_t warp, uint32_t lane, const float (&sums)[kSums]) {
  using Turns = ScaledTurns<Tile, kSums>;
  using Codes = TokenCodes<Turns::kEach>;
  constexpr uint32_t kApart = Turns::kTokensApart;
  const uint32_t group = warp / Tile::kConsumersPerStage, own = warp % Tile::kConsumersPerStage;
  const uint32_t codes = at + Turns::kCodesAt + group * Turns::kCodeBytes;
  const ScaledColumns<Tile> columns(
      p, tile.batch, tile.weight_tile * Tile::kWeights + own * 16 + lane % 4 * 4, lane);
  const TurnedTokens turned(at + warp * Turns::kWarpBytes, lane);
  // The lane's first token of a turn after codes are exchanged, and the place of its codes.
  const uint32_t token = lane % Turns::kEach * 8 + turned.token(lane);
  const uint32_t code =
      codes + Turns::code(token, own * 8 + lane % 4 / Turns::kEach * Codes::kBytes);
  uint32_t m = tile.token_tile * Tile::kTokenStep + group * kSums * 2;
#pragma unroll 1
  for (uint32_t turn = 0; turn < Turns::kTurns; ++turn, m += Turns::kTokens) {
    // Groups have rows of their own, and all warps meet in each turn.
    if (Tile::kGroups == 1 && m >= row_end<Tile>(p, tile)) break;
    float x[4][Turns::kSlots], largest[Turns::kOwn];
    turned.turn<0, Turns::kTurns>(turn, sums, x);
    columns.finish(m + turned.token(lane), 8, x);
    columns.find_largest(x, largest);
    if (columns.has_wide_blocks()) take_larger_of_warps<Turns>(at, warp, lane, largest);
    bool stores[Turns::kOwn];
#pragma unroll
    for (uint32_t i = 0; i < Turns::kOwn; ++i) {
      stores[i] = columns.n < p.n && m + token + i * kApart < row_end<Tile>(p, tile);
      if (!stores[i]) largest[i] = 1;  // whatever is there, nobody divides for it
    }
    ScaleOfD s[Turns::kOwn];
    scale_slots<FourLanes>(p.epilogue, largest, columns.t, lane, x, s);
    Codes of_token[Turns::kOwn];
    of_token[0] = Codes::template of<0>(x, lane, s[0].zeros);
    if constexpr (Turns::kOwn == 2) {
      of_token[1] = Codes::template of<Turns::kEach>(x, lane, s[1].zeros);
    }
    if (Turns::kCodesTakePlace) Turns::meet();  // all have read what is there
#pragma unroll
    for (uint32_t i = 0; i < Turns::kOwn; ++i) {
      of_token[i].put(code + i * kApart * Turns::kRowBytes);
    }
    Turns::meet();  // they are there
#pragma unroll
    for (uint32_t i = 0; i < Turns::kOwn; ++i) {
      if (stores[i]) columns.template store_scale<Turns::kEach>(m + token + i * kApart, s[i]);
    }
    store_codes<Tile, Turns>(p, tile, codes, m, own * 32 + lane);
    if (Turns::kCodesTakePlace) Turns::meet();  // for the next turn, of this tile or the next
  }
}

// ---- From shared memory ------------------------------------------------------------------------

// Sums that were added in shared memory, four rows at once; eight would be slower and longer. Lanes
// that have no row left, or no column, take part with zeros.
template <typename Tile>
__device__ void store_scaled_rows(const Sm90Params& p, SumRows rows) {
  constexpr uint32_t kSlots = 4;
  const uint32_t lane = threadIdx.x % 32, slot = lane % kSlots;
  const bool has_rows = rows.m < rows.m_end && rows.n < p.n;
  uint32_t left = has_rows ? (rows.m_end - rows.m + rows.m_step - 1) / rows.m_step : 0;
  if (!__any_sync(kAllLanes, left > 0)) return;
  const ScaledColumns<Tile> columns(p, rows.batch, rows.n, lane);
  while (__any_sync(kAllLanes, left > 0)) {
    float x[4][kSlots], largest[1];
#pragma unroll
    for (uint32_t i = 0; i < kSlots; ++i) {
      float4 four = make_float4(0, 0, 0, 0);
      if (i < left) four = ptx::ld_shared_v4_f32(rows.at + i * rows.step);
      x[0][i] = four.x;
      x[1][i] = four.y;
      x[2][i] = four.z;
      x[3][i] = four.w;
    }
    columns.finish(rows.m, rows.m_step, x);
    columns.find_largest(x, largest);
    if (columns.has_wide_blocks()) {
      largest[0] = max_nan(largest[0], __shfl_xor_sync(kAllLanes, largest[0], 4));
    }
    if (slot >= left) largest[0] = 1;  // nobody divides for it
    ScaleOfD s[1];
    scale_slots<FourLanes>(p.epilogue, largest, columns.t, lane, x, s);
    const auto codes = TokenCodes<kSlots>::template of<0>(x, lane, s[0].zeros);
    if (slot < left) {
      const uint32_t m = rows.m + slot * rows.m_step;
      const int64_t element = rows.batch * p.d_batch_stride + m * p.d_ld + rows.n / 16 * 16;
      *reinterpret_cast<uint2*>(static_cast<uint8_t*>(p.d) + element / 2) =
          make_uint2(codes.word[0], codes.word[1]);
      columns.template store_scale<kSlots>(m, s[0]);
    }
    __syncwarp();  // some lanes have stored
    left -= min(left, kSlots);
    rows.m += kSlots * rows.m_step;
    rows.at += kSlots * rows.step;
  }
}

}  // namespace nvfp4
