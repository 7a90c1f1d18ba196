// SPDX-License-Identifier: MIT
// D by rows with C, an activation or maxima, in the entries that have no other D. Each step is the
// same as in store_general (kernel/common/epilogue.cuh), so the bits are, too. Complete sums come
// from registers; those that were added in shared memory come from there.
//
// A step that takes few instructions is done to all sums of a lane before the next step begins. An
// activation takes many, so its code exists once and is run for some sums after the other.
#pragma once

#include <cstdint>

#include "kernel/common/activation.cuh"
#include "kernel/common/amax.cuh"
#include "kernel/ptx/ldmatrix.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/scale_slots.cuh"

namespace nvfp4 {

// beta, and the type of C if it is read.
struct TermC {
  float beta = 0;
  uint32_t type = kTypeNone;

  __device__ explicit TermC(const EpilogueParams& e) {
    if (e.c_type == kTypeNone) return;
    beta = beta_of(e);
    type = type_of_c(e, beta);
  }
};

// ---- Sums in registers --------------------------------------------------------------------------

// Where sum i of a lane is in 16 tokens, from the lane's first row and column.
constexpr uint32_t kMatrixTokens = 16, kMatrixSums = 8;
__device__ constexpr uint32_t row_of_sum(uint32_t i) { return i / 4 * 8 + i % 2; }
__device__ constexpr uint32_t column_of_sum(uint32_t i) { return i / 2 % 2 * 8; }

// What a lane needs of a tile. In shared memory there are rows of 16 bits, first of C, then of D in
// the same places. Each half of the warps has its own rows, of half the columns, and its own
// barrier: while one waits, the other computes. The number of a 16-byte column is XORed with row %
// 8, so that eight rows of a matrix hit 32 banks.
template <typename Tile>
struct FieldsOfTile {
  static constexpr uint32_t kColumns = Tile::kWeights / 2, kWarps = Tile::kConsumerWarps / 2;
  static constexpr uint32_t kRowBytes = kColumns * 2, kLanesOfRow = kColumns / 4;
  static constexpr uint32_t kRows = Tile::kRowsPerPass, kRowsOfLane = kRows / 8;
  static constexpr uint32_t kSums = Tile::kTokens / 2;
  // The code for activations exists once, for so many tokens: more of them hide how long a lane
  // waits for each step, and for branches.
  static constexpr uint32_t kTurnTokens = 32, kTurnSums = 16;
  static_assert(kLanesOfRow == 16 && kWarps == 4, "a warp takes two rows in eight");
  static_assert(kTurnTokens % kRows == 0 && Tile::kTokens % kTurnTokens == 0);

  const Sm90Params& p;
  const TileCoordinate& tile;
  uint32_t warp, lane;
  uint32_t rows;        // of 16 bits, in shared memory
  uint32_t n, n_first;  // of four columns of a row; of the lane's sums
  uint32_t m_first, m_end;
  ColumnTerms<Tile, 2, 8> terms;
  TermC c;
  float largest = 0;

  __device__ FieldsOfTile(const Sm90Params& params, const TileCoordinate& of, uint32_t at,
                          uint32_t warp_number, uint32_t lane_number)
      : p(params),
        tile(of),
        warp(warp_number),
        lane(lane_number),
        rows(at + warp / kWarps * kRows * kRowBytes),
        n(of.weight_tile * Tile::kWeights + warp / kWarps * kColumns + lane % kLanesOfRow * 4),
        n_first(of.weight_tile * Tile::kWeights + warp * 16 + lane / 4),
        m_first(of.token_tile * Tile::kTokens),
        m_end(min(m_first + Tile::kTokens, params.m)),
        terms(params, params.alpha, n_first),  // waits for earlier grids
        c(params.epilogue) {}

  // The row of the lane's first sum after so many tokens.
  __device__ uint32_t row_after(uint32_t tokens) const { return m_first + tokens + lane % 4 * 2; }
  __device__ bool is_there(uint32_t row, uint32_t column) const {
    return row < m_end && n_first + column < p.n;
  }

