// SPDX-License-Identifier: MIT
// silu(x) * y and RMSNorm to NVFP4 on the device give the bits of nvfp4_fused_quantize_host, the
// residual among them, and write nothing else.
#include <cmath>
#include <cstring>

#include "test/gemm/gpu.h"

namespace {

using support::DeviceBuffer;
using support::Random;

constexpr uint8_t kBefore = 0xA5;

struct Problem {
  int32_t operation, type;
  bool residual = false;
  int64_t rows, k;
  int64_t gap = 0;   // elements between rows
  size_t shift = 0;  // bytes by which everything lies off its allocation's alignment
  int32_t layout = NVFP4_SCALE_LAYOUT_LINEAR;
  bool device_scale = false;
  int32_t pdl = NVFP4_PDL_OFF;
  bool special = false;  // NaN, infinities and large numbers among the elements
  int32_t format = NVFP4_OPERAND_FORMAT_NVFP4;
  int32_t scale_rule = NVFP4_SCALE_RULE_DEFAULT;

  size_t element() const { return type == NVFP4_TYPE_F32 ? 4 : 2; }
  int64_t ld() const { return k + gap; }
};

// Numbers of a few neighbouring exponents around 1; in gaps NaN.
std::vector<uint8_t> elements(const Problem& p, int64_t rows, Random& random) {
  const uint32_t one = p.type == NVFP4_TYPE_F16    ? 0x3C00
                       : p.type == NVFP4_TYPE_BF16 ? 0x3F80
                                                   : 0x3F800000;
  const uint32_t unit = p.type == NVFP4_TYPE_F16    ? 0x400
                        : p.type == NVFP4_TYPE_BF16 ? 0x80
                                                    : 0x800000;
  const uint32_t sign = p.type == NVFP4_TYPE_F32 ? 0x80000000 : 0x8000;
  const uint32_t infinity = p.type == NVFP4_TYPE_F16    ? 0x7C00
                            : p.type == NVFP4_TYPE_BF16 ? 0x7F80
                                                        : 0x7F800000;
  std::vector<uint8_t> bytes(size_t((rows - 1) * p.ld() + p.k) * p.element(), 0xFF);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < p.k; ++i) {
      const uint64_t r = random.next();
      uint32_t bits = one - 6 * unit + uint32_t(r >> 32) % (9 * unit);
      if (p.special && row % 3 == 1 && r % 61 == 0) bits = infinity - uint32_t(r >> 8 & 1);
      if (p.special && row % 3 == 2 && r % 97 == 0) bits = infinity + 1;
      if (p.special && r % 31 == 0) bits = uint32_t(r >> 40) % 3;
      if (r & 0x10000) bits |= sign;
      std::memcpy(&bytes[size_t(row * p.ld() + i) * p.element()], &bits, p.element());
    }
  return bytes;
}

struct Operands {
  std::vector<uint8_t> x, y, weight, codes, scales;
  float t = 0.0007f;

  explicit Operands(const Problem& p) {
    Random random(uint64_t(p.k + p.type * 1000 + p.operation));
    x = elements(p, p.rows, random);
    if (p.operation == NVFP4_FUSED_SILU_MUL || p.residual) y = elements(p, p.rows, random);
    if (p.operation == NVFP4_FUSED_RMS_NORM) weight = elements(p, 1, random);
    codes.assign(size_t((p.rows - 1) * p.ld() + p.k) / 2, kBefore);
    scales.assign(nvfp4_scale_bytes_for(p.rows, p.k, p.layout, p.format), kBefore);
  }
};

nvfp4_fused_quantize_desc desc_of(const Problem& p) {
  nvfp4_fused_quantize_desc q{};
  q.struct_size = sizeof q;
  q.rows = p.rows;
  q.k = p.k;
  q.x_ld = q.y_ld = q.codes_ld = p.ld();
  q.format = p.format, q.scale_rule = p.scale_rule;
  q.tensor_scale = p.device_scale ? 0 : p.format == NVFP4_OPERAND_FORMAT_NVFP4 ? 0.0007f : 1;
  q.tensor_scale_mode = p.device_scale ? NVFP4_TENSOR_SCALE_DEVICE : NVFP4_TENSOR_SCALE_VALUE;
  q.epsilon = p.operation == NVFP4_FUSED_RMS_NORM ? 1e-6f : 0;
  q.operation = p.operation;
  q.type = p.type;
  q.scale_layout = p.layout;
  q.pdl = p.pdl;
  return q;
}

