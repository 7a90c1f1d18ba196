// SPDX-License-Identifier: MIT
// Gated products by the reference: D = act(x) * y of two products, its order of operations, what it
// takes and what it refuses.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "host/base/f32.h"
#include "host/reference/activation.h"
#include "nvfp4_gemm.h"
#include "tools/harness/device_gemm.h"
#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;
using support::Fields;
using support::Problem;

const float kInfinity = std::numeric_limits<float>::infinity();

// Sums of zeros: D is what becomes of two biases.
struct Zeros {
  alignas(16) unsigned char codes[32] = {}, scales[512] = {};
  float x, y, d = 0;
  Desc g = NVFP4_GEMM_DESC_INIT;

  Zeros(float bias, float bias2) : x(bias), y(bias2) {
    g.m = g.n = g.l = 1, g.k = 32;
    g.a = g.b = g.b2 = codes, g.a_ld = g.b_ld = 32;
    g.a_scales = g.b_scales = g.b2_scales = scales;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.d = &d, g.d_ld = 1, g.d_type = g.bias_type = NVFP4_TYPE_F32;
    g.bias = &x, g.bias2 = &y;
    g.alpha = g.alpha2 = 1, g.activation = NVFP4_ACTIVATION_SILU;
  }
  void gpt_oss() { g.gate_limit = 7, g.gate_alpha = 1.702f, g.gate_beta = 1; }
  float product() {
    INFO(nvfp4_last_error());
    REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
    return d;
  }
};

float of(float x, float y) { return Zeros(x, y).product(); }
float of_gpt_oss(float x, float y) {
  Zeros zeros(x, y);
  zeros.gpt_oss();
  return zeros.product();
}

bool is_close(double x, double want) { return std::fabs(x - want) <= 1e-6 * std::fabs(want); }

// In doubles, by the header's prose.
double by_doubles(double x, double y, const Desc& g) {
  const double limit = g.gate_limit == 0 ? kInfinity : double(g.gate_limit);
  const double alpha = g.gate_alpha == 0 ? 1 : double(g.gate_alpha);
  x = std::fmin(x, limit);
  y = std::fmax(std::fmin(y, limit), -limit);
  return x / (1 + std::exp(-alpha * x)) * (y + double(g.gate_beta));
}

std::vector<float> floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> x(bytes.size() / sizeof(float));
  memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

nvfp4::F32 f32(float x) {
  nvfp4::F32 bits;
  memcpy(&bits.bits, &x, sizeof x);
  return bits;
}

// One of the two products alone, in fp32, without activation.
std::vector<float> half_of(const Problem& both, bool second) {
  Problem one = both;
  static_cast<Desc&>(one).b2 = nullptr, one.b2_tensor_scale = nullptr;
  one.activation = NVFP4_ACTIVATION_NONE, one.d_type = NVFP4_TYPE_F32;
  one.gate_limit = one.gate_alpha = one.gate_beta = 0;
  if (second) {
    one.b = both.b2, one.bias = both.bias2, one.b_factors = both.b2_factors;
    one.alpha = both.alpha2;
    one.b_tensor_scale = both.b2_tensor_scale;
  }
  return floats(one.reference());
}

}  // namespace

TEST_CASE("A gated product of known numbers: plain and with the constants of gpt-oss") {
  // reach: computed in double by the formula of others' kernels
  const struct {
    float x, y;
    double plain, gpt_oss;
  } rows[] = {
      {1, 2, 1.46211716, 2.5373873},     {-1, 2, -0.537882843, -0.462612702},
      {8, -9, -71.9758548, -41.9997188}, {0.5f, -1, -0.311229666, 0},
      {20, 3, 59.9999999, 27.9998125},
  };
  for (const auto& row : rows) {
    CAPTURE(row.x, row.y);
    CHECK(is_close(of(row.x, row.y), row.plain));
    CHECK(is_close(of_gpt_oss(row.x, row.y), row.gpt_oss));
  }
}

TEST_CASE("A gated product of NaN and infinities and zeros") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(of(nan, 1)));
  CHECK(std::isnan(of(1, nan)));
  CHECK(std::isnan(of_gpt_oss(nan, 1)));
  CHECK(std::isnan(of_gpt_oss(1, nan)));
  CHECK(of(-kInfinity, 3) == 0);
  CHECK(std::signbit(of(-kInfinity, 3)));
  CHECK(of_gpt_oss(-kInfinity, 3) == 0);
  CHECK(of_gpt_oss(kInfinity, kInfinity) == of_gpt_oss(7, 7));
  CHECK(of_gpt_oss(1, -kInfinity) == of_gpt_oss(1, -7));
  CHECK(of_gpt_oss(-1e30f, 1) == 0);
}

