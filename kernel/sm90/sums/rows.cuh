// SPDX-License-Identifier: MIT
// Stores the complete sums of a group to D on Hopper. They are rounded first and transposed in
// shared memory, [token][weight]. For the general epilogue they are transposed unrounded.
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/gate.cuh"

namespace nvfp4 {

// Scales applied before rounding: the decoding factor, then the column's.
struct Scaling {
  float decoding, scale;
  __device__ float of(float sum) const { return __fmul_rn(scale, __fmul_rn(sum, decoding)); }
};

// A thread has two columns, 8 apart, in rows m and m + 1, then 8 rows further on, and so on. With a
// bias or tensor scales of rows the sums are scaled here and the scaling becomes 1, so that the
// rounding code has no branch.
template <typename Tile, uint32_t kSums>
__device__ Scaling scale_rows(const Sm90Params& p, uint32_t n, uint32_t batch, uint32_t m,
                              float (&sums)[kSums]) {
  const ColumnTerms<Tile, 2, 8> terms(p, alpha_of<Tile>(p, batch), n);
  const bool of_rows = has_row_terms<Tile>(p);
  if (!has_columns_terms<Tile>(p) || (p.epilogue.bias_type == kTypeNone && !of_rows)) {
    return {decoding_scale<Tile>(p), terms.scale};
  }
  if (!of_rows) {
#pragma unroll
    for (uint32_t i = 0; i < kSums; ++i) {
      const float x = Epilogue90<Tile>::scaled(p, sums[i], terms.scale);
      sums[i] = __fadd_rn(x, terms.bias[i / 2 % 2]);
    }
    return {1, 1};
  }
  const float b_scale = terms.b_scale(p, n);
#pragma unroll
  for (uint32_t i = 0; i < kSums; ++i) {
    const float scale = terms.of_row(p, batch, m + i / 4 * 8 + i % 2, b_scale);
    sums[i] = __fadd_rn(Epilogue90<Tile>::scaled(p, sums[i], scale), terms.bias[i / 2 % 2]);
  }
  return {1, 1};
}

// A warp's fragment as rows of fp16 in shared memory, [token][weight], with 16-byte columns XOR
// token % 8, so that eight tokens of a matrix hit 32 banks. Eight tokens, or a multiple of 16.
template <typename Tile, uint32_t kTokens, uint32_t kSums>
__device__ void put_rows(const float (&sums)[kSums], const Scaling& scaling, uint32_t first,
                         const Sm90Params& p, uint32_t at, uint32_t warp, uint32_t lane) {
  constexpr uint32_t kRowBytes = Tile::kWeights * 2;
  // In a matrix of 8 weights x 8 tokens this lane gives the address of one token.
  const uint32_t row = lane / 16 * 8 + lane % 8;
  const uint32_t piece = warp % Tile::kConsumersPerStage * 2 + lane / 8 % 2;
  const uint32_t to = at + row * kRowBytes + (piece ^ row % 8) * 16;
  const auto words = [&](uint32_t block, uint32_t i) {
    const uint32_t s = (first / 8 + block) * 4 + i * 2;
    return Epilogue90<Tile>::round(scaling.of(sums[s]), scaling.of(sums[s + 1]), p);
  };
  if constexpr (kTokens == 8) {
    ptx::stmatrix_x2_trans(to, {words(0, 0), words(0, 1)});
  } else {
    static_assert(kTokens % 16 == 0);
#pragma unroll
    for (uint32_t b = 0; b < kTokens / 8; b += 2) {
      ptx::stmatrix_x4_trans(to + b * 8 * kRowBytes,
                             {words(b, 0), words(b, 1), words(b + 1, 0), words(b + 1, 1)});
    }
  }
}

// Stores a group's complete sums to D in fp32, straight from registers. Eight lanes of a warp store
// 32 bytes of a row together. Thread and rows are those of scale_rows().
template <typename Tile, uint32_t kSums>
__device__ void store_float_sums(const Sm90Params& p, const TileCoordinate& tile, uint32_t n,
                                 uint32_t m, const Scaling& scaling, const float (&sums)[kSums]) {
  float* const d = static_cast<float*>(p.d) + tile.batch * p.d_batch_stride + n + m * p.d_ld;
  const uint32_t end = row_end<Tile>(p, tile);
#pragma unroll
  for (uint32_t i = 0; i < kSums; ++i) {
    const uint32_t row = i / 4 * 8 + i % 2, column = i / 2 % 2 * 8;
    if (n + column < p.n && m + row < end) d[row * p.d_ld + column] = scaling.of(sums[i]);
  }
}

// Stores a group's complete sums, for its slice of the tile's tokens, to D through rows of fp16 in
// shared memory: all rows at once, or kRowsPerPass at a time beside rings in use. A lane reads all
// of its rows before it stores one; otherwise each store would wait for its own read.
template <typename Tile, uint32_t kSums>
__device__ void store_rows(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                           uint32_t warp, uint32_t lane, float (&sums)[kSums]) {
  constexpr uint32_t kTokens = kSums * 2;
  constexpr uint32_t kRows = Tile::kWholeSums ? Tile::kRowsPerPass * Tile::kHalves : kTokens;
  constexpr uint32_t kRowBytes = Tile::kColumnsOfD * 2, kLanesPerRow = Tile::kColumnsOfD / 4;
  constexpr uint32_t kStride = Tile::kConsumersPerStage * (32 / kLanesPerRow);
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  static_assert(kTokens % kRows == 0 && kRows % kStride == 0);
  static_assert(kRows == kTokens || Tile::kGroups == 1, "all threads of the barrier take a pass");
  const uint32_t group = warp / Tile::kConsumersPerStage;
  const uint32_t rows = at + group * kTokens * kRowBytes;
  const uint32_t m_first = tile.token_tile * Tile::kTokenStep + group * kTokens;
  const uint32_t column = lane % kLanesPerRow;
  const uint32_t row = warp % Tile::kConsumersPerStage * (32 / kLanesPerRow) + lane / kLanesPerRow;
  const Epilogue90<Tile> out(p, tile, tile.weight_tile * Tile::kColumnsOfD + column * 4);
  Scaling scaling;
  if constexpr (!kGatesSums<Tile>) {
    const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + warp % Tile::kConsumersPerStage * 16;
    const uint32_t m = m_first + lane % 4 * 2;
    scaling = scale_rows<Tile>(p, n + lane / 4, tile.batch, m, sums);
    if (has_float_d<Tile>(p)) {
      return store_float_sums<Tile>(p, tile, n + lane / 4, m, scaling, sums);
    }
  }
#pragma unroll
  for (uint32_t first = 0; first < kTokens; first += kRows) {
    if (first > 0) {
      if (m_first + first >= row_end<Tile>(p, tile)) break;
      ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the previous rows have been read
    }
    if constexpr (kGatesSums<Tile>) {
      static_assert(kRows == kTokens, "all rows of D at once");
      put_gated_rows<Tile>(p, tile, m_first, rows, warp, lane, sums);
      if (has_scales(p.epilogue.d_type)) break;  // D has been stored
    } else {
      put_rows<Tile, kRows>(sums, scaling, first, p, rows, warp, lane);
    }
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the rows are ready
    uint2 four[kRows / kStride];
#pragma unroll
    for (uint32_t i = 0; i < kRows / kStride; ++i) {
      const uint32_t token = i * kStride + row;
      four[i] = ptx::ld_shared_v2_b32(rows + token * kRowBytes + (column / 2 ^ token % 8) * 16 +
                                      column % 2 * 8);
    }
#pragma unroll
    for (uint32_t i = 0; i < kRows / kStride; ++i) {
      const uint32_t m = m_first + first + i * kStride + row;
      if (m < row_end<Tile>(p, tile)) out.store(m, four[i]);
    }
  }
  // The next tile's rows must come after the last of these has been read.
  if (Tile::kWholeSums) ptx::named_barrier_sync<kConsumerBarrier, kThreads>();
}

// A warp's fragment of 8 tokens or more in fp32, [token][weight], with 16-byte columns XOR token %
// 8, so that eight weights of four tokens hit 32 banks.
template <typename Tile, uint32_t kTokens, uint32_t kSums>
__device__ void put_float_rows(const float (&sums)[kSums], uint32_t first, uint32_t at,
                               uint32_t warp, uint32_t lane) {
  constexpr uint32_t kRowBytes = Tile::kWeights * 4;
  const uint32_t g = lane / 4, c = lane % 4;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t token = 2 * c + i % 2,
                   weight = warp * Tile::kWarpColumns + i / 2 * Tile::kWeightsApart + g;
    const uint32_t to = at + token * kRowBytes + (weight / 4 ^ token) * 16 + weight % 4 * 4;
#pragma unroll
    for (uint32_t block = 0; block < kTokens / 8; ++block) {
      ptx::st_shared_f32(to + block * 8 * kRowBytes, sums[(first / 8 + block) * 4 + i]);
    }
  }
}

