// SPDX-License-Identifier: MIT
// The 32-bit instruction descriptor of block-scaled tcgen05.mma (PTX ISA table 45).
//
//   31 30 29 28 27 26 24 23 22    17 16 15 14 13 12 10 9  7 6 5   4 3 2 1 0
//  |k| sfa  | m/128| 0  |st| n/8    |tb|ta|nb|na| b   | a  |0| sfb |0|s| 0 |
#pragma once

#include <cstdint>

namespace emu {

enum class MmaKind : uint8_t { mxf4, mxf4nvf4 };  // both: e2m1 x e2m1, K = 64
enum class ScaleType : uint8_t { ue4m3, ue8m0 };

struct MmaShape {
  uint32_t m = 128, n = 0;  // of the instruction, over both CTAs of a pair
  ScaleType scale = ScaleType::ue4m3;
  uint32_t block = 16;              // elements of K per scale
  uint32_t sfa_id = 0, sfb_id = 0;  // which bytes of a scale word: 0, or 2 with two scales per row
  bool negate_a = false, negate_b = false;
};

// Throws Fault illegal_instruction that explains each wrong field. `block` is 16 (.scale_vec::4X)
// or 32 (.scale_vec::2X); `pair` says .cta_group::2.
MmaShape decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t block, bool pair);

}  // namespace emu