TEST_CASE("A gated product agrees with doubles whatever its constants are") {
  support::Random random(5);
  const auto value = [&] { return float(int(random.below(40001)) - 20000) / 1000; };
  for (int i = 0; i < 3000; ++i) {
    Zeros zeros(value(), value());
    Desc& g = zeros.g;
    if (random.below(2) != 0) g.gate_limit = float(1 + random.below(100)) / 7;
    if (random.below(2) != 0)
      g.gate_alpha = std::ldexp(1 + float(random.below(64)) / 64, int(random.below(12)) - 6);
    if (random.below(2) != 0) g.gate_beta = value();
    const double x = double(zeros.product()), want = by_doubles(zeros.x, zeros.y, g);
    CAPTURE(zeros.x, zeros.y, g.gate_limit, g.gate_alpha, g.gate_beta);
    // y + gate_beta is rounded, and may cancel
    const double scale = std::fabs(by_doubles(zeros.x, std::fabs(zeros.y), g)) +
                         std::fabs(by_doubles(zeros.x, 0, g));
    CHECK(std::fabs(x - want) <= 8e-7 * (std::fabs(want) + scale) + 1e-42);
  }
}

TEST_CASE("A gated product has the bits of its two products that fp32 activates and multiplies") {
  support::Random random(17);
  for (int i = 0; i < 60; ++i) {
    const support::Shape shape{1 + random.below(40), 16 * (1 + random.below(5)),
                               16 * (1 + random.below(5)), 1 + random.below(2)};
    Fields f = random_gated_fields(shape, random);
    f.d_type = NVFP4_TYPE_F32, f.d_ld_gap = f.d_batch_gap = 0;
    f.d_amax = f.d_row_amax = nullptr;
    const bool halves = random.below(3) == 0;
    support::Problem operands = make_problem(shape, support::Data::random, 100 + i);
    if (halves) operands = with_a16(operands, NVFP4_TYPE_BF16, support::Data::random, 100 + i);
    const Problem p = with_fields(operands, f, 200 + i);
    const std::vector<float> d = floats(p.reference());
    const std::vector<float> x = half_of(p, false), y = half_of(p, true);
    CAPTURE(to_string(shape), to_string(f));
    REQUIRE(d.size() == x.size());
    size_t wrong = 0;
    for (size_t at = 0; at < d.size(); ++at) {
      float gate = x[at], up = y[at];
      if (f.gate_limit != 0) {
        gate = gate > f.gate_limit ? f.gate_limit : gate;
        up = up > f.gate_limit ? f.gate_limit : up < -f.gate_limit ? -f.gate_limit : up;
      }
      const nvfp4::F32 act = f.gate_alpha == 0
                                 ? nvfp4::activate(f.activation, f32(gate))
                                 : nvfp4::activate(f.activation, f32(gate), f32(f.gate_alpha));
      const nvfp4::F32 want = act * (f.gate_beta == 0 ? f32(up) : f32(up) + f32(f.gate_beta));
      wrong += want.bits != f32(d[at]).bits;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("A gated product is another with b and b2 exchanged and the same of halves of one b") {
  const support::Shape shape{5, 64, 64};
  Fields f;
  f.b2 = support::kGiven, f.activation = NVFP4_ACTIVATION_SILU, f.d_type = NVFP4_TYPE_F32;
  const Problem p = with_fields(make_problem(shape, support::Data::exact, 3), f, 4);
  Problem exchanged = p;
  std::swap(exchanged.b, exchanged.b2);
  CHECK(p.reference() != exchanged.reference());

  // Rows 0 to 63 of one matrix, and 64 to 127.
  std::vector<uint8_t> codes = p.b.codes, scales = p.b.scales;
  codes.insert(codes.end(), p.b2.codes.begin(), p.b2.codes.end());
  scales.insert(scales.end(), p.b2.scales.begin(), p.b2.scales.end());
  Desc g = make_desc(p, NVFP4_SCALE_LAYOUT_LINEAR);
  std::vector<uint8_t> d = p.d_before();
  g.a = p.a.codes.data(), g.a_scales = p.a.scales.data(), g.d = d.data();
  g.b = codes.data(), g.b2 = &codes[size_t(64 * g.b_ld / 2)];
  g.b_scales = scales.data(), g.b2_scales = &scales[size_t(64 * g.k / 16)];
  REQUIRE(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  CHECK(d == p.reference());
}

TEST_CASE("What is set without b2 or must not be set with it is refused by its name") {
  static float one = 1;
  const struct {
    const char* sentence;
    std::function<void(Desc&)> set;
  } rows[] = {
      {"b2_scales = 0x", [](Desc& g) { g.b2 = nullptr; }},
      {"alpha2 = 1 must be 0 where b2 is NULL",
       [](Desc& g) { g.b2 = g.b2_scales = g.bias2 = nullptr; }},
      {"alpha2 = 1 must be 0 where b2 is NULL",
       [](Desc& g) {
         g.b2 = g.b2_scales = g.bias2 = nullptr;
         g.scalar_mode = NVFP4_SCALARS_DEVICE, g.alpha_device = &one;
       }},
      {"b2_scales = 0x", [](Desc& g) { g.b2 = nullptr, g.alpha2 = 0; }},
      {"bias2 = 0x", [](Desc& g) { g.b2 = g.b2_scales = nullptr, g.alpha2 = 0; }},
      {"gate_limit = 7 must be 0",
       [](Desc& g) { g.b2 = g.b2_scales = g.bias2 = nullptr, g.alpha2 = 0, g.gate_limit = 7; }},
      {"b2_scales is NULL", [](Desc& g) { g.b2_scales = nullptr; }},
      {"bias2 is NULL", [](Desc& g) { g.bias2 = nullptr; }},
      {"bias2 = 0x", [](Desc& g) { g.bias_type = NVFP4_TYPE_NONE, g.bias = nullptr; }},
      {"alpha2_device = 0x", [](Desc& g) { g.alpha2_device = &one; }},
      {"alpha2_device is NULL",
       [](Desc& g) { g.scalar_mode = NVFP4_SCALARS_DEVICE, g.alpha_device = &one; }},
      {"c_type = NVFP4_TYPE_F32", [](Desc& g) { g.c_type = NVFP4_TYPE_F32; }},
      {"gate_limit = -1", [](Desc& g) { g.gate_limit = -1; }},
      {"gate_limit = inf", [](Desc& g) { g.gate_limit = kInfinity; }},
      {"gate_limit = nan", [](Desc& g) { g.gate_limit = std::nanf(""); }},
      {"gate_alpha = 0.01", [](Desc& g) { g.gate_alpha = 0.01f; }},
      {"gate_alpha = 65", [](Desc& g) { g.gate_alpha = 65; }},
      {"gate_beta = inf", [](Desc& g) { g.gate_beta = kInfinity; }},
      {"gate_alpha = 1.5 must be 0",
       [](Desc& g) { g.activation = NVFP4_ACTIVATION_GELU_TANH, g.gate_alpha = 1.5f; }},
      {"gate_beta = 1 must be 0",
       [](Desc& g) { g.activation = NVFP4_ACTIVATION_NONE, g.gate_beta = 1; }},
  };
  for (const auto& row : rows) {
    CAPTURE(row.sentence);
    Zeros zeros(1, 2);
    row.set(zeros.g);
    CHECK(nvfp4_gemm_reference(&zeros.g) != NVFP4_SUCCESS);
    CHECK(std::string(nvfp4_last_error()).rfind(row.sentence, 0) == 0);
    CHECK(zeros.d == 0);
  }
}

TEST_CASE("A question about a gated product needs no address: alpha2 says that there is a b2") {
  Desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 100, g.n = 200, g.k = 512, g.l = 1;
  g.a_ld = g.b_ld = 512, g.d_ld = 200, g.alpha = g.alpha2 = 1;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_BF16, g.activation = NVFP4_ACTIVATION_SILU;
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  REQUIRE(nvfp4_gemm_describe(&g, 90, 132, &info) == NVFP4_SUCCESS);
  const double bytes = info.bytes, math = info.math_ns;
  CHECK(info.tile_n == 64);
  CHECK(info.tiles == 4 * ((100 + info.tile_m - 1) / info.tile_m));
  CHECK(info.epilogue == NVFP4_EPILOGUE_FAST);
  g.d_type = NVFP4_TYPE_F32, g.variant = "sm90_128x16x256";  // in one launch
  REQUIRE(nvfp4_gemm_describe(&g, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(info.epilogue == NVFP4_EPILOGUE_GENERAL);
  g.variant = nullptr;
  g.d_type = NVFP4_TYPE_BF16;
  REQUIRE(nvfp4_gemm_describe(&g, 100, 148, &info) == NVFP4_SUCCESS);
  CHECK(info.epilogue == NVFP4_EPILOGUE_GENERAL);
  g.alpha2 = 0;
  REQUIRE(nvfp4_gemm_describe(&g, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(math == 2 * info.math_ns);
  CHECK(bytes == info.bytes + 200 * 512 * 9 / 16);

  g.alpha2 = 1;
  CHECK(nvfp4_gemm_supported(&g, 80) == NVFP4_STATUS_NOT_SUPPORTED);
  CHECK(nvfp4_gemm_supported(&g, 120) == NVFP4_STATUS_NOT_SUPPORTED);
  g.batch_invariant = 1;
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_SUCCESS);  // in two launches
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_SUCCESS);
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_STATUS_NOT_SUPPORTED);
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.batch_invariant = 0, g.variant = "sm90_64x16x256";
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_INVALID_VALUE);
  g.variant = nullptr, g.k = 0;
  CHECK(nvfp4_gemm_supported(&g, 90) == NVFP4_STATUS_NOT_SUPPORTED);
}