  __device__ bool has_all_columns() const { return (tile.weight_tile + 1) * Tile::kWeights <= p.n; }

  // ---- sums to what an activation takes ----

  // x = alpha and tensor scales, times the sum.
  __device__ void scale(float (&x)[kSums]) const {
    if (!has_row_terms<Tile>(p)) {
#pragma unroll
      for (float& one : x) one = Epilogue90<Tile>::scaled(p, one, terms.scale);
      return;
    }
    const float b_scale = terms.b_scale(p, n_first);
#pragma unroll
    for (uint32_t i = 0; i < kSums; ++i) {
      if (i % 4 > 1) continue;  // of the row of sum i - 2
      const float of_row = terms.of_row(p, tile.batch, row_after(0) + row_of_sum(i), b_scale);
      x[i] = Epilogue90<Tile>::scaled(p, x[i], of_row);
      x[i + 2] = Epilogue90<Tile>::scaled(p, x[i + 2], of_row);
    }
  }
  template <uint32_t kCount>
  __device__ void add_bias(float (&x)[kCount]) const {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) x[i] = __fadd_rn(x[i], terms.bias[i / 2 % 2]);
  }

  // Whether C comes by whole rows of fours, in 16 bits.
  __device__ bool has_rows_of_c() const {
    const EpilogueParams& e = p.epilogue;
    const bool in_fours = ((e.c_row | e.c_batch_stride) & 3) == 0;
    return c.type != kTypeF32 && in_fours && has_all_columns();
  }
  // C of kRows rows from m on: four columns of one row in eight.
  __device__ void load_c(uint32_t m, uint2 (&four)[kRowsOfLane]) const {
    const EpilogueParams& e = p.epilogue;
    const auto* const first = static_cast<const uint16_t*>(e.c) + tile.batch * e.c_batch_stride + n;
#pragma unroll
    for (uint32_t i = 0; i < kRowsOfLane; ++i) {
      const uint32_t row = m + i * 8 + row_of_lane();
      const uint4 bits = ptx::ld_global_v4_b32_halves(first + row * e.c_row, row < m_end ? 1 : 0);
      four[i] = make_uint2(bits.x, bits.y);
    }
  }
  // The row of the lane's four columns in eight rows, and their address.
  __device__ uint32_t row_of_lane() const { return warp % kWarps * 2 + lane / kLanesOfRow; }
  __device__ uint32_t row_at(uint32_t i) const {
    const uint32_t row = row_of_lane(), column = lane % kLanesOfRow;
    return rows + (i * 8 + row) * kRowBytes + (column / 2 ^ row) * 16 + column % 2 * 8;
  }
  __device__ void meet() const {
    if (warp < kWarps) {
      ptx::named_barrier_sync<kHalfBarrier, kWarps * 32>();
    } else {
      ptx::named_barrier_sync<kHalfBarrier + 1, kWarps * 32>();
    }
  }
  // Address of a row of the matrices of 16 tokens, which is that of their sums and of C.
  __device__ uint32_t matrix_at(uint32_t token) const {
    const uint32_t row = lane / 16 * 8 + lane % 8, piece = warp % kWarps * 2 + lane / 8 % 2;
    return rows + (token + row) * kRowBytes + (piece ^ row % 8) * 16;
  }
  // Adds beta times C that comes by rows. A thread overwrites those that it has put
  // there itself.
  __device__ void add_c(float (&x)[kSums]) const {
    uint2 next[kRowsOfLane];
    load_c(m_first, next);
#pragma unroll
    for (uint32_t first = 0; first < Tile::kTokens; first += kRows) {
      if (m_first + first >= m_end) break;
      if (first > 0) meet();  // C has been read
#pragma unroll
      for (uint32_t i = 0; i < kRowsOfLane; ++i) ptx::st_shared_v2_b32(row_at(i), next[i]);
      if (first + kRows < Tile::kTokens) load_c(m_first + first + kRows, next);
      meet();  // C is there
#pragma unroll
      for (uint32_t token = 0; token < kRows; token += kMatrixTokens) {
        uint32_t pairs[kMatrixSums / 2];
        ptx::ldmatrix_x4_trans(matrix_at(token), pairs);
#pragma unroll
        for (uint32_t i = 0; i < kMatrixSums; ++i) {
          float& one = x[(first + token) / 2 + i];
          const uint32_t bits = i % 2 == 0 ? pairs[i / 2] & 0xFFFF : pairs[i / 2] >> 16;
          one = __fmaf_rn(c.beta, widen(c.type, bits), one);
        }
      }
    }
  }
  // Adds beta times any other C, element by element. m is the row of the first of these sums.
  __device__ void add_elements_of_c(uint32_t m, float (&x)[kTurnSums]) const {
    const EpilogueParams& e = p.epilogue;
    float of_c[kTurnSums];
    const int64_t first = tile.batch * e.c_batch_stride + n_first;
#pragma unroll
    for (uint32_t i = 0; i < kTurnSums; ++i) {
      const uint32_t row = m + row_of_sum(i), column = column_of_sum(i);
      of_c[i] = load_element(e.c, c.type, first + row * e.c_row + column, is_there(row, column));
    }
#pragma unroll
    for (uint32_t i = 0; i < kTurnSums; ++i) x[i] = __fmaf_rn(c.beta, of_c[i], x[i]);
  }

