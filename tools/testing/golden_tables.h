// SPDX-License-Identifier: MIT
// Golden tables of other projects that follow from a closed form, so the form is here, and the hash
// of the text that they gave. By host functions of the CUDA 13.0 headers (cuda_fp4.h, cuda_fp8.h,
// cuda_fp16.h, cuda_bf16.h): numeric_decode, the value of every code, and numeric_encode, the codes
// of 3,220 fp32 numbers. By CUTLASS: idesc_nvfp4 and smem_desc_ab_cutlass, descriptors of
// tcgen05.mma; tmem_sf_layout, columns of tensor memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "tools/testing/catch.h"

namespace golden_tables {

// Codes without their sign; `largest` is that of the largest finite number.
struct Format {
  const char* name;
  int mantissa, bias;
  uint32_t sign, largest, overflow, nan;
};
constexpr Format e2m1{"e2m1", 1, 1, 0x8, 0x7, 0x7, 0x7}, e4m3{"e4m3", 3, 7, 0x80, 0x7E, 0x7E, 0x7F},
    e5m2{"e5m2", 2, 15, 0x80, 0x7B, 0x7B, 0x7F}, f16{"f16", 10, 15, 0x8000, 0x7BFF, 0x7C00, 0x7FFF},
    bf16{"bf16", 7, 127, 0x8000, 0x7F7F, 0x7F80, 0x7FFF};

// To the nearest, ties to the even code.
inline uint32_t encoded(float x, const Format& f) {
  if (std::isnan(x)) return f.nan;
  const uint32_t sign = std::signbit(x) ? f.sign : 0;
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | f.overflow;
  const int exponent = std::max(std::ilogb(x), 1 - f.bias);
  const double units = std::nearbyint(std::ldexp(std::fabs(double{x}), f.mantissa - exponent));
  const uint32_t code = uint32_t((exponent + f.bias - 1) << f.mantissa) + uint32_t(units);
  return sign | (code > f.largest ? f.overflow : code);
}

// To the power of two that is not below |x|.
inline uint32_t encoded_ue8m0(float x) {
  if (std::isnan(x)) return 0xFF;
  if (x == 0) return 0;
  int exponent = 254;
  const double fraction = std::isinf(x) ? 1 : std::frexp(std::fabs(double{x}), &exponent);
  return uint32_t(std::min(std::max(exponent + 127 - (fraction == 0.5), 0), 254));
}

// Infinity and NaN are above the largest number, in that order.
inline float decoded(uint32_t code, const Format& f) {
  const uint32_t rest = code & (f.sign - 1), exponent = rest >> f.mantissa;
  const uint32_t units = (rest & ((1u << f.mantissa) - 1)) + (exponent != 0) * (1u << f.mantissa);
  float x = std::ldexp(float(units), int(std::max(exponent, 1u)) - f.bias - f.mantissa);
  if (rest > f.largest) x = rest < f.nan - 2 ? std::numeric_limits<float>::infinity() : NAN;
  return code & f.sign ? -x : x;
}

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return std::isnan(x) ? 0x7FFFFFFF : bits;
}

inline std::string decode_row(const char* type, uint32_t code, float x) {
  char text[64];
  std::snprintf(text, sizeof text, "%s,0x%02x,0x%08x,%.9g\n", type, code, bits_of(x),
                std::isnan(x) ? NAN : double{x});
  return text;
}

inline std::string decode_table() {
  std::string text = "type,code,f32_bits,value\n";
  for (uint32_t code = 0; code < 16; ++code) text += decode_row("e2m1", code, decoded(code, e2m1));
  for (uint32_t code = 0; code < 256; ++code)
    text += decode_row("ue4m3", code, decoded(code & 0x7F, e4m3));
  for (const Format& f : {e4m3, e5m2})
    for (uint32_t code = 0; code < 256; ++code) text += decode_row(f.name, code, decoded(code, f));
  for (uint32_t code = 0; code < 256; ++code)
    text += decode_row("ue8m0", code, code == 255 ? NAN : std::ldexp(1.0f, int(code) - 127));
  return text;
}

inline std::string encode_row(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  char text[96];
  std::snprintf(text, sizeof text, "0x%08x,0x%x,0x%02x,0x%02x,0x%02x,0x%04x,0x%04x\n", bits,
                encoded(x, e2m1), encoded(x, e4m3), encoded(x, e5m2), encoded_ue8m0(x),
                encoded(x, f16), encoded(x, bf16));
  return text;
}

// What lies on, just above and just below numbers at which a format rounds, saturates or ends;
// infinities and NaN; and 3,000 numbers by splitmix64.
inline std::string encode_table() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::string text =
      "f32_bits,e2m1_rn_satfinite,e4m3_rn_satfinite,e5m2_rn_satfinite,ue8m0_rp_satfinite,f16_rn,"
      "bf16_rn\n";
  for (const float magnitude :
       {0.0f,    0.25f,  0.5f,     0.75f,     1.0f,     1.25f,    1.5f,     1.75f,    2.0f,
        2.5f,    3.0f,   3.5f,     4.0f,      5.0f,     6.0f,     7.0f,     8.0f,     448.0f,
        464.0f,  480.0f, 57344.0f, 61440.0f,  65504.0f, 65520.0f, 0.001f,   0x1p-9f,  0x1p-10f,
        0x1p-6f, 1e-7f,  1e-38f,   0x1p-149f, 3.4e38f,  1e10f,    0x1p-24f, 0x1p-25f, 0x1p-126f})
    for (const float x : {magnitude, -magnitude})
      text += encode_row(x) + encode_row(std::nextafter(x, infinity)) +
              encode_row(std::nextafter(x, -infinity));
  for (const uint32_t bits : {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC00000u}) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    text += encode_row(x);
  }
  uint64_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    const float x = std::ldexp(1 + float(z & 0x7FFFFF) * 0x1p-23f, int(z >> 58) - 32);
    text += encode_row(z >> 24 & 1 ? -x : x);
  }
  return text;
}

