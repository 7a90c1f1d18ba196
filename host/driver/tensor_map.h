// SPDX-License-Identifier: MIT
// The tensor maps of A, B and D.
#pragma once

#include "host/driver/driver.h"
#include "kernel/common/params.h"

namespace nvfp4 {

// Elements of 4 bits, two per byte, or of 16 bits.
enum class MapElement { e2m1, half };
constexpr uint32_t kSpanOfHalves = 128;  // bytes of K in a box of the latter

// [l][rows][k]; ld and batch_stride in elements. A box is `span_bytes` of K, 64
// or 128, by `tile_rows` rows, in the swizzle of that span. Reads beyond rows or k give zero.
nvfp4_status encode_tensor_map(const Driver& driver, const char* name, MapElement element,
                               const void* elements, int64_t rows, int64_t k, int64_t l, int64_t ld,
                               int64_t batch_stride, uint32_t span_bytes, uint32_t tile_rows,
                               TensorMap* map);

// Scales in 128x4 tiles, [batches][blocks of 128 rows][tiles along K]. A box is `tiles` tiles of
// one block. Batches with stride 0 share their scales. Reads beyond the scales give zero.
struct ScaleTiles {
  const uint8_t* first;
  int64_t rows, along_k, l, batch_bytes;
};
nvfp4_status encode_scale_map(const Driver& driver, const char* name, const ScaleTiles& scales,
                              uint32_t tiles, TensorMap* map);

// Packed weights, [batches][blocks of rows][units along K][unit]. A box is `units` units of each of
// `blocks` blocks. Reads beyond the units give zero.
struct PackedUnits {
  const void* first;
  int64_t unit_bytes, along_k, blocks, l, batch_bytes;
};
nvfp4_status encode_packed_map(const Driver& driver, const char* name, const PackedUnits& packed,
                               uint32_t units, uint32_t blocks, TensorMap* map);

// Bytes, [batches][bytes], a multiple of 512. A box is `box_bytes` of them, from any multiple
// of 512 on. Batches with stride 0 share theirs. Reads beyond the bytes give zero.
struct Runs {
  const void* first;
  int64_t bytes, l, batch_bytes;
};
constexpr int64_t kRunPieceBytes = 512;
nvfp4_status encode_runs_map(const Driver& driver, const char* name, const Runs& runs,
                             uint32_t box_bytes, TensorMap* map);

// [l][lines][length] of 2 or 4 bytes; ld and batch_stride in elements.
struct DMatrices {
  void* first;
  int64_t bytes, length, lines, l, ld, batch_stride;
};

// A box has `elements` of each of `lines` lines, in their order in memory.
nvfp4_status encode_d_map(const Driver& driver, const DMatrices& d, uint32_t elements,
                          uint32_t lines, TensorMap* map);

}  // namespace nvfp4
