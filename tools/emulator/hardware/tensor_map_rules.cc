// SPDX-License-Identifier: MIT
// See tensor_map_rules.h. The rules are those of <cuda.h>'s comments.
#include "tools/emulator/hardware/tensor_map_rules.h"

#include "tools/emulator/base/fault.h"

namespace emu {
namespace {

struct TypeRow {
  uint32_t bits;
  bool floating;
};
// In the order of CUtensorMapDataType.
constexpr TypeRow types[type_count] = {
    {8, false}, {16, false}, {32, false}, {32, false}, {64, false}, {64, false},
    {16, true}, {32, true},  {64, true},  {16, true},  {32, true},  {32, true},
    {32, true}, {4, false},  {4, false},  {6, false},
};

bool wide_alignment(const TensorMapArguments& a) {
  return a.interleave == 2 || a.type == u4_align16 || a.type == u6_align16;
}

std::string enum_errors(const TensorMapArguments& a, int capability) {
  if (a.type >= type_count) return format("data type %u does not exist", a.type);
  if (a.type >= u4_align8 && capability < 100)
    return format("data type %u needs compute capability 10.0", a.type);
  if (a.interleave > 2) return format("interleave %u does not exist", a.interleave);
  if (a.swizzle >= swizzle_count) return format("swizzle %u does not exist", a.swizzle);
  if (a.swizzle >= atom_32b && capability < 100)
    return format("swizzle %u needs compute capability 10.0", a.swizzle);
  if (a.l2_promotion > 3) return format("L2 promotion %u does not exist", a.l2_promotion);
  if (a.oob_fill > 1) return format("out-of-bounds fill %u does not exist", a.oob_fill);
  if (a.oob_fill == 1 && !types[a.type].floating)
    return "NaN fill is for floating-point types only";
  return "";
}

std::string tensor_errors(const TensorMapArguments& a) {
  const uint32_t align = wide_alignment(a) ? 32 : 16;
  if (reinterpret_cast<uintptr_t>(a.map) % 64) return "the tensor map is not 64-byte aligned";
  if (a.rank < 1 || a.rank > TensorMap::max_rank) return format("rank %u, must be 1 to 5", a.rank);
  if (a.interleave && a.rank < 3) return format("rank %u, must be 3 to 5 when interleaved", a.rank);
  if (!a.dims || !a.element_strides || (a.rank > 1 && !a.strides))
    return "an array argument is null";
  if (a.address % align)
    return format("globalAddress 0x%llx is not %u-byte aligned", (unsigned long long)a.address,
                  align);
  for (uint32_t i = 0; i < a.rank; ++i)
    if (a.dims[i] < 1 || a.dims[i] > 1ull << 32)
      return format("globalDim[%u] is %llu, must be 1 to 2^32", i, (unsigned long long)a.dims[i]);
  for (uint32_t i = 0; i + 1 < a.rank; ++i)
    if (a.strides[i] % align || a.strides[i] >= 1ull << 40)
      return format("globalStrides[%u] is %llu, must be a multiple of %u below 2^40", i,
                    (unsigned long long)a.strides[i], align);
  return "";
}

std::string step_errors(const TensorMapArguments& a) {
  for (uint32_t i = 0; i < a.rank; ++i)
    if ((i > 0 || a.interleave) && (a.element_strides[i] < 1 || a.element_strides[i] > 8))
      return format("elementStrides[%u] is %u, must be 1 to 8", i, a.element_strides[i]);
  return "";
}

// A row of the box: boxDim[0], or channelsPerPixel.
std::string row_errors(const TensorMapArguments& a, const char* name, uint32_t elements) {
  if (a.interleave) return "";
  const uint32_t bits = elements * types[a.type].bits;
  if (bits % 128)
    return format("%s is %u elements of %u bits, must be a multiple of 16 bytes", name, elements,
                  types[a.type].bits);
  const uint32_t span = a.swizzle == 0 ? 0 : a.swizzle == 1 ? 32 : a.swizzle == 2 ? 64 : 128;
  if (span && bits / 8 > span)
    return format("%s is %u bytes, the swizzle spans %u", name, bits / 8, span);
  return "";
}

std::string box_errors(const TensorMapArguments& a) {
  for (uint32_t i = 0; i < a.rank; ++i)
    if (a.box[i] < 1 || a.box[i] > max_box)
      return format("boxDim[%u] is %u, must be 1 to %u", i, a.box[i], max_box);
  const std::string why = step_errors(a);
  return why.empty() ? row_errors(a, "boxDim[0]", a.box[0]) : why;
}

// Packed types (driver documentation of CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B and its siblings).
std::string packed_errors(const TensorMapArguments& a, uint32_t row) {
  if (a.type < u4_align8) return "";
  if (a.interleave) return "packed types cannot be interleaved";
  if (a.type == u4_align8) return a.dims[0] % 2 ? "globalDim[0] of a 4-bit type must be even" : "";
  if (a.dims[0] % padded_elements || row != padded_elements)
    return "16-byte aligned packed types need globalDim[0] in multiples of 128 and rows of 128";
  const bool stores_only = a.swizzle == atom_64b && a.type == u6_align16;
  if (a.swizzle != 0 && a.swizzle != 3 && a.swizzle != atom_32b && !stores_only)
    return format("swizzle %u does not go with a 16-byte aligned packed type", a.swizzle);
  return "";
}

std::string interleave_errors(const TensorMapArguments& a) {
  if (a.interleave == 2 && a.swizzle != 1) return "32-byte interleave needs the 32-byte swizzle";
  return "";
}

// What holds for maps of both kinds.
std::string common_errors(const TensorMapArguments& a, int capability) {
  std::string why = enum_errors(a, capability);
  if (why.empty()) why = tensor_errors(a);
  return why.empty() ? interleave_errors(a) : why;
}

// Corners of the bounding box are offsets {W, H, D}, from the first and from the last pixel of the
// tensor (order: CUTLASS, copy_traits_sm90_im2col.hpp).
std::string corner_errors(const TensorMapArguments& a, const Im2colArguments& x) {
  const uint32_t spatial = a.rank - 2;
  const int32_t limit = spatial == 1 ? 1 << 15 : spatial == 2 ? 1 << 7 : 1 << 4;
  for (uint32_t i = 0; i < spatial; ++i) {
    for (const int32_t corner : {x.lower[i], x.upper[i]})
      if (corner < -limit || corner >= limit)
        return format("a corner of the pixel box is %d in dimension %u, must be %d to %d", corner,
                      i + 1, -limit, limit - 1);
    if (int64_t(a.dims[i + 1]) - 1 + x.upper[i] < x.lower[i])
      return format("the pixel box is empty in dimension %u", i + 1);
  }
  return "";
}

}  // namespace

uint32_t bits_of_type(uint32_t type) { return types[type].bits; }

std::string tiled_errors(const TensorMapArguments& a, int capability) {
  std::string why = common_errors(a, capability);
  if (why.empty() && !a.box) why = "an array argument is null";
  if (why.empty()) why = box_errors(a);
  return why.empty() ? packed_errors(a, a.box[0]) : why;
}

std::string im2col_errors(const TensorMapArguments& a, const Im2colArguments& x, int capability) {
  std::string why = common_errors(a, capability);
  if (why.empty() && a.rank < 3) why = format("rank %u, must be 3 to 5", a.rank);
  if (why.empty() && (!x.lower || !x.upper)) why = "an array argument is null";
  if (why.empty()) why = corner_errors(a, x);
  if (why.empty() && (x.channels < 1 || x.channels > max_box))
    why = format("channelsPerPixel is %u, must be 1 to %u", x.channels, max_box);
  if (why.empty() && (x.pixels < 1 || x.pixels > max_pixels))
    why = format("pixelsPerColumn is %u, must be 1 to %u", x.pixels, max_pixels);
  if (why.empty()) why = step_errors(a);
  if (why.empty()) why = row_errors(a, "channelsPerPixel", x.channels);
  return why.empty() ? packed_errors(a, x.channels) : why;
}

}  // namespace emu
