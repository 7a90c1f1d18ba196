// SPDX-License-Identifier: MIT
// mma.sync against products written down from the manual's fragment figures: small integers, whose
// sums every type holds exactly.
#include <bit>
#include <cmath>

#include "tools/emulator/test/support/exec_support.h"

using Words = std::vector<uint32_t>;

namespace {

// What the tests know of one element type.
struct Element {
  const char* name;
  uint32_t bits;
  int low, high;                // the numbers it is tested with
  uint32_t (*code)(int value);  // of a number
};

uint32_t f16(int v) {
  const uint32_t f = std::bit_cast<uint32_t>(float(v));
  return v ? (f >> 16 & 0x8000) | (((f >> 23 & 0xFF) - 112) << 10) | (f >> 13 & 0x3FF) : 0;
}
uint32_t f32(int v) { return std::bit_cast<uint32_t>(float(v)); }
uint32_t bf16(int v) { return f32(v) >> 16; }
uint32_t e4m3(int v) {
  const uint32_t f = f32(v);
  return v ? (f >> 24 & 0x80) | (((f >> 23 & 0xFF) - 120) << 3) | (f >> 20 & 7) : 0;
}
uint32_t e5m2(int v) { return f16(v) >> 8; }
uint32_t low_bits(int v) { return uint32_t(v); }

// Bit pattern of an integer that the type can represent. The type has an exponent bias, bits of
// mantissa, and bits in all.
uint32_t small(int v, int bias, int mantissa, int bits) {
  if (!v) return 0;
  const int e = std::ilogb(float(std::abs(v)));
  const float fraction = std::ldexp(float(std::abs(v)), mantissa - e) - float(1 << mantissa);
  return uint32_t(v < 0) << (bits - 1) | uint32_t(e + bias) << mantissa | uint32_t(fraction);
}
uint32_t e2m3(int v) { return small(v, 1, 3, 6); }
uint32_t e3m2(int v) { return small(v, 3, 2, 6); }
uint32_t e2m1(int v) { return small(v, 1, 1, 4) << 2; }  // in the middle of its byte

constexpr Element halves{"f16", 16, -5, 5, f16}, brain{"bf16", 16, -5, 5, bf16},
    tf32{"tf32", 32, -5, 5, f32}, e4{"e4m3", 8, -4, 4, e4m3}, e5{"e5m2", 8, -2, 2, e5m2},
    s8{"s8", 8, -128, 127, low_bits}, u8{"u8", 8, 0, 255, low_bits}, s4{"s4", 4, -8, 7, low_bits},
    u4{"u4", 4, 0, 15, low_bits}, six3{"e2m3", 8, -7, 7, e2m3}, six2{"e3m2", 8, -7, 7, e3m2},
    four{"e2m1", 8, -4, 4, e2m1};

struct Case {
  uint32_t m, k;
  Element a, b;
  const char* accumulator;
  const char* kind = "";  // of 12.0
};

int number(uint32_t row, uint32_t k, const Element& e) {
  return e.low + int((row * 7 + k * 5 + row * k) % uint32_t(e.high - e.low + 1));
}

// Register r of lane l holds these elements of row `l / 4 + 8 * up`, from `first` on.
uint32_t word(uint32_t row, uint32_t first, const Element& e) {
  uint32_t w = 0;
  for (uint32_t i = 0; i < 32 / e.bits; ++i) {
    const uint64_t mask = (1ull << e.bits) - 1;
    w |= uint32_t((e.code(number(row, first + i, e)) & mask) << i * e.bits);
  }
  return w;
}

std::string list(const char* name, uint32_t n) {
  std::string text = "{";
  for (uint32_t i = 0; i < n; ++i)
    text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
  return text + "}";
}

// Loads n words of each lane, which stand at word `at` + 32 i + lane, into registers.
std::string load(const char* name, uint32_t n, uint32_t at) {
  std::string text = ".reg .b32 %" + std::string(name) + "<8>;";
  for (uint32_t i = 0; i < n; ++i)
    text += "ld.global.b32 %" + std::string(name) + std::to_string(i) + ", [%at+" +
            std::to_string(4 * (at + 32 * i)) + "];";
  return text;
}

int c_number(uint32_t row, uint32_t column) { return int(row * 3) - int(column * 11); }

void check(const Case& c) {
  const uint32_t ups = c.m / 8, per = 32 / c.a.bits, chunks = c.k / (4 * per);
  const uint32_t a_words = ups * chunks, b_words = chunks;
  const bool packed = std::string(c.accumulator) == "f16",
             ints = std::string(c.accumulator) == "s32";
  const uint32_t d_words = packed ? 2 : 2 * ups;
  Words buffer(32 * 20);
  for (uint32_t l = 0; l < 32; ++l) {
    for (uint32_t i = 0; i < a_words; ++i)
      buffer[32 * i + l] = word(l / 4 + 8 * (i % ups), i / ups * 4 * per + l % 4 * per, c.a);
    for (uint32_t i = 0; i < b_words; ++i)
      buffer[32 * (8 + i) + l] = word(l / 4 + 100, i * 4 * per + l % 4 * per, c.b);
    for (uint32_t i = 0; i < d_words; ++i) {
      const uint32_t row = l / 4 + 8 * (packed ? i : i / 2), column = l % 4 * 2;
      const int x = c_number(row, column + (packed ? 0 : i % 2)), y = c_number(row, column + 1);
      buffer[32 * (12 + i) + l] = packed ? f16(x) | f16(y) << 16 : ints ? uint32_t(x) : f32(x);
    }
  }
  const std::string types =
      std::string(".") + c.accumulator + "." + c.a.name + "." + c.b.name + "." + c.accumulator;
  std::string body =
      ".reg .b32 %l; .reg .b64 %at; mov.u32 %l, %laneid; mad.wide.u32 %at, %l, 4, %out;" +
      load("a", a_words, 0) + load("b", b_words, 256) + load("c", d_words, 384) +
      "mma.sync.aligned.m" + std::to_string(c.m) + "n8k" + std::to_string(c.k) + ".row.col" +
      c.kind + types + " " + list("c", d_words) + ", " + list("a", a_words) + ", " +
      list("b", b_words) + ", " + list("c", d_words) + ";";
  for (uint32_t i = 0; i < d_words; ++i)
    body += "st.global.b32 [%at+" + std::to_string(4 * (512 + 32 * i)) + "], %c" +
            std::to_string(i) + ";";
  exec_test::Shape shape{{}, {32, 1, 1}};
  if (*c.kind) shape.target = "sm_120a";
  const Words got = exec_test::run(body, shape, buffer);
  CAPTURE(types, c.m, c.k);
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t i = 0; i < 2 * ups; ++i) {
      const uint32_t row = l / 4 + 8 * (i / 2), column = l % 4 * 2 + i % 2;
      int sum = c_number(row, column);
      for (uint32_t k = 0; k < c.k; ++k) sum += number(row, k, c.a) * number(column + 100, k, c.b);
      const uint32_t have =
          packed ? got[32 * (16 + i / 2) + l] >> 16 * (i % 2) & 0xFFFF : got[32 * (16 + i) + l];
      CAPTURE(row, column, sum);
      CHECK(have == (packed ? f16(sum) : ints ? uint32_t(sum) : f32(sum)));
    }
}

}  // namespace

