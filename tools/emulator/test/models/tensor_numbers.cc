// SPDX-License-Identifier: MIT
#include "tools/emulator/test/models/tensor_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace support {
namespace {

double value_of(uint32_t code, int exponent_bits, int mantissa_bits, bool infinity) {
  const int top = (1 << exponent_bits) - 1, bias = top / 2, ones = (1 << mantissa_bits) - 1;
  const int field = int(code >> mantissa_bits) & top, fraction = int(code) & ones;
  const double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (infinity && field == top) return fraction ? NAN : sign * INFINITY;
  if (!infinity && field == top && fraction == ones) return NAN;
  if (field == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp(fraction + ones + 1, field - bias - mantissa_bits);
}

Term term(double value, int smallest) {
  if (value == 0 || !std::isfinite(value)) return {value, -126};
  return {value, std::max(std::ilogb(value), smallest)};
}

// The bits of a value that the format holds exactly or that overflows it.
uint32_t encode(double value, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  if (value == 0) return sign;
  const int exponent = std::isinf(value) ? bias + 1 : std::max(std::ilogb(value), 1 - bias);
  if (exponent > bias) return sign | ((1u << exponent_bits) - 1) << mantissa_bits;
  const auto scaled = uint32_t(std::ldexp(std::fabs(value), mantissa_bits - exponent));
  return sign | (uint32_t(exponent + bias - 1) * (1u << mantissa_bits) + scaled);
}

uint32_t random_code(std::mt19937_64& random, int exponent_bits, int mantissa_bits, int kind) {
  const auto draw = [&](uint32_t n) { return uint32_t(random() % n); };
  const uint32_t top = (1u << exponent_bits) - 1, middle = top / 2;
  const uint32_t fraction = draw(1u << mantissa_bits);
  uint32_t field = draw(top + 1);
  if (kind == 0 && draw(24)) field = draw(top);  // infinities and NaNs, but not everywhere
  if (kind == 1) field = middle - 2 + draw(5);
  if (kind == 2 && draw(4)) return draw(2) << (exponent_bits + mantissa_bits);
  if (kind == 2) field = middle - 1 + draw(3);
  if (kind == 3) field = draw(top);
  if (kind == 4) field = draw(3);
  return draw(2) << (exponent_bits + mantissa_bits) | field << mantissa_bits | fraction;
}

}  // namespace

std::string name_of(NumberType t) {
  constexpr const char* names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2",
                                   "s8",  "u8",   "s4",   "u4",   "b1"};
  return names[int(t)];
}

std::string name_of(SumType t) {
  constexpr const char* names[] = {"f32", "f16", "s32"};
  return names[int(t)];
}

int bits_of(NumberType t) {
  constexpr int bits[] = {16, 16, 32, 8, 8, 8, 8, 4, 4, 1};
  return bits[int(t)];
}

bool is_integer(NumberType t) { return t >= NumberType::s8; }

Term element(const uint8_t* row, int k, NumberType type) {
  const int bits = bits_of(type), first = k * bits;
  uint32_t code = 0;
  std::memcpy(&code, row + first / 8, size_t(bits + 7) / 8);
  if (bits < 8) code = code >> first % 8 & ((1u << bits) - 1);
  switch (type) {
    case NumberType::f16: return term(value_of(code, 5, 10, true), -14);
    case NumberType::bf16: return term(value_of(code, 8, 7, true), -126);
    case NumberType::tf32: return term(value_of(code >> 13, 8, 10, true), -126);
    case NumberType::e4m3: return term(value_of(code, 4, 3, false), -6);
    case NumberType::e5m2: return term(value_of(code, 5, 2, true), -14);
    case NumberType::s8: return {double(int8_t(code)), 0};
    case NumberType::s4: return {code & 8 ? double(code) - 16 : double(code), 0};
    case NumberType::u8:
    case NumberType::u4:
    case NumberType::b1: return {double(code), 0};
  }
  return {};
}

Term accumulator(uint32_t bits, SumType type) {
  return type == SumType::f16 ? term(value_of(bits, 5, 10, true), -14)
                              : term(value_of(bits, 8, 23, true), -126);
}

uint32_t aligned_sum(const std::vector<Term>& terms, SumType type, int kept, int fraction) {
  const bool half = type == SumType::f16;
  double plain = 0, sum = 0;
  int largest = terms[0].exponent;
  for (const Term& t : terms) {
    plain += t.value;
    largest = std::max(largest, t.exponent);
  }
  if (std::isnan(plain)) return half ? 0x7FFF : 0x7FFFFFFF;
  if (std::isinf(plain)) return encode(plain, half ? 5 : 8, half ? 10 : 23);
  for (const Term& t : terms) sum += std::trunc(std::ldexp(t.value, kept - largest));
  if (sum == 0) return 0;
  const double exact = std::ldexp(sum, largest - kept);
  const int exponent = std::max(std::ilogb(exact), half ? -14 : -126), bits = half ? 10 : fraction;
  const double scaled = std::ldexp(exact, bits - exponent);
  const double rounded = half ? std::nearbyint(scaled) : std::trunc(scaled);
  if (half && rounded == 0) return 0;  // +0, whatever the sign was
  return encode(std::ldexp(rounded, exponent - bits), half ? 5 : 8, half ? 10 : 23);
}

uint32_t rounded_sum(uint32_t a, uint32_t b, SumType type) {
  if (type == SumType::f16) {
    constexpr int all = 60;  // cuts nothing off
    return a == 0x8000 && b == 0x8000
               ? 0x8000
               : aligned_sum({accumulator(a, type), accumulator(b, type)}, type, all);
  }
  const float sum = std::bit_cast<float>(a) + std::bit_cast<float>(b);
  return std::isnan(sum) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(sum);
}

void fill(std::vector<uint8_t>& rows, NumberType type, std::mt19937_64& random, int kind) {
  const auto bytes = size_t(bits_of(type) + 7) / 8;
  for (size_t i = 0; i < rows.size(); i += bytes) {
    uint32_t code = uint32_t(random());
    if (type == NumberType::f16) code = random_code(random, 5, 10, kind);
    if (type == NumberType::bf16) code = random_code(random, 8, 7, kind);
    if (type == NumberType::tf32) code = random_code(random, 8, 10, kind) << 13 | (code & 0x1FFF);
    if (type == NumberType::e4m3) code = random_code(random, 4, 3, kind);
    if (type == NumberType::e5m2) code = random_code(random, 5, 2, kind);
    std::memcpy(&rows[i], &code, bytes);
  }
}

uint32_t random_accumulator(SumType type, std::mt19937_64& random, int kind) {
  if (type == SumType::s32) return uint32_t(random());
  if (type == SumType::f16) return random_code(random, 5, 10, kind);
  const uint32_t bits = random_code(random, 8, 23, kind);
  // Beside products of fp16's smallest numbers, or as small as fp32 has them.
  if (kind == 4 && random() % 2) return bits + ((90u + uint32_t(random() % 16)) << 23);
  return bits;
}

}  // namespace support
