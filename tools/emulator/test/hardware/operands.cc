// SPDX-License-Identifier: MIT
// tcgen05.mma of the kinds without packed fp4: operands transposed, in tensor memory, M = 64, lanes
// that are left out. Expected places are the manual's canonical layouts, written out by hand.
#include <cstring>

#include "tools/emulator/test/support/unit_machine.h"

using namespace emu;
using unit::Machine;
using unit::Pair;
using unit::Random;
using unit::sw128;

namespace {

constexpr uint32_t a_at = 0x400, b_at = 0x8400, one_bf16 = 0x3F80, one_f32 = 0x3F800000;

// bf16 x bf16 + f32, K = 16.
constexpr uint32_t bf16_idesc(uint32_t m, uint32_t n) { return 0x490 | n / 8 << 17 | m / 16 << 24; }

// Small integers as bf16, and the product that they make.
struct Matrices {
  uint32_t m, n;
  std::vector<int> a, b;  // rows of 16
  Matrices(uint32_t rows, uint32_t columns, uint64_t seed)
      : m(rows), n(columns), a(m * 16), b(n * 16) {
    Random r{seed};
    for (auto* v : {&a, &b})
      for (int& x : *v) x = int(r.below(15)) - 7;
  }
  static uint16_t bf16(int x) {
    const float f = float(x);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return uint16_t(bits >> 16);
  }
  uint32_t d(uint32_t row, uint32_t column) const {
    float sum = 0;
    for (uint32_t k = 0; k < 16; ++k) sum += float(a[row * 16 + k] * b[column * 16 + k]);
    uint32_t bits;
    std::memcpy(&bits, &sum, 4);
    return bits == 0x80000000 ? 0 : bits;
  }
};

void put16(Machine& m, uint32_t address, uint16_t value) {
  m.shared.write(address, &value, 2, 0, "test");
}

// A K-major tile with the 128-byte swizzle; 32 of its 128 bytes per row are used.
void put_k_major(Machine& m, uint32_t base, const int* values, uint32_t rows) {
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t k = 0; k < 16; ++k) {
      const uint16_t x = Matrices::bf16(values[r * 16 + k]);
      m.put(Machine::at(base, r, 2 * k), uint8_t(x));
      m.put(Machine::at(base, r, 2 * k + 1), uint8_t(x >> 8));
    }
}

MmaCommand command(uint32_t idesc) {
  MmaCommand c;
  c.kind = MmaKind::f16;
  c.a = sw128 | a_at >> 4;
  c.b = sw128 | b_at >> 4;
  c.instruction = idesc;
  return c;
}

void run(const MmaCommand& c, const emu::Memories& memories) {
  emu::check_mma(c, memories);
  emu::run_mma(c, memories);
}

size_t differences(Machine& machine, const Matrices& x, uint32_t first_lane) {
  size_t wrong = 0;
  for (uint32_t r = 0; r < x.m; ++r)
    for (uint32_t n = 0; n < x.n; ++n) {
      const uint32_t lane = x.m == 64 ? first_lane + r % 16 + 32 * (r / 16) : r;
      wrong += machine.d(lane, n) != x.d(r, n);
    }
  return wrong;
}

// Byte of element (row, k) of an MN-major tile of bf16, after PTX ISA 9.7.16.3.3 with T = 8:
// swizzled ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO)), unswizzled ((T,1,m),(8,k)) :
// ((1,T,SBO),(1T,LBO)).
uint32_t transposed_at(uint32_t span, uint32_t lead, uint32_t stride, uint32_t base, uint32_t row,
                       uint32_t k) {
  const uint32_t in_unit = row % 8 * 2, unit = row / 8, width = span / 16;
  if (span == 16) return base + in_unit + unit * stride + k % 8 * 16 + k / 8 * lead;
  const uint32_t address =
      base + in_unit + unit % width * 16 + unit / width * lead + k % 8 * span + k / 8 * stride;
  const uint32_t line =
      address / 128 % 8;  // the XOR of 9.7.16.4.1: 16-byte units by 128-byte lines
  return address ^ (line & (width - 1)) * 16;
}

}  // namespace

