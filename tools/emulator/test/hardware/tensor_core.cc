// SPDX-License-Identifier: MIT
// tcgen05.cp and tcgen05.mma on shared and tensor memory: layouts, the worked example, broken
// rules.
#include "tools/emulator/test/support/scaled_model.h"
#include "tools/emulator/test/support/unit_machine.h"

using namespace emu;
using unit::golden;
using unit::Machine;
using unit::number;
using unit::Random;
using unit::sw128;

namespace {

constexpr uint64_t scale_rows = 0x0000400800000000;

constexpr uint32_t idesc(uint32_t n) { return 0x08000480 | (n / 8) << 17; }

// A at 0x400, B after it, zero operands, unit scales at columns 256 and 264.
struct Simple : Machine {
  static constexpr uint32_t a = 0x400, b = 0x4400, sfa = 256, sfb = 264;
  MmaCommand command;

  explicit Simple(uint32_t n) {
    for (uint32_t i = 0; i < 0x4000 + n * 128; ++i) put(a + i, 0);
    for (uint32_t r = 0; r < 128; ++r) put_scales(sfa, r, 0x38383838);
    for (uint32_t r = 0; r < n; ++r) put_scales(sfb, r, 0x38383838);
    command.a = sw128 | a >> 4;
    command.b = sw128 | b >> 4;
    command.instruction = idesc(n);
    command.sfa = sfa;
    command.sfb = sfb;
  }
  void run() {
    emu::check_mma(command, memories());
    emu::run_mma(command, memories());
  }
};

}  // namespace

TEST_CASE("tcgen05.cp.32x128b.warpx4 puts every byte where CUTLASS expects it") {
  Machine m(32);
  for (uint32_t i = 0; i < 512; ++i) m.put(0x800 + i, uint8_t(i % 251));
  emu::run_tensor_copy(CopyShape::r32x128b, 8, scale_rows | 0x80, m.memories());
  for (const auto& row : golden("tcgen05_cp_map")) {
    const uint32_t from = uint32_t(number(row[1]) * 16 + number(row[2]));
    const uint32_t word = m.d(uint32_t(number(row[3])), 8 + uint32_t(number(row[4])));
    CAPTURE(row[1], row[2], row[3]);
    CHECK((word >> 8 * number(row[5]) & 0xFF) == from % 251);
  }
}

TEST_CASE("the other shapes of tcgen05.cp place rows and 16-byte columns as the manual says") {
  struct {
    CopyShape shape;
    uint32_t rows, chunks;
    uint32_t lanes[4];  // of source row 33 (row 1 of .4x256b), ~0 = no further copy
  } const shapes[] = {
      {CopyShape::r128x256b, 128, 2, {33, ~0u, ~0u, ~0u}},
      {CopyShape::r128x128b, 128, 1, {33, ~0u, ~0u, ~0u}},
      {CopyShape::r4x256b, 4, 2, {32, ~0u, ~0u, ~0u}},
      {CopyShape::r64x128b_02_13, 64, 1, {33, 97, ~0u, ~0u}},
      {CopyShape::r64x128b_01_23, 64, 1, {65, 97, ~0u, ~0u}},
  };
  for (const auto& s : shapes) {
    Machine m(32);
    // Rows of 16 bytes, the second column of K 4096 bytes after the first.
    const uint64_t desc = 0x0000400800000000 | uint64_t(4096 / 16) << 16 | 0x40;
    const auto value = [](uint32_t r, uint32_t c, uint32_t i) {
      return uint8_t(r + 7 * i + 100 * c);
    };
    for (uint32_t r = 0; r < s.rows; ++r)
      for (uint32_t c = 0; c < s.chunks; ++c)
        for (uint32_t i = 0; i < 16; ++i) m.put(0x400 + 4096 * c + 16 * r + i, value(r, c, i));
    emu::run_tensor_copy(s.shape, 4, desc, m.memories());
    const uint32_t row = s.rows == 4 ? 1 : 33;
    CAPTURE(int(s.shape));
    for (uint32_t lane : s.lanes) {
      if (lane == ~0u) break;
      for (uint32_t i = 0; i < 16 * s.chunks; ++i)
        CHECK((m.d(lane, 4 + i / 4) >> i % 4 * 8 & 0xFF) == value(row, i / 16, i % 16));
    }
    // A shape of four rows writes one lane in each band and leaves the other lanes unwritten.
    if (s.rows == 4) CHECK_FAULT(uninitialised, "lane 33", m.d(33, 4));
    CHECK_FAULT(uninitialised, "", m.d(0, 4 + 4 * s.chunks));
  }
}

