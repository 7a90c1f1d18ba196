// SPDX-License-Identifier: MIT
// The tensor maps of A and B.
#pragma once

#include "host/driver.h"
#include "kernel/params.h"

namespace nvfp4 {

// Elements of 4 bits, as bytes, or of 16.
enum class MapElement { e2m1, half };

// [l][rows][k]; ld and batch_stride in elements. A box is 128 bytes of K by `tile_rows` rows. Reads
// beyond rows or k give zero.
nvfp4_status encode_tensor_map(const Driver& driver, const char* name, MapElement element,
                               const void* elements, int64_t rows, int64_t k, int64_t l, int64_t ld,
                               int64_t batch_stride, uint32_t tile_rows, TensorMap* map);

}  // namespace nvfp4
