// SPDX-License-Identifier: MIT
// The reference for operands of a wide range: A in fp16 or bf16, packed tokens, or UE8M0 scales. It
// computes with exact integers as well.
//
//   factor   integer * 2^(place + unit): an element of A or B, times its scale
//     A in 16 bits    |integer| < 2^11, place 0 .. 253, unit -133
//     A packed        |integer| < 2^11, place 0 .. 253, unit -126
//     UE4M3 scales    |integer| < 2^22, place 0, unit -10
//     UE8M0 scales    |integer| <= 12, place 0 .. 254, unit -128
//   place    the sum over K <= 2^20 of products whose places add up to it stays below 2^53
//
// To round, the sums of all places are added as one integer.
#include "host/reference/reference_wide.h"

#include <algorithm>
#include <cstring>

#include "host/base/formats.h"
#include "host/base/operand_format.h"
#include "host/problem/fields.h"
#include "host/reference/pack/packed_weights.h"
#include "host/reference/pack/tokens.h"
#include "host/reference/reference_epilogue.h"

namespace nvfp4 {

namespace {

constexpr int kPlaces = 512;
constexpr int kUnitOfHalves = -133, kUnitOfUe4m3 = -10, kUnitOfUe8m0 = -128;

struct Factor {
  int32_t integer;
  int32_t place;
  bool nan, infinite;
};

// Decodes kF16 or kBF16. Subnormal numbers have the exponent of the smallest normal ones.
Factor decode_half(const Format& format, uint32_t bits) {
  const uint32_t fraction = bits & ((1u << format.mantissa_bits) - 1);
  const uint32_t exponents = format.overflow_code >> format.mantissa_bits;  // all ones
  const uint32_t field = bits >> format.mantissa_bits & exponents;
  const int32_t sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (field == exponents) return {sign, 0, fraction != 0, fraction == 0};
  const uint32_t hidden = field == 0 ? 0 : 1u << format.mantissa_bits;
  const int exponent =
      static_cast<int>(field == 0 ? 1 : field) - format.bias - format.mantissa_bits;
  return {sign * static_cast<int32_t>(hidden | fraction), exponent - kUnitOfHalves, false, false};
}

// The exact sum of one element of D.
class WideSum {
 public:
  // B is never infinite.
  void add(const Factor& a, const Factor& b) {
    if (a.nan || b.nan || (a.infinite && b.integer == 0)) nan_ = true;
    if (a.infinite) ((a.integer < 0) == (b.integer < 0) ? above_ : below_) = true;
    if (a.nan || b.nan || a.infinite) return;
    add_finite(a, b);
  }
  void add_finite(const Factor& a, const Factor& b) {
    of_place_[a.place + b.place] += static_cast<int64_t>(a.integer) * b.integer;
  }

  // The sum in units of 2^unit at place 0, rounded once to fp32; a zero is positive.
  F32 rounded(int unit) const {
    if (nan_ || (above_ && below_)) return kNan;
    if (above_ || below_) return {(below_ ? 0x80000000u : 0) | kF32.overflow_code};
    uint64_t words[kWords] = {};
    for (int place = 0; place < kPlaces; ++place) {
      if (of_place_[place] != 0) add_shifted(of_place_[place], place, words);
    }
    const bool negative = words[kWords - 1] >> 63 != 0;
    if (negative) negate(words);
    return {(negative ? 0x80000000u : 0) | round(words, unit)};
  }

 private:
  static constexpr int kWords = 9;  // 54 + 509 bits and a sign

  static void add_shifted(int64_t value, int shift, uint64_t (&words)[kWords]) {
    const auto bits = static_cast<uint64_t>(value);
    const uint64_t sign = value < 0 ? ~uint64_t{0} : 0;
    const int first = shift / 64, by = shift % 64;
    bool carry = false;
    for (int i = first; i < kWords; ++i) {
      const uint64_t low = i == first ? bits : sign;
      const uint64_t before = i == first ? 0 : i == first + 1 ? bits : sign;
      const uint64_t shifted = by == 0 ? low : low << by | before >> (64 - by);
      const uint64_t sum = words[i] + shifted;
      const uint64_t with_carry = sum + carry;
      carry = sum < shifted || with_carry < sum;
      words[i] = with_carry;
    }
  }

  static void negate(uint64_t (&words)[kWords]) {
    bool carry = true;
    for (uint64_t& word : words) {
      word = ~word + carry;
      carry = carry && word == 0;
    }
  }