  // ---- maxima ----

  // Takes the maximum of D alone, without the sums beyond its rows and columns.
  __device__ void take_maxima_of_all(const float (&x)[kSums]) {
    float some[8] = {};  // each in a chain of its own
    if (m_first + Tile::kTokens <= p.m && has_all_columns()) {
#pragma unroll
      for (uint32_t i = 0; i < kSums; ++i) some[i % 8] = max_nan(some[i % 8], fabsf(x[i]));
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kSums; ++i) {
        const bool there = is_there(row_after(0) + row_of_sum(i), column_of_sum(i));
        some[i % 8] = max_nan(some[i % 8], there ? fabsf(x[i]) : 0.0f);
      }
    }
#pragma unroll
    for (const float one : some) largest = max_nan(largest, one);
  }
  // Takes the maxima of D and of its rows. m is the row of the first of these sums.
  __device__ void take_maxima(uint32_t m, const float (&x)[kTurnSums]) {
    constexpr uint32_t kSlots = kTurnSums / 2;
    float of_row[kSlots];
#pragma unroll
    for (float& one : of_row) one = 0;
#pragma unroll
    for (uint32_t i = 0; i < kTurnSums; ++i) {
      float& one = of_row[i / 4 * 2 + i % 2];
      one = max_nan(one, is_there(m + row_of_sum(i), column_of_sum(i)) ? fabsf(x[i]) : 0.0f);
    }
#pragma unroll
    for (const float one : of_row) largest = max_nan(largest, one);
    if (p.epilogue.d_row_amax == nullptr) return;
    const uint32_t slot = lane / 4, row = m + slot / 2 * 8 + slot % 2;
    const float of_slot = largest_of_slots<EightLanes>(of_row, lane);
    if (row < m_end) {
      float* const to = p.epilogue.d_row_amax + static_cast<uint64_t>(tile.batch) * p.m + row;
      ptx::red_global_max_s32(to, __float_as_int(of_slot));
    }
    __syncwarp();
  }
  __device__ void put_maxima() const {
    if (has_amax(p.epilogue) && p.epilogue.d_amax != nullptr) {
      add_amax(p.epilogue.d_amax, kAllLanes, largest);
    }
  }

  // ---- to D ----

  __device__ void store_floats(uint32_t m, const float (&x)[kTurnSums]) const {
    float* const d = static_cast<float*>(p.d) + tile.batch * p.d_batch_stride + n_first;
#pragma unroll
    for (uint32_t i = 0; i < kTurnSums; ++i) {
      const uint32_t row = m + row_of_sum(i), column = column_of_sum(i);
      if (is_there(row, column)) d[row * p.d_ld + column] = x[i];
    }
    __syncwarp();
  }
  // Rows from m on, which begin with sum `first`, through shared memory.
  template <uint32_t kCount>
  __device__ void store_rows_of(uint32_t m, uint32_t first, const float (&x)[kCount]) const {
    const Epilogue90<Tile> out(p, tile, n);
    meet();  // the last rows have been read
#pragma unroll
    for (uint32_t token = 0; token < kRows; token += kMatrixTokens) {
      const float* const sums = x + first + token / 2;
      uint32_t pairs[kMatrixSums / 2];
#pragma unroll
      for (uint32_t i = 0; i < kMatrixSums / 2; ++i) {
        pairs[i] = Epilogue90<Tile>::round(sums[2 * i], sums[2 * i + 1], p);
      }
      ptx::stmatrix_x4_trans(matrix_at(token), pairs);
    }
    meet();  // the rows are ready
    uint2 four[kRowsOfLane];
#pragma unroll
    for (uint32_t i = 0; i < kRowsOfLane; ++i) four[i] = ptx::ld_shared_v2_b32(row_at(i));
#pragma unroll
    for (uint32_t i = 0; i < kRowsOfLane; ++i) {
      const uint32_t row = m + i * 8 + row_of_lane();
      if (row < m_end) out.store(row, four[i]);
    }
    __syncwarp();
  }
  __device__ void store_all(const float (&x)[kSums]) const {
#pragma unroll
    for (uint32_t first = 0; first < Tile::kTokens; first += kRows) {
      if (m_first + first >= m_end) break;
      store_rows_of(m_first + first, first / 2, x);
    }
  }
};

