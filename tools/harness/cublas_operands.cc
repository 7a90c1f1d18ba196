// SPDX-License-Identifier: MIT
#include "tools/harness/cublas_operands.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "nvfp4_gemm.h"

namespace support {
namespace {

constexpr size_t kBlock = size_t(8) << 20;

// Numbers of moderate size: fp16 and bf16 in +-[1, 2), any finite e4m3 or e2m1; scales are e4m3
// near 1.
std::vector<uint8_t> block_of(GemmType type) {
  std::mt19937_64 random(42);
  std::vector<uint8_t> bytes(kBlock);
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const auto bits = uint32_t(random());
    if (type == GemmType::f16 || type == GemmType::bf16) {
      const uint32_t code =
          type == GemmType::f16 ? 0x3C00 | (bits & 0x83FF) : 0x3F80 | (bits & 0x807F);
      bytes[i] = uint8_t(code), bytes[i + 1] = uint8_t(code >> 8);
    } else {
      bytes[i] = uint8_t(bits & 0xB7), bytes[i + 1] = uint8_t(bits >> 8 & 0xB7);
    }
  }
  return bytes;
}

size_t scale_bytes(GemmType type, int64_t rows, int64_t k) {
  return type == GemmType::nvfp4 ? nvfp4_scale_bytes(rows, k, NVFP4_SCALE_LAYOUT_128X4) : 16;
}

}  // namespace

double element_bytes(GemmType type) {
  if (type == GemmType::f16 || type == GemmType::bf16) return 2;
  return type == GemmType::e4m3 ? 1 : 0.5;
}

Filler::Filler(const Driver& driver, GemmType type)
    : driver_(driver), block_(driver, block_of(type)) {}

void Filler::fill(const DeviceBuffer& to) const {
  for (size_t at = 0; at < to.bytes(); at += kBlock)
    driver_.check(driver_.cuMemcpyDtoD(to.address() + at, block_.address(),
                                       std::min(kBlock, to.bytes() - at)),
                  "cuMemcpyDtoD");
}

CublasOperands::CublasOperands(const Driver& driver, GemmType type, int64_t m, int64_t n, int64_t k)
    : a(driver, size_t(double(m * k) * element_bytes(type))),
      b(driver, size_t(double(n * k) * element_bytes(type))),
      d(driver, size_t(2 * m * n)),
      a_scales(driver, scale_bytes(type, m, k)),
      b_scales(driver, scale_bytes(type, n, k)) {
  const Filler values(driver, type), ones(driver, GemmType::e4m3);
  values.fill(a);
  values.fill(b);
  ones.fill(a_scales);
  ones.fill(b_scales);
}

}  // namespace support
