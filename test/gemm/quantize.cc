// SPDX-License-Identifier: MIT
// Quantization on the device gives the bits of nvfp4_quantize_host: every fp16 and bf16, fp32 of every
// exponent, either layout, any leading dimension, each source of the tensor scale. Nothing outside the
// blocks that exist is written.
#include <cmath>
#include <cstring>

#include "kernel/quantize/params.h"
#include "test/gemm/gpu.h"
#include "tools/harness/formats.h"
#include "tools/harness/module.h"

namespace {

using gemm_test::Gpu;
using support::DeviceBuffer;
using support::Random;

enum class Type { f16, bf16, f32 };
const char* name(Type t) { return t == Type::f16 ? "f16" : t == Type::bf16 ? "bf16" : "f32"; }
size_t bytes_of(Type t) { return t == Type::f32 ? 4 : 2; }

float value_of(Type t, uint32_t bits) {
  if (t == Type::f16) return float(support::f16_value(uint16_t(bits)));
  if (t == Type::bf16) bits <<= 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// A row-major matrix of raw bits, its gaps full of NaN.
struct Matrix {
  Type type;
  int64_t rows, k, ld;
  std::vector<uint8_t> bytes;

  Matrix(Type t, int64_t r, int64_t columns, int64_t leading)
      : type(t), rows(r), k(columns), ld(leading) {
    bytes.assign(size_t((rows - 1) * ld + k) * bytes_of(type), 0xFF);
  }
  void set(int64_t row, int64_t column, uint32_t bits) {
    std::memcpy(&bytes[size_t(row * ld + column) * bytes_of(type)], &bits, bytes_of(type));
  }
  float at(int64_t row, int64_t column) const {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[size_t(row * ld + column) * bytes_of(type)], bytes_of(type));
    return value_of(type, bits);
  }
};

uint32_t random_bits(Type t, Random& random) {
  const uint64_t r = random.next();
  const uint32_t bits = uint32_t(r);
  if (t != Type::f32) return bits & 0xFFFF;
  const uint32_t special[] = {0, 0x80000000, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF};
  return r >> 40 & 15 ? bits : special[(r >> 44) % std::size(special)];
}

Matrix random_matrix(Type t, int64_t rows, int64_t k, int64_t ld, uint64_t seed) {
  Matrix x(t, rows, k, ld);
  Random random(seed);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t block = 0; block < k / 16; ++block) {
      // Most blocks of neighbouring exponents, so that elements of every size meet a scale.
      const uint32_t mask = t == Type::f16 ? 0x7C00 : t == Type::bf16 ? 0x7F80 : 0x7F800000;
      const uint32_t step = mask & -mask;
      const uint32_t exponent = random_bits(t, random) & mask;
      const bool near = random.next() % 8 != 0 && exponent < mask - 8 * step;
      for (int64_t i = 0; i < 16; ++i) {
        uint32_t bits = random_bits(t, random);
        if (near) bits = (bits & ~mask) | (exponent + uint32_t(random.next() % 6) * step);
        x.set(row, block * 16 + i, bits);
      }
    }
  return x;
}

struct Quantized {
  std::vector<uint8_t> codes, scales;
  float tensor_scale = 0;
};

// What the host makes of it; `before` is what every byte holds that belongs to no element.
Quantized expected(const Matrix& x, float t, int64_t codes_ld, int32_t layout, uint8_t before) {
  std::vector<float> values(size_t(x.rows * x.k));
  for (int64_t row = 0; row < x.rows; ++row)
    for (int64_t i = 0; i < x.k; ++i) values[size_t(row * x.k + i)] = x.at(row, i);
  Quantized q;
  q.codes.assign(size_t((x.rows - 1) * codes_ld + x.k) / 2, before);
  q.scales.assign(nvfp4_scale_bytes(x.rows, x.k, layout), before);
  std::vector<uint8_t> linear(size_t(x.rows * x.k / 16)), tiles(q.scales.size());
  REQUIRE(nvfp4_quantize_host(values.data(), x.k, x.rows, x.k, t, q.codes.data(), codes_ld,
                              linear.data(), NVFP4_SCALE_LAYOUT_LINEAR) == NVFP4_SUCCESS);
  if (layout == NVFP4_SCALE_LAYOUT_LINEAR) {
    q.scales = linear;
    return q;
  }
  // Which bytes of the tiles belong to a scale: those that change with it.
  std::vector<uint8_t> ones(linear.size(), 1), marked(q.scales.size());
  REQUIRE(nvfp4_scale_convert_host(linear.data(), NVFP4_SCALE_LAYOUT_LINEAR, tiles.data(), layout,
                                   x.rows, x.k) == NVFP4_SUCCESS);
  REQUIRE(nvfp4_scale_convert_host(ones.data(), NVFP4_SCALE_LAYOUT_LINEAR, marked.data(), layout,
                                   x.rows, x.k) == NVFP4_SUCCESS);
  for (size_t i = 0; i < marked.size(); ++i)
    if (marked[i]) q.scales[i] = tiles[i];
  return q;
}

