// SPDX-License-Identifier: MIT
#include "support/wgmma.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace support {
namespace {

constexpr int kRows = 64, kRowBytes = 32, kImageBytes = 44 * 1024, kImageB = 8192;
constexpr const char* kTypes[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8"};
constexpr const char* kResults[] = {"f32", "f16", "s32"};

bool is_integer(WgmmaType t) { return t >= WgmmaType::s8; }

// ---- layouts: PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout -----------------

struct Layout {
  int rows, swizzle, offset;
  bool mn_major;

  // Where byte `c` of the 32 bytes of K of row `r` is.
  int place(int r, int c) const { return mn_major ? place_mn(r, c / 2) + c % 2 : place_k(r, c); }
  uint64_t descriptor(uint64_t address) const {
    const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return (address + uint64_t(offset)) >> 4 | uint64_t(lead() / 16) << 16 |
           uint64_t(stride() / 16) << 32 | mode << 62;
  }

 private:
  // Eight rows of `swizzle` bytes; 16-byte chunks change places by the 128-byte line they are in.
  int place_k(int r, int c) const {
    if (!swizzle) return r / 8 * stride() + r % 8 * 16 + c / 16 * lead() + c % 16;
    return r / 8 * 8 * swizzle + r % 8 * swizzle + moved(r % 8, (c + offset) / 16) * 16 + c % 16;
  }
  // Eight values of k, each `swizzle` bytes of neighbours in M or N.
  int place_mn(int r, int k) const {
    if (!swizzle) return r / 8 * stride() + k / 8 * lead() + k % 8 * 16 + r % 8 * 2;
    const int across = swizzle / 2;
    return r / across * lead() + k / 8 * stride() + k % 8 * swizzle +
           moved(k % 8, r % across / 8) * 16 + r % 8 * 2;
  }
  int moved(int line, int chunk) const { return chunk ^ line * swizzle / 128 % (swizzle / 16); }
  int lead() const {
    if (mn_major) return swizzle ? 16 * swizzle : 128;
    return swizzle ? 16 : rows * 16;  // K-major swizzles do not look at it
  }
  int stride() const {
    if (mn_major) return swizzle ? 8 * swizzle : 256;
    return swizzle ? 8 * swizzle : 128;
  }
};

Layout layout_a(const Wgmma& w) { return {kRows, w.a_swizzle, w.a_offset, w.a_mn_major}; }
Layout layout_b(const Wgmma& w) { return {w.n, w.b_swizzle, w.b_offset, w.b_mn_major}; }

// ---- numbers ------------------------------------------------------------------------------------

double value_of(uint32_t code, int exponent_bits, int mantissa_bits, bool infinity) {
  const int top = (1 << exponent_bits) - 1, bias = top / 2, ones = (1 << mantissa_bits) - 1;
  const int field = int(code >> mantissa_bits) & top, fraction = int(code) & ones;
  const double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (infinity && field == top) return fraction ? NAN : sign * INFINITY;
  if (!infinity && field == top && fraction == ones) return NAN;
  if (field == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp(fraction + ones + 1, field - bias - mantissa_bits);
}

struct Term {
  double value;
  int exponent;  // of its leading bit; a subnormal has the smallest normal one's, zero has -126
};

Term term(double value, int smallest) {
  if (value == 0 || !std::isfinite(value)) return {value, -126};
  return {value, std::max(std::ilogb(value), smallest)};
}

Term element(const uint8_t* row, int k, WgmmaType type, int bytes) {
  uint32_t code = 0;
  std::memcpy(&code, row + k * bytes, size_t(bytes));
  switch (type) {
    case WgmmaType::f16: return term(value_of(code, 5, 10, true), -14);
    case WgmmaType::bf16: return term(value_of(code, 8, 7, true), -126);
    case WgmmaType::tf32: return term(value_of(code >> 13, 8, 10, true), -126);
    case WgmmaType::e4m3: return term(value_of(code, 4, 3, false), -6);
    case WgmmaType::e5m2: return term(value_of(code, 5, 2, true), -14);
    case WgmmaType::s8: return {double(int8_t(code)), 0};
    case WgmmaType::u8: return {double(code), 0};
  }
  return {};
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

uint32_t integer_model(const Wgmma& w, const uint8_t* a, const uint8_t* b, uint32_t c) {
  int64_t sum = int32_t(c);
  for (int k = 0; k < kRowBytes; ++k)
    sum += int64_t(element(a, k, w.a, 1).value * element(b, k, w.b, 1).value);
  if (w.satfinite) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  return uint32_t(sum);
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
  return draw(2) << (exponent_bits + mantissa_bits) | field << mantissa_bits | fraction;
}

void fill(std::vector<uint8_t>& rows, WgmmaType type, std::mt19937_64& random, int kind) {
  const int bytes = type == WgmmaType::tf32 ? 4 : type < WgmmaType::tf32 ? 2 : 1;
  for (size_t i = 0; i < rows.size(); i += size_t(bytes)) {
    uint32_t code = uint32_t(random());
    if (type == WgmmaType::f16) code = random_code(random, 5, 10, kind);
    if (type == WgmmaType::bf16) code = random_code(random, 8, 7, kind);
    if (type == WgmmaType::tf32) code = random_code(random, 8, 10, kind) << 13 | (code & 0x1FFF);
    if (type == WgmmaType::e4m3) code = random_code(random, 4, 3, kind);
    if (type == WgmmaType::e5m2) code = random_code(random, 5, 2, kind);
    std::memcpy(&rows[i], &code, size_t(bytes));
  }
}

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
  return text;
}

std::string registers(const char* prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

}  // namespace

std::string Wgmma::name() const {
  std::string text = "m64n" + std::to_string(n) + "k" + std::to_string(depth());
  text += "." + std::string(kResults[int(d)]) + "." + kTypes[int(a)] + "." + kTypes[int(b)];
  const auto operand = [](bool mn, int swizzle, int offset) {
    return std::string(mn ? "MN" : "K") + " " + std::to_string(swizzle) + "+" +
           std::to_string(offset);
  };
  text += " A " + (a_in_registers ? "registers" : operand(a_mn_major, a_swizzle, a_offset));
  text += ", B " + operand(b_mn_major, b_swizzle, b_offset);
  return text + (negate_a ? ", -A" : "") + (negate_b ? ", -B" : "") + (accumulate ? "" : ", no C") +
         (satfinite ? ", satfinite" : "");
}

WgmmaData random_data(const Wgmma& w, std::mt19937_64& random, int kind) {
  WgmmaData data;
  data.a.resize(kRows * kRowBytes);
  data.b.resize(size_t(w.n * kRowBytes));
  data.c.resize(size_t(kRows * w.n));
  fill(data.a, w.a, random, kind);
  fill(data.b, w.b, random, kind);
  for (uint32_t& c : data.c)
    c = w.d == WgmmaResult::s32   ? uint32_t(random())
        : w.d == WgmmaResult::f16 ? random_code(random, 5, 10, kind)
                                  : random_code(random, 8, 23, kind);
  return data;
}

std::string program(const Wgmma& w) {
  const int count = w.registers();
  std::string text =
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry wgmma_probe(.param .u64 out, .param .u64 image, .param .u64 a, "
      ".param .u64 c)\n{\n"
      ".reg .pred p, more;\n.reg .b32 r<8>, t, s, a<4>, d<128>;\n.reg .b64 x<8>, da, db;\n"
      ".shared .align 1024 .b8 tiles[" +
      std::to_string(kImageBytes) +
      "];\n"
      "mov.u32 t, %tid.x;\nmov.u32 s, tiles;\n"
      "ld.param.u64 x0, [image];\ncvta.to.global.u64 x0, x0;\n"
      "mul.wide.u32 x1, t, 16;\nadd.u64 x0, x0, x1;\n"
      "shl.b32 r0, t, 4;\nadd.u32 r0, r0, s;\nadd.u32 r1, s, " +
      std::to_string(kImageBytes) +
      ";\n"
      "COPY:\nld.global.v4.b32 {r2, r3, r4, r5}, [x0];\nst.shared.v4.b32 [r0], {r2, r3, r4, r5};\n"
      "add.u64 x0, x0, 2048;\nadd.u32 r0, r0, 2048;\nsetp.lt.u32 more, r0, r1;\n@more bra COPY;\n"
      "ld.param.u64 x2, [a];\ncvta.to.global.u64 x2, x2;\nadd.u64 x2, x2, x1;\n"
      "ld.global.v4.b32 {a0, a1, a2, a3}, [x2];\n"
      "ld.param.u64 x3, [c];\ncvta.to.global.u64 x3, x3;\nmul.wide.u32 x4, t, " +
      std::to_string(4 * count) + ";\nadd.u64 x3, x3, x4;\n";
  for (int i = 0; i < count; ++i)
    text += "ld.global.b32 d" + std::to_string(i) + ", [x3+" + std::to_string(4 * i) + "];\n";
  text +=
      "cvt.u64.u32 x5, s;\nshr.u64 x5, x5, 4;\n"
      "add.u64 da, x5, " +
      hex(layout_a(w).descriptor(0)) +
      ";\n"
      "add.u64 db, x5, " +
      hex(layout_b(w).descriptor(kImageB)) +
      ";\n"
      "setp.ne.u32 p, " +
      std::to_string(w.accumulate) +
      ", 0;\n"
      "fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n";
  text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(w.n) + "k" +
          std::to_string(w.depth()) + (w.satfinite ? ".satfinite" : "") + "." + kResults[int(w.d)] +
          "." + kTypes[int(w.a)] + "." + kTypes[int(w.b)] + " " + registers("d", count) + ", " +
          (w.a_in_registers ? "{a0, a1, a2, a3}" : "da") + ", db, p";
  if (!is_integer(w.a))
    text += std::string(w.negate_a ? ", -1" : ", 1") + (w.negate_b ? ", -1" : ", 1");
  if (w.element_bytes() == 2)
    text += (w.a_in_registers ? ""
             : w.a_mn_major   ? ", 1"
                              : ", 0") +
            std::string(w.b_mn_major ? ", 1" : ", 0");
  text +=
      ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "ld.param.u64 x6, [out];\ncvta.to.global.u64 x6, x6;\nadd.u64 x6, x6, x4;\n";
  for (int i = 0; i < count; ++i)
    text += "st.global.b32 [x6+" + std::to_string(4 * i) + "], d" + std::to_string(i) + ";\n";
  return text + "ret;\n}\n";
}

std::vector<uint8_t> shared_image(const Wgmma& w, const WgmmaData& data) {
  std::vector<uint8_t> image(kImageBytes, 0xFF);
  const Layout a = layout_a(w), b = layout_b(w);
  for (int c = 0; c < kRowBytes; ++c) {
    for (int r = 0; r < kRows && !w.a_in_registers; ++r)
      image[size_t(a.place(r, c))] = data.a[size_t(r * kRowBytes + c)];
    for (int r = 0; r < w.n; ++r)
      image[size_t(kImageB + b.place(r, c))] = data.b[size_t(r * kRowBytes + c)];
  }
  return image;
}

// Word i of thread t: rows t / 4 of the warp's sixteen and eight further down, then K's second half.
std::vector<uint32_t> a_words(const WgmmaData& data) {
  std::vector<uint32_t> words(kWgmmaThreads * 4);
  for (uint32_t t = 0; t < kWgmmaThreads; ++t)
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8, byte = i / 2 * 16 + t % 4 * 4;
      std::memcpy(&words[t * 4 + i], &data.a[row * kRowBytes + byte], 4);
    }
  return words;
}

// Pairs of neighbours in a row, then eight rows further down, then eight columns further on.
std::vector<uint32_t> accumulator_words(const Wgmma& w, const std::vector<uint32_t>& c) {
  const auto count = uint32_t(w.registers());
  std::vector<uint32_t> words(kWgmmaThreads * count);
  for (uint32_t t = 0; t < kWgmmaThreads; ++t)
    for (uint32_t e = 0; e < uint32_t(w.n) / 2; ++e) {
      const uint32_t row = t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8;
      const uint32_t value = c[row * uint32_t(w.n) + e / 4 * 8 + t % 4 * 2 + e % 2];
      if (w.d == WgmmaResult::f16)
        words[t * count + e / 2] |= value << 16 * (e % 2);
      else
        words[t * count + e] = value;
    }
  return words;
}

uint32_t wgmma_model(const Wgmma& w, const uint8_t a[32], const uint8_t b[32], uint32_t c) {
  if (!w.accumulate) c = 0;
  if (w.d == WgmmaResult::s32) return integer_model(w, a, b, c);
  const bool half = w.d == WgmmaResult::f16, small = w.element_bytes() == 1;
  const int kept = small ? 13 : 25;  // fractional bits of the aligned terms
  std::vector<Term> terms{half ? term(value_of(c, 5, 10, true), -14)
                               : term(value_of(c, 8, 23, true), -126)};
  for (int k = 0; k < w.depth(); ++k) {
    const Term x = element(a, k, w.a, w.element_bytes()), y = element(b, k, w.b, w.element_bytes());
    const double sign = w.negate_a != w.negate_b ? -1 : 1;
    terms.push_back({sign * x.value * y.value, x.exponent + y.exponent});
  }
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
  const int exponent = std::max(std::ilogb(exact), half ? -14 : -126);
  const int bits = half ? 10 : small ? 13 : 23;
  const double scaled = std::ldexp(exact, bits - exponent);
  const double rounded = half ? std::nearbyint(scaled) : std::trunc(scaled);
  return encode(std::ldexp(rounded, exponent - bits), half ? 5 : 8, half ? 10 : 23);
}

std::vector<uint32_t> wgmma_expected(const Wgmma& w, const WgmmaData& data) {
  std::vector<uint32_t> out(data.c.size());
  for (int r = 0; r < kRows; ++r)
    for (int n = 0; n < w.n; ++n)
      out[size_t(r * w.n + n)] =
          wgmma_model(w, &data.a[size_t(r * kRowBytes)], &data.b[size_t(n * kRowBytes)],
                      data.c[size_t(r * w.n + n)]);
  return out;
}

}  // namespace support
