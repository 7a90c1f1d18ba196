// SPDX-License-Identifier: MIT
#include "tools/emulator/test/models/wgmma.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace support {
namespace {

constexpr int kRows = 64, kRowBytes = 32, kImageBytes = 44 * 1024, kImageB = 8192;

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

uint32_t integer_model(const Wgmma& w, const uint8_t* a, const uint8_t* b, uint32_t c) {
  int64_t sum = int32_t(c);
  for (int k = 0; k < kRowBytes; ++k)
    sum += int64_t(element(a, k, w.a).value * element(b, k, w.b).value);
  if (w.satfinite) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  return uint32_t(sum);
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
  text += "." + name_of(d) + "." + name_of(a) + "." + name_of(b);
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
  for (uint32_t& c : data.c) c = random_accumulator(w.d, random, kind);
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
          std::to_string(w.depth()) + (w.satfinite ? ".satfinite" : "") + "." + name_of(w.d) + "." +
          name_of(w.a) + "." + name_of(w.b) + " " + registers("d", count) + ", " +
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

// Word i of thread t: rows t / 4 of the warp's sixteen and eight further down, then K's second
// half.
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
      if (w.d == SumType::f16)
        words[t * count + e / 2] |= value << 16 * (e % 2);
      else
        words[t * count + e] = value;
    }
  return words;
}

uint32_t wgmma_model(const Wgmma& w, const uint8_t a[32], const uint8_t b[32], uint32_t c) {
  if (!w.accumulate) c = 0;
  if (w.d == SumType::s32) return integer_model(w, a, b, c);
  std::vector<Term> terms{accumulator(c, w.d)};
  for (int k = 0; k < w.depth(); ++k) {
    const Term x = element(a, k, w.a), y = element(b, k, w.b);
    const double sign = w.negate_a != w.negate_b ? -1 : 1;
    const bool zero = x.value == 0 || y.value == 0;
    terms.push_back({sign * x.value * y.value, zero ? -126 : x.exponent + y.exponent});
  }
  const bool narrow = w.element_bytes() == 1;  // Hopper's 8-bit floats, in an fp32 result too
  return narrow ? aligned_sum(terms, w.d, 13, 13) : aligned_sum(terms, w.d, 25);
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
