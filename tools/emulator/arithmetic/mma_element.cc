// SPDX-License-Identifier: MIT
// See mma_element.h.
#include "tools/emulator/arithmetic/mma_element.h"

#include <array>
#include <cstring>
#include <iterator>

#include "tools/emulator/arithmetic/mma_vector.h"

namespace emu {
namespace {

// Which codes of the largest exponent are numbers.
enum class Top : uint8_t { ieee, nan_only, finite };

struct Format {
  int bits, mantissa, bias, dropped;  // dropped: low bits that do not count (tf32)
  Top top;
};

constexpr Format format_of(ElementType t) {
  switch (t) {
    case ElementType::f16: return {16, 10, 15, 0, Top::ieee};
    case ElementType::bf16: return {16, 7, 127, 0, Top::ieee};
    case ElementType::tf32: return {32, 10, 127, 13, Top::ieee};
    case ElementType::e4m3: return {8, 3, 7, 0, Top::nan_only};
    case ElementType::e5m2: return {8, 2, 15, 0, Top::ieee};
    case ElementType::e2m3: return {6, 3, 1, 0, Top::finite};
    case ElementType::e3m2: return {6, 2, 3, 0, Top::finite};
    case ElementType::e2m1: return {4, 1, 1, 0, Top::finite};
    case ElementType::u8:
    case ElementType::s8: break;
  }
  return {8, 0, 0, 0, Top::finite};
}

EMU_INLINE constexpr Element decode(uint32_t code, const Format& f) {
  const int exponent_bits = f.bits - f.dropped - f.mantissa - 1;
  code >>= f.dropped;
  const bool negative = code >> (f.mantissa + exponent_bits) & 1;
  const int top = (1 << exponent_bits) - 1;
  const int field = int(code >> f.mantissa) & top, mantissa = int(code & ((1u << f.mantissa) - 1));
  Element e;
  if (f.top == Top::ieee && field == top) {
    e.cls = mantissa ? Element::Class::nan : Element::Class::infinite;
    e.significand = negative ? -1 : 1;
    return e;
  }
  if (f.top == Top::nan_only && field == top && mantissa == (1 << f.mantissa) - 1)
    e.cls = Element::Class::nan;
  const int magnitude = field ? mantissa | 1 << f.mantissa : mantissa;
  if (magnitude == 0) return e;
  e.significand = negative ? -magnitude : magnitude;
  e.exponent = (field ? field : 1) - f.bias;
  return e;
}

// Element i of a 16-byte piece.
EMU_INLINE uint32_t code_at(const uint8_t* piece, int bits, uint32_t i) {
  const uint32_t bit = i * uint32_t(bits);
  uint64_t word = 0;
  std::memcpy(&word, piece + bit / 8,
              bits > 8                       ? uint32_t(bits) / 8
              : bit % 8 + uint32_t(bits) > 8 ? 2
                                             : 1);
  return uint32_t(word >> bit % 8 & ((1ull << bits) - 1));
}

constexpr uint32_t count_of(ElementType t) {
  return format_of(t).bits == 32 ? 8 : format_of(t).bits == 16 ? 16 : 32;
}

constexpr Element number_of(ElementType t, uint32_t code) {
  if (t == ElementType::u8) return {int32_t(code), 0, Element::Class::finite};
  if (t == ElementType::s8) return {int8_t(code), 0, Element::Class::finite};
  return decode(code, format_of(t));
}

// The few codes of small types are decoded by the compiler.
template <ElementType T>
constexpr auto decoded = [] {
  std::array<Element, size_t(1) << format_of(T).bits> all{};
  for (uint32_t code = 0; code < all.size(); ++code) all[code] = number_of(T, code);
  return all;
}();

// The format is a constant of the loop.
template <ElementType T>
void decode_row(const uint8_t* bytes, Element* to) {
  constexpr Format f = format_of(T);
  constexpr uint32_t per_piece = count_of(T) / 2;
  for (uint32_t i = 0; i < 2 * per_piece; ++i) {
    const uint32_t code = code_at(bytes + i / per_piece * 16, f.bits, i % per_piece);
    if constexpr (f.bits <= 8)
      to[i] = decoded<T>[code];
    else
      to[i] = decode(code, f);
  }
}

constexpr void (*decoders[])(const uint8_t*, Element*) = {
    decode_row<ElementType::f16>,  decode_row<ElementType::bf16>, decode_row<ElementType::tf32>,
    decode_row<ElementType::e4m3>, decode_row<ElementType::e5m2>, decode_row<ElementType::e2m3>,
    decode_row<ElementType::e3m2>, decode_row<ElementType::e2m1>, decode_row<ElementType::u8>,
    decode_row<ElementType::s8>};
static_assert(std::size(decoders) == size_t(ElementType::s8) + 1);

}  // namespace

uint32_t element_count(ElementType t) { return count_of(t); }

int fraction_bits(ElementType t) { return format_of(t).mantissa; }

void decode_elements(ElementType t, const uint8_t* bytes, Element* to) {
  decoders[size_t(t)](bytes, to);
}

}  // namespace emu
