// SPDX-License-Identifier: MIT
#include "host/tensor_map.h"

#include <cinttypes>
#include <cstring>

#include "host/log.h"

namespace nvfp4 {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
                  alignof(TensorMap) == alignof(CUtensorMap),
              "the kernel's parameter holds one");

// UINT8 and not a 4-bit type: the bytes in shared memory are the same, and every driver and
// emulator with TMA takes it (16U4_ALIGN8B needs sm_100).
nvfp4_status encode_tensor_map(const Driver& driver, const char* name, MapElement element,
                               const void* elements, int64_t rows, int64_t k, int64_t l, int64_t ld,
                               int64_t batch_stride, uint32_t tile_rows, TensorMap* map) {
  constexpr cuuint32_t kRank = 3;
  constexpr cuuint32_t kSpanBytes = 128;  // the widest box that a 128-byte swizzle takes
  const bool packed = element == MapElement::e2m1;
  const auto bytes = [&](int64_t count) {
    return packed ? static_cast<cuuint64_t>(count) / 2 : static_cast<cuuint64_t>(count) * 2;
  };
  const cuuint32_t unit = packed ? 1 : 2;  // bytes of the map's own elements
  const cuuint64_t row_bytes = bytes(ld);
  // With one batch the stride is never used, but the driver still wants a legal one.
  const cuuint64_t batch_bytes = l == 1 ? row_bytes : bytes(batch_stride);
  const cuuint64_t dims[kRank] = {bytes(k) / unit, static_cast<cuuint64_t>(rows),
                                  static_cast<cuuint64_t>(l)};
  const cuuint64_t strides[kRank - 1] = {row_bytes, batch_bytes};
  const cuuint32_t box[kRank] = {kSpanBytes / unit, tile_rows, 1};
  const cuuint32_t element_strides[kRank] = {1, 1, 1};
  log_line(LogLevel::detail,
           "tensor map of %s: dims %" PRIu64 " %" PRIu64 " %" PRIu64 ", strides %" PRIu64
           " %" PRIu64,
           name, dims[0], dims[1], dims[2], strides[0], strides[1]);
  CUtensorMap encoded;
  const CUresult result = driver.cuTensorMapEncodeTiled(
      &encoded, packed ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, kRank,
      const_cast<void*>(elements), dims, strides, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuTensorMapEncodeTiled", result);
  memcpy(map, &encoded, sizeof *map);
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