  // The highest 62 bits; the last one is set if any lower bit is.
  static uint32_t round(const uint64_t (&words)[kWords], int unit) {
    int top = kWords - 1;
    while (top > 0 && words[top] == 0) --top;
    if (top == 0) return round_once(words[0], false, unit);
    const int empty = __builtin_clzll(words[top]);
    const uint64_t next = words[top - 1];
    const uint64_t high = empty == 0 ? words[top] : words[top] << empty | next >> (64 - empty);
    bool rest = empty == 0 ? next != 0 : next << empty != 0;
    for (int i = 0; i < top - 1; ++i) rest = rest || words[i] != 0;
    return round_once(high, rest, unit + 64 * top - empty);
  }
  static uint32_t round_once(uint64_t bits, bool rest, int exponent) {
    if (bits >> 62 == 0) return round_to(kF32, bits | rest, exponent);
    return round_to(kF32, bits >> 2 | (rest || (bits & 3) != 0), exponent + 2);
  }

  int64_t of_place_[kPlaces] = {};
  bool nan_ = false, above_ = false, below_ = false;
};

// Quantized elements and their scales by the header's prose; one batch of A or B.
class Quantized {
 public:
  Quantized(const void* elements, const void* scales, int64_t k, int64_t ld, int32_t layout,
            int32_t format)
      : elements_(static_cast<const uint8_t*>(elements)),
        scales_(static_cast<const uint8_t*>(scales)),
        k_(k),
        ld_(ld),
        layout_(layout),
        format_(*find_operand_format(format)),
        packed_(nullptr, 0, 0, 0),
        is_packed_(false) {}
  Quantized(const PackedWeights& packed, int64_t k, int32_t format)
      : Quantized(nullptr, nullptr, k, 0, 0, format) {
    packed_ = packed;
    is_packed_ = true;
  }

  int unit() const { return format_.scale == ScaleType::ue4m3 ? kUnitOfUe4m3 : kUnitOfUe8m0; }
  Factor at(int64_t row, int64_t k) const {
    const uint8_t byte = scale(row, k / format_.block);
    const int32_t element = e2m1_doubled(code(row, k));
    if (format_.scale == ScaleType::ue8m0) return {element, byte, byte == 0xFF, false};
    return {element * ue4m3_units(byte), 0, is_nan_scale(byte), false};
  }

 private:
  uint32_t code(int64_t row, int64_t k) const {
    if (is_packed_) return packed_.code(row, k);
    return elements_[(row * ld_ + k) / 2] >> (k % 2 * 4) & 0xF;
  }
  uint8_t scale(int64_t row, int64_t ks) const {
    if (is_packed_) return packed_.scale(row, ks);
    const int64_t scales = k_ / format_.block;  // scales per row
    if (layout_ == NVFP4_SCALE_LAYOUT_LINEAR) return scales_[row * scales + ks];
    const int64_t tile = (row / 128) * ((scales + 3) / 4) + ks / 4;
    return scales_[tile * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + ks % 4];
  }

  const uint8_t *elements_, *scales_;
  int64_t k_, ld_;
  int32_t layout_;
  OperandFormat format_;
  PackedWeights packed_;
  bool is_packed_;
};

Quantized batch_of_a(const nvfp4_gemm_desc& g, int64_t batch) {
  return {static_cast<const uint8_t*>(g.a) + batch * g.a_batch_stride / 2,
          static_cast<const uint8_t*>(g.a_scales) + batch * g.a_scales_batch_stride_bytes,
          g.k,
          g.a_ld,
          g.a_scale_layout,
          g.operand_format};
}
// The weights are the rows of b, or of b2.
Quantized batch_of_weights(const nvfp4_gemm_desc& g, const void* codes, const void* scales,
                           int64_t batch) {
  if (g.b_packing != NVFP4_PACKING_NONE) {
    return {packed_batch(g, codes, batch), g.k, g.operand_format};
  }
  return {static_cast<const uint8_t*>(codes) + batch * g.b_batch_stride / 2,
          static_cast<const uint8_t*>(scales) + batch * g.b_scales_batch_stride_bytes,
          g.k,
          g.b_ld,
          g.b_scale_layout,
          g.operand_format};
}

// One batch of A if A is not quantized.
class Halves {
 public:
  Halves(const nvfp4_gemm_desc& g, int64_t batch)
      : format_(g.a_type == NVFP4_TYPE_F16 ? kF16 : kBF16),
        first_(static_cast<const uint8_t*>(g.a) + 2 * batch * g.a_batch_stride),
        ld_(g.a_ld) {}

  int unit() const { return kUnitOfHalves; }
  Factor at(int64_t row, int64_t k) const {
    uint16_t bits;
    memcpy(&bits, first_ + 2 * (row * ld_ + k), sizeof bits);
    return decode_half(format_, bits);
  }

