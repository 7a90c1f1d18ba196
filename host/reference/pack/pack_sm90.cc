// SPDX-License-Identifier: MIT
// NVFP4_PACKING_SM90_1. Walks the packed bytes in their order: word after word, each with the eight
// codes of a lane and a step, then the scales.
#include <cstring>

#include "host/reference/pack/matrix_of_call.h"

namespace nvfp4 {

namespace {

constexpr int kSlabs = 4, kSlabRows = 16;  // of a unit, and the rows of one
constexpr int kLanes = 32, kSteps = 4;     // of a slab, and 16 of K each
constexpr int kCodesBytes = kSlabs * kLanes * kSteps * 4;

// ---- Scales ------------------------------------------------------------------------------------

constexpr uint8_t kNan = 0x7F, kPackedNan = 0xFF;

// UE4M3 has 4 bits of exponent and 3 of mantissa, below 2^-6 without a hidden bit. Packed, a scale
// has 5 bits of exponent, of which 15 is 2^-7, and a hidden bit always: bits 14 to 7 of 128 times
// the scale in fp16.
uint8_t packed_scale(uint8_t scale) {
  const int exponent = scale >> 3 & 0xF;
  int mantissa = scale & 7;
  if ((scale & kNan) == kNan) return kPackedNan;
  if (exponent > 0) return static_cast<uint8_t>((exponent + 15) << 3 | mantissa);
  if (mantissa == 0) return 0;
  int shift = 0;
  while ((mantissa << shift & 8) == 0) ++shift;
  return static_cast<uint8_t>((16 - shift) << 3 | (mantissa << shift & 7));
}

uint8_t unpacked_scale(uint8_t packed) {
  const int exponent = (packed >> 3) - 15, mantissa = packed & 7;
  if (packed == kPackedNan) return kNan;
  if (packed == 0) return 0;
  if (exponent > 0) return static_cast<uint8_t>(exponent << 3 | mantissa);
  return static_cast<uint8_t>((8 | mantissa) >> (1 - exponent));
}

// ---- Places ------------------------------------------------------------------------------------

// A pair of codes in a word: those of elements k and k + 1 of a row. In bits, from 0 on, the
// magnitudes of pairs 0 to 3, then their signs in the order 1 0 3 2; the second code 16 higher.
struct Pair {
  int64_t row, k;  // in the unit
  int magnitude, sign;
};
Pair pair_of(int slab, int lane, int step, int pair) {
  const int row = slab * kSlabRows + lane / 4 + pair % 2 * 8;
  const int k = step * 16 + lane % 4 * 2 + pair / 2 * 8;
  return {row, k, 3 * pair, 12 + (pair ^ 1)};
}

uint32_t placed(const Pair& at, uint32_t code) {
  return (code & 7) << at.magnitude | code >> 3 << at.sign;
}
uint32_t taken(const Pair& at, uint32_t word) {
  return (word >> at.magnitude & 7) | (word >> at.sign & 1) << 3;
}

// visit(word, step, pair) for each of a unit's codes; the words in the order of memory.
template <typename Visit>
void each_pair(Visit visit) {
  for (int word = 0; word < kSlabs * kLanes * kSteps; ++word) {
    const int slab = word / (kLanes * kSteps), lane = word / kSteps % kLanes, step = word % kSteps;
    for (int pair = 0; pair < 4; ++pair) visit(4 * word, pair_of(slab, lane, step, pair));
  }
}

// visit(byte, row, k) for each of a unit's scales. Four bytes belong to rows g and g + 8 of a slab:
// two neighbouring blocks of K of the one, then of the other.
template <typename Visit>
void each_scale(int64_t block, Visit visit) {
  const int blocks = static_cast<int>(kSteps * 16 / block);  // of a row
  for (int byte = 0; byte < kSlabs * kSlabRows * blocks; ++byte) {
    const int slab = byte / (kSlabRows * blocks), in_slab = byte % (kSlabRows * blocks);
    const int g = in_slab / (2 * blocks), word = in_slab / 4 % (blocks / 2);
    const int row = slab * kSlabRows + g + byte % 4 / 2 * 8;
    visit(kCodesBytes + byte, row, (2 * word + byte % 2) * block);
  }
}

void pack_unit(const MatrixOfCall& m, int64_t first_row, int64_t first_k, uint8_t* unit) {
  memset(unit, 0, kCodesBytes);
  each_pair([&](int at, const Pair& pair) {
    if (!m.has(first_row + pair.row, first_k + pair.k)) return;
    const uint32_t codes = *m.codes(first_row + pair.row, first_k + pair.k);
    uint32_t word;
    memcpy(&word, unit + at, sizeof word);
    word |= placed(pair, codes & 15) | placed(pair, codes >> 4) << 16;
    memcpy(unit + at, &word, sizeof word);
  });
  each_scale(m.block(), [&](int byte, int64_t row, int64_t k) {
    const bool there = m.has(first_row + row, first_k + k);
    const uint8_t scale = there ? *m.scale(first_row + row, first_k + k) : 0;
    unit[byte] = there && m.has_ue4m3() ? packed_scale(scale) : scale;
  });
}

void unpack_unit(const MatrixOfCall& m, int64_t first_row, int64_t first_k, const uint8_t* unit) {
  each_pair([&](int at, const Pair& pair) {
    if (!m.has(first_row + pair.row, first_k + pair.k)) return;
    uint32_t word;
    memcpy(&word, unit + at, sizeof word);
    *m.codes(first_row + pair.row, first_k + pair.k) =
        static_cast<uint8_t>(taken(pair, word) | taken(pair, word >> 16) << 4);
  });
  each_scale(m.block(), [&](int byte, int64_t row, int64_t k) {
    if (!m.has(first_row + row, first_k + k)) return;
    *m.scale(first_row + row, first_k + k) =
        m.has_ue4m3() ? unpacked_scale(unit[byte]) : unit[byte];
  });
}

template <typename Convert>
void each_unit(const MatrixOfCall& m, int64_t row_block, Convert convert) {
  for (int64_t i = 0; i < m.k_units(); ++i) {
    convert(m, row_block * m.unit_rows(), i * m.unit_k(), m.unit(row_block, i));
  }
}

}  // namespace

void pack_sm90(const MatrixOfCall& m, int64_t row_block) { each_unit(m, row_block, pack_unit); }
void unpack_sm90(const MatrixOfCall& m, int64_t row_block) { each_unit(m, row_block, unpack_unit); }

}  // namespace nvfp4
