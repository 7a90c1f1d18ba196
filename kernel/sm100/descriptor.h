// SPDX-License-Identifier: MIT
// The two descriptors of tcgen05.mma, bit by bit. ptxas checks none of these bits, so every value
// here is pinned by a static assertion worked out by hand and by a test against CUTLASS's values.
#pragma once

#include <cstdint>

#include "kernel/common/bits.h"

namespace nvfp4 {

enum class Swizzle : uint32_t { none = 0, b128 = 2, b64 = 4, b32 = 6 };

// Shared memory descriptor, PTX ISA 9.7.16.4.1, of a K-major operand or of tcgen05.cp's source:
//
//   63   61 60      53 52 51  49 48 46 45        32 31 30 29        16 15 14 13           0
//  |swizzle|    0    | 0| base | 001  | stride/16  |  0  |  lead/16   |  0  | address/16    |
//
// address  .shared::cta byte address. Masked to 18 bits: in a cluster the CTA rank sits in bits 24
//          and up of a shared address and would spill into `lead`.
// stride   bytes from one group of 8 rows to the next (1024 for the 128-byte swizzle).
// lead     bytes from one 16-byte column to the next; only the layout without swizzle reads it.
// base     0: the 8-row pattern starts on its natural boundary (1024 bytes for 128-byte swizzle).
NVFP4_HOST_DEVICE constexpr uint64_t smem_descriptor(uint32_t address, uint32_t lead,
                                                     uint32_t stride, Swizzle swizzle) {
  return bits((address & 0x3FFFF) >> 4, 0, 14)  //
         | bits(lead >> 4, 16, 14)              //
         | bits(stride >> 4, 32, 14)            //
         | bits(0b001, 46, 3)                   //
         | bits(static_cast<uint32_t>(swizzle), 61, 3);
}

// Operand tile of 128-byte rows (256 E2M1 elements of K) with the 128-byte swizzle. A step of 64
// along K is 32 bytes. Add it to the address: the hardware applies the swizzle after the addition.
NVFP4_HOST_DEVICE constexpr uint64_t operand_descriptor(uint32_t address) {
  return smem_descriptor(address, 0, 1024, Swizzle::b128);
}
static_assert(operand_descriptor(0x400) == 0x4000404000000040);
static_assert(operand_descriptor(0x400 + 32) == 0x4000404000000042);
static_assert(operand_descriptor(0x03000400) == 0x4000404000000040, "rank bits fall off");

// One 512-byte scale tile for tcgen05.cp.32x128b: 32 rows of 16 bytes, read linearly.
NVFP4_HOST_DEVICE constexpr uint64_t scale_descriptor(uint32_t address) {
  return smem_descriptor(address, 0, 128, Swizzle::none);
}
static_assert(scale_descriptor(0x8400) == 0x0000400800000840);
static_assert(scale_descriptor(0x8400 + 512) == 0x0000400800000860);

// Packed weights of a k-block with fewer units than others have (docs/packing.md): columns of 128
// rows x 16 bytes, without swizzle. A step is two columns.
constexpr uint32_t kColumnBytes = 128 * 16;
NVFP4_HOST_DEVICE constexpr uint64_t column_descriptor(uint32_t address) {
  return smem_descriptor(address, kColumnBytes, 128, Swizzle::none);
}
static_assert(column_descriptor(0x400) == 0x0000400800800040);

// Descriptor of the data `bytes` further on. One addition suffices while the address field does not
// overflow, which holds below 256 KB.
NVFP4_HOST_DEVICE constexpr uint64_t advance(uint64_t descriptor, uint32_t bytes) {
  return (descriptor >> 32) << 32 | (static_cast<uint32_t>(descriptor) + (bytes >> 4));
}
static_assert(advance(operand_descriptor(0x400), 32) == operand_descriptor(0x420));
static_assert(advance(scale_descriptor(0x8400), 512) == scale_descriptor(0x8600));

// Instruction descriptor of kind::mxf4nvf4 with block scales, PTX ISA 9.7.16.4.2 (table 45):
//
//   31   30 29 28  27 26 24  23   22 17  16   15   14   13  12 11   10 9     7  6  5  4  3  2  1 0
//  |K=96| SFA |M/128|  0   |E8M0| N/8  |trB |trA |negB|negA| 0| type B| type A| 0| SFB | 0|sp| 0 |
//
// A and B are E2M1 (code 1 in this kind), K-major, not negated; scales are UE4M3 (bit 23 = 0) with
// scale ids 0, the only legal ones for one scale per 16; dense; K = 64.
//
// With UE8M0 scales bit 23 is 1. Where 32 elements share a scale (kind::mxf4), a column of tensor
// memory has the scales of two steps, and the ids (0 or 2) select two of its four bytes.
//
// N of block-scaled MMAs: 8 to 256, a multiple of 8, or of 16 where a pair has M = 256.
template <uint32_t kMmaM>
NVFP4_HOST_DEVICE constexpr uint32_t instruction_descriptor(uint32_t n) {
  static_assert(kMmaM == 128 || kMmaM == 256, "of one CTA, and of a pair with 128 rows each");
  return static_cast<uint32_t>(bits(1, 7, 3)         // A: E2M1
                               | bits(1, 10, 2)      // B: E2M1
                               | bits(n / 8, 17, 6)  //
                               | bits(kMmaM / 128, 27, 2));
}
static_assert(instruction_descriptor<128>(8) == 0x08020480);
static_assert(instruction_descriptor<128>(64) == 0x08100480);
static_assert(instruction_descriptor<128>(128) == 0x08200480);
static_assert(instruction_descriptor<128>(256) == 0x08400480);
static_assert(instruction_descriptor<256>(256) == 0x10400480);

constexpr uint32_t kUe8m0Scales = 1u << 23;
constexpr uint32_t kUpperScales = 2u << 29 | 2u << 4;
static_assert((instruction_descriptor<128>(128) | kUe8m0Scales) == 0x08A00480);
static_assert((instruction_descriptor<128>(128) | kUe8m0Scales | kUpperScales) == 0x48A004A0);
static_assert((instruction_descriptor<256>(256) | kUe8m0Scales | kUpperScales) == 0x50C004A0);

// Tensor memory address: 31..16 lane, 15..0 column.
NVFP4_HOST_DEVICE constexpr uint32_t tmem_address(uint32_t lane, uint32_t column) {
  return lane << 16 | column;
}
static_assert(tmem_address(96, 128) == 0x00600080);

}  // namespace nvfp4
