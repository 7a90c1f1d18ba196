// SPDX-License-Identifier: MIT
// wmma from memory to memory: products of small integers, which every type holds exactly, in every
// layout, and what the fragments hold (as ptxas for sm_90 and an H200 have it: golden/README.md).
#include <algorithm>
#include <bit>

#include "tools/emulator/test/support/exec_support.h"

using Words = std::vector<uint32_t>;

namespace {

const exec_test::Shape warp{{}, {32}, {}};

uint64_t float_bits(int v, int exponent_bits, int mantissa_bits) {
  const uint64_t d = std::bit_cast<uint64_t>(double(v));
  const int exponent = int(d >> 52 & 0x7FF) - 1023 + (1 << (exponent_bits - 1)) - 1;
  const uint64_t sign = (d >> 63) << (exponent_bits + mantissa_bits);
  if (v == 0) return 0;
  return sign | uint64_t(exponent) << mantissa_bits |
         (d & ((1ull << 52) - 1)) >> (52 - mantissa_bits);
}

struct Number {
  const char* name;
  uint32_t bits;
  int exponent, mantissa;  // 0: an integer
  uint64_t code(int v) const {
    return exponent ? float_bits(v, exponent, mantissa) : uint64_t(v) & ((1ull << bits) - 1);
  }
};
constexpr Number f16{"f16", 16, 5, 10}, bf16{"bf16", 16, 8, 7}, tf32{"tf32", 32, 8, 23},
    f32{"f32", 32, 8, 23}, f64{"f64", 64, 11, 52}, s8{"s8", 8, 0, 0}, u8{"u8", 8, 0, 0},
    s4{"s4", 4, 0, 0}, u4{"u4", 4, 0, 0}, s32{"s32", 32, 0, 0};

struct Case {
  uint32_t m, n, k;
  Number operand, c, d;
  uint32_t a_registers, b_registers;
};

int number_a(uint32_t row, uint32_t k) { return int((row * 3 + k * 5) % 7); }
int number_b(uint32_t k, uint32_t column) { return int((k * 2 + column * 3 + 1) % 7); }
int number_c(uint32_t row, uint32_t column) { return int(row * 2 + column); }

constexpr uint32_t a_at = 0, b_at = 256, c_at = 512, d_at = 1024, all = 1536;  // words

void put(Words& to, uint32_t word, uint32_t index, const Number& e, int v) {
  const uint64_t code = e.code(v), bit = uint64_t(index) * e.bits;
  to[word + bit / 32] |= uint32_t(code << bit % 32);
  if (e.bits == 64) to[word + bit / 32 + 1] = uint32_t(code >> 32);
}
uint64_t get(const Words& from, uint32_t word, uint32_t index, const Number& e) {
  const uint64_t bit = uint64_t(index) * e.bits;
  uint64_t v = from[word + bit / 32] >> bit % 32;
  if (e.bits == 64) v |= uint64_t(from[word + bit / 32 + 1]) << 32;
  return e.bits == 64 ? v : v & ((1ull << e.bits) - 1);
}

uint32_t at(bool row_major, uint32_t row, uint32_t column, uint32_t rows, uint32_t columns) {
  return row_major ? row * columns + column : column * rows + row;
}

Words matrices(const Case& t, bool a_rows, bool b_rows, bool c_rows) {
  Words words(all);
  for (uint32_t r = 0; r < t.m; ++r)
    for (uint32_t k = 0; k < t.k; ++k)
      put(words, a_at, at(a_rows, r, k, t.m, t.k), t.operand, number_a(r, k));
  for (uint32_t k = 0; k < t.k; ++k)
    for (uint32_t n = 0; n < t.n; ++n)
      put(words, b_at, at(b_rows, k, n, t.k, t.n), t.operand, number_b(k, n));
  for (uint32_t r = 0; r < t.m; ++r)
    for (uint32_t n = 0; n < t.n; ++n)
      put(words, c_at, at(c_rows, r, n, t.m, t.n), t.c, number_c(r, n));
  return words;
}

std::string registers(const char* name, uint32_t count) {
  std::string text = "{";
  for (uint32_t i = 0; i < count; ++i)
    text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
  return text + "}";
}

std::string shape(const Case& t) {
  return "m" + std::to_string(t.m) + "n" + std::to_string(t.n) + "k" + std::to_string(t.k);
}

uint32_t accumulators(const Case& t, const Number& e) {
  return t.m * t.n / 32 / (e.bits == 16 ? 2 : 1);
}

std::string place(uint32_t words) { return ", [%out+" + std::to_string(4 * words) + "]"; }

std::string program(const Case& t, bool a_rows, bool b_rows, bool c_rows) {
  const auto layout = [](bool rows) { return std::string(rows ? ".row" : ".col"); };
  const std::string wide = t.operand.bits == 64 ? "b64" : "b32", start = ".sync.aligned",
                    a = registers("a", t.a_registers), b = registers("b", t.b_registers),
                    c = registers("c", accumulators(t, t.c)),
                    d = registers("d", accumulators(t, t.d)), memory = "." + shape(t) + ".global.",
                    type = t.operand.name;
  std::string types = std::string(".") + t.d.name + "." + type + "." + type + "." + t.c.name;
  if (type == "f16") types = std::string(".") + t.d.name + "." + t.c.name;
  return ".reg ." + wide + " %a<8>, %b<8>, %c<8>, %d<8>;" + "wmma.load.a" + start + layout(a_rows) +
         memory + type + " " + a + place(a_at) + ";wmma.load.b" + start + layout(b_rows) + memory +
         type + " " + b + place(b_at) + ";wmma.load.c" + start + layout(c_rows) + memory +
         t.c.name + " " + c + place(c_at) + ";wmma.mma" + start + layout(a_rows) + layout(b_rows) +
         "." + shape(t) + types + " " + d + ", " + a + ", " + b + ", " + c + ";wmma.store.d" +
         start + layout(c_rows) + memory + t.d.name + place(d_at).substr(1) + ", " + d + ";";
}

void check(const Case& t, bool a_rows, bool b_rows, bool c_rows) {
  const Words got =
      run(program(t, a_rows, b_rows, c_rows), warp, matrices(t, a_rows, b_rows, c_rows));
  CAPTURE(t.operand.name, shape(t), t.c.name, t.d.name, a_rows, b_rows, c_rows);
  for (uint32_t r = 0; r < t.m; ++r)
    for (uint32_t n = 0; n < t.n; ++n) {
      int sum = number_c(r, n);
      for (uint32_t k = 0; k < t.k; ++k) sum += number_a(r, k) * number_b(k, n);
      CAPTURE(r, n, sum);
      CHECK(get(got, d_at, at(c_rows, r, n, t.m, t.n), t.d) == t.d.code(sum));
    }
}

}  // namespace

