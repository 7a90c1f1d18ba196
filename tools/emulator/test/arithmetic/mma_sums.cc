// SPDX-License-Identifier: MIT
// The two models of block-scaled sums: words that tell them apart, each implementation against its
// plain model, and the condition under which nothing is cut.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/emulator/test/arithmetic/mma_cases.h"

using namespace mma_cases;

namespace {

// "0f3c" to bytes; elements are given one code a digit, in their order.
std::vector<uint8_t> bytes(const std::string& hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < hex.size(); i += 2)
    out.push_back(uint8_t(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

Dot dot_of(const unit::Row& row) {
  Dot d;
  d.type = row[1] == "ue8m0" ? ScaleType::ue8m0 : ScaleType::ue4m3;
  for (int k = 0; k < 64; ++k)
    d.term(k, uint32_t(std::stoul(row[2].substr(size_t(k), 1), nullptr, 16)),
           uint32_t(std::stoul(row[3].substr(size_t(k), 1), nullptr, 16)));
  for (int g = 0; g < 4; ++g) d.scales(g, bytes(row[5])[size_t(g)], bytes(row[6])[size_t(g)]);
  return d;
}

uint32_t word(const std::string& hex) { return uint32_t(std::stoul(hex, nullptr, 16)); }

}  // namespace

TEST_CASE("words that a B200 gave and words that tell the models apart come out so") {
  for (const unit::Row& row : unit::golden("block_scaled_words.csv")) {
    CAPTURE(row[0]);
    Dot d = dot_of(row);
    CHECK(d.of(ScaledSum::groups).plus(word(row[4])) == word(row[7]));
    CHECK(d.of(ScaledSum::blocks_zero_raises).plus(word(row[4])) == word(row[8]));
    CHECK(d.of(ScaledSum::blocks_zero_rests).plus(word(row[4])) == word(row[9]));
  }
}

TEST_CASE("groups: D is C of any size where every product is zero and -0 becomes +0") {
  Dot d = Dot().of(ScaledSum::groups).scales(1, 0x7E, 0x7E);
  for (const uint32_t c : {0x00000001u, 0x80000001u, 0x3F800001u, 0xFF7FFFFFu})
    CHECK(d.plus(c) == c);
  CHECK(d.plus(0x80000000) == 0);
  CHECK(d.plus(0) == 0);
}

TEST_CASE("groups: a C that is not below the largest product sets the quantum") {
  // One block gives 81 * 2^-20. Another gives 32 * 2^E, and C cancels that one. Here P = E + 4 and
  // S = E.
  constexpr uint32_t exact = 0x38A20000, cut = 0x38A00000;  // 81 * 2^-20, 80 * 2^-20
  Dot d = Dot().of(ScaledSum::groups).term(0, 1, 1).scales(0, 0x09, 0x09);
  d.term(16, 7, 6).term(17, 6, 4);  // 24 + 8, of which 24 has exponents 2 and 2
  CHECK(d.scales(1, 0x60, 0x60).plus(0xC7000000) == exact);  // P = 14, C's is 15
  CHECK(d.scales(1, 0x68, 0x60).plus(0xC7800000) == cut);    // P = 15, C's is 16
  // 16 * 2^12 from a product of exponent 16, as C has.
  Dot e = Dot().of(ScaledSum::groups).term(0, 1, 1).scales(0, 0x09, 0x09);
  e.term(16, 7, 6).term(17, 6, 12).scales(1, 0x68, 0x68);
  CHECK(e.plus(0xC7800000) == cut);
  // C of exponent 15 lies between S = 12 and P = 16: the quantum is S's.
  Dot n = Dot().of(ScaledSum::groups).term(0, 1, 1).scales(0, 0x09, 0x09);
  n.term(16, 6, 6).term(17, 6, 15).scales(1, 0x68, 0x68);  // 16 - 24 = -8 of exponent 3 + 12
  CHECK(n.plus(0x47000000) == exact);  // 2^15 < 2^(P = 16), although E + 3 = 15 > 12 = S
}

TEST_CASE("every implementation equals its plain model bit for bit on random data of each kind") {
  Random r{2026};
  size_t elements = 0, wrong = 0, differ = 0;
  for (int i = 0; i < 54; ++i) {
    const ScaledSum model = every_model[i % 3];
    const uint32_t n = 8 * uint32_t(1 + r.below(16)), stride = n + uint32_t(r.below(9));
    const Case x(r, n, i / 3 % 6);
    const bool accumulate = i % 7 != 6;
    std::vector<uint32_t> d(128 * stride, 0xDEADBEEF);
    for (uint32_t m = 0; m < 128; ++m)
      for (uint32_t j = 0; j < n; ++j) d[m * stride + j] = x.c[m * n + j];
    std::vector<uint32_t> cutting = d;
    const emu::MmaOperands o{x.a.data(), x.b.data(), x.sfa.data(), x.sfb.data(), 128,
                             n,          x.type,     false,        false};
    emu::mma_block_scaled(o, d.data(), stride, accumulate, model);
    emu::mma_block_scaled_cutting(o, cutting.data(), stride, accumulate, model);
    differ += cutting != d;
    for (uint32_t m = 0; m < 128; ++m)
      for (uint32_t j = 0; j < stride; ++j) {
        const uint32_t want =
            j >= n ? 0xDEADBEEF
                   : unit::scaled_model(model, &x.a[m * 32], &x.b[j * 32], &x.sfa[m * 4],
                                        &x.sfb[j * 4], x.type, accumulate ? x.c[m * n + j] : 0);
        wrong += d[m * stride + j] != want;
        elements += j < n;
      }
  }
  CHECK(wrong == 0);
  CHECK(differ == 0);
  CHECK(elements >= 100000);
}

namespace {

int exponent_of(uint8_t code, ScaleType type) {
  return type == ScaleType::ue8m0 ? code - 127 : std::max(code >> 3 & 15, 1) - 7;
}
double value_of(uint8_t code, ScaleType type) {
  if (type == ScaleType::ue8m0) return std::ldexp(1.0, code - 127);
  return std::ldexp(code >> 3 ? 8 + (code & 7) : code & 7, exponent_of(code, type) - 3);
}
double element_of(uint32_t code) {
  constexpr double size[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -size[code & 7] : size[code & 7];
}

// Data at the edges of the condition: exponents of blocks and of C that differ by about 27 and 12.
struct Edge {
  Dot dot;
  uint32_t c = 0;
  double exact = 0;  // a double has the bits for it if `holds` is true
  bool holds = true;
  int spread = 0, below = 0;  // how far the least block, and C, lie below the largest exponent

  explicit Edge(Random& r) {
    dot.type = r.below(3) ? ScaleType::ue4m3 : ScaleType::ue8m0;
    const bool e4m3 = dot.type == ScaleType::ue4m3;
    const int base = e4m3 ? 0 : int(60 + r.below(120));
    for (int g = 0; g < 4; ++g)
      if (e4m3) {
        const uint32_t low = uint32_t(r.below(2) ? r.below(16) : r.below(24));
        const uint32_t high = uint32_t(0x70 + r.below(15)), is_low = uint32_t(r.below(2));
        dot.scales(g, is_low ? low : high, is_low ? low ^ uint32_t(r.below(8)) : high);
      } else {
        dot.scales(g, uint32_t(base + int(r.below(2) * 13) + int(r.below(3))),
                   uint32_t(base + int(r.below(2) * 13)));
      }
    for (int k = 0; k < 64; ++k)
      dot.term(k, r.below(4) ? uint32_t(r.below(16)) : 1, r.below(3) ? uint32_t(r.below(16)) : 9);
    if (!r.below(4))
      for (int k = 0; k < 16; ++k) dot.term(k + 16 * int(r.below(4)), 8 * (k % 2), 3);
    judge(r);
  }

  void judge(Random& r) {
    int largest = -1000, least = 1000;
    for (int g = 0; g < 4; ++g) {
      const int e = exponent_of(dot.sfa[g], dot.type) + exponent_of(dot.sfb[g], dot.type);
      largest = std::max(largest, e), least = std::min(least, e);
    }
    const int of_c = std::clamp(
        r.below(2) ? largest - 12 + int(r.below(3)) - 1 : least + 27 + int(r.below(3)) - 1, -126,
        127);
    c = r.below(6) ? uint32_t(r()) << 23 >> 9 << 1 >> 1 : 0;
    if (c || r.below(2)) c = (uint32_t(r()) & 0x807FFFFF) | uint32_t(of_c + 127) << 23 | 1;
    const bool zero = (c & 0x7FFFFFFF) == 0;
    const int exponent = std::max(int(c >> 23 & 255), 1) - 127;
    largest = std::max(largest, exponent);
    spread = largest - least, below = zero ? 0 : largest - exponent;
    holds = spread <= 27 && below <= 12;
    float value = 0;
    std::memcpy(&value, &c, 4);
    exact = double(value);
    for (int k = 0; k < 64; ++k) {
      const auto code = [&](const uint8_t* p) { return uint32_t(p[k / 2] >> k % 2 * 4 & 15); };
      exact += element_of(code(dot.a)) * element_of(code(dot.b)) *
               value_of(dot.sfa[k / 16], dot.type) * value_of(dot.sfb[k / 16], dot.type);
    }
  }

  uint32_t truncated() const {
    float f = float(exact);
    if (std::fabs(double(f)) > std::fabs(exact)) f = std::nextafter(f, 0.0f);
    uint32_t bits = 0;
    std::memcpy(&bits, &f, 4);
    return bits;
  }
  bool normal() const {
    return exact == 0 || (std::fabs(exact) >= 0x1p-126 && std::fabs(exact) < 0x1p128);
  }
};

}  // namespace

TEST_CASE("each model truncates the exact sum where no exponent is far below the largest") {
  Random r{18};
  size_t at_edge = 0, cut_beyond[2] = {};
  for (int i = 0; i < 60000; ++i) {
    Edge e(r);
    if (!e.normal()) continue;
    const uint32_t want = e.truncated();
    for (const ScaledSum model : every_model) {
      const uint32_t got =
          unit::scaled_model(model, e.dot.a, e.dot.b, e.dot.sfa, e.dot.sfb, e.dot.type, e.c);
      if (e.holds && got != want) {
        CAPTURE(i, int(model), e.spread, e.below, e.c);
        REQUIRE(got == want);
      }
      cut_beyond[model == ScaledSum::groups] += !e.holds && got != want;
      uint32_t d = e.c;
      emu::mma_block_scaled(
          {e.dot.a, e.dot.b, e.dot.sfa, e.dot.sfb, 1, 1, e.dot.type, false, false}, &d, 1, true,
          model);
      REQUIRE(d == got);
    }
    at_edge += e.holds && (e.spread == 27 || e.below == 12);
  }
  CHECK(at_edge > 1000);
  CHECK(cut_beyond[0] > 5);  // the condition is not merely cautious
  CHECK(cut_beyond[1] > 5);
}
