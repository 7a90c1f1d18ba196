// SPDX-License-Identifier: MIT
// mma.sp against sums of small integers, which every type holds exactly; where the metadata lies is
// what an H200 does (h200/fragment_probe).
#include <bit>

#include "tools/emulator/test/support/exec_support.h"

using Words = std::vector<uint32_t>;

namespace {

const exec_test::Shape warp{{}, {32}, {}};

struct Number {
  const char* name;
  uint32_t bits;
  uint32_t (*code)(int);
};
uint32_t f32(int v) { return std::bit_cast<uint32_t>(float(v)); }
uint32_t bf16(int v) { return f32(v) >> 16; }
uint32_t f16(int v) { return v ? ((f32(v) >> 23) - 112) << 10 | (f32(v) >> 13 & 0x3FF) : 0; }
uint32_t e4m3(int v) { return v ? ((f32(v) >> 23) - 120) << 3 | (f32(v) >> 20 & 7) : 0; }
uint32_t plain(int v) { return uint32_t(v); }

struct Case {
  uint32_t k, registers, selector;
  Number type;
  const char* accumulator;
  uint32_t unit() const { return type.bits >= 16 ? 16 : 8; }  // bits that an index names
  uint32_t chunks() const { return k * type.bits / (4 * unit()); }
};

int number_a(uint32_t row, uint32_t i) { return int((row * 5 + i * 3) % 8); }
int number_b(uint32_t k, uint32_t column) { return int((k * 3 + column * 5 + k * column) % 8); }
int number_c(uint32_t row, uint32_t column) { return int(row * 2 + column); }

// The code chooses two units of four. For tf32 the two units are the halves of one number.
uint32_t code(const Case& c, uint32_t row, uint32_t chunk) {
  constexpr uint32_t pairs[] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE}, halves[] = {0x4, 0xE};
  return c.type.bits == 32 ? halves[(row + chunk) % 2] : pairs[(row * 5 + row / 8 + chunk) % 6];
}

// The metadata of a lane; lanes whose metadata does not count have none that is valid.
uint32_t metadata(const Case& c, uint32_t lane) {
  const uint32_t row = lane / 4, t = lane % 4;
  uint32_t word = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    uint32_t bits = 0xF;
    if (c.chunks() == 4 && t == c.selector) bits = code(c, row + 8 * (i / 4), i % 4);
    if (c.chunks() == 8 && t / 2 == c.selector)
      bits = c.unit() == 16 ? code(c, row + 8 * (i / 4), t % 2 * 4 + i % 4)
                            : code(c, row + 8 * (t % 2), i);
    if (c.chunks() == 16) bits = code(c, row + 8 * (t % 2), t / 2 * 8 + i);
    word |= bits << 4 * i;
  }
  return word;
}

// Which element of K the element i of a row of A is.
uint32_t position(const Case& c, uint32_t row, uint32_t i) {
  const uint32_t bit = i * c.type.bits, chunk = bit / (2 * c.unit()), half = bit / c.unit() % 2;
  const uint32_t unit = code(c, row, chunk) >> 2 * half & 3;
  if (c.type.bits == 32) return chunk * 2 + unit / 2;
  return ((4 * chunk + unit) * c.unit() + bit % c.unit()) / c.type.bits;
}

uint32_t word(const Case& c, uint32_t line, uint32_t first, int (*number)(uint32_t, uint32_t)) {
  uint32_t w = 0;
  for (uint32_t i = 0; i < 32 / c.type.bits; ++i)
    w |= c.type.code(number(line, first + i)) << i * c.type.bits;
  return w;
}
int b_of(uint32_t column, uint32_t k) { return number_b(k, column); }

std::string list(const char* name, uint32_t n) {
  std::string text = "{";
  for (uint32_t i = 0; i < n; ++i)
    text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
  return text + "}";
}

// 16 words of each lane: A, B, C, metadata.
Words operands(const Case& c, bool packed, bool ints) {
  Words all(32 * 20);
  const uint32_t per = 32 / c.type.bits;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    uint32_t* const to = &all[lane * 16];
    for (uint32_t i = 0; i < c.registers; ++i) {
      to[i] = word(c, g + 8 * (i % 2), (i / 2 * 4 + t) * per, number_a);
      to[4 + i] = word(c, g, (i * 4 + t) * per, b_of);
    }
    for (uint32_t i = 0; i < (packed ? 2u : 4u); ++i) {
      const uint32_t row = g + 8 * (packed ? i : i / 2), column = 2 * t + (packed ? 0 : i % 2);
      const int x = number_c(row, column), y = number_c(row, column + 1);
      to[8 + i] = packed ? f16(x) | f16(y) << 16 : ints ? uint32_t(x) : f32(x);
    }
    to[12] = metadata(c, lane);
  }
  return all;
}