TEST_CASE("mma.sync multiplies fragments of every type and shape") {
  for (const Case& c :
       {Case{16, 8, halves, halves, "f32"}, Case{16, 16, halves, halves, "f32"},
        Case{16, 8, halves, halves, "f16"}, Case{16, 16, halves, halves, "f16"},
        Case{16, 8, brain, brain, "f32"}, Case{16, 16, brain, brain, "f32"},
        Case{16, 4, tf32, tf32, "f32"}, Case{16, 8, tf32, tf32, "f32"}, Case{16, 16, e4, e5, "f32"},
        Case{16, 32, e5, e4, "f32"}, Case{16, 16, e4, e4, "f16"}, Case{16, 32, e4, e5, "f16"},
        Case{8, 16, s8, u8, "s32"}, Case{16, 16, u8, u8, "s32"}, Case{16, 32, s8, s8, "s32"},
        Case{16, 32, u8, s8, "s32"}, Case{8, 32, s4, u4, "s32"}, Case{16, 32, u4, u4, "s32"},
        Case{16, 64, s4, s4, "s32"}})
    check(c);
}

TEST_CASE("mma.sync of 12.0 multiplies all floats of 8 and 6 and 4 bits with each other") {
  for (const Element& a : {e4, e5, six3, six2, four})
    for (const Element& b : {e4, e5, six3, six2, four}) {
      check({16, 32, a, b, "f32", ".kind::f8f6f4"});
      check({16, 32, a, b, "f16", ".kind::f8f6f4"});
    }
}

