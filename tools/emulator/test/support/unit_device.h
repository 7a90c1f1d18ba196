// SPDX-License-Identifier: MIT
// What a PTX program of a test runs on: device memory, a launch, the order of asynchronous work.
#pragma once

#include <cstring>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/driver/watch.h"
#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/op/load.h"
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

// Replaces `from` in the text by `to`, and fails the test if it is not there.
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

// What a kernel left there: every byte has a value.
template <class T>
std::vector<T> download(emu::GlobalMemory& memory, uint64_t at, size_t count) {
  std::vector<T> out(count);
  memory.require_values(at, count * sizeof(T), "test");
  std::memcpy(out.data(), memory.at(at, count * sizeof(T), 1, "test"), count * sizeof(T));
  return out;
}

// A kernel's parameters: words of 8 bytes one after the other, tensor maps at multiples of 64.
template <class... Values>
std::vector<uint8_t> parameters(const Values&... values) {
  std::vector<uint8_t> all;
  const auto add = [&](const auto& value) {
    const size_t align = sizeof value > 8 ? 64 : 8;
    const size_t at = (all.size() + align - 1) / align * align;
    all.resize(at + sizeof value);
    std::memcpy(&all[at], &value, sizeof value);
  };
  (add(values), ...);
  return all;
}

// Runs an entry of a program in one cluster.
struct Cluster {
  uint32_t ctas = 1, threads = 32;
  const char* entry = "k";
  int capability = 100;
};
inline emu::Counters run(const std::string& text, emu::GlobalMemory& memory, const Cluster& cluster,
                         const std::vector<uint8_t>& parameters) {
  const auto module = emu::ops::load(text, cluster.capability);
  emu::Launch launch;
  launch.module = module.get();
  launch.function = module->entry(cluster.entry);
  launch.grid = launch.cluster = {cluster.ctas, 1, 1};
  launch.block = {cluster.threads, 1, 1};
  launch.memory = &memory;
  launch.params = parameters;
  return emu::run_watched(launch);
}

}  // namespace unit