Operands on_host(const Problem& p, Operands o) {
  nvfp4_fused_quantize_desc q = desc_of(p);
  const int64_t block = p.format == NVFP4_OPERAND_FORMAT_MXFP4 ? 32 : 16;
  std::vector<uint8_t> linear(size_t(p.rows * p.k / block));
  q.x = o.x.data();
  q.y = o.y.empty() ? nullptr : o.y.data();
  q.weight = o.weight.empty() ? nullptr : o.weight.data();
  q.codes = o.codes.data();
  q.scales = linear.data();
  q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  q.tensor_scale_device = &o.t;
  INFO(nvfp4_last_error());
  REQUIRE(nvfp4_fused_quantize_host(&q) == NVFP4_SUCCESS);
  // Bytes of the layout that belong to a scale are those that change with it.
  const std::vector<uint8_t> ones(linear.size(), 1);
  std::vector<uint8_t> scales(o.scales.size()), marked(o.scales.size());
  const auto convert = [&p, block](const std::vector<uint8_t>& from, std::vector<uint8_t>* to) {
    REQUIRE(nvfp4_scale_convert_host(from.data(), NVFP4_SCALE_LAYOUT_LINEAR, to->data(), p.layout,
                                     p.rows, p.k / block * 16) == NVFP4_SUCCESS);
  };
  convert(linear, &scales);
  convert(ones, &marked);
  for (size_t i = 0; i < marked.size(); ++i)
    if (marked[i]) o.scales[i] = scales[i];
  return o;
}

// Content of an allocation, `shift` bytes after its start.
class Shifted {
 public:
  Shifted(const Gpu& gpu, const std::vector<uint8_t>& content, size_t shift)
      : shift_(shift), there_(!content.empty()), buffer_(gpu.driver, with_shift(content, shift)) {}
  void* pointer() const {
    return there_ ? static_cast<uint8_t*>(buffer_.pointer()) + shift_ : nullptr;
  }
  std::vector<uint8_t> download() const {
    CHECK(buffer_.guards_intact());
    const std::vector<uint8_t> bytes = buffer_.download();
    return {bytes.begin() + std::ptrdiff_t(shift_), bytes.end()};
  }

 private:
  static std::vector<uint8_t> with_shift(const std::vector<uint8_t>& content, size_t shift) {
    std::vector<uint8_t> bytes(shift + (content.empty() ? 1 : 0), 0x5A);
    bytes.insert(bytes.end(), content.begin(), content.end());
    return bytes;
  }
  size_t shift_;
  bool there_;
  DeviceBuffer buffer_;
};

Operands on_device(const Gpu& gpu, const Problem& p, Operands o) {
  nvfp4_fused_quantize_desc q = desc_of(p);
  std::vector<uint8_t> t(4);
  std::memcpy(t.data(), &o.t, 4);
  const DeviceBuffer scale(gpu.driver, t);
  const Shifted x(gpu, o.x, p.shift), y(gpu, o.y, p.shift), weight(gpu, o.weight, p.shift),
      codes(gpu, o.codes, p.shift), scales(gpu, o.scales, p.shift);
  q.x = x.pointer();
  q.y = y.pointer();
  q.weight = weight.pointer();
  q.codes = codes.pointer();
  q.scales = scales.pointer();
  q.tensor_scale_device = static_cast<float*>(scale.pointer());
  INFO(nvfp4_last_error());
  REQUIRE(nvfp4_fused_quantize(&q, nullptr) == NVFP4_SUCCESS);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  CHECK(x.download() == o.x);
  CHECK(weight.download() == (o.weight.empty() ? std::vector<uint8_t>{0x5A} : o.weight));
  if (!o.y.empty()) o.y = y.download();
  o.codes = codes.download();
  o.scales = scales.download();
  return o;
}

void require_host_bits(const Gpu& gpu, const Problem& p, const Operands& o) {
  INFO("operation " << p.operation << ", type " << p.type << ", " << p.rows << " x " << p.k
                    << ", gap " << p.gap << ", shift " << p.shift << ", residual " << p.residual);
  const Operands got = on_device(gpu, p, o), want = on_host(p, o);
  const auto differing = [](const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    REQUIRE(a.size() == b.size());
    size_t wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) wrong += a[i] != b[i];
    return wrong;
  };
  REQUIRE(differing(got.y, want.y) == 0);
  REQUIRE(differing(got.scales, want.scales) == 0);
  REQUIRE(differing(got.codes, want.codes) == 0);
}

void require_host_bits(const Gpu& gpu, const Problem& p) { require_host_bits(gpu, p, Operands(p)); }

// docs/numerics.md's formula in the machine's arithmetic.
float silu(float x) {
  const auto constant = [](uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  };
  const float log2_e = constant(0x3FB8AA3B), a = std::min(std::fabs(x), 128.0f), w = -a * log2_e;
  const float w_low = std::fma(-a, constant(0x32A57060), std::fma(-a, log2_e, -w));
  const float n = std::nearbyint(w), f = (w - n) + w_low;
  float p = constant(0x3920FDDD);
  for (const uint32_t c :
       {0x3AAF9F2Au, 0x3C1D96A6u, 0x3D635774u, 0x3E75FDEEu, 0x3F317218u, 0x3F800000u})
    p = std::fma(p, f, constant(c));
  const float s = std::ldexp(1.0f, int(n) + 64), d = std::fma(p * s, 0x1p-64f, 1.0f);
  return x < 0 ? -a * p / d * s * 0x1p-64f : x / d;
}

