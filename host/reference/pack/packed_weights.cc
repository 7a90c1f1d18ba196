// SPDX-License-Identifier: MIT
#include "host/reference/pack/packed_weights.h"

namespace nvfp4 {

namespace {

// 128 times the scale is 2^(e - 15) * (1 + m / 8); the smallest UE4M3 exponent is that of 2^-6.
uint8_t ue4m3_of(uint32_t byte) {
  const uint32_t e = byte / 8, m = byte % 8;
  if (e == 31) return 0x7F;
  if (e == 0) return 0;
  return static_cast<uint8_t>(e >= 16 ? (e - 15) * 8 + m : (8 + m) >> (16 - e));
}

}  // namespace

// A word has the codes that one lane of a warp multiplies in a step of 16: of rows g and g + 8, and
// of columns 2c, 2c + 1, 2c + 8 and 2c + 9, for the lane 4g + c.
uint8_t PackedWeights::code_sm90(int64_t row, int64_t k) const {
  const int64_t g = row % 8, c = k % 8 / 2;
  const uint8_t* const lane = unit(row, k) + row % 64 / 16 * 512 + (4 * g + c) * 16;
  const uint8_t* const half = lane + k % 64 / 16 * 4 + k % 2 * 2;
  const uint32_t bits = half[0] | static_cast<uint32_t>(half[1]) << 8;
  switch (row / 8 % 2 + k / 8 % 2 * 2) {
    case 0: return static_cast<uint8_t>((bits & 7) | (bits >> 13 & 1) << 3);
    case 1: return static_cast<uint8_t>((bits >> 3 & 7) | (bits >> 12 & 1) << 3);
    case 2: return static_cast<uint8_t>((bits >> 6 & 7) | (bits >> 15 & 1) << 3);
    default: return static_cast<uint8_t>((bits >> 9 & 7) | (bits >> 14 & 1) << 3);
  }
}

// A word has two blocks of row g, then two of row g + 8.
uint8_t PackedWeights::scale_sm90(int64_t row, int64_t ks) const {
  const int64_t blocks = of_32() ? 2 : 4;  // of a unit
  const int64_t words = row % 64 / 16 * 8 * (blocks / 2) + row % 8 * (blocks / 2) + ks % blocks / 2;
  const uint8_t* const scales = unit(row, ks / blocks * 64) + 2048;
  const uint8_t byte = scales[words * 4 + row / 8 % 2 * 2 + ks % 2];
  return format_ == NVFP4_OPERAND_FORMAT_NVFP4 ? ue4m3_of(byte) : byte;
}

// A row of a block has K rounded up to four scales, and each k-block 256 of it, the last one those
// that are left.
PackedWeights::KBlock PackedWeights::k_block(int64_t row, int64_t k) const {
  const int64_t unit_k = of_32() ? 128 : 64, rounded = (k_ + unit_k - 1) / unit_k * unit_k;
  const int64_t elements = row / 128 * 128 * rounded + k / 256 * 256 * 128;
  const int64_t left = rounded - k / 256 * 256;
  return {units_ + elements / 2 + elements / (of_32() ? 32 : 16), left < 256 ? left : 256};
}

uint8_t PackedWeights::code(int64_t row, int64_t k) const {
  if (packing_ == NVFP4_PACKING_SM90_1) return code_sm90(row, k);
  const KBlock block = k_block(row, k);
  const int64_t r = row % 128, chunk = k % 256 / 32;
  const int64_t at = block.k == 256 ? r * 8 + (chunk ^ r % 8) : chunk * 128 + r;
  const uint8_t byte = block.first[at * 16 + k % 32 / 2];
  return k % 2 == 0 ? byte & 15 : byte >> 4;
}

uint8_t PackedWeights::scale(int64_t row, int64_t ks) const {
  if (packing_ == NVFP4_PACKING_SM90_1) return scale_sm90(row, ks);
  const int64_t block_k = of_32() ? 32 : 16;
  const KBlock block = k_block(row, ks * block_k);
  const int64_t tile = ks * block_k % 256 / (4 * block_k), r = row % 128;
  return block.first[block.k * 64 + tile * 512 + r % 32 * 16 + r / 32 * 4 + ks % 4];
}

PackedWeights packed_batch(const nvfp4_gemm_desc& g, const void* b, int64_t batch) {
  const int64_t of_32 = g.operand_format == NVFP4_OPERAND_FORMAT_MXFP4;
  const int64_t stride = g.b_batch_stride;
  const auto* const first = static_cast<const uint8_t*>(b);
  return {first + batch * (stride / 2 + stride / (of_32 ? 32 : 16)), g.k, g.operand_format,
          g.b_packing};
}

}  // namespace nvfp4
