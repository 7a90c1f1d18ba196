// SPDX-License-Identifier: MIT
// Tensor memory to D: alpha, rounding to fp16, transposition through shared memory, stores by
// threads or by TMA (tile.h says which tile may); or sums to shared memory as they are, for the
// general epilogue.
//
// A lane of tensor memory is a column n of D and a column of tensor memory a row m (the weights are
// the MMA's A operand), so what one thread reads lies d_ld apart in memory. Each warp turns its 32
// x 32 piece in a slab of its own of the drained ring and then stores 16 bytes, 8 neighbours in n,
// per lane, or the whole slab as a box.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/common/prefetch_c.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm100/descriptor.h"
#include "kernel/sm100/params.h"

namespace nvfp4 {

constexpr uint32_t kPieceTokens = kBoxSide;  // rows of D per tcgen05.ld
constexpr uint32_t kPieceWeights =
    kBoxSide;  // columns of D per warp: its band of tensor memory lanes
constexpr uint32_t kSlabBytes = kPieceTokens * kPieceWeights * 2;  // fp16 [token][weight]
constexpr uint32_t kSumSlabBytes = 2 * kSlabBytes;                 // the same in fp32

// Where a warp turns its pieces, after the ring's end or in the ring. `boxes`: how many of them it
// has, one after the other.
template <typename Tile>
struct Slabs {
  static constexpr uint32_t kBoxes = Tile::kSeveralTiles ? 1 : Tile::kTokens / kPieceTokens;
  static constexpr uint32_t kBoxBytes = Tile::kSeveralTiles ? kSlabBytes : kSumSlabBytes;
  static constexpr uint32_t kAt = Tile::kSeveralTiles ? Tile::kSlabsAt : 0;
  static constexpr uint32_t kBoxesAt = kAt + 4 * kSumSlabBytes;
  static_assert(kBoxesAt + 4 * kBoxes * kBoxBytes <= (Tile::kSeveralTiles
                                                          ? Tile::kSlabsAt + Tile::kSlabsBytes
                                                          : Tile::kStages * Tile::kStageBytes),
                "they lie in the ring, or in the slabs after it");
};

// A warp's pieces of D on their way by TMA. Where each has a slab of its own none waits for
// another: the store of one runs under the conversion of the next.
template <typename Tile>
struct Boxes {
  const Sm100Params& p;
  uint32_t batch, n_first;
  uint32_t smem;
  uint32_t band, lane;

  __device__ bool used() const { return p.d_by_tma != 0; }
  __device__ bool by_row() const { return p.epilogue.d_column == 1; }
  __device__ uint32_t slab(uint32_t piece) const {
    const uint32_t box = piece % Slabs<Tile>::kBoxes * 4 + band;
    return smem + Slabs<Tile>::kBoxesAt + box * Slabs<Tile>::kBoxBytes;
  }

  // Before lanes write a piece where another may still be read.
  __device__ void reuse() const {
    if (Slabs<Tile>::kBoxes == 1) wait();
  }

  // What the lanes have written into a slab, to rows m and on. TMA leaves out what D does not have.
  __device__ void send(uint32_t piece, uint32_t m) const {
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (lane == 0) {
      ptx::cp_async_bulk_tensor_3d_store(&p.d_map, by_row() ? n_first : m, by_row() ? m : n_first,
                                         batch, slab(piece));
      ptx::cp_async_bulk_commit_group();
    }
    __syncwarp();
  }

  // The CTA's shared memory may be another's as soon as it ends.
  __device__ void wait() const {
    if (lane == 0) ptx::cp_async_bulk_wait_group_read<0>();
    __syncwarp();
  }
};

// The part of D that one warp stores: rows from m_first, columns from n_first, all below m_end and
// n_end. What becomes of a sum is said in finish() alone.
struct Epilogue {
  uint16_t* d;  // of this batch
  int64_t d_ld;
  uint32_t m_first, m_end, n_first, n_end;
  bool vectors;  // 16-byte stores are aligned and the warp's 32 columns all exist
  float alpha;   // read once the accumulator is full, so that no register holds it until then

  __device__ Epilogue(const Sm100Params& p, uint32_t batch, uint32_t first_m, uint32_t first_n) {
    d = static_cast<uint16_t*>(p.d) + batch * p.d_batch_stride;
    d_ld = p.d_ld;
    m_first = first_m;
    m_end = p.m;
    n_first = first_n;
    n_end = p.n;
    vectors = ((p.d_ld | p.d_batch_stride) & 7) == 0 && n_first + kPieceWeights <= p.n;
  }

  // One rounding to nearest even after one fp32 multiplication.
  __device__ uint16_t finish(uint32_t accumulator) const {
    return ptx::cvt_rn_f16_f32(__fmul_rn(alpha, __uint_as_float(accumulator)));
  }

  // Rows of a slab are 64 bytes, so the 32 lanes' 2-byte stores hit 16 banks twice within a word.
  __device__ void put_piece(const uint32_t (&acc)[32], uint32_t slab, uint32_t lane) const {
#pragma unroll
    for (uint32_t token = 0; token < kPieceTokens; ++token) {
      ptx::st_shared_b16(slab + token * kPieceWeights * 2 + lane * 2, finish(acc[token]));
    }
  }

