// SPDX-License-Identifier: MIT
// The numbers of tensor cores, and one step of their sums by the published model (arXiv
// 2511.10909), in doubles, which hold it exactly. Shares nothing with tools/emulator.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace support {

enum class NumberType { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, b1 };
enum class SumType { f32, f16, s32 };

std::string name_of(NumberType t);
std::string name_of(SumType t);
int bits_of(NumberType t);
bool is_integer(NumberType t);

struct Term {
  double value;
  int exponent;  // of its leading bit; a subnormal has the smallest normal one's, zero has -126
};
Term element(const uint8_t* row, int k, NumberType type);
Term accumulator(uint32_t bits, SumType type);

// The bits of the terms' sum: each aligned to the largest exponent among them and cut to `kept`
// fractional bits; the exact sum is rounded to fp16, or toward zero to fp32 with `fraction` bits.
uint32_t aligned_sum(const std::vector<Term>& terms, SumType type, int kept, int fraction = 23);

// a + b rounded to nearest, as ordinary instructions add.
uint32_t rounded_sum(uint32_t a, uint32_t b, SumType type);

// `kind` chooses what the numbers provoke: 0 all bit patterns, 1 few exponents, 2 many zeros, 3
// wide exponents without infinities, 4 subnormals and the smallest normal numbers.
constexpr int kDataKinds = 5;
void fill(std::vector<uint8_t>& rows, NumberType type, std::mt19937_64& random, int kind);
uint32_t random_accumulator(SumType type, std::mt19937_64& random, int kind);

}  // namespace support
