// SPDX-License-Identifier: MIT
#include "host/reference/pack/tokens.h"

#include <cstring>

#include "host/base/formats.h"

namespace nvfp4 {

namespace {

constexpr int64_t kBlockOfK = 256;
constexpr uint16_t kHalfNan = 0x7FFF;

// A UE4M3 scale is an integer times 2^-9, and a doubled element one, so together with 2^-7 the unit
// is 2^-17. Every product is a number of fp16.
uint16_t half_of(uint32_t code, uint8_t scale) {
  if (is_nan_scale(scale)) return kHalfNan;
  const int32_t magnitude = e2m1_doubled(code & 7) * ue4m3_units(scale);
  const uint32_t bits = round_to(kF16, static_cast<uint64_t>(magnitude), -17);
  return static_cast<uint16_t>(bits | (code & 8) << 12);
}

}  // namespace

// A k-block of 256 has four slabs, each with 128 bytes of every row.
uint8_t* PackedTokens::at(int64_t row, int64_t k) const {
  const int64_t within = k % kBlockOfK;
  const int64_t c = within / 64, j = within % 64 / 8, n = within % 8;
  const int64_t slab = k / kBlockOfK * 4 + j / 2;
  const int64_t chunk = (j % 2 * 4 + n % 4) ^ (row % 8);
  return memory_ + (slab * rows_ + row) * 128 + chunk * 16 + c * 4 + n / 4 * 2;
}

void PackedTokens::clear() const {
  const int64_t blocks = (k_ + kBlockOfK - 1) / kBlockOfK;
  memset(memory_, 0, static_cast<size_t>(blocks * rows_) * kBlockOfK * sizeof(uint16_t));
}

void PackedTokens::set_block(int64_t row, int64_t k, const uint8_t* codes, uint8_t scale) const {
  for (int64_t i = 0; i < 16; ++i) {
    const uint16_t half = half_of(codes[i / 2] >> (i % 2 * 4) & 0xF, scale);
    memcpy(at(row, k + i), &half, sizeof half);
  }
}

uint16_t PackedTokens::half(int64_t row, int64_t k) const {
  uint16_t half;
  memcpy(&half, at(row, k), sizeof half);
  return half;
}

F32 PackedTokens::value(int64_t row, int64_t k) const {
  const F32 half{widen(kF16, this->half(row, k))};
  return half.is_nan() ? kNan : half * F32{0x43000000};  // 2^7
}

}  // namespace nvfp4
