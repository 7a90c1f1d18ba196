// SPDX-License-Identifier: MIT
// See tensor_map.h. The argument rules are the driver's documented ones; most return codes were
// confirmed on an H200 with driver 580.
#include "tensor_map.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "../fault.h"

namespace emu {
namespace {

enum TypeCode : uint32_t {
  f32_ftz = 10,
  tf32_ftz = 12,
  u4_align8 = 13,
  u4_align16 = 14,
  u6_align16 = 15,
  type_count = 16
};
enum SwizzleCode : uint32_t { atom_32b = 4, swizzle_count = 7 };

constexpr uint32_t max_box = 256;  // elements along one dimension

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
  if (!a.dims || !a.box || !a.element_strides || (a.rank > 1 && !a.strides))
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

std::string box_errors(const TensorMapArguments& a) {
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.box[i] < 1 || a.box[i] > max_box)
      return format("boxDim[%u] is %u, must be 1 to %u", i, a.box[i], max_box);
    if ((i > 0 || a.interleave) && (a.element_strides[i] < 1 || a.element_strides[i] > 8))
      return format("elementStrides[%u] is %u, must be 1 to 8", i, a.element_strides[i]);
  }
  if (a.interleave) return "";
  const uint32_t bits = a.box[0] * types[a.type].bits;
  if (bits % 128)
    return format("boxDim[0] is %u elements of %u bits, must be a multiple of 16 bytes", a.box[0],
                  types[a.type].bits);
  const uint32_t span = a.swizzle == 0 ? 0 : a.swizzle == 1 ? 32 : a.swizzle == 2 ? 64 : 128;
  if (span && bits / 8 > span)
    return format("boxDim[0] is %u bytes, the swizzle spans %u", bits / 8, span);
  return "";
}

// Packed types (driver documentation of CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B and its siblings).
std::string packed_errors(const TensorMapArguments& a) {
  if (a.type < u4_align8) return "";
  if (a.interleave) return "packed types cannot be interleaved";
  if (a.type == u4_align8) return a.dims[0] % 2 ? "globalDim[0] of a 4-bit type must be even" : "";
  if (a.dims[0] % 128 || a.box[0] != 128)
    return "16-byte aligned packed types need globalDim[0] in multiples of 128 and boxDim[0] = 128";
  if (a.swizzle != 0 && a.swizzle != 3 && a.swizzle != atom_32b)
    return format("swizzle %u does not go with a 16-byte aligned packed type", a.swizzle);
  return "";
}

std::string interleave_errors(const TensorMapArguments& a) {
  if (a.interleave == 2 && a.swizzle != 1) return "32-byte interleave needs the 32-byte swizzle";
  return "";
}

std::string argument_errors(const TensorMapArguments& a, int capability) {
  std::string why = enum_errors(a, capability);
  if (why.empty()) why = tensor_errors(a);
  if (why.empty()) why = interleave_errors(a);
  if (why.empty()) why = box_errors(a);
  return why.empty() ? packed_errors(a) : why;
}

// Bytes that encode_tiled never made: they lie in memory that anybody can write.
bool damaged(const TensorMap& m) {
  return m.magic != TensorMap::magic_number || m.rank < 1 || m.rank > TensorMap::max_rank ||
         m.swizzle > 3 || m.atomicity > 3;
}

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
  return argument_errors(a, 100);
}

// What our TMA does not do, although the driver encodes it.
std::string unusable(const TensorMap& m) {
  if (m.type >= u4_align16) return format("data type %u is not emulated", m.type);
  if (m.type >= f32_ftz && m.type <= tf32_ftz)
    return format("data type %u, which changes values on their way, is not emulated", m.type);
  if (m.interleave) return "interleaved layouts are not emulated";
  return "";
}

}  // namespace

int64_t TensorMap::element_bits() const { return types[type].bits; }

uint32_t TensorMap::box_bytes() const {
  uint32_t bytes = row_bytes();
  for (uint32_t i = 1; i < rank; ++i) bytes *= extent(i);
  return bytes;
}

std::string encode_tiled(const TensorMapArguments& a, int capability, TensorMap* out) {
  const std::string why = argument_errors(a, capability);
  if (!why.empty()) return why;

  TensorMap m;
  m.address = a.address;
  for (uint32_t i = 0; i < a.rank; ++i) {
    m.dims_minus_1[i] = uint32_t(a.dims[i] - 1);
    m.box[i] = a.box[i];
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
  *out = m;
  return "";
}

namespace {

// What the fields that are numbers may hold, and .elemtype's numbers as CUtensorMapDataType (PTX ISA
// 9.7.9.26, table): .f32.ftz stands before .f64 there.
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
    default: return ~0ull;
  }
}

}  // namespace

void replace_field(TensorMap& m, MapField field, uint32_t i, uint64_t value) {
  const uint32_t dims =
      field == MapField::global_stride ? TensorMap::max_rank - 1 : TensorMap::max_rank;
  if (m.magic != TensorMap::magic_number)
    throw Fault(FaultKind::illegal_instruction,
                "tensormap.replace: the 128 bytes are no tensor map");
  if (i >= dims || value > largest(field) || (field == MapField::global_dim && value == 0))
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
  TensorMap m;
  std::memcpy(&m, bytes, sizeof m);
  if (damaged(m))
    throw Fault(
        FaultKind::illegal_instruction,
        format("%s: the 128 bytes of the tensor map are not what cuTensorMapEncodeTiled made",
               who));
  if (const std::string why = broken_rule(m); !why.empty())
    throw Fault(FaultKind::illegal_instruction, format("%s: tensor map: ", who) + why);
  if (const std::string why = unusable(m); !why.empty())
    throw Fault(FaultKind::illegal_instruction, format("%s: tensor map: ", who) + why);
  return m;
}

}  // namespace emu
