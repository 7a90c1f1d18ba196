// SPDX-License-Identifier: MIT
// See tensor_map.h.
#include "tools/emulator/hardware/tensor_map.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/hardware/tensor_map_rules.h"

namespace emu {
namespace {

// A map that tensormap.replace edited obeys the rules of the driver, or its use fails.
std::string broken_rule(const TensorMap& m) {
  if (m.atomicity && m.swizzle != 3) return "a swizzle atomicity without the 128-byte swizzle";
  alignas(64) static const TensorMap somewhere;
  uint64_t dims[TensorMap::max_rank];
  uint32_t steps[TensorMap::max_rank];
  for (uint32_t i = 0; i < m.rank; ++i) dims[i] = m.dim(i), steps[i] = m.element_strides[i];
  TensorMapArguments a;
  a.map = &somewhere;
  a.type = m.type;
  a.rank = m.rank;
  a.address = m.address;
  a.dims = dims;
  a.strides = m.strides;
  a.box = m.box;
  a.element_strides = steps;
  a.interleave = m.interleave;
  a.swizzle = m.atomicity ? atom_32b + m.atomicity - 1 : m.swizzle;
  a.oob_fill = m.oob_fill;
  if (!m.im2col) return tiled_errors(a, 100);
  const int32_t lower[] = {m.lower[0], m.lower[1], m.lower[2]},
                upper[] = {m.upper[0], m.upper[1], m.upper[2]};
  return im2col_errors(a, {lower, upper, m.box[0], m.pixels}, 100);
}

// What our TMA does not do, although the driver encodes it.
std::string unusable(const TensorMap& m) {
  if (m.interleave)
    return "interleaved layouts are not emulated: no manual says which of its strides lies between "
           "slices of channels";
  return "";
}

}  // namespace

int64_t TensorMap::element_bits() const { return bits_of_type(type); }

bool TensorMap::padded() const { return type == u4_align16 || type == u6_align16; }

uint32_t TensorMap::box_bytes() const {
  uint32_t bytes = row_bytes();
  if (im2col) return bytes * pixels;
  for (uint32_t i = 1; i < rank; ++i) bytes *= extent(i);
  return bytes;
}

namespace {

// All but the box.
TensorMap encode(const TensorMapArguments& a) {
  TensorMap m;
  m.address = a.address;
  for (uint32_t i = 0; i < a.rank; ++i) {
    m.dims_minus_1[i] = uint32_t(a.dims[i] - 1);
    m.box[i] = 1;
    m.element_strides[i] = uint8_t(a.element_strides[i]);
    if (i + 1 < a.rank) m.strides[i] = a.strides[i];
  }
  m.type = uint8_t(a.type);
  m.rank = uint8_t(a.rank);
  m.interleave = uint8_t(a.interleave);
  m.swizzle = uint8_t(std::min<uint32_t>(a.swizzle, 3));
  m.atomicity = uint8_t(a.swizzle >= atom_32b ? a.swizzle - atom_32b + 1 : 0);
  m.l2_promotion = uint8_t(a.l2_promotion);
  m.oob_fill = uint8_t(a.oob_fill);
  return m;
}

}  // namespace

std::string encode_tiled(const TensorMapArguments& a, int capability, TensorMap* out) {
  const std::string why = tiled_errors(a, capability);
  if (!why.empty()) return why;
  *out = encode(a);
  std::copy_n(a.box, a.rank, out->box);
  return "";
}

std::string encode_im2col(const TensorMapArguments& a, const Im2colArguments& x, int capability,
                          TensorMap* out) {
  const std::string why = im2col_errors(a, x, capability);
  if (!why.empty()) return why;
  *out = encode(a);
  out->im2col = 1;
  out->box[0] = x.channels;
  out->pixels = uint16_t(x.pixels);
  for (uint32_t i = 0; i + 2 < a.rank; ++i) {
    out->lower[i] = int16_t(x.lower[i]);
    out->upper[i] = int16_t(x.upper[i]);
  }
  return "";
}

namespace {

// What the fields that are numbers may hold: the bits of the map have no room for more. And
// .elemtype's numbers as CUtensorMapDataType (PTX ISA 9.7.9.26, table): .f32.ftz stands before .f64
// there.
constexpr uint8_t element_types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15};

uint64_t largest(MapField field) {
  switch (field) {
    case MapField::rank: return TensorMap::max_rank - 1;  // holds the rank less one
    case MapField::box_dim: return max_box;
    case MapField::global_dim: return ~0u;
    case MapField::element_stride: return 8;
    case MapField::elemtype: return std::size(element_types) - 1;
    case MapField::interleave_layout: return 2;
    case MapField::swizzle_mode:
    case MapField::swizzle_atomicity: return 3;
    case MapField::fill_mode: return 1;
    case MapField::global_stride: return (1ull << 40) - 16;
    default: return ~0ull;
  }
}

bool holds(MapField field, uint64_t value) {
  const bool from_one = field == MapField::global_dim || field == MapField::box_dim ||
                        field == MapField::element_stride;
  if (from_one && !value) return false;
  return value <= largest(field) && !(field == MapField::global_stride && value % 16);
}

}  // namespace

void replace_field(TensorMap& m, MapField field, uint32_t i, uint64_t value) {
  const uint32_t dims =
      field == MapField::global_stride ? TensorMap::max_rank - 1 : TensorMap::max_rank;
  if (m.im2col)
    throw Fault(FaultKind::illegal_instruction,
                "tensormap.replace: the 128 bytes are no tiled tensor map");
  if (i >= dims || !holds(field, value))
    throw Fault(
        FaultKind::illegal_instruction,
        format("tensormap.replace: no tensor map has the value %llu in dimension %u of this "
               "field",
               (unsigned long long)value, i));
  switch (field) {
    case MapField::global_address: m.address = value; break;
    case MapField::rank: m.rank = uint8_t(value + 1); break;
    case MapField::box_dim: m.box[i] = uint32_t(value); break;
    case MapField::global_dim: m.dims_minus_1[i] = uint32_t(value - 1); break;
    case MapField::global_stride: m.strides[i] = value; break;
    case MapField::element_stride: m.element_strides[i] = uint8_t(value); break;
    case MapField::elemtype: m.type = element_types[value]; break;
    case MapField::interleave_layout: m.interleave = uint8_t(value); break;
    case MapField::swizzle_mode: m.swizzle = uint8_t(value); break;
    case MapField::swizzle_atomicity: m.atomicity = uint8_t(value); break;
    case MapField::fill_mode: m.oob_fill = uint8_t(value); break;
  }
}

TensorMap decode_tensor_map(const void* bytes, const char* who) {
  EncodedMap encoded;
  std::memcpy(encoded.words.data(), bytes, sizeof encoded);
  TensorMap m;
  if (!encoded.decode(&m))
    throw Fault(
        FaultKind::illegal_instruction,
        format("%s: the 128 bytes of the tensor map are not what cuTensorMapEncodeTiled makes",
               who));
  if (const std::string why = broken_rule(m); !why.empty())
    throw Fault(FaultKind::illegal_instruction, format("%s: tensor map: ", who) + why);
  if (const std::string why = unusable(m); !why.empty())
    throw Fault(FaultKind::illegal_instruction, format("%s: tensor map: ", who) + why);
  return m;
}

}  // namespace emu