TEST_CASE("transposed operands are read by the manual's canonical layouts in every swizzle") {
  const struct {
    uint32_t span;
    uint64_t code;
  } modes[] = {{16, 0}, {32, 6}, {64, 4}, {128, 2}};
  for (const auto& mode : modes) {
    const Matrices x(128, 64, 5 + mode.span);
    Machine machine;
    // Patterns of eight k follow each other along M or N first.
    const uint32_t pattern = 8 * mode.span;
    const auto layout = [&](uint32_t rows, uint32_t* lead, uint32_t* stride) {
      const uint32_t across = rows * 2 / mode.span;  // patterns along M or N
      *lead = mode.span == 16 ? across * pattern : pattern;
      *stride = mode.span == 16 ? pattern : across * pattern;
    };
    const auto place = [&](uint32_t base, const std::vector<int>& values, uint32_t rows) {
      uint32_t lead, stride;
      layout(rows, &lead, &stride);
      for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t k = 0; k < 16; ++k)
          put16(machine, transposed_at(mode.span, lead, stride, base, r, k),
                Matrices::bf16(values[r * 16 + k]));
      return mode.code << 61 | 1ull << 46 | uint64_t(stride / 16) << 32 | lead / 16 << 16 |
             base >> 4;
    };
    MmaCommand c = command(bf16_idesc(128, 64) | 3 << 15);
    c.a = place(a_at, x.a, 128);
    c.b = place(b_at, x.b, 64);
    run(c, machine.memories());
    CAPTURE(mode.span);
    CHECK(differences(machine, x, 0) == 0);
  }
}

// The manual's worked example: MN-major, 32-byte swizzle, bf16, 32 rows:
// ((8,2,2),(8,2)) : ((1,8,128),(16,256)) in elements.
TEST_CASE("the manual's example of a transposed tile is read as it says") {
  const Matrices x(128, 32, 8);
  Machine machine;
  put_k_major(machine, a_at, x.a.data(), 128);
  for (uint32_t r = 0; r < 32; ++r)
    for (uint32_t k = 0; k < 16; ++k) {
      const uint32_t element = r % 8 + r / 8 % 2 * 8 + r / 16 * 128 + k % 8 * 16 + k / 8 * 256;
      const uint32_t at = b_at + element * 2;
      put16(machine, at ^ (at >> 7 & 1) << 4, Matrices::bf16(x.b[r * 16 + k]));
    }
  MmaCommand c = command(bf16_idesc(128, 32) | 1 << 16);
  c.b = 6ull << 61 | 1ull << 46 | 32ull << 32 | 16 << 16 | b_at >> 4;  // LBO 16, SBO 32 encoded
  run(c, machine.memories());
  CHECK(differences(machine, x, 0) == 0);
}

TEST_CASE("transposed operands of 32-bit elements lie in 32-byte atoms of four k") {
  // Byte of element (row, k), after table 55: 32 rows by 4 k in 512 bytes, bits 6:5 ^= 8:7.
  const auto at = [](uint32_t base, uint32_t lead, uint32_t stride, uint32_t row, uint32_t k) {
    const uint32_t a = base + row % 32 * 4 + row / 32 * lead + k % 4 * 128 + k / 4 * stride;
    return a ^ (a >> 7 & 3) << 5;
  };
  const uint64_t atoms = 1ull << 61 | 1ull << 46;
  Machine machine;
  int a[128][8], b[64][8];
  Random r{4};
  const auto put = [&](uint32_t address, int value) {
    const float f = float(value);
    machine.shared.write(address, &f, 4, 0, "test");
  };
  for (uint32_t k = 0; k < 8; ++k) {
    for (uint32_t m = 0; m < 128; ++m)
      put(at(a_at, 512, 2048, m, k), a[m][k] = int(r.below(15)) - 7);
    for (uint32_t n = 0; n < 64; ++n)
      put(at(b_at, 1024, 512, n, k), b[n][k] = int(r.below(15)) - 7);
  }
  MmaCommand c;
  c.kind = MmaKind::tf32;
  c.instruction = 0x910 | 3 << 15 | 8 << 17 | 8 << 24;
  c.a = atoms | 2048ull / 16 << 32 | 512 / 16 << 16 | a_at >> 4;
  c.b = atoms | 512ull / 16 << 32 | 1024 / 16 << 16 | b_at >> 4;
  run(c, machine.memories());
  size_t wrong = 0;
  for (uint32_t m = 0; m < 128; ++m)
    for (uint32_t n = 0; n < 64; ++n) {
      int sum = 0;
      for (uint32_t k = 0; k < 8; ++k) sum += a[m][k] * b[n][k];
      const float f = float(sum);
      uint32_t bits;
      std::memcpy(&bits, &f, 4);
      wrong += machine.d(m, n) != bits;
    }
  CHECK(wrong == 0);
  c.instruction = 0x910 | 1 << 16 | 8 << 17 | 8 << 24;  // A is not transposed
  CHECK_FAULT(illegal_instruction, "transposed operands of 32-bit", run(c, machine.memories()));
}

