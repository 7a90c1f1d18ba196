// SPDX-License-Identifier: MIT
#include "bench/weights.h"

#include <random>

#include "tools/harness/cublaslt.h"

namespace bench {

using support::DeviceBuffer;
using support::Driver;
using support::Filler;
using support::GemmType;
using support::Shape;

namespace {

constexpr int32_t kFormat = NVFP4_OPERAND_FORMAT_NVFP4;

std::vector<uint8_t> in_tiles(const std::vector<uint8_t>& linear, const Shape& s) {
  std::vector<uint8_t> tiles(nvfp4_scale_bytes(s.n, s.k, NVFP4_SCALE_LAYOUT_128X4));
  check(nvfp4_scale_convert_host(linear.data(), NVFP4_SCALE_LAYOUT_LINEAR, tiles.data(),
                                 NVFP4_SCALE_LAYOUT_128X4, s.n, s.k));
  return tiles;
}

}  // namespace

std::vector<uint8_t> random_scales(int64_t n, int64_t k) {
  std::minstd_rand random(42);
  std::vector<uint8_t> scales(size_t(n * k / 16));
  for (uint8_t& scale : scales) scale = uint8_t(0x28 + random() % 0x18);
  return scales;
}

Weights::Weights(const Driver& driver, const Shape& s, int32_t a_type)
    : codes(driver, size_t(s.n * s.k / 2)),
      scales(driver, in_tiles(random_scales(s.n, s.k), s)),
      packed(driver, nvfp4_packed_bytes(s.n, s.k, kPacking, kFormat)),
      tokens(driver, size_t(2 * s.m * s.k)),
      d(driver, size_t(2 * s.m * s.n)) {
  Filler(driver, GemmType::nvfp4).fill(codes);
  Filler(driver, a_type == NVFP4_TYPE_F16 ? GemmType::f16 : GemmType::bf16).fill(tokens);
  nvfp4_pack_desc p = NVFP4_PACK_DESC_INIT;
  p.n = s.n, p.k = s.k, p.codes = codes.pointer(), p.codes_ld = s.k;
  p.scales = scales.pointer(), p.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  p.packed = packed.pointer(), p.packing = kPacking, p.format = kFormat;
  check(nvfp4_pack_weights(&p, nullptr));
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

Weights::Weights(const Driver& driver, const Weights& other)
    : codes(driver, other.codes),
      scales(driver, other.scales),
      packed(driver, other.packed),
      tokens(driver, other.tokens),
      d(driver, other.d.bytes()) {}

nvfp4_gemm_desc Weights::desc(const Shape& s, int32_t a_type, bool is_packed,
                              const char* variant) const {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = s.m, g.n = s.n, g.k = s.k;
  g.a = tokens.pointer(), g.a_type = a_type, g.a_ld = s.k;
  g.d = d.pointer(), g.d_type = a_type, g.d_ld = s.n, g.alpha = 1.0f / 1024;
  g.variant = variant;
  if (is_packed) {
    g.b = packed.pointer(), g.b_packing = kPacking;
  } else {
    g.b = codes.pointer(), g.b_ld = s.k, g.b_scales = scales.pointer();
    g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  }
  return g;
}

}  // namespace bench
