// SPDX-License-Identifier: MIT
// Quantization on the device gives the bits of nvfp4_quantize_host: every fp16 and bf16, fp32 of
// every exponent, either layout, any leading dimension, each source of the tensor scale. Nothing
// outside the blocks that exist is written.
#include <cstring>

#include "test/gemm/gpu.h"
#include "tools/harness/formats.h"

namespace {

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
Quantized expected(const Matrix& x, float t, int64_t codes_ld, int32_t layout, uint8_t before,
                   int32_t rule) {
  std::vector<float> values(size_t(x.rows * x.k));
  for (int64_t row = 0; row < x.rows; ++row)
    for (int64_t i = 0; i < x.k; ++i) values[size_t(row * x.k + i)] = x.at(row, i);
  Quantized q;
  q.codes.assign(size_t((x.rows - 1) * codes_ld + x.k) / 2, before);
  q.scales.assign(nvfp4_scale_bytes(x.rows, x.k, layout), before);
  std::vector<uint8_t> linear(size_t(x.rows * x.k / 16)), tiles(q.scales.size());
  if (rule == NVFP4_SCALE_RULE_DEFAULT) {
    REQUIRE(nvfp4_quantize_host(values.data(), x.k, x.rows, x.k, t, q.codes.data(), codes_ld,
                                linear.data(), NVFP4_SCALE_LAYOUT_LINEAR) == NVFP4_SUCCESS);
  } else {
    nvfp4_quantize_desc desc{};
    desc.struct_size = sizeof desc;
    desc.rows = x.rows, desc.k = desc.x_ld = x.k, desc.codes_ld = codes_ld;
    desc.x = values.data(), desc.codes = q.codes.data(), desc.scales = linear.data();
    desc.x_type = NVFP4_TYPE_F32, desc.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    desc.tensor_scale = t, desc.scale_rule = rule;
    REQUIRE(nvfp4_quantize_reference(&desc) == NVFP4_SUCCESS);
  }
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

struct Call {
  int32_t mode = NVFP4_TENSOR_SCALE_VALUE;
  float t = 1;
  int64_t codes_ld = 0;
  int32_t layout = NVFP4_SCALE_LAYOUT_128X4;
  uint8_t before = 0xA5;  // every byte of codes and scales
  int32_t pdl = NVFP4_PDL_OFF;
  int32_t rule = NVFP4_SCALE_RULE_DEFAULT;
  size_t shift = 0;  // bytes by which x, codes and scales lie off their allocation's alignment
};

nvfp4_quantize_desc desc_of(const Matrix& x, const Call& call) {
  nvfp4_quantize_desc q{};
  q.struct_size = sizeof q;
  q.rows = x.rows;
  q.k = x.k;
  q.x_ld = x.ld;
  q.codes_ld = call.codes_ld;
  q.tensor_scale = call.t;
  q.x_type = int32_t(x.type) + NVFP4_TYPE_F16;
  q.scale_layout = call.layout;
  q.tensor_scale_mode = call.mode;
  q.pdl = call.pdl;
  q.scale_rule = call.rule;
  return q;
}

std::vector<uint8_t> shifted(const std::vector<uint8_t>& content, size_t shift) {
  std::vector<uint8_t> bytes(shift, 0x5A);
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}
std::vector<uint8_t> unshifted(const DeviceBuffer& buffer, size_t shift) {
  const std::vector<uint8_t> bytes = buffer.download();
  for (size_t i = 0; i < shift; ++i) REQUIRE(bytes[i] == 0x5A);
  return {bytes.begin() + std::ptrdiff_t(shift), bytes.end()};
}
void* at(const DeviceBuffer& buffer, size_t shift) {
  return static_cast<uint8_t*>(buffer.pointer()) + shift;
}

Quantized on_device(const Gpu& gpu, const Matrix& x, const Call& call) {
  nvfp4_quantize_desc q = desc_of(x, call);
  const size_t codes_bytes = size_t((x.rows - 1) * call.codes_ld + x.k) / 2;
  const std::vector<uint8_t> codes_before(codes_bytes, call.before),
      scales_before(nvfp4_scale_bytes(x.rows, x.k, call.layout), call.before);
  const DeviceBuffer in(gpu.driver, shifted(x.bytes, call.shift)),
      codes(gpu.driver, shifted(codes_before, call.shift)),
      scales(gpu.driver, shifted(scales_before, call.shift));
  std::vector<uint8_t> t_bytes(4);
  std::memcpy(t_bytes.data(), &call.t, 4);
  const DeviceBuffer scale(gpu.driver, t_bytes);
  q.x = at(in, call.shift);
  q.codes = at(codes, call.shift);
  q.scales = at(scales, call.shift);
  if (call.mode != NVFP4_TENSOR_SCALE_VALUE) {
    q.tensor_scale_device = static_cast<float*>(scale.pointer());
    q.tensor_scale = 0;  // not looked at
  }
  REQUIRE(nvfp4_quantize_workspace_bytes(&q, &q.workspace_bytes) == NVFP4_SUCCESS);
  const DeviceBuffer workspace(gpu.driver, std::max<size_t>(q.workspace_bytes, 1));
  if (q.workspace_bytes > 0) q.workspace = workspace.pointer();
  INFO(nvfp4_last_error());
  REQUIRE(nvfp4_quantize(&q, nullptr) == NVFP4_SUCCESS);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  Quantized out{unshifted(codes, call.shift), unshifted(scales, call.shift), 0};
  const std::vector<uint8_t> back = scale.download();
  std::memcpy(&out.tensor_scale, back.data(), 4);
  for (const DeviceBuffer* b : {&in, &codes, &scales, &scale, &workspace})
    CHECK(b->guards_intact());
  CHECK(unshifted(in, call.shift) == x.bytes);
  return out;
}

void require_host_bits(const Gpu& gpu, const Matrix& x, const Call& call, float t) {
  INFO(name(x.type) << ", " << x.rows << " x " << x.k << ", ld " << x.ld << ", t " << t << ", mode "
                    << call.mode << ", rule " << call.rule << ", layout " << call.layout
                    << ", shift " << call.shift);
  const Quantized got = on_device(gpu, x, call);
  const Quantized want = expected(x, t, call.codes_ld, call.layout, call.before, call.rule);
  REQUIRE(differing(got.codes, want.codes) == 0);
  REQUIRE(differing(got.scales, want.scales) == 0);
}

// The host function that takes the same descriptor.
void require_twin(const Matrix& x, const Call& call, const Quantized& want) {
  nvfp4_quantize_desc q = desc_of(x, call);
  std::vector<uint8_t> in = x.bytes;
  Quantized twin{std::vector<uint8_t>(want.codes.size(), call.before),
                 std::vector<uint8_t>(want.scales.size()), call.t};
  q.x = in.data(), q.codes = twin.codes.data(), q.scales = twin.scales.data();
  q.tensor_scale_device = call.mode == NVFP4_TENSOR_SCALE_VALUE ? nullptr : &twin.tensor_scale;
  REQUIRE(nvfp4_quantize_reference(&q) == NVFP4_SUCCESS);
  REQUIRE(differing(twin.codes, want.codes) == 0);
  CHECK(in == x.bytes);
  // Padding becomes 0.
  const Quantized cleared =
      expected(x, twin.tensor_scale, call.codes_ld, call.layout, 0, call.rule);
  REQUIRE(differing(twin.scales, cleared.scales) == 0);
  if (call.mode == NVFP4_TENSOR_SCALE_AMAX) CHECK(twin.tensor_scale == want.tensor_scale);
}

float largest_finite(const Matrix& x) {
  float largest = 0;
  for (int64_t row = 0; row < x.rows; ++row)
    for (int64_t i = 0; i < x.k; ++i)
      if (std::isfinite(x.at(row, i))) largest = std::max(largest, std::fabs(x.at(row, i)));
  return largest;
}

constexpr Type kTypes[] = {Type::f16, Type::bf16, Type::f32};
constexpr int32_t kLayouts[] = {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR};

}  // namespace

TEST_CASE("every fp16 and bf16 is quantized as on the host under any scale", "[quantize]") {
  const Gpu gpu;
  for (const Type type : {Type::f16, Type::bf16}) {
    // Row r of the first half: 16 neighbours; of the second: numbers 4096 apart, of all exponents.
    Matrix x(type, 64, 2048, 2048);
    for (uint32_t i = 0; i < 0x10000; ++i) {
      x.set(i / 2048, i % 2048, i);
      x.set(32 + i / 2048, i % 2048, (i * 4097) & 0xFFFF);
    }
    Call call;
    call.codes_ld = 2048;
    for (const float t : {1.0f, 0.00371f, 3e37f, 1e-40f}) {
      call.t = t;
      require_host_bits(gpu, x, call, t);
    }
  }
}

TEST_CASE("fp32 of every exponent and odd rows and unaligned buffers are quantized as on the host",
          "[quantize]") {
  const Gpu gpu;
  for (const Type type : kTypes)
    for (const int32_t layout : kLayouts)
      for (const bool odd : {false, true}) {
        const int64_t k = odd ? 176 : 256;
        const Matrix x = random_matrix(type, 131, k, odd ? k + 3 : k + 16, 7 + uint64_t(odd));
        Call call;
        call.layout = layout;
        call.codes_ld = odd ? k + 2 : k + 32;
        call.shift = odd ? bytes_of(type) : 0;
        for (const float t : {1.0f, 0.00371f, 3e37f, 1e-40f}) {
          call.t = t;
          require_host_bits(gpu, x, call, t);
        }
        require_twin(x, call, on_device(gpu, x, call));
      }
}

TEST_CASE("by 4over6 the device keeps the scales and codes that the host keeps", "[quantize]") {
  const Gpu gpu;
  Call call;
  call.rule = NVFP4_SCALE_RULE_4OVER6;
  for (const Type type : kTypes)
    for (const int32_t layout : kLayouts)
      for (const bool odd : {false, true}) {
        const int64_t k = odd ? 176 : 256;
        const Matrix x = random_matrix(type, 131, k, odd ? k + 3 : k + 16, 7 + uint64_t(odd));
        call.layout = layout, call.codes_ld = odd ? k + 2 : k + 32;
        call.shift = odd ? bytes_of(type) : 0;
        call.mode = NVFP4_TENSOR_SCALE_VALUE;
        for (const float t : {1.0f, 0.00371f, 3e37f, 1e-40f}) {
          call.t = t;
          require_host_bits(gpu, x, call, t);
        }
        call.mode = NVFP4_TENSOR_SCALE_DEVICE, call.t = 0.75f;
        require_host_bits(gpu, x, call, call.t);
        call.mode = NVFP4_TENSOR_SCALE_AMAX, call.pdl = odd ? NVFP4_PDL_ON : NVFP4_PDL_OFF;
        const Quantized got = on_device(gpu, x, call);
        CHECK(got.tensor_scale == largest_finite(x) / 2688.0f);
        require_twin(x, call, got);
        require_host_bits(gpu, x, call, got.tensor_scale);
      }
}

// Elements of sizes as weights have them, so that both scales are kept for many blocks.
TEST_CASE("by 4over6 the device keeps the host's scales for blocks of near errors", "[quantize]") {
  const Gpu gpu;
  Random random(29);
  Call call;
  call.rule = NVFP4_SCALE_RULE_4OVER6;
  call.codes_ld = 1024;
  for (const Type type : {Type::bf16, Type::f32}) {
    Matrix x(type, gpu.sized(512, 40), 1024, 1024);
    for (int64_t row = 0; row < x.rows; ++row)
      for (int64_t i = 0; i < x.k; ++i) {
        float value = -6;
        for (int n = 0; n < 12; ++n) value += float(random.below(1 << 16)) * 0x1p-16f;
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        x.set(row, i, type == Type::bf16 ? bits >> 16 : bits);
      }
    for (const float t : {0.0023f, 0.0041f}) {
      call.t = t;
      require_host_bits(gpu, x, call, t);
    }
  }
}

// Blocks whose step, s * t, is known beforehand, of numbers at and beside those where codes change.
TEST_CASE("codes change at any step where they do on the host", "[quantize]") {
  const Gpu gpu;
  Random random(17);
  const float thresholds[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const uint32_t significands[] = {0,        1,        2,        0x3FFFFE, 0x3FFFFF,
                                   0x400000, 0x7FFFFC, 0x7FFFFE, 0x7FFFFF};
  const size_t scales_of_t = gpu.info.emulated() ? 12 : 400;
  for (size_t n = 0; n < scales_of_t; ++n) {
    uint32_t bits = 0x3F800000 - uint32_t(n % 40) * 0x800000;
    bits |= n < std::size(significands) ? significands[n] : uint32_t(random.next()) & 0x7FFFFF;
    float t;
    std::memcpy(&t, &bits, 4);
    Matrix x(Type::f32, 0x7E, 128, 128);
    for (int64_t row = 0; row < x.rows; ++row) {
      const float step = float(support::e4m3_value(uint8_t(row + 1))) * t;
      for (int64_t i = 0; i < x.k; ++i) {
        const float at = i % 16 == 0 ? 6 : thresholds[random.next() % std::size(thresholds)];
        const float value = at * step;
        uint32_t element;
        std::memcpy(&element, &value, 4);
        element += i % 16 == 0 ? 0 : uint32_t(random.next() % 5) - 2;
        x.set(row, i, element | uint32_t(random.next()) << 31);
      }
    }
    Call call;
    call.codes_ld = 128;
    call.t = t;
    require_host_bits(gpu, x, call, t);
  }
}

TEST_CASE("every row is quantized where a warp takes many", "[quantize]") {
  const Gpu gpu;
  const Matrix x = random_matrix(Type::bf16, 4 * 20 * gpu.info.sms + 9, 48, 48, 23);
  Call call;
  call.codes_ld = 48;
  require_host_bits(gpu, x, call, call.t);
}

TEST_CASE("the tensor scale comes from the device or from x itself", "[quantize]") {
  const Gpu gpu;
  for (const Type type : kTypes) {
    const Matrix x = random_matrix(type, gpu.sized(140, 20), 1040, 1040, 3);
    Call call;
    call.codes_ld = 1040;
    call.mode = NVFP4_TENSOR_SCALE_DEVICE;
    call.t = 0.75f;
    require_host_bits(gpu, x, call, call.t);
    for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON}) {
      call.mode = NVFP4_TENSOR_SCALE_AMAX;
      call.pdl = pdl;
      const Quantized got = on_device(gpu, x, call);
      const float t = got.tensor_scale;
      CHECK(t == largest_finite(x) / 2688.0f);
      require_twin(x, call, got);
      require_host_bits(gpu, x, call, t);
    }
  }
  // Nothing but zeros, and values so small that their 2688th part is 0.
  for (const uint32_t bits : {0x80000000u, 1u}) {
    Matrix x(Type::f32, 3, 32, 32);
    for (int64_t i = 0; i < 96; ++i) x.set(i / 32, i % 32, bits);
    Call call;
    call.codes_ld = 32;
    call.mode = NVFP4_TENSOR_SCALE_AMAX;
    const Quantized got = on_device(gpu, x, call);
    CHECK(got.tensor_scale == 1.0f);
    require_twin(x, call, got);
    require_host_bits(gpu, x, call, 1.0f);
  }
}