TEST_CASE("tcgen05.cp checks its address; a word that nobody wrote is a cell without a value") {
  Machine m(32);
  for (uint32_t i = 0; i < 512; ++i) m.put(0x400 + i, 1);
  const uint64_t desc = scale_rows | 0x40;
  const auto copy = [&](uint32_t to, uint64_t from) {
    emu::run_tensor_copy(CopyShape::r32x128b, to, from, m.memories());
  };
  copy(28, desc);
  CHECK_FAULT(tensor_memory, "column 32", copy(30, desc));
  CHECK_FAULT(illegal_instruction, "lane must be 0", copy(1 << 16, desc));
  copy(0, desc + 1);  // row 31 lies at 0x600, after what was written
  CHECK(m.d(30, 3) == 0x01010101);
  CHECK_FAULT(uninitialised, "lane 31 column 0", m.d(31, 0));
  CHECK_FAULT(uninitialised, "lane 127 column 3", m.d(127, 3));
  for (uint32_t i = 0; i < 4; ++i) m.put(0x604 + i, 2);
  copy(0, desc + 1);
  CHECK(m.d(31, 1) == 0x02020202);
  CHECK_FAULT(uninitialised, "lane 31 column 2", m.d(31, 2));
  CHECK_FAULT(illegal_instruction, "bits 48:46", copy(0, desc & ~(1ull << 46)));
}

// The elements of a row as one string of bits, the first element lowest.
TEST_CASE("tcgen05.cp makes bytes of 6-bit elements whose padding need not be written") {
  const struct {
    CopyShape shape;
    uint32_t rows, chunks;
  } shapes[] = {{CopyShape::r128x256b, 128, 2},     {CopyShape::r128x128b, 128, 1},
                {CopyShape::r4x256b, 4, 2},         {CopyShape::r64x128b_02_13, 64, 1},
                {CopyShape::r64x128b_01_23, 64, 1}, {CopyShape::r32x128b, 32, 1}};
  const uint64_t desc = scale_rows | uint64_t(4096 / 16) << 16 | 0x40;
  for (const auto& s : shapes) {
    CAPTURE(int(s.shape));
    Machine m(32);
    const auto element = [](uint32_t r, uint32_t c, uint32_t i) {
      return (r * 29 + c * 17 + i * 11 + 5) % 64;
    };
    for (uint32_t r = 0; r < s.rows; ++r)
      for (uint32_t c = 0; c < s.chunks; ++c) {
        std::array<uint8_t, 12> packed = {};
        for (uint32_t bit = 0; bit < 96; ++bit)
          packed[bit / 8] |= uint8_t((element(r, c, bit / 6) >> bit % 6 & 1) << bit % 8);
        for (uint32_t i = 0; i < 12; ++i) m.put(0x400 + 4096 * c + 16 * r + i, packed[i]);
      }
    emu::run_tensor_copy(s.shape, 4, desc, m.memories(), emu::CopyFormat::b6x16_p32);
    const bool wide = s.rows == 128, bands = s.rows == 4;
    for (uint32_t r = 0; r < s.rows; ++r) {
      const uint32_t lane = wide ? r : bands ? 32 * r : r % 32;
      if (!wide && !bands && r >= 32) break;
      for (uint32_t i = 0; i < 16 * s.chunks; ++i)
        CHECK((m.d(lane, 4 + i / 4) >> i % 4 * 8 & 0xFF) == element(r, i / 16, i % 16));
    }
  }
}