 private:
  const Format& format_;
  const uint8_t* first_;
  int64_t ld_;
};

// One batch of A if A is packed: fp16 times 2^7.
class Packed {
 public:
  Packed(const nvfp4_gemm_desc& g, int64_t batch)
      : tokens_(static_cast<const uint8_t*>(g.a) + 2 * batch * g.a_batch_stride, g.m, g.k) {}

  int unit() const { return kUnitOfHalves + 7; }
  Factor at(int64_t row, int64_t k) const { return decode_half(kF16, tokens_.half(row, k)); }

 private:
  PackedTokens tokens_;
};

// Number of elements of a row that are decoded at once, for all sums of a tile.
constexpr int kPanel = 128;
constexpr int kRows = 4, kColumns = 4;  // size of a tile, whose sums take 64 KB on the stack

struct Panel {
  Factor of[kPanel];
  bool finite;
};

template <typename Matrix>
void decode(const Matrix& x, int64_t row, int64_t k, int count, Panel* panel) {
  panel->finite = true;
  for (int i = 0; i < count; ++i) {
    const Factor factor = x.at(row, k + i);
    panel->finite = panel->finite && !factor.nan && !factor.infinite;
    panel->of[i] = factor;
  }
}

void add_panel(const Panel& a, const Panel& b, int count, WideSum* sum) {
  if (a.finite && b.finite) {
    for (int i = 0; i < count; ++i) sum->add_finite(a.of[i], b.of[i]);
  } else {
    for (int i = 0; i < count; ++i) sum->add(a.of[i], b.of[i]);
  }
}

int smaller(int64_t a, int b) { return a < b ? static_cast<int>(a) : b; }

template <typename A>
void multiply_tile(const nvfp4_gemm_desc& g, const Place& first, const A& a, const Quantized& b,
                   F32 (&acc)[kRows][kColumns]) {
  const int rows = smaller(g.m - first.row, kRows), columns = smaller(g.n - first.column, kColumns);
  WideSum sums[kRows][kColumns];
  for (int64_t k = 0; k < g.k; k += kPanel) {
    const int count = smaller(g.k - k, kPanel);
    Panel of_a, of_b[kColumns];
    for (int j = 0; j < columns; ++j) decode(b, first.column + j, k, count, &of_b[j]);
    for (int i = 0; i < rows; ++i) {
      decode(a, first.row + i, k, count, &of_a);
      for (int j = 0; j < columns; ++j) add_panel(of_a, of_b[j], count, &sums[i][j]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) acc[i][j] = sums[i][j].rounded(a.unit() + b.unit());
  }
}

void store_tile(const nvfp4_gemm_desc& g, const ReferenceEpilogue& epilogue, const Place& first,
                const F32 (&acc)[2][kRows][kColumns]) {
  const int rows = smaller(g.m - first.row, kRows), columns = smaller(g.n - first.column, kColumns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      epilogue.store({first.batch, first.row + i, first.column + j}, acc[0][i][j], acc[1][i][j]);
    }
  }
}

template <typename A>
void multiply_batch(const nvfp4_gemm_desc& g, const ReferenceEpilogue& epilogue, int64_t batch,
                    const A& a) {
  const Quantized b = batch_of_weights(g, g.b, g.b_scales, batch);
  const Quantized b2 = is_gated(g) ? batch_of_weights(g, g.b2, g.b2_scales, batch) : b;
  F32 acc[2][kRows][kColumns] = {};
  for (int64_t m = 0; m < g.m; m += kRows) {
    for (int64_t n = 0; n < g.n; n += kColumns) {
      multiply_tile(g, {batch, m, n}, a, b, acc[0]);
      if (is_gated(g)) multiply_tile(g, {batch, m, n}, a, b2, acc[1]);
      store_tile(g, epilogue, {batch, m, n}, acc);
    }
  }
}

}  // namespace

void reference_gemm_wide(const nvfp4_gemm_desc& g) {
  const ReferenceEpilogue epilogue(g);
  for (int64_t batch = 0; batch < g.l; ++batch) {
    if (g.a_packing != NVFP4_PACKING_NONE) {
      multiply_batch(g, epilogue, batch, Packed(g, batch));
    } else if (g.a_type == NVFP4_TYPE_NONE) {
      multiply_batch(g, epilogue, batch, batch_of_a(g, batch));
    } else {
      multiply_batch(g, epilogue, batch, Halves(g, batch));
    }
  }
}

}  // namespace nvfp4