std::string program(const Case& c, const char* kind) {
  const bool packed = std::string(c.accumulator) == "f16";
  const uint32_t n = c.registers, d = packed ? 2 : 4;
  std::string text =
      ".reg .b32 %l, %a<4>, %b<4>, %c<4>, %e; .reg .b64 %in, %to; mov.u32 %l, %laneid;"
      "mad.wide.u32 %in, %l, 64, %out; mad.wide.u32 %to, %l, 16, %out;";
  const auto load = [&](const char* r, uint32_t count, uint32_t at) {
    for (uint32_t i = 0; i < count; ++i)
      text += "ld.global.b32 %" + std::string(r) + std::to_string(i) + ", [%in+" +
              std::to_string(4 * (at + i)) + "];";
  };
  load("a", n, 0);
  load("b", n, 4);
  load("c", d, 8);
  text += "ld.global.b32 %e, [%in+48]; bar.warp.sync -1; mma." + std::string(kind) +
          ".sync.aligned.m16n8k" + std::to_string(c.k) + ".row.col." + c.accumulator + "." +
          c.type.name + "." + c.type.name + "." + c.accumulator + " " + list("c", d) + ", " +
          list("a", n) + ", " + list("b", n) + ", " + list("c", d) + ", %e, " +
          std::to_string(c.selector) + ";";
  for (uint32_t i = 0; i < d; ++i)
    text += "st.global.b32 [%to+" + std::to_string(4 * i) + "], %c" + std::to_string(i) + ";";
  return text;
}

void check(const Case& c) {
  const bool packed = std::string(c.accumulator) == "f16",
             ints = std::string(c.accumulator) == "s32";
  const Words got =
      exec_test::run(program(c, "sp::ordered_metadata"), warp, operands(c, packed, ints));
  CAPTURE(c.type.name, c.k, c.selector, c.accumulator);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      int sum = number_c(row, column);
      for (uint32_t k = 0; k < c.k / 2; ++k)
        sum += number_a(row, k) * number_b(position(c, row, k), column);
      const uint32_t have =
          packed ? got[lane * 4 + i / 2] >> 16 * (i % 2) & 0xFFFF : got[lane * 4 + i];
      CAPTURE(row, column, sum);
      CHECK(have == (packed ? f16(sum) : ints ? uint32_t(sum) : f32(sum)));
    }
}

constexpr Number halves{"f16", 16, f16}, brain{"bf16", 16, bf16}, tf32{"tf32", 32, f32},
    e4{"e4m3", 8, e4m3}, s8{"s8", 8, plain}, s4{"u4", 4, plain};

}  // namespace

TEST_CASE("mma.sp multiplies what the metadata names of every type and shape and selector") {
  for (const uint32_t selector : {0u, 1u, 2u, 3u})
    for (const Case& c :
         {Case{16, 2, selector, halves, "f32"}, Case{16, 2, selector, halves, "f16"},
          Case{16, 2, selector, brain, "f32"}, Case{8, 2, selector, tf32, "f32"}})
      check(c);
  for (const uint32_t selector : {0u, 1u})
    for (const Case& c :
         {Case{32, 4, selector, halves, "f32"}, Case{32, 4, selector, halves, "f16"},
          Case{32, 4, selector, brain, "f32"}, Case{16, 4, selector, tf32, "f32"},
          Case{32, 2, selector, s8, "s32"}, Case{64, 2, selector, s4, "s32"}})
      check(c);
  for (const Case& c :
       {Case{64, 4, 0, e4, "f32"}, Case{64, 4, 0, s8, "s32"}, Case{128, 4, 0, s4, "s32"}})
    check(c);
}

TEST_CASE("metadata that names no two elements or not in order is an error") {
  const Case c{16, 2, 1, halves, "f32"}, numbers{8, 2, 1, tf32, "f32"};
  const auto verdict = [](const Case& t, const char* kind, const std::string& value) {
    std::string text = program(t, kind);
    for (size_t at; (at = text.find("ld.global.b32 ")) != text.npos;) {
      const std::string r = text.substr(at + 14, text.find(',', at) - at - 14);
      text.replace(at, text.find(';', at) - at, "mov.b32 " + r + ", " + (r == "%e" ? value : "0"));
    }
    return fault(text, warp);
  };
  CHECK(contains(verdict(c, "sp", "0x44444445"), "row 0, chunk 0 is 0101b"));
  CHECK(contains(verdict(c, "sp::ordered_metadata", "0x44444144"), "in their order"));
  CHECK(contains(verdict(numbers, "sp", "0x44944444"), "row 8, chunk 1 is 1001b"));
}

// Lane 9 has metadata of rows 2 and 10 of 16-bit types (selector 1), and of row 10 of bytes.
TEST_CASE("metadata without a value leaves its rows without one and no others") {
  const Case halves_of_16{16, 2, 1, halves, "f32"}, bytes_of_64{64, 4, 0, s8, "s32"};
  // "" where the register of D may be stored by all lanes.
  const auto said = [](const Case& c, uint32_t lane, const char* d) -> std::string {
    std::string text = program(c, "sp");
    const std::string load = "ld.global.b32 %e";
    text.replace(text.find(load), load.size(),
                 "setp.ne.u32 %p0, %l, " + std::to_string(lane) + "; @%p0 " + load);
    text.resize(text.find("st.global"));
    try {
      exec_test::run(text + "st.global.b32 [%to], " + d + ";", warp, operands(c, false, false));
    } catch (const emu::Fault& f) {
      return f.text;
    }
    return "";
  };
  CHECK(contains(said(halves_of_16, 9, "%c0"), "by lanes 0x00000f00"));
  CHECK(contains(said(halves_of_16, 9, "%c3"), "by lanes 0x00000f00"));
  CHECK(said(halves_of_16, 8, "%c0").empty());
  CHECK(contains(said(bytes_of_64, 9, "%c2"), "by lanes 0x00000f00"));
  CHECK(said(bytes_of_64, 9, "%c0").empty());
}
