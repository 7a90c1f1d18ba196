// SPDX-License-Identifier: MIT
#include "host/driver/tensor_map.h"

#include <cinttypes>
#include <cstring>

#include "host/base/log.h"
#include "host/base/size.h"
#include "kernel/common/scale_tile.h"

namespace nvfp4 {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "the kernel's parameter holds one");
static_assert(alignof(TensorMap) == alignof(CUtensorMap), "and where it lies");

namespace {

constexpr cuuint32_t kMostDims = 4;

// What differs between the maps; strides in bytes.
struct MapLayout {
  CUtensorMapDataType type;
  cuuint64_t dims[kMostDims], strides[kMostDims - 1];
  cuuint32_t box[kMostDims];
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  cuuint32_t rank = 3;
};

nvfp4_status encode(const Driver& driver, const char* name, void* elements, const MapLayout& m,
                    TensorMap* map) {
  const cuuint32_t element_strides[kMostDims] = {1, 1, 1, 1};
  log_line(LogLevel::detail,
           "tensor map of %s: dims %" PRIu64 " %" PRIu64 " %" PRIu64 ", strides %" PRIu64
           " %" PRIu64,
           name, m.dims[0], m.dims[1], m.dims[2], m.strides[0], m.strides[1]);
  CUtensorMap encoded;
  const CUresult result = driver.cuTensorMapEncodeTiled(
      &encoded, m.type, m.rank, elements, m.dims, m.strides, m.box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, m.swizzle, m.promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuTensorMapEncodeTiled", result);
  memcpy(map, &encoded, sizeof *map);
  return NVFP4_SUCCESS;
}

// With one batch the stride is never used, but the driver requires a legal one.
cuuint64_t bytes_of_batch(int64_t l, cuuint64_t row_bytes, cuuint64_t batch_bytes) {
  return l == 1 ? row_bytes : batch_bytes;
}

}  // namespace

// UINT8 instead of a 4-bit type: the bytes in shared memory are the same, and every driver and
// emulator with TMA accepts it (16U4_ALIGN8B needs sm_100).
nvfp4_status encode_tensor_map(const Driver& driver, const char* name, MapElement element,
                               const void* elements, int64_t rows, int64_t k, int64_t l, int64_t ld,
                               int64_t batch_stride, uint32_t span_bytes, uint32_t tile_rows,
                               TensorMap* map) {
  const bool packed = element == MapElement::e2m1;
  const auto bytes = [&](int64_t count) {
    return packed ? static_cast<cuuint64_t>(count) / 2 : static_cast<cuuint64_t>(count) * 2;
  };
  const cuuint32_t unit = packed ? 1 : 2;  // bytes of one element of the map
  MapLayout m{};
  m.type = packed ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
  m.dims[0] = bytes(k) / unit;
  m.dims[1] = static_cast<cuuint64_t>(rows);
  m.dims[2] = static_cast<cuuint64_t>(l);
  m.strides[0] = bytes(ld);
  m.strides[1] = bytes_of_batch(l, bytes(ld), bytes(batch_stride));
  m.box[0] = span_bytes / unit;
  m.box[1] = tile_rows;
  m.box[2] = 1;
  m.swizzle = span_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
  m.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return encode(driver, name, const_cast<void*>(elements), m, map);
}

// A tile is 64 elements of 8 bytes, so a box of four tiles has 256 elements, the most that are
// allowed.
nvfp4_status encode_scale_map(const Driver& driver, const char* name, const ScaleTiles& scales,
                              uint32_t tiles, TensorMap* map) {
  constexpr cuuint64_t kElementBytes = 8, kTileElements = kScaleTileBytes / kElementBytes;
  const bool shared = scales.batch_bytes == 0;
  MapLayout m{};
  m.type = CU_TENSOR_MAP_DATA_TYPE_UINT64;
  m.dims[0] = static_cast<cuuint64_t>(scales.along_k) * kTileElements;
  m.dims[1] = static_cast<cuuint64_t>(ceil_div(scales.rows, kScaleTileRows));
  m.dims[2] = shared ? 1 : static_cast<cuuint64_t>(scales.l);
  m.strides[0] = m.dims[0] * kElementBytes;
  m.strides[1] = shared ? m.strides[0] : static_cast<cuuint64_t>(scales.batch_bytes);
  m.box[0] = static_cast<cuuint32_t>(tiles * kTileElements);
  m.box[1] = m.box[2] = 1;
  m.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  m.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return encode(driver, name, const_cast<uint8_t*>(scales.first), m, map);
}

// An element is 8 bytes, and a row half a unit, since a box has at most 256 elements of a row.
nvfp4_status encode_packed_map(const Driver& driver, const char* name, const PackedUnits& packed,
                               uint32_t units, uint32_t blocks, TensorMap* map) {
  const auto row_bytes = static_cast<cuuint64_t>(packed.unit_bytes / 2);
  MapLayout m{};
  m.rank = 4;
  m.type = CU_TENSOR_MAP_DATA_TYPE_UINT64;
  m.dims[0] = row_bytes / 8;
  m.dims[1] = static_cast<cuuint64_t>(2 * packed.along_k);
  m.dims[2] = static_cast<cuuint64_t>(packed.blocks);
  m.dims[3] = static_cast<cuuint64_t>(packed.l);
  m.strides[0] = row_bytes;
  m.strides[1] = m.dims[1] * row_bytes;
  m.strides[2] =
      bytes_of_batch(packed.l, m.strides[1], static_cast<cuuint64_t>(packed.batch_bytes));
  m.box[0] = static_cast<cuuint32_t>(m.dims[0]);
  m.box[1] = 2 * units;
  m.box[2] = blocks;
  m.box[3] = 1;
  m.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  m.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return encode(driver, name, const_cast<void*>(packed.first), m, map);
}

// A row is a piece of 64 elements of 8 bytes.
nvfp4_status encode_runs_map(const Driver& driver, const char* name, const Runs& runs,
                             uint32_t box_bytes, TensorMap* map) {
  const bool shared = runs.batch_bytes == 0;
  MapLayout m{};
  m.type = CU_TENSOR_MAP_DATA_TYPE_UINT64;
  m.dims[0] = kRunPieceBytes / 8;
  m.dims[1] = static_cast<cuuint64_t>(runs.bytes / kRunPieceBytes);
  m.dims[2] = shared ? 1 : static_cast<cuuint64_t>(runs.l);
  m.strides[0] = kRunPieceBytes;
  m.strides[1] = shared ? m.strides[0] : static_cast<cuuint64_t>(runs.batch_bytes);
  m.box[0] = static_cast<cuuint32_t>(m.dims[0]);
  m.box[1] = static_cast<cuuint32_t>(box_bytes / kRunPieceBytes);
  m.box[2] = 1;
  m.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  m.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return encode(driver, name, const_cast<void*>(runs.first), m, map);
}

nvfp4_status encode_d_map(const Driver& driver, const DMatrices& d, uint32_t elements,
                          uint32_t lines, TensorMap* map) {
  const auto bytes = [&](int64_t count) { return static_cast<cuuint64_t>(count * d.bytes); };
  MapLayout m{};
  m.type = d.bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
  m.dims[0] = static_cast<cuuint64_t>(d.length);
  m.dims[1] = static_cast<cuuint64_t>(d.lines);
  m.dims[2] = static_cast<cuuint64_t>(d.l);
  m.strides[0] = bytes(d.ld);
  m.strides[1] = bytes_of_batch(d.l, bytes(d.ld), bytes(d.batch_stride));
  m.box[0] = elements;
  m.box[1] = lines;
  m.box[2] = 1;
  m.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  m.promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  return encode(driver, "d", d.first, m, map);
}

}  // namespace nvfp4
