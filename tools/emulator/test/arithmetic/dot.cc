// SPDX-License-Identifier: MIT
// The kinds of tcgen05.mma that add product by product, against the model in doubles.
#include "tools/emulator/arithmetic/mma_dot.h"

#include <cstring>

#include "tools/emulator/test/arithmetic/dot_reference.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;
using unit::FloatFormat;
using unit::Random;

namespace {

const struct Type {
  const char* name;
  ElementType type;
  FloatFormat format;
  uint32_t bits, count;  // of an element; in 32 bytes
} types[] = {
    {"f16", ElementType::f16, unit::half, 16, 16},
    {"bf16", ElementType::bf16, unit::brain, 16, 16},
    {"tf32", ElementType::tf32, unit::tensor, 32, 8},
    {"e4m3", ElementType::e4m3, unit::e4m3, 8, 32},
    {"e5m2", ElementType::e5m2, unit::e5m2, 8, 32},
    {"e2m3", ElementType::e2m3, unit::e2m3, 6, 32},
    {"e3m2", ElementType::e3m2, unit::e3m2, 6, 32},
    {"e2m1", ElementType::e2m1, unit::e2m1, 4, 32},
};

const Type& type(const std::string& name) {
  for (const Type& t : types)
    if (name == t.name) return t;
  FAIL(name);
  return types[0];
}

// Codes into 32 bytes: 16 of the small ones go to the start of each 16 bytes, lowest bits first.
void pack(const Type& t, const std::vector<uint32_t>& codes, uint8_t* bytes) {
  std::memset(bytes, 0, 32);
  for (uint32_t i = 0; i < t.count; ++i)
    for (uint32_t bit = 0; bit < t.bits; ++bit) {
      const uint32_t at = i / (t.count / 2) * 128 + i % (t.count / 2) * t.bits + bit;
      bytes[at / 8] |= uint8_t((codes[i] >> bit & 1) << at % 8);
    }
}

constexpr uint64_t near = 3;

// What makes the alignment, cutting and special paths busy: any code; a narrow range of exponents;
// many zeros; so near that most sums are exact.
std::vector<uint32_t> random_codes(Random& r, const Type& t, uint64_t kind) {
  std::vector<uint32_t> codes(t.count);
  const uint32_t reach = kind == 1 ? 4 : kind == 2 ? 24 : uint32_t(2 + r.below(8));
  for (uint32_t& c : codes) {
    c = uint32_t(r()) & uint32_t((1ull << t.bits) - 1);
    if (kind == 0) continue;
    const int low = t.format.ignored + t.format.mantissa_bits, fields = 1 << t.format.exponent_bits;
    const uint32_t spread = std::min<uint32_t>(uint32_t(fields - 2), reach);
    const uint32_t exponent = uint32_t(t.format.bias) - spread / 2 + uint32_t(r.below(spread));
    c = (c & ~(uint32_t(fields - 1) << low)) | (exponent % uint32_t(fields)) << low;
    if (r.below(3) == 0) c = 0;
  }
  return codes;
}

uint32_t random_accumulator(Random& r, bool half) {
  const uint32_t bits = uint32_t(r());
  if (half) return bits & 0xFFFF;
  switch (r.below(6)) {
    case 0: return bits;
    case 1: return bits & 0x80000000;
    case 2: return bits & 0x807FFFFF;
    default: return (bits & 0x807FFFFF) | uint32_t(110 + r.below(40)) << 23;
  }
}

// A row of sums that have one magnitude and number of bits, or are zero. Sometimes one of them is
// infinite, no number or of any other size.
void random_row(Random& r, uint32_t* c, uint32_t n) {
  const uint32_t kept = ~0u << r.below(24), exponent = 110 + uint32_t(r.below(30));
  const bool zeros = r.below(4) == 0;
  for (uint32_t j = 0; j < n; ++j) {
    const uint32_t bits = uint32_t(r()) & 0x80FFFFFF & kept;
    c[j] = r.below(300) == 0 ? random_accumulator(r, false)
           : zeros           ? bits & 0x80000000
                             : bits + (exponent << 23);
  }
}

struct Case {
  const Type &a, &b;
  AccumulatorType d;
  uint64_t kind;
  bool scaled, narrow = false;
};

// 32 x n elements; returns how many differ from the reference.
size_t differences(const Case& x, Random& r, uint32_t n) {
  constexpr uint32_t rows = 32;
  std::vector<uint8_t> a(rows * 32), b(n * 32), sfa(rows), sfb(n);
  std::vector<std::vector<uint32_t>> ac, bc;
  for (uint32_t i = 0; i < rows; ++i)
    pack(x.a, ac.emplace_back(random_codes(r, x.a, x.kind)), &a[i * 32]);
  for (uint32_t i = 0; i < n; ++i)
    pack(x.b, bc.emplace_back(random_codes(r, x.b, x.kind)), &b[i * 32]);
  for (auto* s : {&sfa, &sfb})
    for (uint8_t& code : *s) code = uint8_t(r.below(40) ? 100 + r.below(50) : r());
  const bool half = x.d == AccumulatorType::f16, raises = x.kind != near && r.below(2),
             negate = r.below(2);
  const uint32_t scale_d = x.scaled || x.kind == near ? 0 : uint32_t(r.below(16)), stride = n + 3;
  std::vector<uint32_t> c(rows * stride);
  for (uint32_t& bits : c) bits = random_accumulator(r, half);
  if (x.kind == near)
    for (uint32_t i = 0; i < rows; ++i) random_row(r, &c[i * stride], n);
  std::vector<uint32_t> d = c;
  emu::mma_dot(
      {a.data(), b.data(), x.scaled ? sfa.data() : nullptr, x.scaled ? sfb.data() : nullptr, rows,
       n, x.a.type, x.b.type, x.d, negate, false, false, true, raises, scale_d, x.narrow},
      d.data(), stride);
  size_t wrong = 0;
  for (uint32_t i = 0; i < rows; ++i)
    for (uint32_t j = 0; j < n; ++j) {
      unit::Dot dot{x.a.format, x.b.format, half ? unit::half : unit::single, {}, {}, 0};
      for (uint32_t k = 0; k < x.a.count; ++k) {
        dot.x.push_back(unit::value_of(ac[i][k], x.a.format) * (negate ? -1 : 1));
        dot.y.push_back(unit::value_of(bc[j][k], x.b.format));
      }
      dot.c = unit::value_of(c[i * stride + j], dot.d);
      dot.scale_d = int(scale_d);
      dot.raises = raises;
      if (x.narrow) dot.model_bits = 13;
      if (x.scaled) dot.scale = sfa[i] + sfb[j] - 254;
      if (x.scaled && (sfa[i] == 0xFF || sfb[j] == 0xFF)) dot.c = NAN;
      wrong += d[i * stride + j] != unit::dot_reference(dot);
    }
  return wrong;
}

// D = A * B of one row and one column, k = 0 only.
uint32_t one_product(const Type& a, uint32_t x, const Type& b, uint32_t y, uint32_t c,
                     AccumulatorType d) {
  std::vector<uint32_t> xs(a.count), ys(b.count);
  xs[0] = x;
  ys[0] = y;
  uint8_t ab[32], bb[32];
  pack(a, xs, ab);
  pack(b, ys, bb);
  emu::mma_dot(
      {ab, bb, nullptr, nullptr, 1, 1, a.type, b.type, d, false, false, false, true, false, 0}, &c,
      1);
  return c;
}

}  // namespace

