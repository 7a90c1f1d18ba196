// SPDX-License-Identifier: MIT
// The memories of a CTA or a pair, filled by hand for the tests of tcgen05.mma and tcgen05.cp.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "tools/emulator/hardware/tensor_core.h"
#include "tools/emulator/test/support/unit_support.h"

namespace unit {

constexpr uint64_t sw128 = 0x4000404000000000;  // 128-byte swizzle, eight rows in 1024 bytes

// K tiles have rows of 128 bytes with the 128-byte swizzle.
struct Machine {
  emu::SharedMemory shared{200 * 1024};
  emu::TensorMemory tensor;

  explicit Machine(uint32_t columns = 512) { tensor.allocate(columns); }

  emu::Memories memories() { return {{shared, tensor}}; }

  void put(uint32_t address, uint8_t value) { shared.write(address, &value, 1, 0, "test"); }
  // Byte c of row r of a swizzled tile at a 1024-aligned base: the placement of the manual.
  static uint32_t at(uint32_t base, uint32_t r, uint32_t c) {
    return base + r / 8 * 1024 + r % 8 * 128 + ((c / 16) ^ (r % 8)) * 16 + c % 16;
  }
  // The same scale word in all four lane bands.
  void put_scales(uint32_t column, uint32_t row, uint32_t word) {
    for (uint32_t band = 0; band < 128; band += 32)
      tensor.write(row % 32 + band, column + row / 32, word, "test");
  }
  uint32_t d(uint32_t m, uint32_t column) { return tensor.read(m, column, "test"); }
};

struct Pair {
  Machine even, odd;
  Machine& cta(uint32_t i) { return i ? odd : even; }
  emu::Memories memories() { return {{even.shared, even.tensor}, {odd.shared, odd.tensor}}; }
};

}  // namespace unit
