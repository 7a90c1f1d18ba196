// SPDX-License-Identifier: MIT
// .cta_group::2 on the memories of two CTAs: where A, B, D and the scales lie in each of them.
#include "tools/emulator/test/support/scaled_model.h"
#include "tools/emulator/test/support/unit_machine.h"

using namespace emu;
using unit::Machine;
using unit::number;
using unit::Pair;
using unit::Random;
using unit::sw128;

namespace {

constexpr uint32_t a_at = 0x400, b_at = 0x4400, sfa_at = 256, sfb_at = 272;

// One step of K = 64 over a pair: operands and scales that the test's reference indexes by row.
struct Step : Pair {
  uint32_t m, n;
  std::vector<uint8_t> a, b, sfa, sfb;  // packed rows of 32 bytes; four scale codes per row
  MmaCommand command;

  Step(uint32_t rows, uint32_t columns)
      : m(rows), n(columns), a(m * 32), b(n * 32), sfa(m * 4, 0x38), sfb(n * 4, 0x38) {
    command.a = sw128 | a_at >> 4;
    command.b = sw128 | b_at >> 4;
    command.instruction = 0x480 | (n / 8) << 17 | (m / 128) << 27;
    command.sfa = sfa_at;
    command.sfb = sfb_at;
  }
  // Each CTA has half of the rows of A and SFA, half of the rows of B, and all of SFB.
  void place() {
    for (uint32_t r = 0; r < m; ++r) {
      Machine& cta = this->cta(r / (m / 2));
      for (uint32_t c = 0; c < 32; ++c) cta.put(Machine::at(a_at, r % (m / 2), c), a[r * 32 + c]);
      cta.put_scales(sfa_at, r % (m / 2), word(sfa, r));
    }
    for (uint32_t r = 0; r < n; ++r) {
      for (uint32_t c = 0; c < 32; ++c)
        cta(r / (n / 2)).put(Machine::at(b_at, r % (n / 2), c), b[r * 32 + c]);
      for (uint32_t i = 0; i < 2; ++i) place_sfb(cta(i), r);
    }
  }
  // With M = 128 the lower half of the lanes multiplies the lower half of N, and so on up.
  void place_sfb(Machine& cta, uint32_t r) {
    if (m == 256) return cta.put_scales(sfb_at, r, word(sfb, r));
    const uint32_t half = r / (n / 2), row = r % (n / 2);
    for (uint32_t copy = 0; copy < 2; ++copy)
      cta.tensor.write(64 * half + 32 * copy + row % 32, sfb_at + row / 32, word(sfb, r), "test");
  }
  static uint32_t word(const std::vector<uint8_t>& codes, uint32_t row) {
    uint32_t w = 0;
    for (uint32_t i = 0; i < 4; ++i) w |= uint32_t(codes[row * 4 + i]) << 8 * i;
    return w;
  }
  void run() {
    emu::check_mma(command, memories());
    emu::run_mma(command, memories());
  }
};

void randomise(Step& x, uint64_t seed) {
  Random r{seed};
  for (auto* v : {&x.a, &x.b})
    for (uint8_t& byte : *v) byte = uint8_t(r());
  for (auto* v : {&x.sfa, &x.sfb})
    for (uint8_t& s : *v) s = uint8_t(0x28 + r.below(32));
}

}  // namespace

TEST_CASE("the accumulator of a pair is where CUTLASS expects it in each CTA") {
  for (const uint32_t m : {256u, 128u}) {
    const std::string frag = m == 256 ? "2sm_256xN_percta" : "2sm_128xN_percta";
    Step x(m, 64);
    x.place();
    for (const auto& row : unit::golden("acc_layout")) {
      const uint32_t local = uint32_t(number(row[1])), n = uint32_t(number(row[2]));
      if (row[0] != frag || local % 8 != 5) continue;
      const uint32_t address = uint32_t(number(row[3])), odd = local / 8 % 2;
      x.cta(odd).put(Machine::at(a_at, local, 0), 0x02);
      x.cta(n / 32).put(Machine::at(b_at, n % 32, 0), 0x02);
      x.run();
      CAPTURE(frag, local, n, odd);
      CHECK(x.cta(odd).d(TensorMemory::lane_of(address), TensorMemory::column_of(address)) ==
            0x3F800000);
      CHECK(x.cta(1 - odd).d(TensorMemory::lane_of(address), TensorMemory::column_of(address)) ==
            0);
      x.cta(odd).put(Machine::at(a_at, local, 0), 0);
      x.cta(n / 32).put(Machine::at(b_at, n % 32, 0), 0);
    }
  }
}