// 1 / sqrt(mean of squares + epsilon), summed in its order.
float norm_factor(const std::vector<float>& h) {
  std::vector<float> columns(256);
  for (size_t i = 0; i < h.size(); ++i) {
    float& column = columns[i / 16 % 256];
    column = std::fma(h[i], h[i], column);
  }
  for (; columns.size() > 1; columns.resize(columns.size() / 2))
    for (size_t i = 0; i < columns.size() / 2; ++i)
      columns[i] = columns[2 * i] + columns[2 * i + 1];
  return 1 / std::sqrt(columns[0] / float(h.size()) + 1e-6f);
}

// One row of fp32 whose second factors put every product where a code changes, or beside it, if the
// first ones have the bits that the formulas give.
Operands at_thresholds(const Problem& p) {
  Operands o(p);
  const bool norm = p.operation == NVFP4_FUSED_RMS_NORM;
  std::vector<float> x(static_cast<size_t>(p.k)), factors(x.size());
  std::memcpy(x.data(), o.x.data(), o.x.size());
  const float factor = norm ? norm_factor(x) : 0;
  Random random(3);
  for (size_t i = 0; i < x.size(); ++i) {
    const float thresholds[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    const float at = i % 16 == 0 ? 6 : thresholds[random.next() % std::size(thresholds)];
    factors[i] = at * o.t / (norm ? x[i] * factor : silu(x[i]));
  }
  std::vector<uint8_t>& bytes = norm ? o.weight : o.y;
  std::memcpy(bytes.data(), factors.data(), bytes.size());
  return o;
}

constexpr int32_t kTypes[] = {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32};

}  // namespace

TEST_CASE("silu(x) * y is quantized on the device as on the host", "[fused]") {
  const Gpu gpu;
  for (const int32_t type : kTypes) {
    Problem p{NVFP4_FUSED_SILU_MUL, type, false, 133, 192};
    require_host_bits(gpu, p);
    p.special = p.device_scale = true;
    p.layout = NVFP4_SCALE_LAYOUT_128X4;
    p.pdl = NVFP4_PDL_ON;
    require_host_bits(gpu, p);
    p.gap = 6;
    p.shift = p.element();
    require_host_bits(gpu, p);
  }
  const Problem p{NVFP4_FUSED_SILU_MUL, NVFP4_TYPE_F32, false, 1, 8192};
  require_host_bits(gpu, p, at_thresholds(p));
}

TEST_CASE("RMSNorm with and without a residual is quantized on the device as on the host",
          "[fused]") {
  const Gpu gpu;
  for (const int32_t type : kTypes)
    for (const bool residual : {false, true}) {
      Problem p{NVFP4_FUSED_RMS_NORM, type, residual, 3, 2064};
      require_host_bits(gpu, p);
      p.rows = gpu.sized(70, 20);
      p.k = 64;
      p.special = p.device_scale = true;
      p.layout = NVFP4_SCALE_LAYOUT_128X4;
      p.pdl = NVFP4_PDL_ON;
      require_host_bits(gpu, p);
      p.gap = 6;
      p.shift = p.element();
      require_host_bits(gpu, p);
    }
}

TEST_CASE("fused producers make UE8M0 scales with the host's bits", "[fused]") {
  const Gpu gpu;
  for (const int32_t type : kTypes)
    for (const bool norm : {false, true})
      for (const int32_t format : {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0}) {
        Problem p{norm ? NVFP4_FUSED_RMS_NORM : NVFP4_FUSED_SILU_MUL, type, norm, 21, 96};
        p.format = format, p.special = true;
        CAPTURE(format);
        require_host_bits(gpu, p);
        p.layout = NVFP4_SCALE_LAYOUT_128X4, p.scale_rule = NVFP4_SCALE_RULE_FLOOR;
        p.pdl = NVFP4_PDL_ON, p.gap = 6, p.shift = p.element();
        require_host_bits(gpu, p);
      }
  Problem p{NVFP4_FUSED_RMS_NORM, NVFP4_TYPE_BF16, false, 1, 9216 + 32};  // blocks read again
  p.format = NVFP4_OPERAND_FORMAT_MXFP4;
  require_host_bits(gpu, p);
}

// 256 columns have several blocks each, and a thread goes round more than once.
TEST_CASE("the sum of squares of a long row is added in the stated order", "[fused]") {
  const Gpu gpu;
  for (const int64_t k : {4096, 4112, 9216}) {
    require_host_bits(gpu, {NVFP4_FUSED_RMS_NORM, NVFP4_TYPE_F32, true, 2, k});
    for (int64_t more = 0; more < 10; ++more) {
      const Problem p{NVFP4_FUSED_RMS_NORM, NVFP4_TYPE_F32, false, 1, k + 16 * more};
      require_host_bits(gpu, p, at_thresholds(p));
    }
  }
}
