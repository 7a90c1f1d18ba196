// SPDX-License-Identifier: MIT
// The arithmetic of one wgmma.mma_async, or of one tcgen05.mma step of the kinds that add product
// by product (f16, tf32, f8f6f4, mxf8f6f4, i8): 32 bytes of K per row, bit for bit after the
// published model (MMA-Sim, arXiv 2511.10909):
//
//   * the exact products and the accumulator are aligned to the largest exponent among them, cut
//     toward zero to 25 fractional bits, and added exactly; scales only add to exponents;
//   * the sum is rounded toward zero to fp32, or to nearest even to fp16;
//   * `narrow`, 8-bit floats on Hopper: 13 fractional bits instead of 25, in an fp32 result too.
//
// A product with a zero factor has the exponent -126 plus the exponents of the other factor and of
// the scales; if `zero_raises` is false, it has the exponent -126. Both readings are published. The
// second is what an H200 does in wgmma and mma.sync of fp16 and 8-bit floats
// (test/h200/zero_product_probe). NaN, and infinities that meet their opposite or zero, give
// 0x7FFFFFFF or 0x7FFF.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

struct DotOperands {
  const uint8_t* a;          // rows x 32 bytes
  const uint8_t* b;          // n x 32 bytes
  const uint8_t *sfa, *sfb;  // one ue8m0 code per row, or nullptr
  uint32_t rows, n;
  ElementType a_type, b_type;
  AccumulatorType d_type;
  bool negate_a, negate_b, saturate;
  bool accumulate, zero_raises;
  uint32_t scale_d;  // the accumulator counts as itself times 2^-scale_d
  bool narrow = false;
  bool zero_absent = false;  // the model of groups: zeros have no exponent, and no sum is -0
};

// d: rows x n accumulator words, row r at d + r * stride; they are only read if `accumulate`.
// fp16 has the low half of a word.
void mma_dot(const DotOperands& operands, uint32_t* d, size_t stride);

}  // namespace emu
