// SPDX-License-Identifier: MIT
// The reference's epilogue: types, C, bias, scalars, tensor scales, order, against the machine's
// fp32.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "host/reference/activation.h"
#include "nvfp4_gemm.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

constexpr uint8_t kPoison = 0xA5;
const float kInfinity = std::numeric_limits<float>::infinity();

uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return std::isnan(x) ? 0x7FFFFFFF : bits;
}
float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// A binary format with that many bits of fraction and that exponent bias, to nearest even.
uint32_t nearest(float value, int fraction_bits, int bias, uint32_t infinity) {
  if (std::isnan(value)) return 0x7FFF;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(double(value));
  if (std::isinf(value)) return sign | infinity;
  const int exponent = magnitude < std::ldexp(1, 1 - bias) ? 1 - bias : std::ilogb(magnitude);
  const double places = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
  const double code = places + std::ldexp(exponent + bias - 1, fraction_bits);
  return sign | (code < infinity ? static_cast<uint32_t>(code) : infinity);
}

uint32_t code_of(int32_t type, float x) {
  if (type == NVFP4_TYPE_F16) return nearest(x, 10, 15, 0x7C00);
  if (type == NVFP4_TYPE_BF16) return nearest(x, 7, 127, 0x7F80);
  return bits_of(x);
}

