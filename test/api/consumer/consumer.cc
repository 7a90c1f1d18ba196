// SPDX-License-Identifier: MIT
// consumer.c as a C++ program would write it: one row of weights quantized, then multiplied.
#include <nvfp4_gemm.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <vector>

namespace {

void require(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

struct Matrix {
  std::array<std::uint8_t, 16> codes{};  // one row of 32 elements
  std::vector<std::uint8_t> scales;
};

Matrix quantized(const std::array<float, 32>& x) {
  Matrix q;
  q.scales.resize(nvfp4_scale_bytes(1, 32, NVFP4_SCALE_LAYOUT_128X4));
  require(nvfp4_quantize_host(x.data(), 32, 1, 32, 1.0f, q.codes.data(), 32, q.scales.data(),
                              NVFP4_SCALE_LAYOUT_128X4));
  return q;
}

// All elements 6: codes of 6 under scales of 1, so the product is 32 * 36 exactly.
std::uint16_t product() {
  std::array<float, 32> six;
  six.fill(6.0f);
  const Matrix a = quantized(six), b = quantized(six);
  std::uint16_t d = 0;
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = g.n = g.l = 1;
  g.k = 32;
  g.a = a.codes.data();
  g.b = b.codes.data();
  g.a_ld = g.b_ld = 32;
  g.a_scales = a.scales.data();
  g.b_scales = b.scales.data();
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = &d;
  g.d_ld = 1;
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  require(nvfp4_gemm_reference(&g));
  return d;
}

}  // namespace

int main() {
  try {
    const std::uint16_t d = product();
    if (d == 0x6480) return 0;  // 1152
    std::cerr << "D = 0x" << std::hex << d << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 1;
}