TEST_CASE("transposed bytes and 32-bit elements with 16-byte atoms: the first work alone") {
  Machine machine;
  for (uint32_t i = 0; i < 0x4000; ++i) machine.put(a_at + i, 0);
  for (uint32_t i = 0; i < 0x1000; ++i) machine.put(b_at + i, 0);
  // e4m3, N = 16: element (row 5, k 9) of an unswizzled B, (row 100, k 9) of a 128-byte swizzled A.
  MmaCommand c;
  c.kind = MmaKind::f8f6f4;
  c.instruction = 0x10 | 3 << 15 | 2 << 17 | 8 << 24;
  c.a = 2ull << 61 | 1ull << 46 | 64ull << 32 | a_at >> 4;  // 128 rows are one span; SBO 1024
  c.b = 1ull << 46 | 8ull << 32 | 8 << 16 | b_at >> 4;      // eight k in 128 bytes
  const uint32_t a_byte = a_at + 1024 * (9 / 8) + 128 * (9 % 8) + 100;
  machine.put(a_byte ^ (a_byte / 128 % 8) * 16, 0x38);
  machine.put(b_at + 128 * (9 / 8) + 16 * (9 % 8) + 5, 0x40);
  run(c, machine.memories());
  CHECK(machine.d(100, 5) == 0x40000000);
  CHECK(machine.d(100, 4) == 0);
  CHECK(machine.d(101, 5) == 0);
  c.kind = MmaKind::tf32;
  c.instruction = 0x910 | 1 << 15 | 2 << 17 | 8 << 24;
  CHECK_FAULT(illegal_instruction, "32-byte atoms", run(c, machine.memories()));
}

TEST_CASE("strides and starts of transposed operands that no layout has are refused") {
  Machine machine;
  for (uint32_t i = 0; i < 0x4000; ++i) machine.put(a_at + i, 0);
  MmaCommand c = command(bf16_idesc(128, 32) | 1 << 15);
  const auto with = [&](uint64_t lead, uint64_t stride, uint64_t start) {
    c.a = 2ull << 61 | 1ull << 46 | stride / 16 << 32 | lead / 16 << 16 | start >> 4;
    run(c, machine.memories());
  };
  CHECK_FAULT(illegal_instruction, "leading offset", with(512, 1024, a_at));
  CHECK_FAULT(illegal_instruction, "leading offset", with(0, 1024, a_at));
  CHECK_FAULT(illegal_instruction, "stride offset", with(1024, 1040, a_at));
  CHECK_FAULT(illegal_instruction, "start of the 1024-byte swizzle", with(1024, 2048, a_at + 512));
}

TEST_CASE("an M = 64 accumulator takes 16 lanes of each quarter from lane 0 or 16") {
  for (const uint32_t first : {0u, 16u}) {
    const Matrices x(64, 40, 3);
    Machine machine;
    put_k_major(machine, a_at, x.a.data(), 64);
    put_k_major(machine, b_at, x.b.data(), 40);
    MmaCommand c = command(bf16_idesc(64, 40));
    c.d = first << 16;
    run(c, machine.memories());
    CHECK(differences(machine, x, first) == 0);
    CHECK_FAULT(uninitialised, "", machine.d(16 - first, 0));
    c.d = 8 << 16;
    CHECK_FAULT(illegal_instruction, "lane 0 or 16", run(c, machine.memories()));
  }
}