size_t bytes_of(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// An array of one of the three types; each value is one that the type holds.
struct Array {
  int32_t type = NVFP4_TYPE_NONE;
  std::vector<uint8_t> bytes;

  Array(int32_t t, size_t count) : type(t), bytes(count * bytes_of(t), kPoison) {}
  void set(size_t i, float x) {
    const uint32_t code = code_of(type, x);
    memcpy(&bytes[i * bytes_of(type)], &code, bytes_of(type));
  }
  uint32_t code(size_t i) const {
    uint32_t code = 0;
    memcpy(&code, &bytes[i * bytes_of(type)], bytes_of(type));
    return code;
  }
};

struct Random {
  uint32_t state;
  uint32_t operator()() { return (state = state * 1664525 + 1013904223) >> 12; }
  int32_t below(uint32_t n) { return static_cast<int32_t>((*this)() % n); }
  bool coin() { return (*this)() % 2 != 0; }
  // Multiples of 1/8 up to 16: every type holds them.
  float value() { return float(below(257) - 128) / 8; }
};

// A problem whose sums, acc, a first run with fp32 out has shown.
struct Problem {
  int64_t m, n, k, l;
  std::vector<uint8_t> a, b, a_scales, b_scales;
  std::vector<float> acc;
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;

  Problem(int64_t m_, int64_t n_, int64_t k_, int64_t l_, uint32_t seed)
      : m(m_), n(n_), k(k_), l(l_) {
    Random random{seed};
    const int64_t ld = (k + 31) / 32 * 32, groups = (m > n ? m : n) * k / 16 + 16;
    const auto fill = [&](std::vector<uint8_t>* x, int64_t bytes) {
      x->resize(size_t(bytes));
      for (uint8_t& byte : *x) byte = uint8_t(random());
    };
    fill(&a, l * m * ld / 2), fill(&b, l * n * ld / 2);
    a_scales.assign(size_t(l * groups), 0x30), b_scales.assign(size_t(l * groups), 0x38);
    g.m = m, g.n = n, g.k = k, g.l = l;
    g.a = a.data(), g.a_ld = ld, g.a_batch_stride = m * ld;
    g.b = b.data(), g.b_ld = ld, g.b_batch_stride = n * ld;
    g.a_scales = a_scales.data(), g.a_scales_batch_stride_bytes = groups / 16 * 16;
    g.b_scales = b_scales.data(), g.b_scales_batch_stride_bytes = groups / 16 * 16;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.alpha = 1;
    acc.resize(size_t(l * m * n));
    nvfp4_gemm_desc plain = g;
    plain.d = acc.data(), plain.d_type = NVFP4_TYPE_F32, plain.d_ld = n,
    plain.d_batch_stride = m * n;
    REQUIRE(nvfp4_gemm_reference(&plain) == NVFP4_SUCCESS);
  }

  size_t at(int64_t batch, int64_t row, int64_t column, int64_t ld, int64_t stride) const {
    const bool rows = g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
    return size_t(batch * stride + (rows ? row * ld + column : column * ld + row));
  }
};

// The epilogue's fields at random, its arrays, and what D must be.
struct Case {
  Problem& p;
  nvfp4_gemm_desc g;
  Array c, d, bias;
  std::vector<float> a_scale, b_scale;
  float alpha, beta;

  static int32_t pick(Random& random, bool none) {
    return none && random.coin() ? NVFP4_TYPE_NONE : 1 + random.below(3);
  }

  Case(Problem& problem, Random& random)
      : p(problem),
        g(problem.g),
        c(pick(random, true), 0),
        d(pick(random, false), 0),
        bias(pick(random, true), 0) {
    p.g.cd_order = g.cd_order = random.below(2);
    const int64_t lines = g.cd_order == 0 ? p.m : p.n, length = g.cd_order == 0 ? p.n : p.m;
    g.d_ld = length + random.below(3), g.d_batch_stride = lines * g.d_ld + random.below(5);
    g.c_ld = length + random.below(3), g.c_batch_stride = random.coin() ? 0 : lines * g.c_ld;
    c = Array(c.type, size_t(p.l * lines * g.c_ld));
    d = Array(d.type, size_t(p.l * g.d_batch_stride));
    bias = Array(bias.type, size_t(p.m + p.n));
    for (size_t i = 0; i < size_t(p.l * lines * g.c_ld); ++i) c.set(i, random.value());
    for (size_t i = 0; i < size_t(p.m + p.n); ++i) bias.set(i, random.value());
    g.d = d.bytes.data(), g.d_type = d.type;
    g.c_type = c.type, g.bias_type = bias.type;
    if (c.type != NVFP4_TYPE_NONE) g.c = c.bytes.data();
    if (bias.type != NVFP4_TYPE_NONE) g.bias = bias.bytes.data();
    g.bias_axis = random.below(2);
    g.activation = int32_t(random.below(support::kActivations));
    scalars(random);
  }

  void scalars(Random& random) {
    alpha = random.value() / 3, beta = random.below(3) == 0 ? 0 : random.value() / 5;
    if (c.type == NVFP4_TYPE_NONE) beta = 0;
    g.a_tensor_scale_rows = random.below(2);
    a_scale.resize(g.a_tensor_scale_rows != 0 ? size_t(p.l * p.m) : 1);
    for (float& x : a_scale) x = random.value() / 7;
    g.scalar_mode = random.below(2);
    if (g.scalar_mode == NVFP4_SCALARS_DEVICE) {
      g.alpha = g.beta = NAN, g.alpha_device = &alpha;
      if (c.type != NVFP4_TYPE_NONE) g.beta_device = &beta;
    } else {
      g.alpha = alpha, g.beta = beta;
    }
    if (random.coin() || g.a_tensor_scale_rows != 0) g.a_tensor_scale = a_scale.data();
    g.b_tensor_scale_columns = 64 * random.below(3);
    const bool several = g.b_tensor_scale_columns != 0;
    b_scale.resize(several ? size_t((p.n - 1) / g.b_tensor_scale_columns + 1) : 1);
    for (float& x : b_scale) x = random.value() / 9;
    if (several || random.coin()) g.b_tensor_scale = b_scale.data();
  }

  float value(const Array& x, size_t i) const {
    const uint32_t code = x.code(i);
    if (x.type == NVFP4_TYPE_F32) return float_of(code);
    if (x.type == NVFP4_TYPE_BF16) return float_of(code << 16);
    const int field = code >> 10 & 31, fraction = code & 1023;
    const double size =
        field == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, field - 25);
    return float(code & 0x8000 ? -size : size);
  }

  uint32_t want(int64_t batch, int64_t row, int64_t column) const {
    float scale = alpha;
    if (g.a_tensor_scale != nullptr) {
      scale = scale * a_scale[g.a_tensor_scale_rows != 0 ? size_t(batch * p.m + row) : 0];
    }
    if (g.b_tensor_scale != nullptr) {
      const int64_t columns = g.b_tensor_scale_columns;
      scale = scale * b_scale[columns == 0 ? 0 : size_t(column / columns)];
    }
    float x = scale * p.acc[size_t((batch * p.m + row) * p.n + column)];
    if (c.type != NVFP4_TYPE_NONE && beta != 0) {
      x = std::fma(beta, value(c, p.at(batch, row, column, g.c_ld, g.c_batch_stride)), x);
    }
    if (bias.type != NVFP4_TYPE_NONE) {
      x = x + value(bias, size_t(g.bias_axis == NVFP4_BIAS_AXIS_ROW ? row : column));
    }
    return code_of(d.type, float_of(nvfp4::activate(g.activation, {bits_of(x)}).bits));
  }

  // "" or the first element that is wrong, and whether anything else was written.
  std::string complaint() {
    if (nvfp4_gemm_reference(&g) != NVFP4_SUCCESS) return nvfp4_last_error();
    for (int64_t i = 0; i < p.l * p.m * p.n; ++i) {
      const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
      const size_t at = p.at(batch, row, column, g.d_ld, g.d_batch_stride);
      if (d.code(at) != want(batch, row, column)) return "element " + std::to_string(i);
      memset(&d.bytes[at * bytes_of(d.type)], kPoison, bytes_of(d.type));
    }
    return d.bytes == std::vector<uint8_t>(d.bytes.size(), kPoison) ? "" : "a gap was written";
  }
};