TEST_CASE("every element of a pair's product gets its own rows and columns and scales") {
  const auto shape =
      GENERATE(std::pair<uint32_t, uint32_t>{256, 256}, std::pair{256u, 16u}, std::pair{256u, 176u},
               std::pair{128u, 256u}, std::pair{128u, 48u}, std::pair{128u, 16u});
  Step x(shape.first, shape.second);
  randomise(x, 77 + shape.second);
  x.place();
  x.run();
  size_t wrong = 0;
  for (uint32_t m = 0; m < x.m; ++m)
    for (uint32_t n = 0; n < x.n; ++n) {
      const uint32_t want = unit::scaled_model(emu::ScaledSum::groups, &x.a[m * 32], &x.b[n * 32],
                                               &x.sfa[m * 4], &x.sfb[n * 4], ScaleType::ue4m3, 0);
      const uint32_t half = x.n / 2, row = m % (x.m / 2);
      const uint32_t got =
          x.m == 256 ? x.cta(m / 128).d(row, n) : x.cta(m / 64).d(row + 64 * (n / half), n % half);
      wrong += got != want;
    }
  CAPTURE(x.m, x.n);
  CHECK(wrong == 0);
}

TEST_CASE("a pair's accumulator takes N columns with M = 256 and N / 2 with M = 128") {
  for (const uint32_t m : {256u, 128u}) {
    Step x(m, 128);
    x.place();
    x.run();
    const uint32_t columns = m == 256 ? 128 : 64;
    for (uint32_t i = 0; i < 2; ++i) {
      CHECK(x.cta(i).d(127, columns - 1) == 0);
      CHECK_FAULT(uninitialised, "", x.cta(i).d(0, columns));
    }
  }
}

TEST_CASE("scales of a pair that differ between their copies are faults that name the CTA") {
  Step x(256, 64);
  x.place();
  x.run();
  x.odd.tensor.write(32 + 3, sfa_at, 0x39383838, "test");
  CHECK_FAULT(tensor_memory, "in the odd CTA", x.run());
  x.place();
  x.odd.put_scales(sfb_at, 40, 0x39383838);
  CHECK_FAULT(tensor_memory, "row 40 are 0x39383838 here and 0x38383838 in the even CTA", x.run());
  Step y(128, 128);  // lanes 0-63 and 64-127 have different rows of SFB
  randomise(y, 3);
  y.place();
  y.run();
  y.even.tensor.write(96 + 7, sfb_at + 1, 0, "test");
  CHECK_FAULT(tensor_memory, "row 103 differ", y.run());
}

TEST_CASE("what one CTA of a pair lacks is a fault that names it") {
  Step x(256, 64);
  x.place();
  x.odd.tensor.deallocate(0, 512);
  CHECK_FAULT(tensor_memory, "in the odd CTA of the pair", x.run());
  Step y(256, 64);
  y.place();
  y.command.accumulate = true;
  y.run();
  CHECK_FAULT(uninitialised, "enable-input-d added to tensor memory lane", y.even.d(0, 0));
  CHECK_FAULT(uninitialised, "enable-input-d added to tensor memory lane", y.odd.d(127, 63));
}

TEST_CASE("tcgen05.cp of a pair copies each CTA's shared memory to its own tensor memory") {
  Pair x;
  for (uint32_t i = 0; i < 512; ++i) {
    x.even.put(0x800 + i, uint8_t(i));
    x.odd.put(0x800 + i, uint8_t(i + 1));
  }
  const auto footprints =
      emu::check_tensor_copy(CopyShape::r32x128b, 8, 0x0000400800000080, x.memories());
  CHECK(footprints.size() == 2);
  emu::run_tensor_copy(CopyShape::r32x128b, 8, 0x0000400800000080, x.memories());
  CHECK(x.even.d(33, 9) == 0x17161514);
  CHECK(x.odd.d(33, 9) == 0x18171615);
  emu::run_tensor_copy(CopyShape::r32x128b, 8, 0x0000400800000080, x.memories(),
                       emu::CopyFormat::b6x16_p32);
  CHECK(x.even.d(33, 8) == 0x04210410);  // of bytes 0x10, 0x11, 0x12
  CHECK(x.odd.d(33, 8) == 0x04310811);
}