TEST_CASE("dot products equal the model in doubles bit for bit for every pair of types") {
  Random r{4711};
  size_t wrong = 0, elements = 0;
  for (const Type& a : types)
    for (const Type& b : types) {
      if (a.count != b.count) continue;
      for (const AccumulatorType d : {AccumulatorType::f32, AccumulatorType::f16})
        for (uint64_t kind = 0; kind < 3; ++kind)
          for (const bool scaled : {false, true}) {
            if (scaled && (a.count != 32 || d == AccumulatorType::f16)) continue;
            const uint32_t n = 8 * uint32_t(1 + r.below(6));
            const size_t bad = differences({a, b, d, kind, scaled}, r, n);
            CAPTURE(a.name, b.name, int(d), kind, scaled, n);
            CHECK(bad == 0);
            wrong += bad;
            elements += 32 * n;
          }
    }
  CHECK(wrong == 0);
  CHECK(elements > 100000);
}

TEST_CASE("dot products that no term is cut of have the bits of the model") {
  Random r{4712};
  for (const Type& a : types)
    for (const Type& b : types)
      for (const bool narrow : {false, true}) {
        if (a.count != b.count || (narrow && a.bits != 8)) continue;
        for (const uint32_t n : {8u, 16u, 40u}) {
          CAPTURE(a.name, b.name, narrow, n);
          CHECK(differences({a, b, AccumulatorType::f32, near, false, narrow}, r, n) == 0);
        }
      }
}

TEST_CASE("every code of the 8-bit types has the value of the format's table") {
  const Type& f8 = type("e4m3");
  for (const auto& row : unit::golden("numeric_decode")) {
    if (row[0] != "e4m3" && row[0] != "e5m2") continue;
    const uint32_t code = uint32_t(unit::number(row[1])), bits = uint32_t(unit::number(row[2]));
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000, zero = (bits & 0x7FFFFFFF) == 0;
    CAPTURE(row[0], row[1]);
    CHECK(one_product(type(row[0]), code, f8, 0x38, 0, AccumulatorType::f32) == (nan    ? 0x7FFFFFFF
                                                                                 : zero ? 0
                                                                                        : bits));
  }
}

