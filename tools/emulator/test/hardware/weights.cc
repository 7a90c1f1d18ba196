// SPDX-License-Identifier: MIT
// tcgen05.mma.ws: parts of N lie above each other in the lanes (PTX ISA 9.7.16.10.5, layouts E and
// G), and each has its own copy of an A in tensor memory.
#include <cstring>

#include "tools/emulator/test/support/unit_machine.h"

using namespace emu;
using unit::Machine;
using unit::Random;
using unit::sw128;

namespace {

constexpr uint32_t a_at = 0x400, b_at = 0x8400, steps = 16;  // bf16: K = 16

uint16_t bf16(int x) {
  const float f = float(x);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return uint16_t(bits >> 16);
}

float number(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// Small integers: rows of A in shared memory or of each lane in tensor memory, rows of B.
struct Step {
  uint32_t m, n;
  Machine machine;
  int a[128][steps], b[256][steps];
  MmaCommand command;

  Step(uint32_t rows, uint32_t columns, uint64_t seed) : m(rows), n(columns) {
    Random r{seed};
    for (auto& row : a)
      for (int& x : row) x = int(r.below(15)) - 7;
    for (auto& row : b)
      for (int& x : row) x = int(r.below(15)) - 7;
    for (uint32_t i = 0; i < n; ++i) put(b_at, i, b[i]);
    command.kind = MmaKind::f16;
    command.weights = true;
    command.a = sw128 | a_at >> 4;
    command.b = sw128 | b_at >> 4;
    command.instruction = 0x490 | n / 8 << 17 | m / 16 << 24;
  }
  void put(uint32_t base, uint32_t row, const int* values) {
    for (uint32_t k = 0; k < steps; ++k) {
      const uint16_t x = bf16(values[k]);
      machine.put(Machine::at(base, row, 2 * k), uint8_t(x));
      machine.put(Machine::at(base, row, 2 * k + 1), uint8_t(x >> 8));
    }
  }
  void a_in_shared() {
    for (uint32_t i = 0; i < m; ++i) put(a_at, i, a[i]);
  }
  void a_in_tensor(uint32_t column) {
    for (uint32_t lane = 0; lane < 128; ++lane)
      for (uint32_t c = 0; c < steps / 2; ++c)
        machine.tensor.write(lane, column + c,
                             bf16(a[lane][2 * c]) | uint32_t(bf16(a[lane][2 * c + 1])) << 16,
                             "test");
    command.a_in_tensor = true;
    command.a = column;
  }
  void run() {
    emu::check_mma(command, machine.memories());
    emu::run_mma(command, machine.memories());
  }
  int dot(const int* x, const int* y) const {
    int sum = 0;
    for (uint32_t k = 0; k < steps; ++k) sum += x[k] * y[k];
    return sum;
  }
};

}  // namespace

TEST_CASE("a weight-stationary product folds N over the lanes that M leaves") {
  for (const uint32_t m : {32u, 64u, 128u})
    for (const uint32_t n : {64u, 128u, 256u})
      for (const bool tensor : {false, true}) {
        Step x(m, n, m + n);
        if (tensor)
          x.a_in_tensor(300);
        else
          x.a_in_shared();
        x.run();
        const uint32_t width = n * m / 128;  // columns of tensor memory
        size_t wrong = 0;
        for (uint32_t r = 0; r < m; ++r)
          for (uint32_t c = 0; c < n; ++c) {
            const uint32_t lane = r + m * (c / width);
            const int want = x.dot(x.a[tensor ? lane : r], x.b[c]);
            wrong += number(x.machine.d(lane, c % width)) != float(want);
          }
        CAPTURE(m, n, tensor);
        CHECK(wrong == 0);
        CHECK_FAULT(uninitialised, "", x.machine.d(127, width));
      }
}

TEST_CASE("a weight-stationary product is added to what D holds") {
  Step x(64, 128, 3);
  x.a_in_shared();
  x.run();
  const float once = number(x.machine.d(64 + 9, 5));
  REQUIRE(once != 0);
  x.command.accumulate = true;
  x.run();
  CHECK(number(x.machine.d(64 + 9, 5)) == 2 * once);
}

TEST_CASE("a copy of A without a value spoils the columns of its fold") {
  Step x(64, 128, 5);
  x.a_in_tensor(300);
  x.machine.tensor.forget(64 + 9, 303);
  x.run();
  CHECK_FAULT(uninitialised, "a tcgen05.mma.ws A read tensor memory 0x49012f",
              x.machine.d(64 + 9, 63));
  CHECK(number(x.machine.d(9, 63)) == float(x.dot(x.a[9], x.b[63])));
  CHECK(number(x.machine.d(64 + 10, 0)) == float(x.dot(x.a[64 + 10], x.b[64])));
}

TEST_CASE("what a weight-stationary product accesses in tensor memory") {
  Step x(32, 256, 4);
  x.a_in_tensor(300);
  const auto all = emu::check_mma(x.command, x.machine.memories());
  REQUIRE(all.size() == 1);
  CHECK(all[0].columns == 64);
  CHECK(all[0].groups == emu::Footprint::all_groups);
  REQUIRE(all[0].reads.size() == 1);
  CHECK(all[0].reads[0].groups == emu::Footprint::all_groups);
  CHECK(all[0].macs == 32 * 256 * steps);
  x.command.d = 240;  // 64 columns, A begins in the last but three
  CHECK_FAULT(tensor_memory, "overlaps A", x.run());
  x.command.d = 16u << 16;
  CHECK_FAULT(illegal_instruction, "starts at lane 0", x.run());
}

TEST_CASE("shapes and masks that a weight-stationary product does not take are refused in words") {
  Step x(64, 128, 5);
  x.a_in_shared();
  const uint32_t good = x.command.instruction;
  const auto with = [&](uint32_t m, uint32_t n) {
    x.command.instruction = 0x490 | n / 8 << 17 | m / 16 << 24;
    x.run();
  };
  CHECK_FAULT(illegal_instruction, "M = 256, must be 32, 64 or 128", with(256, 128));
  CHECK_FAULT(illegal_instruction, "M = 16, must be 32, 64 or 128", with(16, 128));
  CHECK_FAULT(illegal_instruction, "N = 96, must be 64, 128 or 256", with(64, 96));
  CHECK_FAULT(illegal_instruction, "N = 32, must be 64, 128 or 256", with(64, 32));
  x.command.instruction = good | 1u << 30;
  CHECK_FAULT(illegal_instruction, "maximum shift", x.run());
  x.command.instruction = good;
  x.command.zero_columns = 0x0000'007F'FFFF'FFFF | 0x00FF'FF00'0000'0000;  // no mask, no shift
  x.run();
  x.command.zero_columns = 1ull << 39;
  CHECK_FAULT(illegal_instruction, "there is a mask", x.run());
  x.command.zero_columns = 1ull << 56;
  CHECK_FAULT(illegal_instruction, "shift of columns", x.run());
  x.command.weights = false;
  x.command.zero_columns = 0;
  x.command.instruction = 0x490 | 128 / 8 << 17 | 32 / 16 << 24;
  CHECK_FAULT(illegal_instruction, "M = 32, must be 64 or 128", x.run());
}