// The sums of turn `turn`. Registers have no index, so a branch chooses them.
template <uint32_t kTurnSums, uint32_t kSums>
__device__ void choose_sums(const float (&sums)[kSums], uint32_t turn, float (&x)[kTurnSums]) {
  constexpr uint32_t kTurns = kSums / kTurnSums;
  static_assert(kTurns <= 8);
#define NVFP4_TAKE_TURN(number)                                         \
  case number:                                                          \
    if constexpr (number < kTurns) {                                    \
      _Pragma("unroll") for (uint32_t i = 0; i < kTurnSums; ++i) x[i] = \
          sums[number * kTurnSums + i];                                 \
    }                                                                   \
    break;
  switch (turn) {
    NVFP4_TAKE_TURN(0)
    NVFP4_TAKE_TURN(1)
    NVFP4_TAKE_TURN(2)
    NVFP4_TAKE_TURN(3)
    NVFP4_TAKE_TURN(4)
    NVFP4_TAKE_TURN(5)
    NVFP4_TAKE_TURN(6)
    NVFP4_TAKE_TURN(7)
    default: break;
  }
#undef NVFP4_TAKE_TURN
}

// Activates some sums at a time: more of them would spill.
template <typename Tile, uint32_t kCount>
__device__ void activate_turn(uint32_t activation, float (&x)[kCount]) {
  constexpr uint32_t kAtOnce = Tile::kTokens > 192 ? kCount / 2 : kCount;
#pragma unroll
  for (uint32_t first = 0; first < kCount; first += kAtOnce) {
    float some[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) some[i] = x[first + i];
    activate(activation, some);
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) x[first + i] = some[i];
  }
}