TEST_CASE("mma.sync of single bits counts and of doubles rounds once per product") {
  const std::string lanes =
      ".reg .b32 %l, %d<2>; .reg .b64 %at; mov.u32 %l, %laneid;"
      "mad.wide.u32 %at, %l, 8, %out;";
  const auto bits = [&](const char* op) {
    return exec_test::run(
        lanes + "mov.b32 %d0, 7; mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32." + op +
            ".popc {%d0, %d1}, {%l}, {%l}, {%d0, %d0};"
            "st.global.v2.b32 [%at], {%d0, %d1};",
        {{}, {32, 1, 1}}, Words(64));
  };
  // Row 1 has the words 4, 5, 6, 7 and column 2 has 8, 9, 10, 11: lane 5, first register.
  CHECK(bits("and")[10] == 7 + 1 + 1 + 2);
  CHECK(bits("xor")[10] == 7 + 2 + 2 + 2 + 2);
  const Words doubles = exec_test::run(
      lanes +
          ".reg .b64 %x<3>; cvt.rn.f64.u32 %x0, %l; mov.b64 %x1, 0d3FF0000000000000;"
          "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%x1, %x2}, {%x0}, {%x0}, {%x1, %x1};"
          "cvt.rni.u32.f64 %d0, %x1; cvt.rni.u32.f64 %d1, %x2; st.global.v2.b32 [%at], {%d0, %d1};",
      {{}, {32, 1, 1}}, Words(64));
  CHECK(doubles[10] == 1 + 4 * 8 + 5 * 9 + 6 * 10 + 7 * 11);
  CHECK(doubles[11] == 1 + 4 * 12 + 5 * 13 + 6 * 14 + 7 * 15);
}

TEST_CASE("integer sums of mma.sync saturate where asked and a warp has to be whole") {
  const auto sum = [](const std::string& sat) {
    return exec_test::run(
        ".reg .b32 %a, %c<2>; mov.b32 %a, 0x7F7F7F7F; mov.b32 %c0, 0x7FFFFFF0;"
        "mma.sync.aligned.m8n8k16.row.col" +
            sat +
            ".s32.s8.s8.s32 {%c0, %c1}, {%a}, {%a},"
            " {%c0, %c0}; st.global.b32 [%out], %c0;",
        {{}, {32, 1, 1}}, Words(1))[0];
  };
  CHECK(sum(".satfinite") == 0x7FFFFFFF);
  CHECK(sum("") == 0x7FFFFFF0u + 16 * 127 * 127);
  CHECK(contains(
      exec_test::fault(".reg .b32 %a, %c<2>; mov.b32 %a, 0; mov.b32 %c0, 0; mma.sync.aligned"
                       ".m8n8k16.row.col.s32.s8.s8.s32 {%c0, %c1}, {%a}, {%a}, {%c0, %c0};",
                       {{}, {16, 1, 1}}),
      "needs all 32 lanes"));
}

namespace {

// All of A is 1, so D is the sum of A's scales times B's scales; each lane's scale word is given by
// `scales`, and word 2 l + i of the result is register i of lane l.
Words scaled(const std::string& kind, uint32_t one, const std::string& scales,
             const std::string& types, const std::string& selectors,
             const std::string& a_scales = "%s") {
  exec_test::Shape shape{{}, {32, 1, 1}};
  shape.target = "sm_120a";
  return exec_test::run(
      ".reg .b32 %l, %a, %s, %t; .reg .f32 %d<4>; .reg .b64 %at; mov.u32 %l, %laneid;"
      "mad.wide.u32 %at, %l, 8, %out; mov.b32 %a, " +
          std::to_string(one) + ";" + scales + "mma.sync.aligned." + kind + types +
          " {%d0, %d1, %d2, %d3}, {%a, %a, %a, %a}, {%a, %a},"
          " {0f3F800000, 0f3F800000, 0f00000000, 0f00000000}, " +
          a_scales + ", " + selectors + "st.global.v2.f32 [%at], {%d0, %d2};",
      shape, Words(64));
}

}  // namespace