  // Rows m .. m+31 of D in 16-byte pieces, of which 8 lanes' loads hit all banks once.
  __device__ void store_vectors(const uint32_t (&acc)[32], uint32_t m, uint32_t slab,
                                uint32_t lane) const {
    put_piece(acc, slab, lane);
    __syncwarp();
    constexpr uint32_t kLanesPerRow = kPieceWeights / 8;
    constexpr uint32_t kRowsPerPass = 32 / kLanesPerRow;
#pragma unroll
    for (uint32_t pass = 0; pass < kPieceTokens / kRowsPerPass; ++pass) {
      const uint32_t token = pass * kRowsPerPass + lane / kLanesPerRow;
      const uint32_t n = lane % kLanesPerRow * 8;
      const uint4 eight = ptx::ld_shared_v4_b32(slab + (token * kPieceWeights + n) * 2);
      if (m + token < m_end) {
        *reinterpret_cast<uint4*>(d + (m + token) * d_ld + n_first + n) = eight;
      }
    }
    __syncwarp();  // the next piece overwrites the slab
  }

  // The same for tails and odd leading dimensions: neighbouring lanes store neighbouring elements.
  __device__ void store_scalars(const uint32_t (&acc)[32], uint32_t m, uint32_t lane) const {
    if (n_first + lane >= n_end) return;
#pragma unroll
    for (uint32_t token = 0; token < kPieceTokens; ++token) {
      if (m + token < m_end) {
        d[(m + token) * d_ld + n_first + lane] = finish(acc[token]);
      }
    }
  }

  // One warp drains its 32 lanes of the accumulator at tmem (its first column, lane 0). The band is
  // warp % 4, the quarter of the lanes that the warp can reach.
  template <typename Tile>
  __device__ void drain(uint32_t tmem, uint32_t slab, const Boxes<Tile>& boxes) const {
    const uint32_t band = boxes.band, lane = boxes.lane;
#pragma unroll 1
    for (uint32_t piece = 0; piece < Tile::kTokens / kPieceTokens; ++piece) {
      const uint32_t m = m_first + piece * kPieceTokens;
      if (m >= m_end) break;
      uint32_t acc[32];
      ptx::tcgen05_ld_32x32b_x32(acc, tmem + tmem_address(band * 32, piece * kPieceTokens));
      if (Tile::kStoresByTma && boxes.used()) {
        boxes.reuse();
        put_piece(acc, boxes.slab(piece), lane);
        boxes.send(piece, m);
      } else if (vectors) {
        store_vectors(acc, m, slab, lane);
      } else {
        store_scalars(acc, m, lane);
      }
    }
  }
};

// Epilogue::drain for the general epilogue: 8 lanes take a row of the warp's piece, four neighbours
// in n each. A row of sums is 128 bytes, so stores by lanes and loads of a quarter warp hit all
// banks once.
template <typename Tile>
__device__ void drain_general(uint32_t first_m, uint32_t tmem, uint32_t slab,
                              const Boxes<Tile>& boxes) {
  const Sm100Params& p = boxes.p;
  const uint32_t lane = boxes.lane;
  constexpr uint32_t kRowBytes = kPieceWeights * 4, kLanesPerRow = kPieceWeights / 4;
  constexpr uint32_t kRows = 32 / kLanesPerRow;
  const uint32_t row = lane / kLanesPerRow, column = lane % kLanesPerRow * 4;
  const bool by_tma = Tile::kStoresByTma && boxes.used();
  const uint32_t element = 1u << log2_bytes(p.epilogue.d_type);
  const uint32_t row_bytes = boxes.by_row() ? kBoxSide * element : element;
  const uint32_t column_bytes = boxes.by_row() ? element : kBoxSide * element;
  const uint32_t n = boxes.n_first + column;
  const GeneralColumns columns(p, n);
#pragma unroll 1
  for (uint32_t piece = 0; piece < Tile::kTokens / kPieceTokens; ++piece) {
    const uint32_t m = first_m + piece * kPieceTokens;
    if (m >= p.m) break;
    uint32_t acc[32];
    ptx::tcgen05_ld_32x32b_x32(acc, tmem + tmem_address(boxes.band * 32, piece * kPieceTokens));
#pragma unroll
    for (uint32_t token = 0; token < kPieceTokens; ++token) {
      ptx::st_shared_b32(slab + token * kRowBytes + lane * 4, acc[token]);
    }
    __syncwarp();
    const SumRows rows{
        slab + row * kRowBytes + column * 4, kRows * kRowBytes, boxes.batch, n, m + row, kRows,
        min(m + kPieceTokens, p.m)};
    if (by_tma) boxes.reuse();
    const uint32_t to = boxes.slab(piece) + row * row_bytes + column * column_bytes;
    store_general(p, rows, columns, 1.0f, ToSlab{by_tma, to, kRows * row_bytes, column_bytes});
    __syncwarp();  // the next piece overwrites the sums
    if (by_tma) boxes.send(piece, m);
  }
}

}  // namespace nvfp4