inline uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

// Instruction descriptors of kind::mxf4nvf4 and mxf4, both operands e2m1.
inline std::string instruction_descriptors() {
  std::string text = "M,N,sfa_id,sfb_id,idesc_ue4m3,idesc_ue8m0\n";
  for (const uint32_t m : {128, 256})
    for (const uint32_t n : {64, 96, 128, 192, 256})
      for (uint32_t ids = 0; ids < 16; ++ids) {
        const uint32_t a = ids / 4, b = ids % 4;
        const uint32_t scaled = a << 29 | m / 128 << 27 | n / 8 << 17 | 0x480 | b << 4;
        char row[64];
        std::snprintf(row, sizeof row, "%u,%u,%u,%u,0x%08x,0x%08x\n", m, n, a, b, scaled,
                      scaled | 1u << 23);
        text += row;
      }
  return text;
}

// Shared-memory descriptors of A and B, rows of 128 swizzled bytes, of two stages. The last base
// has bits of a cluster rank, which fall off.
inline std::string operand_descriptors() {
  std::string text = "tile,smem_base,stage,k_block,desc_a,desc_b\n";
  for (const uint32_t ctas : {1u, 2u})
    for (const uint32_t n : {64, 128, 192, 256})
      for (const uint32_t base : {0u, 1024u, 32768u, 115712u, 0x1000400u})
        for (uint32_t block = 0; block < 8; ++block) {
          const uint32_t stage = block / 4, k = block % 4;
          const auto descriptor = [&](uint32_t rows) {
            const uint32_t address = (base + stage * rows * 128 + k * 32) & 0x3FFFF;
            return 0x4000404000010000ull | address / 16;
          };
          char row[96];
          std::snprintf(row, sizeof row, "%ux%ux256_cg%u,%u,%u,%u,0x%016llx,0x%016llx\n",
                        128 * ctas, n, ctas, base, stage, k, descriptor(128), descriptor(n / ctas));
          text += row;
        }
  return text;
}

// Tensor memory of a tile: two accumulators, which overlap for N = 256, then the scales of A, then
// those of B. A copy of tcgen05.cp takes the scales of 128 rows and 64 of K; stages follow each
// other in shared memory. Where 64 rows are left of N, the scales of an odd tile are 2 columns
// further.
inline std::string scale_columns() {
  std::string text = "tile,what,index,sub,tmem_addr,smem_desc\n";
  for (const uint32_t ctas : {1, 2})
    for (const uint32_t n : {64, 128, 192, 256}) {
      const uint32_t second = n == 256 ? 128 : n, of_a = second + n, of_b = of_a + 16;
      const uint32_t blocks = (n + 127) / 128;
      const auto row = [&](const char* what, uint32_t index, const std::string& sub,
                           uint32_t address, const std::string& descriptor = "-") {
        char line[96];
        std::snprintf(line, sizeof line, "%ux%ux256_cg%u,%s,%u,%s,0x%08x,%s\n", 128 * ctas, n, ctas,
                      what, index, sub.c_str(), address, descriptor.c_str());
        text += line;
      };
      const auto copies = [&](const char* what, uint32_t columns, uint32_t count) {
        for (uint32_t i = 0; i < 2 * count; ++i) {
          char descriptor[32];
          std::snprintf(descriptor, sizeof descriptor, "0x%016llx", 0x400800010000ull + 32 * i);
          row(what, i / count, std::to_string(i % count), columns + i % count * 4, descriptor);
        }
      };
      for (uint32_t stage = 0; stage < 2; ++stage) row("ACC", stage, "-", stage * second);
      for (uint32_t k = 0; k < 4; ++k) row("SFA_MMA", k, "-", of_a + 4 * k);
      for (uint32_t odd = 0; odd <= n % 128 / 64; ++odd)
        for (uint32_t k = 0; k < 4; ++k)
          row("SFB_MMA", k, std::to_string(odd), of_b + 4 * blocks * k + 2 * odd);
      copies("SFA_UTCCP", of_a, 4);
      copies("SFB_UTCCP", of_b, 4 * blocks);
    }
  return text;
}

constexpr struct {
  const char* name;
  std::string (*text)();
  uint64_t hash;
} forms[] = {
    {"numeric_decode", decode_table, 0x81913c1fac7758b9},
    {"numeric_encode", encode_table, 0xc343b5beacb34a85},
    {"idesc_nvfp4", instruction_descriptors, 0xb2d6b994cf4d1292},
    {"smem_desc_ab_cutlass", operand_descriptors, 0x72dec9d29ecc2521},
    {"tmem_sf_layout", scale_columns, 0x574933b153e7c9d0},
};

// The text of a table, header line first, or "" where it is another's name.
inline std::string table(const std::string& name) {
  for (const auto& form : forms) {
    if (name != form.name) continue;
    const std::string text = form.text();
    INFO("the closed form of " << name << " is not the other project's table");
    REQUIRE(fnv1a(text) == form.hash);
    return text;
  }
  return "";
}

}  // namespace golden_tables
