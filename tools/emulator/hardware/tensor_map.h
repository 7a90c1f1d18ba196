// SPDX-License-Identifier: MIT
// A tensor map (CUtensorMap) in fields, which tensormap.replace edits one by one. Its 128 bytes in
// memory are an EncodedMap (tensor_map_bits.h).
#pragma once

#include <cstdint>
#include <string>

#include "tools/emulator/hardware/swizzle.h"

namespace emu {

// The arguments of cuTensorMapEncodeTiled; enumerators as their numbers in <cuda.h>.
struct TensorMapArguments {
  const void* map = nullptr;  // where the caller wants it: 64-byte aligned
  uint32_t type = 0, rank = 0;
  uint64_t address = 0;
  const uint64_t* dims = nullptr;             // rank, in elements
  const uint64_t* strides = nullptr;          // rank - 1, in bytes, of dimensions 1 and up
  const uint32_t* box = nullptr;              // rank
  const uint32_t* element_strides = nullptr;  // rank
  uint32_t interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;
};

// What cuTensorMapEncodeIm2col has instead of `box`.
struct Im2colArguments {
  const int32_t *lower = nullptr,
                *upper = nullptr;     // rank - 2: corners of the pixel box, {W, H, D}
  uint32_t channels = 0, pixels = 0;  // per pixel, per column
};

struct TensorMap {
  static constexpr uint32_t max_rank = 5;

  uint64_t address = 0;
  uint64_t strides[max_rank - 1] = {};
  uint32_t dims_minus_1[max_rank] = {};  // a dimension may be 2^32
  uint32_t box[max_rank] = {};
  uint8_t element_strides[max_rank] = {};
  uint8_t type = 0, rank = 0, interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;
  uint8_t atomicity = 0;  // Atom; swizzle is 0 to 3
  uint8_t im2col = 0;     // 1: the box is channels x 1 x 1 .., and the three fields below apply
  uint16_t pixels = 0;
  int16_t lower[3] = {}, upper[3] = {};

  uint64_t dim(uint32_t i) const { return uint64_t(dims_minus_1[i]) + 1; }
  uint64_t stride(uint32_t i) const { return strides[i - 1]; }  // i >= 1
  int64_t element_bits() const;
  uint64_t inner_bytes(uint64_t elements) const { return elements * uint64_t(element_bits()) / 8; }
  uint32_t row_bytes() const { return uint32_t(inner_bytes(box[0])); }
  // Rows of 16 4- or 6-bit elements to 16 bytes of shared memory: 8 or 12 of data, then a gap.
  bool padded() const;
  uint32_t shared_row_bytes() const { return padded() ? box[0] : row_bytes(); }
  // The number of elements of a box along dimension i. From dimension 1 on, a box takes one in
  // element_strides[i] of the elements that it spans.
  uint32_t extent(uint32_t i) const {
    return i ? (box[i] + element_strides[i] - 1) / element_strides[i] : box[0];
  }
  uint32_t box_bytes() const;  // of global memory: what a load delivers to its mbarrier
  // Where a byte of the box goes that would lie at `linear` without swizzle.
  uint32_t place(uint32_t linear) const {
    return swizzled(linear, Swizzle(swizzle), Atom(atomicity));
  }
};

// Empty = encoded into *out; else why the driver answers CUDA_ERROR_INVALID_VALUE. 4- and 6-bit
// types and the atom swizzles exist from compute capability 10.0 (`capability` 100).
std::string encode_tiled(const TensorMapArguments& arguments, int capability, TensorMap* out);
std::string encode_im2col(const TensorMapArguments& arguments, const Im2colArguments& im2col,
                          int capability, TensorMap* out);

// tensormap.replace (PTX ISA 9.7.9.26): puts a new value into one field. If the field has an entry
// per dimension, `i` is the dimension. Throws Fault illegal_instruction.
enum class MapField : uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode,
};
void replace_field(TensorMap& map, MapField field, uint32_t i, uint64_t value);

// The map in 128 bytes of memory. Fault illegal_instruction if no call could have encoded them, or
// if the map asks for something that is not emulated.
TensorMap decode_tensor_map(const void* bytes, const char* who);

}  // namespace emu
