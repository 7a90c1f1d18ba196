// SPDX-License-Identifier: MIT
// The shared memory descriptor of wgmma's B operand, bit by bit (PTX ISA 9.7.15.5.1). ptxas checks
// none of these bits, so every value here is pinned by a static assertion worked out by hand.
//
//   63   62 61  52 51  49 48 46 45        32 31 30 29        16 15 14 13           0
//  |swizzle|   0  | base |   0  | stride/16  |  0  |  lead/16   |  0  | address/16    |
//
// swizzle  1: 128 bytes; 0: none.
// address  .shared::cta byte address, masked to 18 bits: the CTA rank sits in bits 24 and up.
#pragma once

#include <cstdint>

#include "kernel/common/bits.h"

namespace nvfp4 {

// An operand with the 128-byte swizzle, for which hardware ignores `lead`. A step of 16 fp16
// elements along K adds 32 bytes to the address.
NVFP4_HOST_DEVICE constexpr uint64_t wgmma_descriptor(uint32_t address) {
  return bits((address & 0x3FFFF) >> 4, 0, 14)  //
         | bits(1024 >> 4, 32, 14)              //
         | bits(1, 62, 2);
}
static_assert(wgmma_descriptor(0x8400) == 0x4000004000000840);
// The descriptor for a lower word to which multiples of 16 bytes have been added.
NVFP4_HOST_DEVICE constexpr uint64_t wgmma_descriptor_from_low(uint32_t low) {
  return wgmma_descriptor(0) | low;
}
static_assert(wgmma_descriptor_from_low(0x840) == wgmma_descriptor(0x8400));

// An operand without swizzle: 8 rows of 16 bytes are contiguous, `lead` bytes from one 16-byte
// column to the next, `stride` from one group of 8 rows to the next.
NVFP4_HOST_DEVICE constexpr uint64_t wgmma_plain_descriptor(uint32_t address, uint32_t lead,
                                                            uint32_t stride) {
  return bits((address & 0x3FFFF) >> 4, 0, 14)  //
         | bits(lead >> 4, 16, 14)              //
         | bits(stride >> 4, 32, 14);
}
static_assert(wgmma_plain_descriptor(0x8400, 128, 256) == 0x0000001000080840);

}  // namespace nvfp4