TEST_CASE("three bytes of 6-bit elements make a word that has a value only if all of them do") {
  Machine m(32);
  for (uint32_t i = 0; i < 512; ++i)
    if (i % 16 != 7) m.put(0x400 + i, 0xFF);
  emu::run_tensor_copy(CopyShape::r32x128b, 0, scale_rows | 0x40, m.memories(),
                       emu::CopyFormat::b6x16_p32);
  for (uint32_t column : {0, 1, 3}) CHECK(m.d(97, column) == 0x3F3F3F3F);
  CHECK_FAULT(uninitialised, "lane 97 column 2", m.d(97, 2));
}

TEST_CASE("CUTLASS's scale copies put every scale where its MMAs read it") {
  const std::string tile =
      GENERATE(as<std::string>{}, "128x64x256_cg1", "128x128x256_cg1", "128x256x256_cg1");
  const std::string which = GENERATE(as<std::string>{}, "SFA", "SFB");
  Machine m;
  Random r{99};
  std::vector<uint8_t> tiles(8 * 512);
  for (size_t i = 0; i < tiles.size(); ++i) m.put(0x400 + uint32_t(i), tiles[i] = uint8_t(r()));
  uint32_t copies = 0, base[4] = {};
  for (const auto& row : golden("tmem_sf_layout")) {
    if (row[0] != tile) continue;
    if (row[1] == which + "_MMA" && row[3] != "1") base[number(row[2])] = uint32_t(number(row[4]));
    if (row[1] != which + "_UTCCP" || row[2] != "0") continue;
    emu::run_tensor_copy(CopyShape::r32x128b, uint32_t(number(row[4])), number(row[5]) + 0x40,
                         m.memories());
    ++copies;
  }
  const uint32_t blocks = copies / 4;  // of 128 rows: two for N = 256
  REQUIRE(copies == (tile == "128x256x256_cg1" && which == "SFB" ? 8 : 4));
  for (uint32_t k = 0; k < 16; ++k)
    for (uint32_t row = 0; row < 128 * blocks; ++row) {
      const uint32_t source =
          (k / 4 * blocks + row / 128) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + k % 4;
      for (uint32_t band = 0; band < 4; ++band) {
        const uint32_t word = m.d(row % 32 + 32 * band, base[k / 4] + row / 32);
        if ((word >> k % 4 * 8 & 0xFF) == tiles[source]) continue;
        CAPTURE(tile, which, k, row, band);
        CHECK((word >> k % 4 * 8 & 0xFF) == tiles[source]);
      }
    }
}

TEST_CASE("an accumulator's element is at the lane and column that CUTLASS expects") {
  Simple x(256);
  for (const auto& row : golden("acc_layout")) {
    const uint32_t m = uint32_t(number(row[1])), n = uint32_t(number(row[2]));
    if (row[0] != "1sm_128xN" || m % 16 != 5) continue;
    x.put(Machine::at(Simple::a, m, 0), 0x02);
    x.put(Machine::at(Simple::b, n, 0), 0x02);
    x.run();
    const uint32_t address = uint32_t(number(row[3]));
    CAPTURE(m, n);
    CHECK(x.d(TensorMemory::lane_of(address), TensorMemory::column_of(address)) == 0x3F800000);
    CHECK(x.d((m + 1) % 128, n) == 0);
    CHECK(x.d(m, (n + 1) % 256) == 0);
    x.put(Machine::at(Simple::a, m, 0), 0);
    x.put(Machine::at(Simple::b, n, 0), 0);
  }
}

