// SPDX-License-Identifier: MIT
// One wgmma.mma_async as a PTX program, its shared-memory image by the manual's canonical layouts,
// and what it has to give by the published model of Hopper. The same program runs in the emulator's
// tests and on a GPU.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tools/emulator/test/models/tensor_numbers.h"

namespace support {

struct Wgmma {
  NumberType a = NumberType::f16, b = NumberType::f16;
  SumType d = SumType::f32;
  int n = 8;
  bool a_in_registers = false;
  int a_swizzle = 128, b_swizzle = 128;  // bytes: 128, 64, 32 or 0
  int a_offset = 0, b_offset = 0;        // bytes into the row of the swizzle, K-major only
  bool a_mn_major = false, b_mn_major = false;
  bool negate_a = false, negate_b = false, accumulate = true, satfinite = false;

  int depth() const { return 32 / element_bytes(); }
  int element_bytes() const { return bits_of(a) / 8; }
  int registers() const { return d == SumType::f16 ? n / 4 : n / 2; }
  std::string name() const;  // for reports: modifiers and layouts
};

// Operands as rows of 32 bytes of K; c: 64 x n accumulators (fp16 in the low half).
struct WgmmaData {
  std::vector<uint8_t> a, b;
  std::vector<uint32_t> c;
};
WgmmaData random_data(const Wgmma& w, std::mt19937_64& random, int kind);

// The kernel `wgmma_probe(.u64 out, .u64 image, .u64 a, .u64 c)` for 128 threads: `out` and `c`
// hold a thread's registers together, `a` its four words.
std::string program(const Wgmma& w);
constexpr uint32_t kWgmmaThreads = 128;
std::vector<uint8_t> shared_image(const Wgmma& w, const WgmmaData& data);
std::vector<uint32_t> a_words(const WgmmaData& data);  // [thread][4]
std::vector<uint32_t> accumulator_words(const Wgmma& w, const std::vector<uint32_t>& c);

// One element by the model (arXiv 2511.10909), in doubles, which hold every step exactly.
uint32_t wgmma_model(const Wgmma& w, const uint8_t a[32], const uint8_t b[32], uint32_t c);
std::vector<uint32_t> wgmma_expected(const Wgmma& w, const WgmmaData& data);  // 64 x n

}  // namespace support
