// SPDX-License-Identifier: MIT
// See mma_model.h.
#include "tools/emulator/arithmetic/mma_model.h"

#include <algorithm>

namespace emu {
namespace {

__extension__ typedef __int128 Wide;

// The exponent of a zero accumulator, and of a zero term unless zero_group_raises.
constexpr int zero_exponent = -126;
constexpr int fraction_bits = 35;  // bits of a term that are kept, below the largest exponent
constexpr uint32_t canonical_nan = 0x7FFFFFFF;

// A number significand / 2^point * 2^exponent whose exponent is not normalised.
struct Term {
  Wide significand;
  int point;
  int exponent;
};

// e2m1: sign, two exponent bits (bias 1), one mantissa bit; in halves.
int halves(uint32_t code) {
  const int exponent = code >> 1 & 3, mantissa = code & 1;
  const int magnitude = exponent == 0 ? mantissa : (2 + mantissa) << (exponent - 1);
  return code & 8 ? -magnitude : magnitude;
}

int element(const uint8_t* packed, int k) {
  return halves(k % 2 ? packed[k / 2] >> 4 : packed[k / 2] & 15);
}

bool is_nan(uint8_t scale, ScaleType type) {
  return type == ScaleType::ue8m0 ? scale == 0xFF : (scale & 0x7F) == 0x7F;
}

// ue4m3: the sign is dropped; subnormals have the exponent of the smallest normal. Eighths.
Term decode_scale(uint8_t code, ScaleType type) {
  if (type == ScaleType::ue8m0) return {1, 0, int(code) - 127};
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 0) return {mantissa, 3, -6};
  return {8 + mantissa, 3, exponent - 7};
}

Term decode_float(uint32_t bits) {
  const int exponent = int(bits >> 23 & 0xFF);
  Wide significand = bits & 0x7FFFFF;
  if (exponent) significand += 1 << 23;
  if (bits >> 31) significand = -significand;
  return {significand, 23, exponent ? exponent - 127 : zero_exponent};
}

// significand / 2^point, shifted down to the common exponent and cut toward zero (C++ division
// does) to a multiple of 2^-35.
Wide align(const Term& t, int largest) {
  const int down = largest - t.exponent + t.point - fraction_bits;
  if (down <= 0) return t.significand * (Wide(1) << -down);
  return down > 100 ? 0 : t.significand / (Wide(1) << down);
}

// value * 2^unit toward zero to fp32; what exceeds the largest finite number becomes infinity.
uint32_t to_float(Wide value, int unit) {
  if (value == 0) return 0;
  const uint32_t sign = value < 0 ? 0x80000000 : 0;
  Wide magnitude = value < 0 ? -value : value;
  while (magnitude >= 1 << 24 || unit < -149) magnitude /= 2, ++unit;
  while (magnitude < 1 << 23 && unit > -149) magnitude *= 2, --unit;
  if (magnitude < 1 << 23) return sign | uint32_t(magnitude);
  const int exponent = unit + 23 + 127;
  if (exponent > 254) return sign | 0x7F800000;
  return sign | uint32_t(exponent) << 23 | (uint32_t(magnitude) & 0x7FFFFF);
}

}  // namespace

uint32_t mma_model(const uint8_t a[32], const uint8_t b[32], const uint8_t sfa[4],
                   const uint8_t sfb[4], ScaleType type, uint32_t c, bool zero_group_raises) {
  for (int g = 0; g < 4; ++g)
    if (is_nan(sfa[g], type) || is_nan(sfb[g], type)) return canonical_nan;
  if ((c & 0x7F800000) == 0x7F800000) return c & 0x7FFFFF ? canonical_nan : c;

  Term terms[5];
  for (int g = 0; g < 4; ++g) {
    int quarters = 0;  // the exact sum of 16 products of halves
    for (int k = 16 * g; k < 16 * g + 16; ++k) quarters += element(a, k) * element(b, k);
    const Term x = decode_scale(sfa[g], type), y = decode_scale(sfb[g], type);
    terms[g] = {quarters * x.significand * y.significand, 2 + x.point + y.point,
                x.exponent + y.exponent};
    if (terms[g].significand == 0 && !zero_group_raises) terms[g].exponent = zero_exponent;
  }
  terms[4] = decode_float(c);

  int largest = terms[0].exponent;
  for (const Term& t : terms) largest = std::max(largest, t.exponent);
  Wide sum = 0;
  for (const Term& t : terms) sum += align(t, largest);
  return to_float(sum, largest - fraction_bits);
}

}  // namespace emu
