// SPDX-License-Identifier: MIT
#include "tools/emulator/test/models/warp_mma.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace support {
namespace {

constexpr int kLanes = 32;

std::string registers(const char* prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

// x0 = the parameter's address + (lane + 32 * block) * words * 4
std::string locate(const char* parameter, int words) {
  return "ld.param.u64 x0, [" + std::string(parameter) +
         "];\ncvta.to.global.u64 x0, x0;\nmul.wide.u32 x1, t, " + std::to_string(words * 4) +
         ";\nadd.u64 x0, x0, x1;\n";
}

std::string move(const std::string& opcode, const char* prefix, int words) {
  std::string text;
  for (int i = 0; i < words; ++i) {
    const std::string at = "[x0+" + std::to_string(4 * i) + "]", r = prefix + std::to_string(i);
    text += opcode + ".global.b32 " + (opcode == "ld" ? r + ", " + at : at + ", " + r) + ";\n";
  }
  return text;
}

// In A the second of two neighbours is the first with the other sign, in B the first itself, up to
// a few of the last bits.
void nearly_cancel(const WarpMma& w, WarpMmaData& data, std::mt19937_64& random) {
  const auto pair = [&](std::vector<uint8_t>& rows, size_t bytes, uint8_t sign) {
    for (size_t i = 0; i < rows.size(); i += 2 * bytes) {
      std::memcpy(&rows[i + bytes], &rows[i], bytes);
      rows[i + 2 * bytes - 1] ^= sign;
      if (random() % 4 == 0) rows[i + bytes] ^= uint8_t(random() % 4);
    }
  };
  pair(data.a, size_t(bits_of(w.a) / 8), 0x80);
  pair(data.b, size_t(bits_of(w.b) / 8), 0);
}

// PTX ISA 9.7.15.5: lane l has row l / 4 of each eight, bytes 4 (l % 4) to the next three of each
// sixteen; registers go down the rows first.
void append_rows(const std::vector<uint8_t>& rows, int row_bytes, std::vector<uint32_t>& to) {
  const int count = int(rows.size()) / row_bytes;
  for (int lane = 0; lane < kLanes; ++lane)
    for (int byte = lane % 4 * 4; byte < row_bytes; byte += 16)
      for (int row = lane / 4; row < count; row += 8) {
        uint32_t word;
        std::memcpy(&word, &rows[size_t(row * row_bytes + byte)], 4);
        to.push_back(word);
      }
}

// A row of A times a column of B.
struct Dot {
  const WarpMma& w;
  const uint8_t *a, *b;

  uint32_t in_steps(uint32_t sum, const Hypothesis& h) const {
    for (int step = 0; step < w.k / h.step; ++step) {
      const int first = (h.reversed ? w.k / h.step - 1 - step : step) * h.step;
      std::vector<Term> terms{accumulator(sum, w.d)};
      for (int k = first; k < first + h.step; ++k) {
        const Term x = element(a, k, w.a), y = element(b, k, w.b);
        const bool zero = x.value == 0 || y.value == 0;
        terms.push_back({x.value * y.value, zero ? -126 : x.exponent + y.exponent});
      }
      sum = aligned_sum(terms, w.d, h.kept);
    }
    return sum;
  }

  uint32_t as_fp16(uint32_t c, int kept) const {
    uint32_t sum = 0;
    for (const int half : {0, 2}) {
      std::vector<Term> terms{accumulator(sum, w.d)};
      for (int k = half; k < w.k; k += k % 2 ? 3 : 1) {
        const double x = element(a, k, w.a).value, y = element(b, k, w.b).value;
        const bool zero = x == 0 || y == 0;
        terms.push_back({x * y, zero ? -126 : fp16_exponent(x) + fp16_exponent(y)});
      }
      sum = aligned_sum(terms, w.d, kept);
    }
    return rounded_sum(sum, c, w.d);
  }

  uint32_t integers(uint32_t c) const {
    int64_t sum = int32_t(c);
    for (int k = 0; k < w.k; ++k) {
      const auto x = int64_t(element(a, k, w.a).value), y = int64_t(element(b, k, w.b).value);
      sum += w.exclusive ? x ^ y : x * y;
    }
    return uint32_t(w.satfinite ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
  }

  static int fp16_exponent(double value) {
    return value == 0 || !std::isfinite(value) ? -126 : std::max(std::ilogb(value), -14);
  }
};

}  // namespace

std::string WarpMma::name() const {
  return "m" + std::to_string(m) + "n8k" + std::to_string(k) + ".row.col" +
         (satfinite ? ".satfinite." : ".") + name_of(d) + "." + name_of(a) + "." + name_of(b) +
         "." + name_of(d) +
         (a != NumberType::b1 ? ""
          : exclusive         ? ".xor.popc"
                              : ".and.popc");
}

std::vector<WarpMma> warp_mmas() {
  using T = NumberType;
  std::vector<WarpMma> all;
  const auto add = [&](T a, T b, SumType d, int m, int k) { all.push_back({a, b, d, m, k}); };
  for (const int k : {8, 16}) {
    add(T::f16, T::f16, SumType::f32, 16, k);
    add(T::f16, T::f16, SumType::f16, 16, k);
    add(T::bf16, T::bf16, SumType::f32, 16, k);
    add(T::tf32, T::tf32, SumType::f32, 16, k / 2);
    for (const SumType d : {SumType::f32, SumType::f16})
      for (const T a : {T::e4m3, T::e5m2})
        for (const T b : {T::e4m3, T::e5m2}) add(a, b, d, 16, 2 * k);
  }
  for (const auto& [m, bytes] : {std::pair(8, 16), {16, 16}, {16, 32}}) {
    for (const T a : {T::s8, T::u8})
      for (const T b : {T::s8, T::u8}) add(a, b, SumType::s32, m, bytes);
    for (const T a : {T::s4, T::u4})
      for (const T b : {T::s4, T::u4}) add(a, b, SumType::s32, m, 2 * bytes);
    add(T::b1, T::b1, SumType::s32, m, 8 * bytes);
  }
  const size_t plain = all.size();
  for (size_t i = 0; i < plain; ++i) {
    WarpMma other = all[i];
    if (other.a == T::b1)
      other.exclusive = true;
    else if (is_integer(other.a))
      other.satfinite = true;
    else
      continue;
    all.push_back(other);
  }
  return all;
}

std::string Hypothesis::name() const {
  if (as_fp16) return "as fp16, C last, " + std::to_string(kept) + " bits";
  return "steps of " + std::to_string(step) + (reversed ? ", the last first, " : ", ") +
         std::to_string(kept) + " bits";
}

WarpMmaData random_data(const WarpMma& w, std::mt19937_64& random, int kind) {
  const bool cancel = kind == kDataKinds;
  const int base = cancel ? 1 : kind;
  WarpMmaData data;
  data.a.resize(size_t(w.m * w.row_bytes()));
  data.b.resize(size_t(kWarpMmaColumns * w.row_bytes()));
  data.c.resize(size_t(w.m * kWarpMmaColumns));
  fill(data.a, w.a, random, base);
  fill(data.b, w.b, random, base);
  for (uint32_t& c : data.c) c = random_accumulator(w.d, random, base);
  if (cancel && !is_integer(w.a)) nearly_cancel(w, data, random);
  return data;
}

std::string program(const WarpMma& w) {
  const std::string d = registers("d", w.d_words());
  return ".version 8.7\n.target sm_90a\n.address_size 64\n"
         ".visible .entry warp_mma(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)\n"
         "{\n.reg .b32 t, u, a<4>, b<2>, d<4>;\n.reg .b64 x<2>;\n"
         "mov.u32 t, %tid.x;\nmov.u32 u, %ctaid.x;\nmad.lo.u32 t, u, 32, t;\n" +
         locate("a", w.a_words()) + move("ld", "a", w.a_words()) + locate("b", w.b_words()) +
         move("ld", "b", w.b_words()) + locate("c", w.d_words()) + move("ld", "d", w.d_words()) +
         "mma.sync.aligned." + w.name() + " " + d + ", " + registers("a", w.a_words()) + ", " +
         registers("b", w.b_words()) + ", " + d + ";\n" + locate("out", w.d_words()) +
         move("st", "d", w.d_words()) + "ret;\n}\n";
}

void append_fragments(const WarpMma& w, const WarpMmaData& data, std::vector<uint32_t>& a,
                      std::vector<uint32_t>& b, std::vector<uint32_t>& c) {
  append_rows(data.a, w.row_bytes(), a);
  append_rows(data.b, w.row_bytes(), b);
  const std::vector<uint32_t> words = accumulator_fragment(w, data.c);
  c.insert(c.end(), words.begin(), words.end());
}

// Two neighbours in a row, then eight rows further down.
std::vector<uint32_t> accumulator_fragment(const WarpMma& w, const std::vector<uint32_t>& c) {
  std::vector<uint32_t> words;
  for (int lane = 0; lane < kLanes; ++lane)
    for (int row = lane / 4; row < w.m; row += 8) {
      const uint32_t* from = &c[size_t(row * kWarpMmaColumns + lane % 4 * 2)];
      if (w.d == SumType::f16)
        words.push_back(from[0] | from[1] << 16);
      else
        words.insert(words.end(), from, from + 2);
    }
  return words;
}

Hypothesis model_of(const WarpMma& w) {
  const bool eight_bits = w.a == NumberType::e4m3 || w.a == NumberType::e5m2;
  return {w.k, 25, false, eight_bits};
}

std::vector<uint32_t> warp_mma_expected(const WarpMma& w, const WarpMmaData& data,
                                        const Hypothesis& h) {
  std::vector<uint32_t> out = data.c;
  for (size_t i = 0; i < out.size(); ++i) {
    const Dot dot{w, &data.a[i / kWarpMmaColumns * size_t(w.row_bytes())],
                  &data.b[i % kWarpMmaColumns * size_t(w.row_bytes())]};
    out[i] = w.d == SumType::s32 ? dot.integers(out[i])
             : h.as_fp16         ? dot.as_fp16(out[i], h.kept)
                                 : dot.in_steps(out[i], h);
  }
  return out;
}

}  // namespace support
