// SPDX-License-Identifier: MIT
// Stores D in E2M1 with generated scales, in the entries that have no other D. Each step is the
// same as in kernel/common/scaled_d.cuh, so the bits are, too.
//
// A block has 16 columns of a token. Four neighbouring lanes have four columns each, of the same
// kSlots tokens. They reduce the magnitudes together, so that each lane has the maximum of one
// token and computes its scale alone; codes are exchanged the same way. Complete sums come from
// registers, where a lane has other columns, so they are turned in shared memory first, and their
// codes pass through shared memory to whole rows of the tile. Sums that were added in shared memory
// are read from there.
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

// The codes of a lane's four columns in each slot, exchanged among four lanes: a lane gets those of
// the slot lane % kSlots, of four columns for each slot that there is.
template <uint32_t kSlots>
struct TokenCodes {
  static constexpr uint32_t kWords = kSlots == 4 ? 2 : 1;
  static constexpr uint32_t kBytes = 2 * kSlots;
  uint32_t word[kWords];

  __device__ TokenCodes(const float (&x)[4][kSlots], uint32_t lane) {
    if constexpr (kSlots == 1) {
      word[0] = four_e2m1({x[0][0], x[1][0], x[2][0], x[3][0]});
    } else {
      uint32_t low = codes_of(x, 0), high = 0;
      if constexpr (kSlots == 4) exchange_pairs(codes_of(x, 2), lane, low, high);
      exchange_slots(lane, low, high);
    }
  }

