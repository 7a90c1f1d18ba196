// SPDX-License-Identifier: MIT
// One mma.sync as a PTX program of many warps, its fragments by the manual, and what it has to give
// under a hypothesis of how the hardware adds. The same program runs in the emulator's tests and on
// a GPU.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tools/emulator/test/models/tensor_numbers.h"

namespace support {

struct WarpMma {
  NumberType a = NumberType::f16, b = NumberType::f16;
  SumType d = SumType::f32;
  int m = 16, k = 16;
  bool satfinite = false, exclusive = false;  // integers; .xor instead of .and of single bits

  int row_bytes() const { return k * bits_of(a) / 8; }
  int a_words() const { return m / 8 * (row_bytes() / 16); }
  int b_words() const { return row_bytes() / 16; }
  int d_words() const { return d == SumType::f16 ? m / 8 : m / 4; }
  std::string name() const;  // "m16n8k16.row.col.f32.f16.f16.f32"
};
constexpr int kWarpMmaColumns = 8;
std::vector<WarpMma> warp_mmas();  // every shape and type, doubles excepted

// Row by row: a m x k, b 8 x k (b transposed), c m x 8 (fp16 in the low half).
struct WarpMmaData {
  std::vector<uint8_t> a, b;
  std::vector<uint32_t> c;
};
// Kinds of data: those of fill(), and neighbours in K whose products nearly cancel.
constexpr int kWarpMmaKinds = kDataKinds + 1;
WarpMmaData random_data(const WarpMma& w, std::mt19937_64& random, int kind);

// The kernel `warp_mma(.u64 out, .u64 a, .u64 b, .u64 c)`: block i, one warp, has fragment i of
// each.
std::string program(const WarpMma& w);

// What a warp reads and writes, register by register in each lane: [lane][register].
void append_fragments(const WarpMma& w, const WarpMmaData& data, std::vector<uint32_t>& a,
                      std::vector<uint32_t>& b, std::vector<uint32_t>& c);
std::vector<uint32_t> accumulator_fragment(const WarpMma& w, const std::vector<uint32_t>& c);

// K in steps of `step` elements, each of which adds to the rounded sum of those before; first the
// last elements if `reversed`. Terms keep `kept` fractional bits. `as_fp16`: for 8-bit floats ptxas
// replaces the instruction on 9.0 and 10.0 by two of fp16. The first has two of every four elements
// of K. C is added to their sum at last, rounded to nearest.
struct Hypothesis {
  int step, kept;
  bool reversed = false, as_fp16 = false;
  std::string name() const;
};
Hypothesis model_of(const WarpMma& w);  // of the emulator, and of sm_90 as far as is known
std::vector<uint32_t> warp_mma_expected(const WarpMma& w, const WarpMmaData& data,
                                        const Hypothesis& h);

}  // namespace support