TEST_CASE("the accumulator of M = 64 is where CUTLASS expects it") {
  Machine machine;
  const std::vector<int> zeros(64 * 16);
  put_k_major(machine, a_at, zeros.data(), 64);
  put_k_major(machine, b_at, zeros.data(), 64);
  for (const auto& row : unit::golden("acc_layout")) {
    const uint32_t m = uint32_t(unit::number(row[1])), n = uint32_t(unit::number(row[2]));
    if (row[0] != "1sm_64xN" || m % 4 != 1) continue;
    const auto set = [&](uint16_t x) {
      put16(machine, Machine::at(a_at, m, 0), x);
      put16(machine, Machine::at(b_at, n, 0), x);
    };
    set(one_bf16);
    run(command(bf16_idesc(64, 64)), machine.memories());
    const uint32_t address = uint32_t(unit::number(row[3]));
    CAPTURE(m, n);
    CHECK(machine.d(emu::TensorMemory::lane_of(address), emu::TensorMemory::column_of(address)) ==
          one_f32);
    set(0);
  }
}

TEST_CASE("A in tensor memory: a row is 32 bytes in the lane of its row of D") {
  for (const uint32_t m : {128u, 64u}) {
    const Matrices x(m, 32, 21);
    Machine machine;
    put_k_major(machine, b_at, x.b.data(), 32);
    const uint32_t first = m == 64 ? 16 : 0;
    for (uint32_t r = 0; r < m; ++r)
      for (uint32_t c = 0; c < 8; ++c) {
        const uint32_t word = Matrices::bf16(x.a[r * 16 + 2 * c]) |
                              uint32_t(Matrices::bf16(x.a[r * 16 + 2 * c + 1])) << 16;
        machine.tensor.write(m == 64 ? first + r % 16 + 32 * (r / 16) : r, 64 + c, word, "test");
      }
    MmaCommand c = command(bf16_idesc(m, 32));
    c.a_in_tensor = true;
    c.a = 64 | first << 16;
    c.d = first << 16;
    run(c, machine.memories());
    CHECK(differences(machine, x, first) == 0);
    const uint32_t lane = first + 9;
    machine.tensor.forget(lane, 70);
    run(c, machine.memories());
    CHECK_FAULT(uninitialised, "a tcgen05.mma A read tensor memory 0x", machine.d(lane, 31));
    CHECK(machine.d(lane + 1, 31) == x.d(10, 31));
    machine.tensor.write(lane, 70, 0, "test");
    c.d = 60 | first << 16;
    CHECK_FAULT(tensor_memory, "overlaps A", run(c, machine.memories()));
    c.d = first << 16;
    c.instruction |= 1 << 15;
    CHECK_FAULT(illegal_instruction, "cannot be transposed", run(c, machine.memories()));
  }
}

TEST_CASE("A of an M = 128 pair lies twice in tensor memory and the copies have to agree") {
  const Matrices x(128, 32, 31);
  Pair pair;
  for (uint32_t i = 0; i < 2; ++i) put_k_major(pair.cta(i), b_at, &x.b[i * 16 * 16], 16);
  for (uint32_t r = 0; r < 128; ++r)
    for (uint32_t c = 0; c < 8; ++c)
      for (uint32_t copy = 0; copy < 2; ++copy) {
        const uint32_t word = Matrices::bf16(x.a[r * 16 + 2 * c]) |
                              uint32_t(Matrices::bf16(x.a[r * 16 + 2 * c + 1])) << 16;
        pair.cta(r / 64).tensor.write(r % 64 + 64 * copy, 64 + c, word, "test");
      }
  MmaCommand c = command(bf16_idesc(128, 32));
  c.a_in_tensor = true;
  c.a = 64;
  run(c, pair.memories());
  size_t wrong = 0;
  for (uint32_t r = 0; r < 128; ++r)
    for (uint32_t n = 0; n < 32; ++n)
      wrong += pair.cta(r / 64).d(r % 64 + 64 * (n / 16), n % 16) != x.d(r, n);
  CHECK(wrong == 0);
  pair.odd.tensor.forget(64 + 7, 64);
  run(c, pair.memories());
  CHECK_FAULT(uninitialised, "A read tensor memory 0x470040", pair.odd.d(7, 0));
  CHECK_FAULT(uninitialised, "A read tensor memory 0x470040", pair.odd.d(64 + 7, 15));
  CHECK(pair.even.d(7, 0) == x.d(7, 0));
  pair.odd.tensor.write(64 + 7, 64, 0x12345678, "test");
  CHECK_FAULT(tensor_memory, "row 7 differs between its copies", run(c, pair.memories()));
}