TEST_CASE("fp32 results are cut and fp16 results are rounded to even") {
  const Type& f16 = type("f16");
  const uint32_t one = 0x3C00, tiny = 0x0001;  // 2^-24
  const auto f32 = AccumulatorType::f32, d16 = AccumulatorType::f16;
  CHECK(one_product(f16, tiny, f16, one, 0x3F800000, f32) == 0x3F800000);  // 1 + half an ulp
  CHECK(one_product(f16, 0x8001, f16, one, 0x3F800000, f32) == 0x3F7FFFFF);
  CHECK(one_product(f16, 0x1000, f16, one, 0x3C00, d16) == 0x3C00);  // 1 + 2^-11: a tie
  CHECK(one_product(f16, 0x1000, f16, one, 0x3C01, d16) == 0x3C02);
  CHECK(one_product(f16, 0x1001, f16, one, 0x3C00, d16) == 0x3C01);
  CHECK(one_product(f16, one, f16, 0x4C00, 0x7BFF, d16) == 0x7C00);  // 65504 + 16
  CHECK(one_product(f16, one, f16, 0x4B80, 0x7BFF, d16) == 0x7BFF);  // 65504 + 15
}

TEST_CASE("infinities and NaN follow IEEE's rules and give the canonical NaN") {
  const Type &f16 = type("f16"), &f8 = type("e5m2");
  const uint32_t inf = 0x7C00, one = 0x3C00;
  const auto f32 = AccumulatorType::f32, d16 = AccumulatorType::f16;
  CHECK(one_product(f16, inf, f16, one, 0, f32) == 0x7F800000);
  CHECK(one_product(f16, inf | 0x8000, f16, one, 0, d16) == 0xFC00);
  CHECK(one_product(f16, inf, f16, 0, 0, f32) == 0x7FFFFFFF);
  CHECK(one_product(f16, inf, f16, one, 0xFF800000, f32) == 0x7FFFFFFF);
  CHECK(one_product(f16, inf, f16, one, 0xFC00, d16) == 0x7FFF);
  CHECK(one_product(f16, one, f16, one, 0xFF800000, f32) == 0xFF800000);
  CHECK(one_product(f16, 0x7E00, f16, one, 0, f32) == 0x7FFFFFFF);
  CHECK(one_product(f8, 0x7C, f8, 0x3C, 0, f32) == 0x7F800000);
}

TEST_CASE("tf32 operands lose their 13 low bits") {
  const Type& t = type("tf32");
  CHECK(one_product(t, 0x3F801FFF, t, 0x3F800000, 0, AccumulatorType::f32) == 0x3F800000);
  CHECK(one_product(t, 0x3F802000, t, 0x3F800000, 0, AccumulatorType::f32) == 0x3F802000);
}

TEST_CASE("integer sums are exact and wrap or saturate") {
  Random r{99};
  for (const bool a_signed : {false, true})
    for (const bool b_signed : {false, true}) {
      std::vector<uint8_t> a(32), b(32);
      for (auto* v : {&a, &b})
        for (uint8_t& x : *v) x = uint8_t(r());
      int32_t sum = -12345;
      for (int k = 0; k < 32; ++k)
        sum += (a_signed ? int8_t(a[k]) : a[k]) * (b_signed ? int8_t(b[k]) : b[k]);
      uint32_t d = uint32_t(-12345);
      const auto name = [](bool s) { return s ? ElementType::s8 : ElementType::u8; };
      emu::mma_dot({a.data(), b.data(), nullptr, nullptr, 1, 1, name(a_signed), name(b_signed),
                    AccumulatorType::s32, false, false, false, true, true, 0},
                   &d, 1);
      CHECK(int32_t(d) == sum);
    }
  const std::vector<uint8_t> a(32, 0x80), b(32, 0x7F), c(32, 0x80);
  const auto run = [&](const std::vector<uint8_t>& y, uint32_t d, bool saturate) {
    emu::mma_dot({a.data(), y.data(), nullptr, nullptr, 1, 1, ElementType::s8, ElementType::s8,
                  AccumulatorType::s32, false, false, saturate, true, true, 0},
                 &d, 1);
    return d;
  };
  CHECK(run(c, 0x7FFFFFFF, false) == 0x8007FFFF);
  CHECK(run(c, 0x7FFFFFFF, true) == 0x7FFFFFFF);
  CHECK(run(b, 0x80000000, true) == 0x80000000);
  CHECK(run(b, 0x80000000, false) == 0x7FF81000);
}
