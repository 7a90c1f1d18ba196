// SPDX-License-Identifier: MIT
// Elements of tcgen05.mma operands as integers.
#pragma once

#include <cstdint>

#include "tools/emulator/arithmetic/mma_types.h"

namespace emu {

// significand * 2^(exponent - fraction bits of the type); a zero has exponent -126.
struct Element {
  enum class Class : uint8_t { finite, infinite, nan };
  int32_t significand = 0, exponent = -126;
  Class cls = Class::finite;
};

uint32_t element_count(ElementType t);  // in 32 bytes of K
int fraction_bits(ElementType t);

// The elements of 32 bytes of K. 4- and 6-bit types: 16 of them packed at the start of each 16
// bytes (PTX ISA 9.7.16.10.4.4), as all kinds but mxf4 and mxf4nvf4 have them.
void decode_elements(ElementType t, const uint8_t* bytes, Element* to);

}  // namespace emu
