// SPDX-License-Identifier: MIT
// The reference of products whose A is fp16 or bf16: exact integers as well, but of a wide range.
//
//   element of A = integer * 2^(place - 133)   |integer| < 2^11, place 0 .. 253
//   weight       = integer * 2^-10             an element times its scale: below 2^22
//   place        : the sum over K <= 2^20 of products whose element has it stays below 2^53
//
// Where the sum is rounded, the sums of all places are added as one integer in units of 2^-143.
#include "host/reference/reference_a16.h"

#include <cstring>

#include "host/base/formats.h"
#include "host/reference/reference_epilogue.h"

namespace nvfp4 {

namespace {

constexpr int kPlaces = 256;
constexpr int kUnit = -133 - 10;  // of place 0
constexpr int kBlock = 16;        // weights that share a scale

// An element of A: what bits it has and where, or none of that.
struct Element {
  int32_t integer;
  uint8_t place;
  bool nan, infinite;
};

// kF16 or kBF16. The exponent of subnormal numbers is that of the smallest normal ones.
Element decode_a(const Format& format, uint32_t bits) {
  const uint32_t fraction = bits & ((1u << format.mantissa_bits) - 1);
  const uint32_t exponents = format.overflow_code >> format.mantissa_bits;  // all ones
  const uint32_t field = bits >> format.mantissa_bits & exponents;
  const int32_t sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (field == exponents) return {sign, 0, fraction != 0, fraction == 0};
  const uint32_t hidden = field == 0 ? 0 : 1u << format.mantissa_bits;
  const int exponent =
      static_cast<int>(field == 0 ? 1 : field) - format.bias - format.mantissa_bits;
  return {sign * static_cast<int32_t>(hidden | fraction), static_cast<uint8_t>(exponent + 133),
          false, false};
}

// The exact sum of one element of D.
class WideSum {
 public:
  void add(const Element& a, int32_t weight) {
    if (a.nan || (a.infinite && weight == 0)) nan_ = true;
    if (a.infinite) ((a.integer < 0) == (weight < 0) ? above_ : below_) = true;
    if (a.nan || a.infinite) return;
    of_place_[a.place] += static_cast<int64_t>(a.integer) * weight;
  }
  void add_nan() { nan_ = true; }

  // Rounded once to fp32, a zero positive.
  F32 rounded() const {
    if (nan_ || (above_ && below_)) return kNan;
    if (above_ || below_) return {(below_ ? 0x80000000u : 0) | kF32.overflow_code};
    uint64_t words[kWords] = {};
    for (int place = 0; place < kPlaces; ++place) {
      if (of_place_[place] != 0) add_shifted(of_place_[place], place, words);
    }
    const bool negative = words[kWords - 1] >> 63 != 0;
    if (negative) negate(words);
    return {(negative ? 0x80000000u : 0) | round(words)};
  }

 private:
  static constexpr int kWords = 6;  // 64 + 256 bits and a sign

  static void add_shifted(int64_t value, int shift, uint64_t (&words)[kWords]) {
    const auto bits = static_cast<uint64_t>(value);
    const uint64_t sign = value < 0 ? ~uint64_t{0} : 0;
    const int first = shift / 64, by = shift % 64;
    bool carry = false;
    for (int i = first; i < kWords; ++i) {
      const uint64_t low = i == first ? bits : sign;
      const uint64_t before = i == first ? 0 : i == first + 1 ? bits : sign;
      const uint64_t part = by == 0 ? low : low << by | before >> (64 - by);
      const uint64_t sum = words[i] + part;
      const uint64_t with_carry = sum + carry;
      carry = sum < part || with_carry < sum;
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

  // The highest 62 bits, the last of which stands for all below it that are not zero.
  static uint32_t round(const uint64_t (&words)[kWords]) {
    int top = kWords - 1;
    while (top > 0 && words[top] == 0) --top;
    if (top == 0) return round_once(words[0], false, kUnit);
    const int empty = __builtin_clzll(words[top]);
    const uint64_t next = words[top - 1];
    const uint64_t high = empty == 0 ? words[top] : words[top] << empty | next >> (64 - empty);
    bool rest = empty == 0 ? next != 0 : next << empty != 0;
    for (int i = 0; i < top - 1; ++i) rest = rest || words[i] != 0;
    return round_once(high, rest, kUnit + 64 * top - empty);
  }
  static uint32_t round_once(uint64_t bits, bool rest, int exponent) {
    if (bits >> 62 == 0) return round_to(kF32, bits | rest, exponent);
    return round_to(kF32, bits >> 2 | (rest || (bits & 3) != 0), exponent + 2);
  }

  int64_t of_place_[kPlaces] = {};
  bool nan_ = false, above_ = false, below_ = false;
};

// The header's prose on B and its scales.
class Weights {
 public:
  Weights(const nvfp4_gemm_desc& g, int64_t batch)
      : elements_(static_cast<const uint8_t*>(g.b) + batch * g.b_batch_stride / 2),
        scales_(static_cast<const uint8_t*>(g.b_scales) + batch * g.b_scales_batch_stride_bytes),
        k_(g.k),
        ld_(g.b_ld),
        layout_(g.b_scale_layout) {}

  uint8_t scale(int64_t row, int64_t ks) const {
    if (layout_ == NVFP4_SCALE_LAYOUT_LINEAR) return scales_[row * (k_ / 16) + ks];
    const int64_t tile = (row / 128) * ((k_ + 63) / 64) + ks / 4;
    return scales_[tile * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + ks % 4];
  }
  int code(int64_t row, int64_t k) const {
    return elements_[(row * ld_ + k) / 2] >> (k % 2 * 4) & 0xF;
  }

 private:
  const uint8_t *elements_, *scales_;
  int64_t k_, ld_;
  int32_t layout_;
};

F32 dot(const Format& format, const uint8_t* a, const Weights& b, int64_t n, int64_t k) {
  WideSum sum;
  for (int64_t first = 0; first < k; first += kBlock) {
    const uint8_t scale = b.scale(n, first / kBlock);
    if (is_nan_scale(scale)) sum.add_nan();
    for (int64_t i = first; i < first + kBlock; ++i) {
      uint16_t bits;
      memcpy(&bits, a + 2 * i, sizeof bits);
      sum.add(decode_a(format, bits), e2m1_doubled(b.code(n, i)) * ue4m3_units(scale));
    }
  }
  return sum.rounded();
}

}  // namespace

void reference_gemm_a16(const nvfp4_gemm_desc& g) {
  const Format& format = g.a_type == NVFP4_TYPE_F16 ? kF16 : kBF16;
  const ReferenceEpilogue epilogue(g);
  for (int64_t batch = 0; batch < g.l; ++batch) {
    const Weights weights(g, batch);
    for (int64_t m = 0; m < g.m; ++m) {
      const uint8_t* a =
          static_cast<const uint8_t*>(g.a) + 2 * (batch * g.a_batch_stride + m * g.a_ld);
      for (int64_t n = 0; n < g.n; ++n) {
        epilogue.store({batch, m, n}, dot(format, a, weights, n, g.k));
      }
    }
  }
}

}  // namespace nvfp4
