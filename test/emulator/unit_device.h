// SPDX-License-Identifier: MIT
// What a PTX program of a test runs on: device memory, a launch, the order of asynchronous work.
#pragma once

#include <cstring>

#include "emulator/exec/machine.h"
#include "emulator/settings.h"
#include "emulator/unit/tensor_map.h"
#include "unit_support.h"

namespace unit {

// Settings of one test, put back at its end.
struct OrderGuard {
  emu::Settings saved = emu::settings();
  OrderGuard(emu::Order order, uint64_t seed) {
    emu::settings().order = order;
    emu::settings().seed = seed;
    emu::settings().workers = 1;
  }
  ~OrderGuard() { emu::settings() = saved; }
};

// Whoever changes the text asks for something that is there.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// A map of a matrix of bytes; box rows of up to 256 bytes.
inline emu::TensorMap byte_map(uint64_t address, uint32_t row_bytes, uint32_t rows,
                               uint32_t box_bytes, uint32_t box_rows, uint32_t swizzle) {
  alignas(64) emu::TensorMap made;
  const uint64_t dims[2] = {row_bytes, rows}, strides[1] = {row_bytes};
  const uint32_t box[2] = {box_bytes, box_rows}, steps[2] = {1, 1};
  const emu::TensorMapArguments x{&made, 0,     2, address, dims, strides,
                                  box,   steps, 0, swizzle, 0,    0};
  REQUIRE(emu::encode_tiled(x, 100, &made) == "");
  return made;
}

inline uint64_t upload(emu::GlobalMemory& memory, const std::vector<uint8_t>& bytes) {
  const uint64_t at = memory.allocate(bytes.size(), "input");
  std::memcpy(memory.at(at, bytes.size(), 1, "test"), bytes.data(), bytes.size());
  return at;
}

}  // namespace unit