// Stores D 32 tokens a turn. `adds_c`: C and the bias have not been added yet.
template <typename Tile>
__device__ void store_fields_by_turns(FieldsOfTile<Tile>& fields, bool adds_c,
                                      const float (&sums)[Tile::kTokens / 2]) {
  using Fields = FieldsOfTile<Tile>;
  const Sm90Params& p = fields.p;
  const EpilogueParams& e = p.epilogue;
#pragma unroll 1
  for (uint32_t turn = 0; turn < Tile::kTokens / Fields::kTurnTokens; ++turn) {
    const uint32_t first = turn * Fields::kTurnTokens, m = fields.row_after(first);
    if (fields.m_first + first >= fields.m_end) break;
    float x[Fields::kTurnSums];
    choose_sums(sums, turn, x);
    if (adds_c) {
      fields.add_elements_of_c(m, x);
      fields.add_bias(x);
    }
    activate_turn<Tile>(e.activation % kTakesAmax, x);
    if (has_amax(e)) fields.take_maxima(m, x);
    if (has_float_d<Tile>(p)) {
      fields.store_floats(m, x);
      continue;
    }
#pragma unroll
    for (uint32_t token = 0; token < Fields::kTurnTokens; token += Fields::kRows) {
      fields.store_rows_of(fields.m_first + first + token, token / 2, x);
    }
  }
}

// Stores the complete sums of a tile, while the rings fill for the next one.
template <typename Tile, uint32_t kSums>
__device__ void store_fields_of_sums(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                                     uint32_t warp, uint32_t lane, float (&sums)[kSums]) {
  static_assert(Tile::kGroups == 1 && kSums * 2 == Tile::kTokens);
  const EpilogueParams& e = p.epilogue;
  FieldsOfTile<Tile> fields(p, tile, at, warp, lane);
  fields.scale(sums);
  const bool has_c = fields.c.type != kTypeNone, elements_of_c = has_c && !fields.has_rows_of_c();
  if (!elements_of_c) {
    if (has_c) fields.add_c(sums);
    if (e.bias_type != kTypeNone) fields.add_bias(sums);
  }
  if (elements_of_c || has_float_d<Tile>(p) || e.d_row_amax != nullptr ||
      e.activation % kTakesAmax != kActivationNone) {
    store_fields_by_turns<Tile>(fields, elements_of_c, sums);
  } else {
    if (has_amax(e)) fields.take_maxima_of_all(sums);
    fields.store_all(sums);
  }
  fields.put_maxima();
}

// ---- Sums in shared memory ----------------------------------------------------------------------

// Four columns of some rows. C of a row is loaded before the row before it is computed.
template <typename Tile>
__device__ void store_fields_of_rows(const Sm90Params& p, SumRows rows) {
  const EpilogueParams& e = p.epilogue;
  if (rows.m < rows.m_end && rows.n < p.n) {
    const FourTerms<Tile> terms(p, p.alpha, rows.n);  // waits for earlier grids
    const TermC c(e);
    const uint32_t count = min(p.n - rows.n, 4u);
    const bool vectors = count == 4 && ((e.c_row | e.c_batch_stride) & 3) == 0;
    const int64_t c_first = rows.batch * e.c_batch_stride + rows.n;
    const Epilogue90<Tile> out(p, {0, 0, rows.batch}, rows.n);
    const auto load_c = [&](uint32_t m) {
      return load_bits_of_four(e.c, c.type, c_first + m * e.c_row, 1, count, vectors);
    };
    uint4 next_c = make_uint4(0, 0, 0, 0);
    if (c.type != kTypeNone) next_c = load_c(rows.m);
    Amax amax;
#pragma unroll 1
    for (; rows.m < rows.m_end; rows.m += rows.m_step, rows.at += rows.step) {
      const float4 sum = ptx::ld_shared_v4_f32(rows.at);
      float scale = terms.scale;
      if (has_row_terms<Tile>(p)) {
        scale = terms.of_row(p, rows.batch, rows.m, terms.b_scale(p, rows.n));
      }
      float x[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
      for (float& one : x) one = Epilogue90<Tile>::scaled(p, one, scale);
      if (c.type != kTypeNone) {
        float of_c[4];
        unpack_four(next_c, c.type, vectors, of_c);
        if (rows.m + rows.m_step < rows.m_end) next_c = load_c(rows.m + rows.m_step);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) x[i] = __fmaf_rn(c.beta, of_c[i], x[i]);
      }
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) x[i] = __fadd_rn(x[i], terms.bias[i]);
      activate(e.activation % kTakesAmax, x);
      if (has_amax(e)) amax.take(p, rows.batch, rows.m, count, x);
      if (has_float_d<Tile>(p)) {
        out.store_floats(rows.m, x);
      } else {
        out.store_rounded(rows.m, make_float4(x[0], x[1], x[2], x[3]));
      }
    }
    if (has_amax(e)) amax.put(e);
  }
  __syncwarp();  // some lanes have stored
}

