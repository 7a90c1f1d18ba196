// SPDX-License-Identifier: MIT
// The 32-bit instruction descriptor of tcgen05.mma (PTX ISA tables 42 to 44).
//
//   31 30 29 28 27 26 24 23 22    17 16 15 14 13 12 10 9  7 6 5   4 3 2 1 0
//  |k| sfa  | m/128| 0  |st| n/8    |tb|ta|nb|na| b   | a  |0| sfb |0|s| 0 |   block scaled
//  | 0  |0|    m/16     | 0| n/8    |tb|ta|nb|na| b   | a  |0|  d  |t|s| 0 |   the other kinds
//   31 30 29 28       24 23
#pragma once

#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

constexpr bool is_block_scaled(MmaKind k) { return k >= MmaKind::mxf8f6f4; }
constexpr bool is_packed_fp4(MmaKind k) { return k >= MmaKind::mxf4; }

struct MmaShape {
  uint32_t m = 128, n = 0;  // of the instruction, over both CTAs of a pair
  ElementType a = ElementType::e2m1, b = ElementType::e2m1;
  AccumulatorType d = AccumulatorType::f32;
  bool negate_a = false, negate_b = false;
  bool transpose_a = false, transpose_b = false;  // M-major, N-major operands in shared memory
  bool saturate = false;                          // kind::i8
  ScaleType scale = ScaleType::ue4m3;
  uint32_t block = 16;              // elements of K per scale
  uint32_t sfa_id = 0, sfb_id = 0;  // the byte of a scale word where a row's scales start
};

// Throws Fault illegal_instruction that explains each wrong field. `block` is 16 (.scale_vec::4X)
// or 32, and means nothing without block scaling; `pair` says .cta_group::2, `weights` says .ws.
MmaShape decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t block, bool pair,
                                       bool weights = false);

}  // namespace emu
