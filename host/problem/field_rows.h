// SPDX-License-Identifier: MIT
// The rows of fields.def as tables, and what their words mean. Programs include this header, too:
// it needs the public one alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "nvfp4_gemm.h"

namespace nvfp4 {

// The header's enumerations. enumeration.def has their values.
enum class Enumeration {
  none,
  type,
  scale_layout,
  operand_format,
  scale_rule,
  rows,
  cd_order,
  bias_axis,
  scalars,
  activation,
  pdl,
  tensor_scale,
  fused,
  packing,
};

enum class Kind {
  struct_size,
  // int64_t
  size,           // rows or columns
  batches,        // how many there are
  ld,             // elements from one line of a matrix to the next
  stride,         // elements from one batch to the next
  scales_stride,  // bytes from the scales of one batch to those of the next
  count,          // of something else
  // addresses
  input,      // of elements or scales, aligned to 16 bytes
  output,     // the same, and written
  vector,     // of elements, aligned as their type
  factor,     // of one or more fp32
  maximum,    // of one or more fp32 that are written
  words,      // of int32_t
  workspace,  // of memory that needs no content
  desc,       // of another descriptor, on the host
  text,       // of a string, on the host
  // others
  bytes,        // uint64_t
  number,       // float
  enumeration,  // int32_t, which the command line has by its word
  choice,       // the same, by its number
  flag,         // int32_t, 0 or 1
  whole,        // int32_t
  reserved_1,   // int32_t[1], 0
  reserved_2,
  reserved_3,
  reserved_4,
};

// Whether the field holds an address in device memory.
constexpr bool is_address(Kind kind) { return kind >= Kind::input && kind <= Kind::workspace; }

struct Field {
  const char* name;
  Kind kind;
  Enumeration values;
  uint32_t when;  // a set of fields::When
  size_t offset, bytes;
};

// How a random problem draws a field: a whole number from least to most, divided by `of`.
struct Drawn {
  enum class As { fixed, coin, any, gap, quotient } as;
  int64_t least, most, of;
};

struct GemmField : Field {
  const char* option;  // "": none
  int32_t first;       // its value where the option is not given
  Drawn drawn;
};

namespace fields {

// Conditions: a field may be set where all of its own hold.
enum When : uint32_t {
  always = 0,
  with_k = 1 << 0,       // K > 0
  quantized_a = 1 << 1,  // a_type is NONE
  has_c = 1 << 2,        // c_type says that there is a C
  has_bias = 1 << 3,
  scaled_d = 1 << 4,   // D has scales
  host = 1 << 5,       // factors come by value
  device = 1 << 6,     // factors are read on the device
  b_factors = 1 << 7,  // there is a b_tensor_scale
  gated = 1 << 8,      // there is a b2
  silu = 1 << 9,       // the activation is SiLU
  grouped = 1 << 10,   // the product is grouped
  norm = 1 << 11,      // the operation is NVFP4_FUSED_RMS_NORM
  in_plan = 1 << 12,   // the plan was made with one
  never = 1 << 13,     // reserved
  plain_b = 1 << 14,   // b_packing is NONE
  plain_a = 1 << 15,   // a_packing is NONE
  // What else there is to say of a field.
  unread = 1 << 16,  // where a condition does not hold, it is not looked at
  needed = 1 << 17,  // where all of them hold, it is not NULL
};

constexpr Drawn fixed{Drawn::As::fixed, 0, 0, 1}, coin{Drawn::As::coin, 0, 1, 1},
    any{Drawn::As::any, 0, 0, 1};
constexpr Drawn gap(int64_t most) { return {Drawn::As::gap, 0, most, 1}; }
constexpr Drawn quotient(int64_t least, int64_t most, int64_t of) {
  return {Drawn::As::quotient, least, most, of};
}

template <typename T>
constexpr bool fits(Kind kind) {
  if (kind < Kind::size || kind == Kind::bytes) return std::is_same<T, uint64_t>::value;
  if (kind < Kind::input) return std::is_same<T, int64_t>::value;
  if (kind < Kind::bytes) return std::is_pointer<T>::value;
  if (kind == Kind::number) return std::is_same<T, float>::value;
  if (kind < Kind::reserved_1) return std::is_same<T, int32_t>::value;
  constexpr size_t kWords = sizeof(T) / sizeof(int32_t);
  const auto more = static_cast<size_t>(kind) - static_cast<size_t>(Kind::reserved_1);
  return std::is_array<T>::value && kWords == more + 1;
}

#define NVFP4_FIELD(type, kind, name, values, when) \
  { #name, Kind::kind, Enumeration::values, when, offsetof(type, name), sizeof(type::name) }
#define NVFP4_FITS(type, kind, name) \
  static_assert(fits<decltype(type::name)>(Kind::kind), #name " is not of that kind");

constexpr GemmField gemm[] = {
#define GEMM_FIELD(kind, name, values, when, option, first, python, drawn, help) \
  {NVFP4_FIELD(nvfp4_gemm_desc, kind, name, values, when), option, first, drawn},
#include "host/problem/fields.def"
};
constexpr Field addresses[] = {
#define ADDRESS_FIELD(...) NVFP4_FIELD(nvfp4_gemm_addresses, __VA_ARGS__),
#include "host/problem/fields.def"
};
constexpr Field grouped_desc[] = {
#define GROUPED_FIELD(...) NVFP4_FIELD(nvfp4_grouped_desc, __VA_ARGS__),
#include "host/problem/fields.def"
};
constexpr Field quantize[] = {
#define QUANTIZE_FIELD(...) NVFP4_FIELD(nvfp4_quantize_desc, __VA_ARGS__),
#include "host/problem/fields.def"
};
constexpr Field fused[] = {
#define FUSED_FIELD(...) NVFP4_FIELD(nvfp4_fused_quantize_desc, __VA_ARGS__),
#include "host/problem/fields.def"
};

constexpr Field pack[] = {
#define PACK_FIELD(...) NVFP4_FIELD(nvfp4_pack_desc, __VA_ARGS__),
#include "host/problem/fields.def"
};

#define GEMM_FIELD(kind, name, ...) NVFP4_FITS(nvfp4_gemm_desc, kind, name)
#define ADDRESS_FIELD(kind, name, ...) NVFP4_FITS(nvfp4_gemm_addresses, kind, name)
#define GROUPED_FIELD(kind, name, ...) NVFP4_FITS(nvfp4_grouped_desc, kind, name)
#define QUANTIZE_FIELD(kind, name, ...) NVFP4_FITS(nvfp4_quantize_desc, kind, name)
#define FUSED_FIELD(kind, name, ...) NVFP4_FITS(nvfp4_fused_quantize_desc, kind, name)
#define PACK_FIELD(kind, name, ...) NVFP4_FITS(nvfp4_pack_desc, kind, name)
#include "host/problem/fields.def"

#undef NVFP4_FIELD
#undef NVFP4_FITS

// Whether each row begins where the one before it ends, and the last one ends the struct.
template <typename Row, size_t kCount>
constexpr bool fill(const Row (&rows)[kCount], size_t bytes) {
  size_t end = 0;
  for (const Row& row : rows) {
    if (row.offset != end) return false;
    end += row.bytes;
  }
  return end == bytes;
}
static_assert(fill(gemm, sizeof(nvfp4_gemm_desc)), "a field of nvfp4_gemm_desc has no row");
static_assert(fill(addresses, sizeof(nvfp4_gemm_addresses)), "an address of a plan has no row");
static_assert(fill(grouped_desc, sizeof(nvfp4_grouped_desc)), "a field of a group has no row");
static_assert(fill(quantize, sizeof(nvfp4_quantize_desc)), "a field of a quantizer has no row");
static_assert(fill(fused, sizeof(nvfp4_fused_quantize_desc)), "a field of a fused one has no row");
static_assert(fill(pack, sizeof(nvfp4_pack_desc)), "a field of nvfp4_pack_desc has no row");

constexpr bool is_same_name(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// The index of the row of that name; kCount: none has it.
template <typename Row, size_t kCount>
constexpr size_t index_of(const Row (&rows)[kCount], const char* name) {
  size_t i = 0;
  while (i < kCount && !is_same_name(rows[i].name, name)) ++i;
  return i;
}
template <typename Row, size_t kCount>
constexpr uint32_t when_of(const Row (&rows)[kCount], const char* name) {
  return rows[index_of(rows, name)].when;
}
constexpr size_t kNowhere = SIZE_MAX;
template <typename Row, size_t kCount>
constexpr size_t offset_of(const Row (&rows)[kCount], const char* name) {
  const size_t i = index_of(rows, name);
  return i == kCount ? kNowhere : rows[i].offset;
}

// The address in a field; NULL where the field is something else.
template <typename T>
constexpr const void* address(const T& field) {
  if constexpr (std::is_pointer<T>::value) {
    return field;
  } else {
    return nullptr;
  }
}

// What a struct has at an offset, or in a field.
template <typename T>
T value(const void* from, size_t offset) {
  T read;
  memcpy(&read, static_cast<const char*>(from) + offset, sizeof read);
  return read;
}
template <typename T>
T value(const void* from, const Field& field) {
  return value<T>(from, field.offset);
}
inline const void* address(const void* from, const Field& field) {
  return value<const void*>(from, field.offset);
}
template <typename T>
void set(void* to, size_t offset, const T& given) {
  memcpy(static_cast<char*>(to) + offset, &given, sizeof given);
}
template <typename T>
void set(void* to, const Field& field, const T& given) {
  set(to, field.offset, given);
}

}  // namespace fields

}  // namespace nvfp4
