// SPDX-License-Identifier: MIT
// fp32 in integers against the machine's own fp32, and the activations against double arithmetic.
#include "host/base/f32.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>

#include "host/problem/enumeration.h"
#include "host/reference/activation.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

using nvfp4::F32;

float value(F32 x) { return nvfp4::f32_from_bits(x.bits); }
F32 f32(float x) { return {nvfp4::f32_bits(x)}; }

// The machine's NaNs have payloads and signs.
uint32_t bits_of(float x) { return std::isnan(x) ? 0x7FFFFFFF : nvfp4::f32_bits(x); }

// Every exponent, and fractions at the edges of rounding.
std::vector<uint32_t> edges() {
  std::vector<uint32_t> all;
  for (uint32_t field = 0; field < 256; field += field < 8 || field > 246 ? 1 : 13) {
    for (uint32_t fraction : {0u, 1u, 0x400000u, 0x7FFFFFu}) {
      all.push_back(field << 23 | fraction);
      all.push_back(0x80000000u | field << 23 | fraction);
    }
  }
  return all;
}

struct Random {
  uint64_t state = 88172645463325252;
  uint32_t operator()() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<uint32_t>(state >> 16);
  }
  // Close in magnitude to another, so that sums cancel.
  uint32_t near(uint32_t bits) {
    return (*this)() % 4 ? bits ^ ((*this)() & 0x81FFFFFF) : (*this)();
  }
};

bool same(uint32_t a, uint32_t b, uint32_t c, const char** operation) {
  const float x = nvfp4::f32_from_bits(a), y = nvfp4::f32_from_bits(b);
  const float z = nvfp4::f32_from_bits(c);
  const F32 fx{a}, fy{b}, fz{c};
  *operation = "fma";
  if (bits_of(std::fma(x, y, z)) != fma(fx, fy, fz).bits) return false;
  *operation = "+";
  if (bits_of(x + y) != (fx + fy).bits) return false;
  *operation = "-";
  if (bits_of(x - y) != (fx - fy).bits) return false;
  *operation = "*";
  if (bits_of(x * y) != (fx * fy).bits) return false;
  *operation = "square root";
  if (bits_of(std::sqrt(x)) != square_root(fx).bits) return false;
  *operation = "/";
  return bits_of(x / y) == (fx / fy).bits;
}

// ---- activations --------------------------------------------------------------------------------

static_assert(nvfp4::every(nvfp4::Enumeration::activation) == (1u << support::kActivations) - 1,
              "the tests run another number of activations than there are");

double exact(int32_t activation, double x) {
  const double root = 0.79788456080286535588;  // sqrt(2 / pi)
  switch (activation) {
    case NVFP4_ACTIVATION_RELU: return x > 0 ? x : 0;
    case NVFP4_ACTIVATION_GELU_TANH:
      return x / (1 + std::exp(-2 * root * (x + 0.044715 * x * x * x)));
    case NVFP4_ACTIVATION_SILU: return x / (1 + std::exp(-x));
    case NVFP4_ACTIVATION_GELU_ERF: return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
    case NVFP4_ACTIVATION_RELU_SQUARED: return x > 0 ? x * x : 0;
  }
  return x;
}

// In units of the last place of the exact value in fp32; what is at least 2^128 must be infinite.
double error_in_ulp(float seen, double exact_value) {
  if (exact_value >= 0x1p128) return std::isinf(seen) ? 0 : exact_value;
  int exponent;
  std::frexp(exact_value, &exponent);
  return std::fabs(seen - exact_value) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

}  // namespace

TEST_CASE("fp32 in integers has the bits of the machine's operations") {
  const char* operation = "";
  const std::vector<uint32_t> values = edges();
  for (uint32_t a : values) {
    for (uint32_t b : values) {
      for (uint32_t c : {values[(a ^ b) % values.size()], values[(a + b) % values.size()]}) {
        if (same(a, b, c, &operation)) continue;
        CAPTURE(a, b, c, operation);
        REQUIRE(false);
      }
    }
  }
  Random random;
  for (int i = 0; i < 400000; ++i) {
    const uint32_t a = random(), b = random.near(a);
    const uint32_t c = random.near(nvfp4::f32_multiply(a, b) ^ 0x80000000);
    if (same(a, b, c, &operation)) continue;
    CAPTURE(a, b, c, operation);
    REQUIRE(false);
  }
  SUCCEED();
}

