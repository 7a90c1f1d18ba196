// SPDX-License-Identifier: MIT
// What the driver asks of the arguments of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#pragma once

#include <string>

#include "tools/emulator/hardware/tensor_map.h"

namespace emu {

// The codes of CUtensorMapDataType and CUtensorMapSwizzle that a width alone does not describe.
enum TypeCode : uint32_t {
  f32_ftz = 10,
  tf32 = 11,
  tf32_ftz = 12,
  u4_align8 = 13,
  u4_align16 = 14,
  u6_align16 = 15,
  type_count = 16
};
enum SwizzleCode : uint32_t { atom_32b = 4, atom_32b_flip_8b = 5, atom_64b = 6, swizzle_count = 7 };

constexpr uint32_t max_box = 256;          // elements along one dimension
constexpr uint32_t max_pixels = 1024;      // of a column
constexpr uint32_t padded_elements = 128;  // of a row of u4_align16 and u6_align16

// A sentence, or nothing. Return codes of tiled maps were confirmed on an H200 with driver 580.
std::string tiled_errors(const TensorMapArguments& arguments, int capability);
std::string im2col_errors(const TensorMapArguments& arguments, const Im2colArguments& im2col,
                          int capability);

// Bits of an element.
uint32_t bits_of_type(uint32_t type);

}  // namespace emu
