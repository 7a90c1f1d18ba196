// SPDX-License-Identifier: MIT
// NVFP4_PACKING_SM100_1. Walks the packed bytes in their order: those of each k-block's codes, then
// those of its scales.
#include <algorithm>

#include "host/reference/pack/matrix_of_call.h"

namespace nvfp4 {

namespace {

constexpr int64_t kRows = 128, kBlockK = 256;         // of a k-block
constexpr int64_t kRowBytes = kBlockK / 2;            // of its codes
constexpr int64_t kTileBytes = 512, kTileScales = 4;  // 128x4 scales

// The units of a k-block, or the last ones of a row of them.
struct Units {
  uint8_t* first;
  int64_t row, k;  // in the matrix
  int64_t count, unit_k;
  int64_t code_bytes() const { return count * kRows * unit_k / 2; }
  bool swizzled() const { return count * unit_k == kBlockK; }
};

struct Place {
  int64_t row, k;  // in the k-block
};

// The elements of a byte of codes. Rows of 128 bytes, whose chunks of 16 bytes change places by the
// row, as in shared memory with the 128-byte swizzle; or one chunk of all rows after the other.
Place place_of_codes(const Units& of, int64_t byte) {
  if (!of.swizzled()) return {byte / 16 % kRows, byte / (16 * kRows) * 32 + byte % 16 * 2};
  const int64_t row = byte / kRowBytes, chunk = (byte % kRowBytes / 16) ^ (row % 8);
  return {row, chunk * 32 + byte % 16 * 2};
}

// The first element that a scale is for.
Place place_of_scale(int64_t byte, int64_t block) {
  const int64_t in_tile = byte % kTileBytes;
  const int64_t row = in_tile / 16 + in_tile % 16 / 4 * 32;
  return {row, (byte / kTileBytes * kTileScales + in_tile % 4) * block};
}

// visit(byte, row, k) for the bytes whose first element there is.
template <typename Codes, typename Scales>
void each_byte(const MatrixOfCall& m, const Units& of, Codes codes, Scales scales) {
  for (int64_t i = 0; i < of.code_bytes(); ++i) {
    const Place at = place_of_codes(of, i);
    codes(of.first + i, of.row + at.row, of.k + at.k);
  }
  for (int64_t i = 0; i < of.count * kTileBytes; ++i) {
    const Place at = place_of_scale(i, m.block());
    scales(of.first + of.code_bytes() + i, of.row + at.row, of.k + at.k);
  }
}

template <typename Convert>
void each_k_block(const MatrixOfCall& m, int64_t row_block, Convert convert) {
  const int64_t of_block = kBlockK / m.unit_k();
  for (int64_t i = 0; i < m.k_units(); i += of_block) {
    convert(Units{m.unit(row_block, i), row_block * kRows, i * m.unit_k(),
                  std::min(of_block, m.k_units() - i), m.unit_k()});
  }
}

// Bit 7 of a UE4M3 scale is 0.
uint8_t kept(const MatrixOfCall& m, uint8_t scale) {
  return m.has_ue4m3() ? static_cast<uint8_t>(scale & 0x7F) : scale;
}

}  // namespace

void pack_sm100(const MatrixOfCall& m, int64_t row_block) {
  each_k_block(m, row_block, [&](const Units& of) {
    each_byte(
        m, of,
        [&](uint8_t* to, int64_t row, int64_t k) { *to = m.has(row, k) ? *m.codes(row, k) : 0; },
        [&](uint8_t* to, int64_t row, int64_t k) {
          *to = m.has(row, k) ? kept(m, *m.scale(row, k)) : 0;
        });
  });
}

void unpack_sm100(const MatrixOfCall& m, int64_t row_block) {
  each_k_block(m, row_block, [&](const Units& of) {
    each_byte(
        m, of,
        [&](const uint8_t* from, int64_t row, int64_t k) {
          if (m.has(row, k)) *m.codes(row, k) = *from;
        },
        [&](const uint8_t* from, int64_t row, int64_t k) {
          if (m.has(row, k)) *m.scale(row, k) = *from;
        });
  });
}

}  // namespace nvfp4