TEST_CASE("dequantizing on the device gives the host's values rounded once", "[quantize]") {
  const Gpu gpu;
  const int64_t rows = 130, k = 48, ld = 50, codes_ld = 52;
  Random random(11);
  std::vector<uint8_t> codes(size_t((rows - 1) * codes_ld + k) / 2);
  for (uint8_t& byte : codes) byte = uint8_t(random.next());
  for (const int32_t layout : kLayouts) {
    std::vector<uint8_t> scales(nvfp4_scale_bytes(rows, k, layout));
    for (uint8_t& byte : scales) byte = uint8_t(random.next() % 0x80);
    std::vector<float> want(size_t(rows * k));
    const float t = 0.0123f;
    REQUIRE(nvfp4_dequantize_host(codes.data(), codes_ld, scales.data(), layout, rows, k, t,
                                  want.data(), k) == NVFP4_SUCCESS);
    for (const Type type : kTypes) {
      Matrix x(type, rows, k, ld);
      const std::vector<uint8_t> untouched = x.bytes;
      Call call;
      call.codes_ld = codes_ld;
      call.layout = layout;
      call.t = t;
      nvfp4_quantize_desc q = desc_of(x, call);
      const DeviceBuffer out(gpu.driver, x.bytes), from(gpu.driver, codes),
          with(gpu.driver, scales);
      q.x = out.pointer();
      q.codes = from.pointer();
      q.scales = with.pointer();
      REQUIRE(nvfp4_dequantize(&q, nullptr) == NVFP4_SUCCESS);
      gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
      x.bytes = out.download();
      CHECK(out.guards_intact());
      std::vector<uint8_t> twin = untouched;
      q.x = twin.data(), q.codes = codes.data(), q.scales = scales.data();
      REQUIRE(nvfp4_dequantize_reference(&q) == NVFP4_SUCCESS);
      CHECK(differing(twin, x.bytes) == 0);
      size_t wrong = 0;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < k; ++i) {
          const float exact = want[size_t(row * k + i)], got = x.at(row, i);
          if (std::isnan(exact) || std::isnan(got)) {
            wrong += std::isnan(exact) != std::isnan(got);
          } else if (type == Type::f32) {
            wrong += got != exact || std::signbit(got) != std::signbit(exact);
          } else {
            // To nearest: no neighbour is closer.
            const double step = std::ldexp(1.0, std::max(exact == 0 ? -200 : std::ilogb(exact),
                                                         type == Type::f16 ? -14 : -126) -
                                                    (type == Type::f16 ? 10 : 7));
            const bool overflow = type == Type::f16 && std::fabs(exact) >= 65520;
            wrong += overflow ? !std::isinf(got) : std::fabs(double(got) - exact) > step / 2;
          }
        }
      INFO(name(type) << ", layout " << layout);
      CHECK(wrong == 0);
      // The gaps between rows.
      for (int64_t row = 0; row + 1 < rows; ++row)
        for (int64_t i = k; i < ld; ++i) wrong += !std::isnan(x.at(row, i));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("scales are converted on the device as on the host but for padding", "[quantize]") {
  const Gpu gpu;
  const int64_t rows = 257, k = 80;
  Random random(5);
  std::vector<uint8_t> linear(size_t(rows * k / 16));
  for (uint8_t& byte : linear) byte = uint8_t(random.next() % 0x7F);
  std::vector<uint8_t> tiles(nvfp4_scale_bytes(rows, k, NVFP4_SCALE_LAYOUT_128X4));
  REQUIRE(nvfp4_scale_convert_host(linear.data(), NVFP4_SCALE_LAYOUT_LINEAR, tiles.data(),
                                   NVFP4_SCALE_LAYOUT_128X4, rows, k) == NVFP4_SUCCESS);
  const DeviceBuffer from(gpu.driver, linear),
      to(gpu.driver, std::vector<uint8_t>(tiles.size(), 0)),
      back(gpu.driver, std::vector<uint8_t>(linear.size(), 0));
  REQUIRE(nvfp4_scale_convert(from.pointer(), NVFP4_SCALE_LAYOUT_LINEAR, to.pointer(),
                              NVFP4_SCALE_LAYOUT_128X4, rows, k, nullptr) == NVFP4_SUCCESS);
  REQUIRE(nvfp4_scale_convert(to.pointer(), NVFP4_SCALE_LAYOUT_128X4, back.pointer(),
                              NVFP4_SCALE_LAYOUT_LINEAR, rows, k, nullptr) == NVFP4_SUCCESS);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  CHECK(differing(to.download(), tiles) == 0);
  CHECK(differing(back.download(), linear) == 0);
  CHECK(to.guards_intact());
  CHECK(back.guards_intact());
}