// The worked address trace: one stage at 0x400, D in columns 0-127, SFA 128-143, SFB 144-159.
TEST_CASE("a K tile of 256 through cp and mma equals four steps of the model") {
  Machine x(256);
  Random r{1234};
  std::vector<uint8_t> a(128 * 128), b(128 * 128), sf(2 * 2048);
  for (auto* v : {&a, &b})
    for (uint8_t& byte : *v) byte = uint8_t(r());
  for (uint8_t& s : sf) s = uint8_t(0x28 + r.below(32));
  for (uint32_t row = 0; row < 128; ++row)
    for (uint32_t c = 0; c < 128; ++c) {
      x.put(Machine::at(0x0400, row, c), a[row * 128 + c]);
      x.put(Machine::at(0x4400, row, c), b[row * 128 + c]);
    }
  for (uint32_t i = 0; i < sf.size(); ++i) x.put(0x8400 + i, sf[i]);
  for (uint32_t s = 0; s < 4; ++s) {
    emu::run_tensor_copy(CopyShape::r32x128b, 128 + 4 * s, 0x0000400800000840 + 0x20 * s,
                         x.memories());
    emu::run_tensor_copy(CopyShape::r32x128b, 144 + 4 * s, 0x00004008000008C0 + 0x20 * s,
                         x.memories());
    MmaCommand c;
    c.a = 0x4000404000000040 + 2 * s;
    c.b = 0x4000404000000440 + 2 * s;
    c.instruction = 0x08200480;
    c.sfa = 128 + 4 * s;
    c.sfb = 144 + 4 * s;
    c.accumulate = s != 0;
    emu::run_mma(c, x.memories());
  }
  // Row 77, scale 6: tile 1, byte 730 of the buffer.
  for (uint32_t lane : {13u, 45u, 77u, 109u})
    CHECK((x.d(lane, 128 + 4 + 2) >> 16 & 0xFF) == sf[730]);
  size_t wrong = 0;
  for (uint32_t m = 0; m < 128; ++m)
    for (uint32_t n = 0; n < 128; ++n) {
      uint32_t want = 0;
      for (uint32_t s = 0; s < 4; ++s) {
        const auto scales = [&](uint32_t row) { return s * 512 + row % 32 * 16 + row / 32 * 4; };
        want =
            unit::scaled_model(emu::ScaledSum::groups, &a[m * 128 + s * 32], &b[n * 128 + s * 32],
                               &sf[scales(m)], &sf[2048 + scales(n)], emu::ScaleType::ue4m3, want);
      }
      wrong += x.d(m, n) != want;
    }
  CHECK(wrong == 0);
}

TEST_CASE("every N in steps of 8 writes its own columns and needs its own scales only") {
  for (uint32_t n = 8; n <= 256; n += 8) {
    Simple x(n);
    x.command.d = 0;
    x.run();
    CAPTURE(n);
    CHECK(x.d(127, n - 1) == 0);
    if (n < Simple::sfa) CHECK_FAULT(uninitialised, "column", x.d(0, n));
  }
}

TEST_CASE(
    "the accumulator is read only when enable-input-d says so and has a value if it had one") {
  Simple x(16);
  x.tensor.write(9, 3, 0x40490FDB, "test");
  x.command.accumulate = true;
  x.run();
  CHECK(x.d(9, 3) == 0x40490FDB);
  CHECK_FAULT(uninitialised, "enable-input-d added to tensor memory lane", x.d(127, 15));
  x.command.accumulate = false;
  x.run();
  x.tensor.write(9, 3, 0x40490FDB, "test");
  x.command.accumulate = true;
  x.run();
  CHECK(x.d(9, 3) == 0x40490FDB);
  x.command.accumulate = false;
  x.run();
  CHECK(x.d(9, 3) == 0);
}

TEST_CASE("scales start at an even column of lane 0 and are equal in the four lane bands") {
  Simple x(64);
  x.command.sfb = 265;
  CHECK_FAULT(misaligned_address, "column 265 is odd", x.run());
  x.command.sfb = 264 | 32 << 16;
  CHECK_FAULT(illegal_instruction, "lane 0", x.run());
  x.command.sfb = 264 | 2u << 30;
  CHECK_FAULT(illegal_instruction, "scale id 2", x.run());
  x.command.sfb = 264;
  x.tensor.write(64 + 5, 265, 0x38383839, "test");  // row 37 in the third band
  CHECK_FAULT(tensor_memory, "row 37", x.run());
  x.tensor.write(64 + 5, 265, 0x38383838, "test");
  x.run();
}