// Passes the complete sums of a tile to the general epilogue while the rings are in use. It passes
// as many tokens at once as fit in fp32 in the space for rows of fp16.
template <typename Tile, uint32_t kSums>
__device__ void store_general_rows(const Sm90Params& p, const TileCoordinate& tile, uint32_t at,
                                   uint32_t warp, uint32_t lane, const float (&sums)[kSums]) {
  constexpr uint32_t kRows = Tile::kRowsPerPass / 2, kRowBytes = Tile::kWeights * 4;
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  static_assert(Tile::kGroups == 1 && kSums * 2 == Tile::kTokens && Tile::kTokens % kRows == 0);
  static_assert(Tile::kWeights == 128 && Tile::kConsumerWarps == 8, "a warp takes a row in eight");
  const uint32_t m_first = tile.token_tile * Tile::kTokenStep;
  const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + lane * 4;
  const uint32_t mine = at + warp * kRowBytes + (lane ^ warp) * 16;
  const uint32_t m_end = row_end<Tile>(p, tile);
  const GeneralColumns columns = columns_of<Tile>(p, tile.batch, n);
  const uint32_t batch = Tile::kGrouped ? 0 : tile.batch;  // batch of A, C and D
  const auto rows_from = [&](uint32_t first) {
    const uint32_t m = m_first + first;
    return SumRows{mine, 8 * kRowBytes, batch, n, m + warp, 8, min(m + kRows, m_end)};
  };
  ask_for_c_of_rows(p, rows_from(0), columns.c_type);
  ask_for_c_of_rows(p, rows_from(kRows), columns.c_type);
#pragma unroll 1
  for (uint32_t first = 0; first < Tile::kTokens; first += kRows) {
    if (m_first + first >= m_end) break;
    if (first + 2 * kRows < Tile::kTokens) {
      ask_for_c_of_rows(p, rows_from(first + 2 * kRows), columns.c_type);
    }
    // Registers cannot be indexed, so branches select the sums; the code that follows exists once.
#pragma unroll
    for (uint32_t i = 0; i < Tile::kTokens; i += kRows) {
      if (i == first) put_float_rows<Tile, kRows>(sums, i, at, warp, lane);
    }
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // the rows are ready
    store_general<kRows / 8>(p, rows_from(first), columns, decoding_scale<Tile>(p));
    __syncwarp();  // some lanes have stored, and bar.sync needs all together
    ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // they have been read
  }
}

}  // namespace nvfp4