TEST_CASE("disable-output-lane leaves lanes of D as they are with the even CTA's first") {
  const Matrices x(256, 32, 41);
  Pair pair;
  for (uint32_t i = 0; i < 2; ++i) {
    put_k_major(pair.cta(i), a_at, &x.a[i * 128 * 16], 128);
    put_k_major(pair.cta(i), b_at, &x.b[i * 16 * 16], 16);
  }
  MmaCommand c = command(bf16_idesc(256, 32));
  c.disabled = {0x80000001, 0, 0, 0, 0, 0, 0, 0xF0};
  run(c, pair.memories());
  const auto off = [](uint32_t r) { return r == 0 || r == 31 || (r >= 228 && r < 232); };
  size_t wrong = 0;
  for (uint32_t r = 0; r < 256; ++r)
    for (uint32_t n = 0; n < 32; ++n) {
      Machine& cta = pair.cta(r / 128);
      if (off(r))
        wrong += cta.tensor.has_value(r % 128, n);
      else
        wrong += cta.d(r % 128, n) != x.d(r, n);
    }
  CHECK(wrong == 0);
}

TEST_CASE("scale-input-d halves the accumulator so many times") {
  const Matrices x(128, 8, 51);
  Machine machine;
  put_k_major(machine, a_at, x.a.data(), 128);
  put_k_major(machine, b_at, x.b.data(), 8);
  MmaCommand c = command(bf16_idesc(128, 8));
  run(c, machine.memories());
  const uint32_t once = x.d(3, 5);
  REQUIRE(once != 0);
  c.accumulate = true;
  run(c, machine.memories());
  CHECK(machine.d(3, 5) == once + (1 << 23));  // twice
  c.scale_d = 1;
  run(c, machine.memories());
  CHECK(machine.d(3, 5) == once + (1 << 23));  // half of it and once more
}

TEST_CASE("mxf8f6f4 takes the scale byte that the id says") {
  Machine machine;
  for (uint32_t i = 0; i < 0x4000; ++i) machine.put(a_at + i, 0);
  for (uint32_t i = 0; i < 0x400; ++i) machine.put(b_at + i, 0);
  machine.put(Machine::at(a_at, 40, 3), 0x38);
  machine.put(Machine::at(b_at, 6, 3), 0x38);
  for (uint32_t r = 0; r < 128; ++r) machine.put_scales(256, r, 0x83828180);
  for (uint32_t r = 0; r < 8; ++r) machine.put_scales(260, r, 0x8F8B8783);
  MmaCommand c;
  c.kind = MmaKind::mxf8f6f4;
  c.block = 32;
  c.a = sw128 | a_at >> 4;
  c.b = sw128 | b_at >> 4;
  c.sfa = 256;
  c.sfb = 260;
  for (uint32_t sfa = 0; sfa < 4; ++sfa)
    for (uint32_t sfb = 0; sfb < 4; ++sfb) {
      c.instruction = 1 << 23 | 1 << 17 | 1 << 27 | sfa << 29 | sfb << 4;
      run(c, machine.memories());
      CHECK(machine.d(40, 6) == (127 + (1 + sfa) + (4 + 4 * sfb)) << 23);
    }
}

TEST_CASE("4-bit elements of kind f8f6f4 have gaps in shared memory that nobody has to write") {
  Machine machine;
  for (uint32_t r = 0; r < 128; ++r)
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t i = 0; i < 8; ++i)
        machine.put(Machine::at(a_at, r, half * 16 + i), r == 3 ? 0x44 : 0x22);  // 2, 1
  for (uint32_t r = 0; r < 8; ++r)
    for (uint32_t i = 0; i < 32; ++i) machine.put(Machine::at(b_at, r, i), 0x38);  // 1
  MmaCommand c = command(0x10 | 5 << 7 | 1 << 17 | 8 << 24);
  c.kind = MmaKind::f8f6f4;
  run(c, machine.memories());
  CHECK(machine.d(0, 0) == 0x42000000);  // 32
  CHECK(machine.d(3, 7) == 0x42800000);
  c.instruction = 0x10 | 1 << 17 | 8 << 24;  // bytes: all 32 of a row are read
  run(c, machine.memories());
  CHECK_FAULT(uninitialised, "which was never written", machine.d(0, 0));
}