TEST_CASE("The nearest integer of a tie is the even one") {
  const struct {
    float x;
    int32_t n;
  } rows[] = {{0.0f, 0},  {-0.0f, 0},  {0.5f, 0},  {1.5f, 2},   {2.5f, 2},
              {-0.5f, 0}, {-1.5f, -2}, {0.75f, 1}, {-2.5f, -2}, {-163.3f, -163}};
  for (const auto& row : rows) {
    CHECK(nvfp4::nearest_integer(f32(row.x)) == row.n);
    CHECK(value(nvfp4::f32_from_integer(row.n)) == static_cast<float>(row.n));
  }
}

TEST_CASE("Each activation stays within the error that the numerics page states") {
  const struct {
    int32_t activation;
    double ulp;
  } rows[] = {{NVFP4_ACTIVATION_RELU, 0},
              {NVFP4_ACTIVATION_GELU_TANH, 3.3},
              {NVFP4_ACTIVATION_SILU, 3.3},
              {NVFP4_ACTIVATION_GELU_ERF, 6.1},
              {NVFP4_ACTIVATION_RELU_SQUARED, 0.5}};
  static_assert(std::size(rows) + 1 == support::kActivations, "one has no row");
  // 9973 is a prime: every exponent, and fractions without a pattern.
  const char* const sweep = std::getenv("NVFP4_ACTIVATION_STEP");
  const uint32_t step = sweep != nullptr ? static_cast<uint32_t>(std::atoi(sweep)) : 9973;
  for (const auto& row : rows) {
    double worst = 0;
    uint32_t at = 0;
    for (uint64_t magnitude = 0; magnitude <= 0x7F7FFFFF; magnitude += step) {
      for (uint32_t sign : {0u, 0x80000000u}) {
        const F32 x{sign | static_cast<uint32_t>(magnitude)};
        const double error = error_in_ulp(value(nvfp4::activate(row.activation, x)),
                                          exact(row.activation, static_cast<double>(value(x))));
        if (!(error <= worst)) worst = error, at = x.bits;
      }
    }
    CAPTURE(row.activation, at);
    CHECK(worst <= row.ulp);
    if (sweep != nullptr)
      std::printf("activation %d: %.4f ulp at 0x%08X\n", row.activation, worst, at);
  }
}

TEST_CASE("Activations of NaN and infinities and zeros and what rounds to zero") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto bits = [](int32_t activation, float x) {
    return nvfp4::activate(activation, f32(x)).bits;
  };
  for (int32_t activation = 0; activation < support::kActivations; ++activation) {
    CAPTURE(activation);
    CHECK(bits(activation, std::nanf("1")) == 0x7FFFFFFF);
    CHECK(bits(activation, -std::nanf("")) == 0x7FFFFFFF);
    CHECK(bits(activation, infinity) == 0x7F800000);
    const bool squared = activation == NVFP4_ACTIVATION_RELU_SQUARED;
    const uint32_t of_largest = squared ? 0x7F800000 : 0x7F7FFFFF;
    CHECK(bits(activation, std::numeric_limits<float>::max()) == of_largest);
    CHECK(bits(activation, 0.0f) == 0);
    if (activation == NVFP4_ACTIVATION_NONE) continue;
    const uint32_t zero = activation == NVFP4_ACTIVATION_RELU || squared ? 0 : 0x80000000;
    for (float x : {-0.0f, -200.0f, -1e30f, -infinity}) CHECK(bits(activation, x) == zero);
  }
  // Subnormal in, subnormal out: half of it, except for ReLU.
  CHECK(bits(NVFP4_ACTIVATION_RELU, 1e-45f) == 1);
  // The square of a value is rounded once: to a subnormal one, to 0, to a tie's even neighbour.
  CHECK(bits(NVFP4_ACTIVATION_RELU_SQUARED, 0x1p-74f) == 2);
  CHECK(bits(NVFP4_ACTIVATION_RELU_SQUARED, 0x1p-75f) == 0);
  CHECK(bits(NVFP4_ACTIVATION_RELU_SQUARED, 0x1.000002p0f) == 0x3F800002);
  for (int32_t activation : {NVFP4_ACTIVATION_GELU_TANH, NVFP4_ACTIVATION_SILU}) {
    CHECK(bits(activation, nvfp4::f32_from_bits(0x1000)) == 0x800);
    CHECK(bits(activation, nvfp4::f32_from_bits(0x80001000)) == 0x80000800);
  }
  // The last inputs whose result is not 0.
  CHECK(bits(NVFP4_ACTIVATION_SILU, -108.0f) == 0x80000000 + 1);
  CHECK(bits(NVFP4_ACTIVATION_SILU, -110.0f) == 0x80000000);
}