TEST_CASE("an MMA whose accumulator overlaps its scales or leaves the allocation is a fault") {
  Simple x(64);
  x.command.d = 256 - 63;
  CHECK_FAULT(tensor_memory, "overlaps SFA", x.run());
  x.command.d = 265;
  CHECK_FAULT(tensor_memory, "overlaps SFB", x.run());
  x.command.d = 512 - 32;
  CHECK_FAULT(tensor_memory, "column 512", x.run());
  x.command.d = 16 << 16;
  CHECK_FAULT(illegal_instruction, "lane 0", x.run());
}

TEST_CASE("a row of A or B that nobody wrote makes results without a value and no others") {
  Simple x(64);
  for (uint32_t c = 0; c < 32; ++c) x.shared.forget(Machine::at(Simple::b, 5, c), 1, "test");
  x.shared.forget(Machine::at(Simple::a, 9, 31), 1, "test");
  x.run();
  for (uint32_t lane = 0; lane < 128; ++lane)
    for (uint32_t n = 0; n < 64; ++n) {
      CAPTURE(lane, n);
      CHECK(x.tensor.has_value(lane, n) == (lane != 9 && n != 5));
    }
  CHECK_FAULT(uninitialised, "a tcgen05.mma B read shared address 0x46d0", x.d(0, 5));
  // The sums have no value, whatever is added to them, until an MMA overwrites them.
  x.command.accumulate = true;
  x.put(Machine::at(Simple::a, 9, 31), 0);
  for (uint32_t c = 0; c < 32; ++c) x.put(Machine::at(Simple::b, 5, c), 0);
  x.run();
  CHECK_FAULT(uninitialised, "which was never written", x.d(9, 0));
  x.command.accumulate = false;
  x.run();
  CHECK(x.d(9, 5) == 0);
}

TEST_CASE("rows whose scales nobody wrote make results without a value and no others") {
  Simple x(64);
  x.tensor.forget(32 + 7, Simple::sfa + 1);  // row 39 in the second band
  x.tensor.forget(3, Simple::sfb);           // row 3 in the first
  x.run();
  for (uint32_t lane = 0; lane < 128; ++lane)
    for (uint32_t n = 0; n < 64; ++n) {
      CAPTURE(lane, n);
      CHECK(x.tensor.has_value(lane, n) == (lane != 39 && n != 3));
    }
  CHECK_FAULT(uninitialised, "a tcgen05.mma SFB read tensor memory 0x30108", x.d(0, 3));
}

TEST_CASE("operands outside shared memory are faults") {
  Simple x(64);
  x.command.a = sw128 | 0x3F400 >> 4;
  CHECK_FAULT(illegal_address, "tcgen05.mma A", x.run());
}

TEST_CASE("ue8m0 scales of 32-element blocks take two bytes at the place of their id") {
  Simple x(8);
  x.command.kind = emu::MmaKind::mxf4;
  x.command.block = 32;
  x.put(Machine::at(Simple::a, 3, 31), 0x20);  // k = 63
  x.put(Machine::at(Simple::b, 6, 31), 0x20);
  for (uint32_t r = 0; r < 128; ++r) x.put_scales(Simple::sfa, r, 0x807F8281);
  for (uint32_t r = 0; r < 8; ++r) x.put_scales(Simple::sfb, r, 0x7F7F7F7F);
  x.command.instruction = idesc(8) | 1 << 23;
  x.run();
  CHECK(x.d(3, 6) == 0x41000000);  // byte 1: 2^3
  x.command.instruction |= 2u << 29;
  x.run();
  CHECK(x.d(3, 6) == 0x40000000);  // byte 3: 2^1
}