namespace {

// One word of a matrix is left without a value; `lost` tells which sums depend on it.
template <class F>
void check_partial(const Case& t, bool rows, uint32_t word, F lost) {
  const std::string at = " [%out+" + std::to_string(4 * word) + "], ";
  const std::string text =
      ".reg .b32 none; mov.u32 %r0, %laneid; setp.eq.u32 %p0, %r0, 0;"
      "@%p0 st.global.u32" +
      at + "none; bar.warp.sync -1;" + program(t, rows, rows, true) +
      "bar.warp.sync -1; st.global.u32" + at + "1;";
  CAPTURE(shape(t), t.d.name, word);
  const Words before = matrices(t, rows, rows, true);
  CHECK_THROWS_AS(run(text, warp, before), emu::Fault);
  // After all sums without a value have been overwritten, the other sums must be right.
  std::string over;
  std::vector<bool> gone(t.m * t.n * t.d.bits / 32);
  const auto word_of = [&](uint32_t r, uint32_t n) { return (r * t.n + n) * t.d.bits / 32; };
  for (uint32_t r = 0; r < t.m; ++r)
    for (uint32_t n = 0; n < t.n; ++n)
      for (uint32_t part = 0; lost(r, n) && part < std::max(32u, t.d.bits); part += 32)
        gone[word_of(r, n) + part / 32] = true;
  for (uint32_t i = 0; i < gone.size(); ++i)
    if (gone[i]) over += "st.global.u32 [%out+" + std::to_string(4 * (d_at + i)) + "], 1;";
  const Words got = run(text + over, warp, before);
  size_t wrong = 0;
  for (uint32_t r = 0; r < t.m; ++r)
    for (uint32_t n = 0; n < t.n; ++n) {
      int sum = number_c(r, n);
      for (uint32_t k = 0; k < t.k; ++k) sum += number_a(r, k) * number_b(k, n);
      wrong += !gone[word_of(r, n)] && get(got, d_at, r * t.n + n, t.d) != t.d.code(sum);
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("wmma with elements without a value gives none to the sums that have them") {
  const Case plain{16, 16, 16, f16, f32, f32, 8, 8};
  constexpr uint32_t words = 8;  // of a row of A, of a column of B
  check_partial(plain, true, a_at + 3 * words + 2, [](uint32_t r, uint32_t) { return r == 3; });
  check_partial(plain, false, b_at + 5 * words + 1, [](uint32_t, uint32_t n) { return n == 5; });
  check_partial(plain, true, c_at + 7 * 16 + 6,
                [](uint32_t r, uint32_t n) { return r == 7 && n == 6; });
  // In fp16 a register holds two sums, in this shape of two rows. A word in memory holds two sums
  // of one row.
  const Case packed{8, 32, 16, f16, f16, f16, 8, 8};
  check_partial(packed, true, a_at + 3 * words, [](uint32_t r, uint32_t) { return r / 2 == 1; });
  check_partial(packed, false, b_at + 5 * words, [](uint32_t, uint32_t n) { return n == 5; });
  check_partial(packed, true, c_at + (7 * 32 + 6) / 2,
                [](uint32_t r, uint32_t n) { return r / 2 == 3 && n / 2 == 3; });
  const auto third = [](uint32_t r, uint32_t) { return r == 2; };
  check_partial({8, 8, 4, f64, f64, f64, 1, 1}, true, a_at + 2 * 8, third);
  check_partial({16, 16, 16, s8, s32, s32, 2, 2}, true, a_at + 2 * 4, third);
}

TEST_CASE("wmma multiplies matrices of every shape and type and layout") {
  for (const bool rows : {false, true})
    for (const bool c_rows : {false, true}) {
      for (const auto& [m, n] : {std::pair(16u, 16u), {32u, 8u}, {8u, 32u}}) {
        for (const Number& c : {f16, f32})
          for (const Number& d : {f16, f32})
            check({m, n, 16, f16, c, d, 8, 8}, rows, !rows, c_rows);
        check({m, n, 16, bf16, f32, f32, m / 4, n / 4}, rows, rows, c_rows);
        check({m, n, 16, s8, s32, s32, m / 8, n / 8}, rows, !rows, c_rows);
        check({m, n, 16, u8, s32, s32, m / 8, n / 8}, rows, rows, c_rows);
      }
      check({16, 16, 8, tf32, f32, f32, 4, 4}, rows, !rows, c_rows);
      check({8, 8, 4, f64, f64, f64, 1, 1}, rows, !rows, c_rows);
      check({8, 8, 32, s4, s32, s32, 1, 1}, true, false, c_rows);
      check({8, 8, 32, u4, s32, s32, 1, 1}, true, false, c_rows);
    }
}

TEST_CASE("wmma of single bits counts and bytes are cut where they say so") {
  Words words(all);
  for (uint32_t i = 0; i < 32; ++i) words[a_at + i] = 0x00FF00FF, words[b_at + i] = 0x000FF00F;
  const std::string body =
      ".reg .b32 %a<1>, %b<1>, %c<2>; wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {%a0}, "
      "[%out];"
      "wmma.load.b.sync.aligned.col.m8n8k128.global.b1 {%b0}, [%out+1024];"
      "wmma.load.c.sync.aligned.row.m8n8k128.global.s32 {%c0, %c1}, [%out+2048];";
  const std::string end =
      ".popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%c0, %c1}, {%a0}, {%b0}, {%c0, %c1};"
      "wmma.store.d.sync.aligned.row.m8n8k128.global.s32 [%out+4096], {%c0, %c1};";
  CHECK(run(body + "wmma.mma.and" + end, warp, words)[d_at + 63] == 4 * 8);
  CHECK(run(body + "wmma.mma.xor" + end, warp, words)[d_at + 63] == 4 * 12);
  for (uint32_t i = 0; i < 256; ++i) words[c_at + i] = 0x7FFFFFFF;
  for (uint32_t i = 0; i < 64; ++i) words[a_at + i] = words[b_at + i] = 0x01010101;
  const Case bytes{16, 16, 16, s8, s32, s32, 2, 2};
  std::string text = program(bytes, true, false, true);
  CHECK(run(text, warp, words)[d_at] == 0x8000000F);
  text.insert(text.find(".m16n16k16.s32.s8"), ".satfinite");
  CHECK(run(text, warp, words)[d_at] == 0x7FFFFFFF);
}

TEST_CASE("a fragment of wmma lies as ptxas has it with fp16 twice") {
  const std::string load =
      ".reg .b32 %a<8>, %t; .reg .b64 %x; mov.u32 %t, %tid.x; mad.wide.u32 %x, %t, 4, %out;"
      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " +
      registers("a", 8) + ", [%out];";
  std::string body = load;
  for (uint32_t i = 0; i < 8; ++i)
    body +=
        "st.global.b32 [%x+" + std::to_string(1024 + 128 * i) + "], %a" + std::to_string(i) + ";";
  Words words(512);
  for (uint32_t i = 0; i < 128; ++i) words[i] = 2 * i | (2 * i + 1) << 16;
  const Words got = run(body, warp, words);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t row = lane / 4 + 8 * (i % 2), column = lane % 4 * 2 + 8 * (i / 2 % 2);
      CAPTURE(lane, i);
      CHECK((got[256 + 32 * i + lane] & 0xFFFF) == row * 16 + column);
    }
}

TEST_CASE("wmma wants one address and lines at multiples of 16 bytes") {
  const std::string end = ".sync.aligned.row.m16n16k16.global.f16 " + registers("w", 8) + ", [%x]";
  const std::string start =
      ".reg .b32 %w<8>, %t; .reg .b64 %x; mov.u32 %t, %tid.x; mad.wide.u32 %x, %t, 0, %out;";
  CHECK(contains(fault(start + "wmma.load.a" + end + ", 17;", warp), "lines of 17 elements"));
  CHECK(contains(fault(start + "add.u64 %x, %x, 8; wmma.load.a" + end + ";", warp),
                 "multiple of 16 bytes"));
  CHECK(contains(fault(start + "mad.wide.u32 %x, %t, 32, %out; wmma.load.a" + end + ";", warp),
                 "lanes 0 and 1 have different addresses"));
}