// One element: acc = 1 * 1, and fields on top of it.
struct One {
  uint8_t a[8] = {0x02}, b[8] = {0x02}, scale_a = 0x38, scale_b = 0x38;
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  uint32_t d = 0;
  One() {
    g.m = g.n = g.l = 1, g.k = 16, g.a_ld = g.b_ld = 32, g.d_ld = g.c_ld = 1;
    g.a = a, g.b = b, g.a_scales = &scale_a, g.b_scales = &scale_b, g.d = &d;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.d_type = NVFP4_TYPE_F32, g.alpha = 1;
  }
  uint32_t run() {
    d = 0;
    REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
    return d;
  }
  uint32_t of(int32_t type, float alpha) {
    g.d_type = type, g.alpha = alpha;
    return run();
  }
};

}  // namespace

TEST_CASE("The reference's epilogue has the bits of its expression whatever fields are set") {
  Problem shapes[] = {{3, 5, 16, 1, 1}, {1, 200, 48, 2, 2}, {33, 130, 16, 2, 3}, {7, 65, 0, 3, 4}};
  Random random{5};
  const int count = std::getenv("NVFP4_LONG") ? 600 : 300;
  for (int i = 0; i < count; ++i) {
    Case one(shapes[i % 4], random);
    CAPTURE(i, one.g.d_type, one.g.c_type, one.g.bias_type, one.g.cd_order, one.g.activation);
    REQUIRE(one.complaint() == "");
  }
}

TEST_CASE("Overflow and ties and subnormals and -0 of each type of D") {
  One one;
  CHECK(one.of(NVFP4_TYPE_F16, 65519.99f) == 0x7BFF);
  CHECK(one.of(NVFP4_TYPE_F16, -65520.0f) == 0xFC00);
  CHECK(one.of(NVFP4_TYPE_BF16, 1.00390625f) == 0x3F80);  // a tie, to even
  CHECK(one.of(NVFP4_TYPE_BF16, 1.01171875f) == 0x3F82);
  CHECK(one.of(NVFP4_TYPE_BF16, 3.3961775e38f) == 0x7F80);  // the tie beyond the largest
  CHECK(one.of(NVFP4_TYPE_BF16, -3.3961773e38f) == 0xFF7F);
  CHECK(one.of(NVFP4_TYPE_BF16, 1e-40f) == 0x0001);  // subnormal, 2^-133 is one unit
  CHECK(one.of(NVFP4_TYPE_BF16, 4.5e-41f) == 0x0000);
  CHECK(one.of(NVFP4_TYPE_F32, 1e-45f) == 1);
  for (int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
    CHECK(one.of(type, NAN) == 0x7FFF);
    CHECK(one.of(type, -0.0f) == 0x8000);
  }
  CHECK(one.of(NVFP4_TYPE_F32, -NAN) == 0x7FFFFFFF);
  CHECK(one.of(NVFP4_TYPE_F32, -0.0f) == 0x80000000);
  const float large = 3e38f;
  one.g.a_tensor_scale = &large;
  CHECK(one.of(NVFP4_TYPE_F32, 2) == 0x7F800000);
  // (alpha * a) * b: the first product overflows although all three fit.
  const float small = 1e-30f;
  one.g.b_tensor_scale = &small;
  CHECK(one.of(NVFP4_TYPE_F32, 2) == 0x7F800000);
  one.scale_a = 0x7F;
  CHECK(one.of(NVFP4_TYPE_BF16, 0) == 0x7FFF);
}

