// SPDX-License-Identifier: MIT
// A matrix of quantized or 16-bit elements on the host, and what its elements are drawn from.
//
// Scales are kept linear, one byte per row and block; only the copy for the device is
// interleaved, by nvfp4_scale_convert_host, where the operand has that layout. So the reference
// never sees the tiles that a kernel reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"

namespace support {

// Formats of quantized elements as the header's prose has them.
enum class ScaleType { ue4m3, ue8m0 };
struct ScaledFormat {
  int32_t format, d_type;  // of an operand, of a D
  int64_t block;           // elements per scale
  ScaleType scale;
};
constexpr ScaledFormat kScaledFormats[] = {
    {NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_TYPE_NVFP4, 16, ScaleType::ue4m3},
    {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_TYPE_MXFP4, 32, ScaleType::ue8m0},
    {NVFP4_OPERAND_FORMAT_E2M1_UE8M0, NVFP4_TYPE_E2M1_UE8M0, 16, ScaleType::ue8m0}};
std::vector<int32_t> ue8m0_formats();
const ScaledFormat& row_of(int32_t format);  // throws where there is no such format
inline int64_t block_of(int32_t format) { return row_of(format).block; }
int32_t format_of_d(int32_t d_type);       // throws where such a D has no scales
int64_t scale_block_of_d(int32_t d_type);  // 0 where it has none

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint32_t below(uint32_t limit) { return uint32_t((next() >> 32) * limit >> 32); }

 private:
  uint64_t state_;
};

template <typename T>
std::vector<uint8_t> bytes_of(const T* first, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), first, bytes.size());
  return bytes;
}

// Elements from a packed matrix to the next: those of whole units.
inline int64_t packed_stride(int64_t rows, int64_t k, int32_t packing, int32_t format) {
  const int64_t block = block_of(format);  // its elements have block / 2 + 1 bytes
  return int64_t(nvfp4_packed_bytes(rows, k, packing, format)) / (block + 2) * 2 * block;
}

// One of A and B. `codes` has every byte from the first to the last element, gaps included.
struct Operand {
  int64_t rows = 0, k = 0, l = 1;
  int64_t ld = 0, batch_stride = 0;  // elements
  int32_t format = NVFP4_OPERAND_FORMAT_NVFP4;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;  // linear, [l][rows][k / block()], batches 16-byte aligned

  int32_t layout = NVFP4_SCALE_LAYOUT_128X4;  // of the scales on the device

  // An A that is not quantized has neither codes nor scales: its type, and as `codes` its elements.
  int32_t type = NVFP4_TYPE_NONE;
  std::vector<uint16_t> halves;

  bool quantized() const { return type == NVFP4_TYPE_NONE; }
  double half(int64_t batch, int64_t row, int64_t at) const;
  void set_half(int64_t batch, int64_t row, int64_t at, uint16_t bits);

  size_t code_byte(int64_t batch, int64_t row, int64_t at) const;  // where in `codes`
  uint8_t code(int64_t batch, int64_t row, int64_t at) const;
  void set_code(int64_t batch, int64_t row, int64_t at, uint8_t code);
  uint8_t scale(int64_t batch, int64_t row, int64_t block) const;
  void set_scale(int64_t batch, int64_t row, int64_t block, uint8_t byte);

  int64_t block() const { return block_of(format); }
  bool ue8m0() const { return row_of(format).scale == ScaleType::ue8m0; }
  double scale_value(uint8_t byte) const;
  int64_t scales_stride() const { return (rows * (k / block()) + 15) / 16 * 16; }

  // Its elements as memory has them.
  std::vector<uint8_t> elements() const;
  // Elements and scales of all matrices, packed without gaps; the elements from one to the next.
  std::vector<uint8_t> packed(int32_t packing) const;
  int64_t packed_stride(int32_t packing) const {
    return support::packed_stride(rows, k, packing, format);
  }
  // The same for tokens, in NVFP4_PACKING_SM90_TOKENS_1.
  std::vector<uint8_t> packed_tokens() const;
  int64_t packed_tokens_stride() const { return rows * ((k + 255) / 256) * 256; }

  // The scales in 128x4 tiles, each byte that belongs to no element holding `poison`.
  std::vector<uint8_t> interleaved_scales(uint8_t poison) const;

  // The scales as `layout` says, `gap` bytes of poison between batches, and from one to the next.
  std::vector<uint8_t> device_scales(uint8_t poison, int64_t gap) const;
  int64_t device_scales_stride(int64_t gap, int32_t as_layout) const;
};

// The same with the rows of each matrix in the opposite order: what b2 of a gated product is of b.
Operand with_rows_reversed(const Operand& from);

// From one row of codes to the next where no gap is asked for: rows begin at multiples of 16 bytes.
int64_t close_ld(int64_t k);

}  // namespace support
