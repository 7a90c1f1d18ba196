// SPDX-License-Identifier: MIT
// All arithmetic on sizes, strides and addresses. Functions whose result could pass 2^63 - 1 report
// it.
#pragma once

#include <cstdint>

namespace nvfp4 {

constexpr int64_t kScaleBlock = 16;        // NVFP4: elements of K per scale
constexpr int64_t kLayoutTileRows = 128;   // 128x4 layout: rows of a tile,
constexpr int64_t kLayoutTileScales = 4;   // scales of a row of a tile,
constexpr int64_t kLayoutTileBytes = 512;  // bytes of a tile

// For value >= 0; no overflow at the top of the range.
constexpr int64_t ceil_div(int64_t value, int64_t by) { return value / by + (value % by != 0); }

// False if the true result does not fit.
inline bool add(int64_t a, int64_t b, int64_t* sum) { return !__builtin_add_overflow(a, b, sum); }
inline bool multiply(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

// Bytes of the scales of a [rows, k] matrix; false for a size below 0, a k that is no multiple of
// 16, an unknown layout, or more than 2^63 - 1 bytes.
bool scale_bytes(int64_t rows, int64_t k, int32_t layout, int64_t* bytes);

// The same for a format, an NVFP4_OPERAND_FORMAT; false also for an unknown one.
bool scale_bytes_for(int64_t rows, int64_t k, int32_t layout, int32_t format, int64_t* bytes);

// Most bytes that the scales of `rows` rows can take, however they are divided among groups, each
// of which begins a tile. False also if there are rows but no group.
bool grouped_scale_bytes(int64_t rows, int64_t groups, int64_t k, int32_t layout, int32_t format,
                         int64_t* bytes);

// Units from the first to the last of `count` spans that start `stride` apart:
// (count - 1) * stride + span. All >= 0, count >= 1.
bool extent(int64_t count, int64_t stride, int64_t span, int64_t* units);

// Half-open range of addresses. An empty range overlaps nothing.
struct AddressRange {
  uint64_t begin, end;
  bool meets(const AddressRange& other) const {
    return begin < other.end && other.begin < end && begin != end && other.begin != other.end;
  }
};

// False if the range would pass the end of the address space.
bool address_range(const void* first, int64_t bytes, AddressRange* range);

}  // namespace nvfp4