TEST_CASE("beta = 0 never reads C by value or by pointer") {
  One one;
  float c = NAN;
  one.g.c = &c, one.g.c_type = NVFP4_TYPE_F32;
  for (float beta : {0.0f, -0.0f}) {
    one.g.scalar_mode = NVFP4_SCALARS_HOST, one.g.beta = beta;
    one.g.alpha_device = one.g.beta_device = nullptr;
    CHECK(one.run() == 0x3F800000);
    const float alpha = -0.0f;  // -0 + nothing stays -0
    one.g.scalar_mode = NVFP4_SCALARS_DEVICE, one.g.alpha_device = &alpha;
    one.g.beta_device = &beta;
    CHECK(one.run() == 0x80000000);
  }
  one.g.scalar_mode = NVFP4_SCALARS_HOST, one.g.alpha_device = one.g.beta_device = nullptr;
  one.g.c = nullptr, one.g.c_ld = -1;  // not even its address is needed
  CHECK(one.run() == 0x3F800000);
  one.g.c = &c, one.g.c_ld = 1, one.g.beta = 1e-45f;
  CHECK(one.run() == 0x7FFFFFFF);
  c = kInfinity, one.g.alpha = -kInfinity;
  CHECK(one.run() == 0x7FFFFFFF);
  c = -2, one.g.alpha = 2, one.g.beta = 1;
  CHECK(one.run() == 0);  // an exact 0 is +0
}

TEST_CASE("C may be D: each element is read before it is written") {
  Problem p(5, 67, 16, 2, 9);
  for (int32_t order : {NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR}) {
    nvfp4_gemm_desc g = p.g;
    std::vector<float> d(2 * 70 * 70), c(d.size());
    for (size_t i = 0; i < d.size(); ++i) c[i] = d[i] = float(i % 31);
    g.cd_order = order, g.beta = 0.5f;
    g.d_type = g.c_type = NVFP4_TYPE_F32, g.c_ld = g.d_ld = 70;
    g.c_batch_stride = g.d_batch_stride = 70 * 70;
    g.c = c.data(), g.d = d.data();
    std::vector<float> in_place(c);
    REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
    g.c = g.d = in_place.data();
    REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
    CHECK(in_place == d);
    g.c_ld = 71;
    CHECK(nvfp4_gemm_reference(&g) == NVFP4_STATUS_OVERLAP);
    CHECK(in_place == d);
  }
}

TEST_CASE("Activations round once to the type of D and keep NaN") {
  One one;
  one.g.activation = NVFP4_ACTIVATION_RELU;
  CHECK(one.of(NVFP4_TYPE_BF16, -0.0f) == 0);
  CHECK(one.of(NVFP4_TYPE_BF16, -3) == 0);
  CHECK(one.of(NVFP4_TYPE_BF16, NAN) == 0x7FFF);
  CHECK(one.of(NVFP4_TYPE_BF16, kInfinity) == 0x7F80);
  one.g.activation = NVFP4_ACTIVATION_SILU;
  CHECK(one.of(NVFP4_TYPE_F16, 1) == code_of(NVFP4_TYPE_F16, 0.7310585786f));
  CHECK(one.of(NVFP4_TYPE_F16, -kInfinity) == 0x8000);
  one.g.activation = NVFP4_ACTIVATION_GELU_ERF;
  CHECK(one.of(NVFP4_TYPE_BF16, -1) == code_of(NVFP4_TYPE_BF16, -0.1586552539f));
  one.g.activation = NVFP4_ACTIVATION_GELU_TANH;
  CHECK(one.of(NVFP4_TYPE_BF16, -1) == code_of(NVFP4_TYPE_BF16, -0.1588080094f));
}