  // Of two slots, a half each.
  static __device__ uint32_t codes_of(const float (&x)[4][kSlots], uint32_t slot) {
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
    if constexpr (kSlots == 2) {
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

  // The largest magnitude of the lane's slot, in 16 columns.
  template <uint32_t kSlots>
  __device__ float largest(const float (&x)[4][kSlots]) const {
    float of_slot[kSlots];
#pragma unroll
    for (uint32_t i = 0; i < kSlots; ++i) {
      of_slot[i] =
          max_nan(max_nan(fabsf(x[0][i]), fabsf(x[1][i])), max_nan(fabsf(x[2][i]), fabsf(x[3][i])));
    }
    return largest_of_slots<FourLanes>(of_slot, lane);
  }

  // The first lane that has a slot stores its scale, which may be that of two blocks of 16.
  template <uint32_t kSlots>
  __device__ void store_scale(uint32_t m, const ScaleOfD& s) const {
    const uint32_t first = n / 16 * 16;
    if (lane % 4 >= kSlots || (has_wide_blocks() && first % 32 != 0)) return;
    store_scale_of_d(p.epilogue, batch, m, first, s);
  }
};

// ---- From registers ----------------------------------------------------------------------------

// Shared memory of the tile's sums from registers: for each warp eight tokens of 16 columns in
// fp32, then for each group the codes of kBlocks * 8 tokens. Rows of codes are 64 or 32 bytes.
template <typename Tile, uint32_t kBlocks>
struct ScaledPlaces {
  static constexpr uint32_t kTurnBytes = 512;
  static constexpr uint32_t kRowBytes = Tile::kColumnsOfD / 2;
  static constexpr uint32_t kCodeBytes = kBlocks * 8 * kRowBytes;
  static constexpr uint32_t kCodesAt = Tile::kConsumerWarps * kTurnBytes;
  static constexpr uint32_t kBytes = kCodesAt + Tile::kGroups * kCodeBytes;
  static_assert(Tile::kWholeSums ? Tile::kRowsAt + kBytes <= Tile::kSharedBytes
                                 : Tile::kRowsAt + kBytes <= Tile::kWeightsFullAt);
  // A byte of a token's codes. Lanes that store the same columns of 32 tokens hit all banks, and so
  // do lanes that load whole rows.
  static __device__ uint32_t code(uint32_t token, uint32_t byte) {
    const uint32_t line = token ^ (token / 16 & 1);
    return line * kRowBytes + (byte / 8 ^ token / 2 % (kRowBytes / 8)) * 8 + byte % 8;
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
// turned their sums. All warps of the CTA meet here, and have loaded the codes of their last turn.
template <typename Tile>
__device__ float largest_of_both_warps(float largest, bool is_wide, uint32_t at, uint32_t warp,
                                       uint32_t lane) {
  if (is_wide) ptx::st_shared_f32(at + warp * 512 + lane * 4, largest);
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  if (!is_wide) return largest;
  return max_nan(largest, __uint_as_float(ptx::ld_shared_b32(at + (warp ^ 1) * 512 + lane * 4)));
}

// How a thread stores a group's codes of a turn: as many bytes of a row as it has put there.
template <typename Tile, uint32_t kBlocks>
struct StoredCodes {
  using Places = ScaledPlaces<Tile, kBlocks>;
  static constexpr uint32_t kBytes = TokenCodes<kBlocks>::kBytes;
  static constexpr uint32_t kThreads = Places::kRowBytes / kBytes;  // for a row
  static_assert(Tile::kConsumersPerStage * 32 * kBytes == Places::kCodeBytes);
  uint32_t token, from;
  bool has_column;
  uint8_t* to;  // in the row of the next turn

  __device__ StoredCodes(const Sm90Params& p, const TileCoordinate& tile, uint32_t codes,
                         uint32_t m_first, uint32_t thread)
      : token(thread / kThreads) {
    const uint32_t byte = thread % kThreads * kBytes;
    const uint32_t n = tile.weight_tile * Tile::kWeights + byte * 2;
    from = codes + Places::code(token, byte);
    has_column = n < p.n;
    to = static_cast<uint8_t*>(p.d) +
         (tile.batch * p.d_batch_stride + (m_first + token) * p.d_ld + n) / 2;
  }
  // Those of the turn whose first row is m; `end` is that of the rows.
  __device__ void store(const Sm90Params& p, uint32_t m, uint32_t end) {
    if (has_column && m + token < end) {
      if constexpr (kBlocks == 4) {
        *reinterpret_cast<uint2*>(to) = ptx::ld_shared_v2_b32(from);
      } else if constexpr (kBlocks == 2) {
        *reinterpret_cast<uint32_t*>(to) = ptx::ld_shared_b32(from);
      } else {
        *reinterpret_cast<uint16_t*>(to) = ptx::ld_shared_u16(from);
      }
    }
    to += kBlocks * 4 * p.d_ld;
    __syncwarp();  // some lanes have stored
  }
};

template <uint32_t kSlots>
__device__ void put_codes(uint32_t at, const TokenCodes<kSlots>& codes) {
  if constexpr (kSlots == 4) {
    ptx::st_shared_v2_b32(at, make_uint2(codes.word[0], codes.word[1]));
  } else if constexpr (kSlots == 2) {
    ptx::st_shared_b32(at, codes.word[0]);
  } else {
    ptx::st_shared_b16(at, static_cast<uint16_t>(codes.word[0]));
  }
}

// A group's whole sums, of its share of the tile's tokens.
template <typename Tile, uint32_t kSums>
__device__ void store_scaled_sums(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                                  uint32_t warp, uint32_t lane, const float (&sums)[kSums]) {
  constexpr uint32_t kBlocks = kSums < 16 ? kSums / 4 : 4;  // of eight tokens, a turn
  constexpr uint32_t kIterations = kSums / 4 / kBlocks;
  static_assert(kIterations * kBlocks * 4 == kSums && (kBlocks & (kBlocks - 1)) == 0);
  using Places = ScaledPlaces<Tile, kBlocks>;
  const uint32_t group = warp / Tile::kConsumersPerStage, own = warp % Tile::kConsumersPerStage;
  const uint32_t codes = at + Places::kCodesAt + group * Places::kCodeBytes;
  const ScaledColumns<Tile> columns(
      p, tile.batch, tile.weight_tile * Tile::kWeights + own * 16 + lane % 4 * 4, lane);
  const TurnedTokens turned(at + warp * Places::kTurnBytes, lane);
  // The token that is the lane's after codes are exchanged, of those of a turn, and its codes.
  const uint32_t token = lane % kBlocks * 8 + turned.token(lane);
  const uint32_t code = codes + Places::code(token, own * 8 + lane % 4 / kBlocks * 2 * kBlocks);
  const uint32_t end = row_end<Tile>(p, tile);
  uint32_t m = tile.token_tile * Tile::kTokenStep + group * kSums * 2;
  StoredCodes<Tile, kBlocks> stored(p, tile, codes, m, own * 32 + lane);
#pragma unroll 1
  for (uint32_t iteration = 0; iteration < kIterations; ++iteration, m += kBlocks * 8) {
    // Groups have rows of their own, and all warps meet in each turn.
    if (Tile::kGroups == 1 && m >= end) break;
    float x[4][kBlocks];
    turned.turn<0, kIterations>(iteration, sums, x);
    columns.finish(m + turned.token(lane), 8, x);
    float largest =
        largest_of_both_warps<Tile>(columns.largest(x), columns.has_wide_blocks(), at, warp, lane);
    const bool stores = columns.n < p.n && m + token < end;
    if (!stores) largest = 1;  // whatever is there, nobody divides for it
    const ScaleOfD s = scale_slots<FourLanes>(p.epilogue, largest, columns.t, lane, x);
    TokenCodes<kBlocks> of_token(x, lane);
#pragma unroll
    for (uint32_t& word : of_token.word) {
      if (s.zeros) word = 0;
    }
    put_codes(code, of_token);
    if (stores) columns.template store_scale<kBlocks>(m + token, s);
    __syncwarp();  // some lanes have stored
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
    stored.store(p, m, end);
  }
}

// ---- From shared memory ------------------------------------------------------------------------

// Sums that were added in shared memory, four rows at once. Lanes that have no row left, or no
// column, take part with zeros.
template <typename Tile>
__device__ void store_scaled_rows(const Sm90Params& p, SumRows rows) {
  constexpr uint32_t kSlots = 4;
  const uint32_t lane = threadIdx.x % 32;
  const bool has_rows = rows.m < rows.m_end && rows.n < p.n;
  uint32_t left = has_rows ? (rows.m_end - rows.m + rows.m_step - 1) / rows.m_step : 0;
  if (!__any_sync(kAllLanes, left > 0)) return;
  const ScaledColumns<Tile> columns(p, rows.batch, rows.n, lane);
  const uint32_t slot = lane % kSlots;
  while (__any_sync(kAllLanes, left > 0)) {
    float x[4][kSlots];
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
    float largest = columns.largest(x);
    if (columns.has_wide_blocks()) {
      largest = max_nan(largest, __shfl_xor_sync(kAllLanes, largest, 4));
    }
    const bool stores = slot < left;
    if (!stores) largest = 1;
    const ScaleOfD s = scale_slots<FourLanes>(p.epilogue, largest, columns.t, lane, x);
    const TokenCodes<kSlots> codes(x, lane);
    if (stores) {
      const uint32_t m = rows.m + slot * rows.m_step;
      const int64_t element = rows.batch * p.d_batch_stride + m * p.d_ld + rows.n / 16 * 16;
      *reinterpret_cast<uint2*>(static_cast<uint8_t*>(p.d) + element / 2) =
          s.zeros ? make_uint2(0, 0) : make_uint2(codes.word[0], codes.word[1]);
      columns.template store_scale<kSlots>(m, s);
    }
    __syncwarp();
    left -= min(left, kSlots);
    rows.m += kSlots * rows.m_step;
    rows.at += kSlots * rows.step;
  }
}

}  // namespace nvfp4