TEST_CASE("block-scaled mma.sync takes each row's scales from the lanes that hold them") {
  // Byte 1 of thread pair 1: lane 4 g + 2 has row g's, lane 4 g + 3 row g + 8's. B: byte 2 of
  // thread 3.
  const Words mx8 = scaled("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X", 0x38383838,
                           "add.u32 %s, %l, 100; shl.b32 %s, %s, 8; shl.b32 %t, %l, 16;"
                           "add.u32 %t, %t, 0x600000;",
                           ".f32.e4m3.e4m3.f32.ue8m0", "{1, 1}, {%t}, {2, 3};", "{%s}");
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t g = l / 4, a = 100 + 4 * g + 2, b = 0x60 + 4 * (l % 4 * 2) + 3;
    CAPTURE(l);
    CHECK(std::bit_cast<float>(mx8[2 * l]) == 1 + 32 * std::ldexp(1.0f, int(a + b) - 254));
    CHECK(std::bit_cast<float>(mx8[2 * l + 1]) == 32 * std::ldexp(1.0f, int(a + 1 + b) - 254));
  }
  // Four scales of 16: 1, 2, 4 and 8 for all rows but those of lanes 4 g + 1, which have 1/2.
  const Words nv4 = scaled("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X", 0x22222222,
                           "mov.b32 %s, 0x50484038; and.b32 %t, %l, 3; setp.eq.u32 %p0, %t, 1;"
                           "@%p0 mov.b32 %s, 0x30303030; mov.b32 %t, 0x38383838;",
                           ".f32.e2m1.e2m1.f32.ue4m3", "{0, 0}, %t, {0, 0};");
  CHECK(std::bit_cast<float>(nv4[20]) == 1 + 16 * 15);
  CHECK(std::bit_cast<float>(nv4[21]) == 16 * 2);
  // 1 in e2m3 and in e2m1, between bits that do not count.
  for (const auto& [types, one] : {std::pair{".f32.e2m3.e2m3.f32.ue8m0", 0xC8C8C8C8u},
                                   std::pair{".f32.e2m1.e2m1.f32.ue8m0", 0xCBCBCBCBu}}) {
    const Words mx6 = scaled("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X", one,
                             "mov.b32 %s, 0x80; mov.b32 %t, 0x7F;", types, "{0, 0}, %t, {0, 0};");
    CHECK(std::bit_cast<float>(mx6[0]) == 1 + 32 * 2);
  }
  const Words mx4 = scaled("m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X", 0x22222222,
                           "mov.b32 %s, 0x81800000; mov.b32 %t, 0x7F7F0000;",
                           ".f32.e2m1.e2m1.f32.ue8m0", "{2, 0}, %t, {2, 0};");
  CHECK(std::bit_cast<float>(mx4[0]) == 1 + 32 * 2 + 32 * 4);
}

TEST_CASE("a scale without a value leaves its row or its column without one and no others") {
  exec_test::Shape shape{{}, {32, 1, 1}};
  shape.target = "sm_120a";
  const auto product = [](const std::string& skipped, const std::string& lane,
                          const std::string& stored) {
    return ".reg .b32 %l, %a, %s, %t; .reg .f32 %d<4>; .reg .b64 %at; mov.u32 %l, %laneid;"
           "mad.wide.u32 %at, %l, 8, %out; mov.b32 %a, 0x38383838; setp.ne.u32 %p0, %l, " +
           lane + "; @%p0 mov.b32 " + skipped + ", 0x7F7F7F7F; mov.b32 " +
           (skipped == "%s" ? "%t" : "%s") +
           ", 0x7F7F7F7F; mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale"
           ".scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {%d0, %d1, %d2, %d3}, {%a, %a, %a, %a},"
           " {%a, %a}, {0f00000000, 0f00000000, 0f00000000, 0f00000000}, {%s}, {0, 1}, {%t},"
           " {0, 3}; st.global.f32 [%at], " +
           stored + ";";
  };
  // Lane 11 has the scale of row 10 (lane 4 g + 3) and that of column 2.
  const auto lanes = [&](const char* skipped, const char* lane, const char* stored) {
    return exec_test::fault(product(skipped, lane, stored), shape);
  };
  CHECK(contains(lanes("%s", "11", "%d2"), "lanes 0x00000f00"));
  CHECK_NOTHROW(exec_test::run(product("%s", "11", "%d0"), shape, Words(64)));
  CHECK_NOTHROW(exec_test::run(product("%s", "9", "%d2"), shape, Words(64)));
  CHECK(contains(lanes("%t", "11", "%d0"), "lanes 0x22222222"));
  CHECK_NOTHROW(exec_test::run(product("%t", "11", "%d1"), shape, Words(64)));
}