size_t differing(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  size_t wrong = 0;
  for (size_t i = 0; i < a.size(); ++i) wrong += a[i] != b[i];
  return wrong;
}

// The kernel itself, before there is a library around it.
Quantized on_device(const Gpu& gpu, const Matrix& x, nvfp4::TensorScaleSource source, float t,
                    int64_t codes_ld, int32_t layout, uint8_t before, bool vectors) {
  static support::Module module(gpu.driver, NVFP4_TEST_PTX_DIR "/../kernel/quantize.ptx");
  const DeviceBuffer in(gpu.driver, x.bytes);
  const DeviceBuffer codes(gpu.driver,
                           std::vector<uint8_t>(size_t((x.rows - 1) * codes_ld + x.k) / 2, before));
  const DeviceBuffer scales(gpu.driver,
                            std::vector<uint8_t>(nvfp4_scale_bytes(x.rows, x.k, layout), before));
  std::vector<uint8_t> t_bytes(4);
  std::memcpy(t_bytes.data(), &t, 4);
  const DeviceBuffer scale(gpu.driver, t_bytes), parts(gpu.driver, 4 * nvfp4::kMostAmaxCtas);
  nvfp4::QuantizeParams p{};
  p.x = in.pointer();
  p.x_ld = x.ld;
  p.codes = static_cast<uint8_t*>(codes.pointer());
  p.codes_row_bytes = codes_ld / 2;
  p.scales = static_cast<uint8_t*>(scales.pointer());
  p.tensor_scale_device = static_cast<float*>(scale.pointer());
  p.partial_amax = static_cast<float*>(parts.pointer());
  p.rows = uint32_t(x.rows);
  p.blocks = uint32_t(x.k / 16);
  p.amax_ctas = 3;
  p.tensor_scale = t;
  p.tensor_scale_source = source;
  p.scales_are_tiles = layout == NVFP4_SCALE_LAYOUT_128X4;
  p.vectors = vectors;
  void* arguments[] = {&p};
  if (source == nvfp4::kTensorScaleAmax)
    module.launch((std::string("nvfp4_amax_") + name(x.type)).c_str(), p.amax_ctas,
                  nvfp4::kAmaxThreads, 0, arguments);
  gpu.driver.check(
      gpu.driver.cuLaunchKernel(
          module.function((std::string("nvfp4_quantize_") + name(x.type)).c_str()),
          (p.blocks + 127) / 128, p.rows, 1, 128, 1, 1, 0, nullptr, arguments, nullptr),
      "cuLaunchKernel");
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  Quantized q{codes.download(), scales.download(), 0};
  const auto back = scale.download();
  std::memcpy(&q.tensor_scale, back.data(), 4);
  CHECK(codes.guards_intact());
  CHECK(scales.guards_intact());
  CHECK(parts.guards_intact());
  return q;
}

}  // namespace

TEST_CASE("quantizing on the device gives the host's bits", "[quantize]") {
  Gpu gpu;
  for (const Type type : {Type::f16, Type::bf16, Type::f32})
    for (const bool odd : {false, true})
      for (const int32_t layout : {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR}) {
        const int64_t rows = 131, k = odd ? 176 : 256, ld = odd ? k + 3 : k + 16,
                      codes_ld = odd ? k + 2 : k + 32;
        const Matrix x = random_matrix(type, rows, k, ld, uint64_t(odd) + 7 * uint64_t(type));
        for (const float t : {1.0f, 0.00371f, 3e37f, 1e-40f}) {
          const Quantized want = expected(x, t, codes_ld, layout, 0xA5);
          const Quantized got =
              on_device(gpu, x, nvfp4::kTensorScaleValue, t, codes_ld, layout, 0xA5, !odd);
          INFO(name(type) << ", t " << t << ", layout " << layout << ", odd " << odd);
          CHECK(differing(got.codes, want.codes) == 0);
          CHECK(differing(got.scales, want.scales) == 0);
        }
        const Quantized amax =
            on_device(gpu, x, nvfp4::kTensorScaleAmax, 0, codes_ld, layout, 0, !odd);
        float largest = 0;
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t i = 0; i < k; ++i)
            if (std::isfinite(x.at(row, i))) largest = std::max(largest, std::fabs(x.at(row, i)));
        CHECK(amax.tensor_scale == largest / 2688.0f);
        const Quantized want = expected(x, amax.tensor_scale, codes_ld, layout, 0);
        CHECK(differing(amax.codes, want.codes) == 0);
        CHECK(differing(amax.scales, want.scales) == 0);
      }
}