// ---- One row of a thread ------------------------------------------------------------------------

// With few tokens this code runs once, and a warp waits longest for the instructions behind each
// branch. So there are few: what a product does not have is not loaded, but takes part as a number
// that changes nothing.

// Four neighbouring elements of a type, of which `count` exist, or 0.
struct FourElements {
  uint32_t type;
  uint32_t halves[4], words[4];

  __device__ FourElements(const void* array, uint32_t of_type, int64_t first, uint32_t count)
      : type(of_type) {
    const bool wide = type == kTypeF32, narrow = type == kTypeF16 || type == kTypeBf16;
    const auto* const bytes = static_cast<const uint8_t*>(array);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      halves[i] = ptx::ld_global_u16_if(bytes + (first + i) * 2, narrow && i < count);
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      words[i] = ptx::ld_global_b32_if(bytes + (first + i) * 4, wide && i < count);
    }
  }
  __device__ float value(uint32_t i) const {
    const float narrow =
        type == kTypeBf16 ? __uint_as_float(halves[i] << 16) : ptx::cvt_f32_f16(halves[i]);
    return type == kTypeF32 ? __uint_as_float(words[i]) : narrow;
  }
};

__device__ inline float load_or(const float* at, float otherwise) {
  const float value = __uint_as_float(ptx::ld_global_b32_if(at, at != nullptr));
  return at != nullptr ? value : otherwise;
}

template <typename Tile>
__device__ void store_fields_of_one_row(const Sm90Params& p, const SumRows& row) {
  const EpilogueParams& e = p.epilogue;
  if (row.m < row.m_end && row.n < p.n) {
    const uint32_t count = min(p.n - row.n, 4u), m = row.m, batch = row.batch;
    ptx::griddepcontrol_wait();  // an earlier grid may write what follows reads
    const float* const a_scale =
        e.a_scale_per_row != 0 ? row_scale_at(p, batch, m) : e.a_tensor_scale;
    const float* const b_scale =
        e.b_tensor_scale == nullptr ? nullptr : e.b_tensor_scale + row.n / e.columns_a_factor;
    const float alpha = load_or(e.alpha_device, p.alpha), beta = load_or(e.beta_device, e.beta);
    const uint32_t c_type = type_of_c(e, beta);
    const FourElements bias(e.bias, e.bias_type, row.n, count);
    const FourElements c(e.c, c_type, batch * e.c_batch_stride + m * e.c_row + row.n, count);
    const float scale = __fmul_rn(__fmul_rn(alpha, load_or(a_scale, 1)), load_or(b_scale, 1));
    const float4 sum = ptx::ld_shared_v4_f32(row.at);
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      x[i] = Epilogue90<Tile>::scaled(p, x[i], scale);
      const float with_c = __fmaf_rn(beta, c.value(i), x[i]);
      x[i] = c_type == kTypeNone ? x[i] : with_c;
      x[i] = __fadd_rn(x[i], e.bias_type == kTypeNone ? -0.0f : bias.value(i));
    }
    activate(e.activation % kTakesAmax, x);
    if (has_amax(e)) {
      Amax amax;
      amax.take(p, batch, m, count, x);
      amax.put(e);
    }
    const Epilogue90<Tile> out(p, {0, 0, batch}, row.n);
    if (has_float_d<Tile>(p)) {
      out.store_floats(m, x);
    } else {
      out.store_rounded(m, make_float4(x[0], x[1], x[2], x[3]));
    }
  }
  __syncwarp();  // some lanes have stored
}

}  // namespace nvfp4
