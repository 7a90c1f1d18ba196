// SPDX-License-Identifier: MIT
// What a PTX program of a test runs on: device memory, a launch, the order of asynchronous work.
#pragma once

#include <cstring>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/test/support/unit_support.h"

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

// A test that changes the text asks for something that is there.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// A map of a tensor without gaps, of bytes or of 32-bit words.
enum class MapType : uint32_t { bytes = 0, words = 2 };
inline emu::TensorMap dense_map(MapType type, uint64_t address, const std::vector<uint64_t>& dims,
                                const std::vector<uint32_t>& box, uint32_t swizzle = 0) {
  alignas(64) emu::TensorMap made;
  std::vector<uint64_t> strides(dims.size());
  const std::vector<uint32_t> steps(dims.size(), 1);
  uint64_t bytes = type == MapType::words ? 4 : 1;
  for (size_t i = 0; i < dims.size(); ++i) strides[i] = bytes *= dims[i];
  emu::TensorMapArguments a;
  a.map = &made, a.type = uint32_t(type), a.rank = uint32_t(dims.size()), a.address = address;
  a.dims = dims.data(), a.strides = strides.data();
  a.box = box.data(), a.element_strides = steps.data(), a.swizzle = swizzle;
  REQUIRE(emu::encode_tiled(a, 100, &made) == "");
  return made;
}

// A map of a matrix of bytes; box rows of up to 256 bytes.
inline emu::TensorMap byte_map(uint64_t address, uint32_t row_bytes, uint32_t rows,
                               uint32_t box_bytes, uint32_t box_rows, uint32_t swizzle) {
  return dense_map(MapType::bytes, address, {row_bytes, rows}, {box_bytes, box_rows}, swizzle);
}

inline uint64_t upload(emu::GlobalMemory& memory, const std::vector<uint8_t>& bytes) {
  const uint64_t at = memory.allocate(bytes.size(), "input");
  std::memcpy(memory.at(at, bytes.size(), 1, "test"), bytes.data(), bytes.size());
  return at;
}

}  // namespace unit
