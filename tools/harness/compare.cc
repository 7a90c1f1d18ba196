// SPDX-License-Identifier: MIT
#include "tools/harness/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <stdexcept>

#include "tools/harness/exact.h"
#include "tools/harness/formats.h"

namespace support {

namespace {

std::string at(int64_t batch, int64_t row, int64_t column) {
  return "batch " + std::to_string(batch) + ", row " + std::to_string(row) + ", column " +
         std::to_string(column);
}

// What fp16 rounds to infinity: from half an ulp above its largest value, 65504, on.
constexpr double kInfiniteFrom = 65520;

// Whether a correct kernel may have stored this value for that sum. What is infinite or NaN has no
// error: it must be where alpha times a sum inside the accumulation's bound may become it.
bool may_be(double value, const Sum& sum, int64_t k, float alpha, int capability) {
  const double accumulated = accumulation_bound(sum, k, capability);
  if (std::isnan(sum.exact) || std::isnan(alpha)) return std::isnan(value);
  if (std::isinf(alpha)) {
    if (std::isnan(value)) return std::fabs(sum.exact) <= accumulated;  // infinity times 0
    const double sign = std::signbit(alpha) == std::signbit(value) ? 1 : -1;
    return std::isinf(value) && sign * sum.exact + accumulated > 0;
  }
  const double wanted = double(alpha) * sum.exact, scale = std::fabs(double(alpha));
  if (std::isinf(value)) {
    const double most = std::copysign(1.0, value) * wanted + scale * accumulated;
    return most * (1 + 0x1p-24) >= kInfiniteFrom;
  }
  // Written so that a NaN is outside.
  return std::fabs(value - wanted) <= error_bound(sum, k, alpha, capability);
}

bool is_close(double value, double wanted) {
  if (std::isnan(wanted)) return std::isnan(value);
  return value == wanted || std::fabs(value - wanted) <= 1e-3 + 1e-3 * std::fabs(wanted);
}

}  // namespace

BitVerdict compare_bits(const Shape& s, const std::vector<uint16_t>& got,
                        const std::vector<uint16_t>& want) {
  if (got.size() != want.size()) throw std::logic_error("results of different sizes");
  BitVerdict v;
  v.total = int64_t(want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    v.equal += got[i] == want[i];
    v.non_zero += (want[i] & 0x7FFF) != 0;
    if (got[i] != want[i] && v.first_difference.empty()) {
      const int64_t column = int64_t(i) % s.n, row = int64_t(i) / s.n % s.m;
      char text[128];
      std::snprintf(text, sizeof text, ": got 0x%04X (%g), want 0x%04X (%g)", got[i],
                    f16_value(got[i]), want[i], f16_value(want[i]));
      v.first_difference = at(int64_t(i) / (s.n * s.m), row, column) + text;
    }
  }
  return v;
}

BoundVerdict compare_bound(const Problem& p, const std::vector<uint16_t>& got,
                           const std::vector<uint16_t>& want, int capability,
                           const Progress& progress) {
  BoundVerdict v;
  std::mutex mutex;
  const auto judge = [&](int64_t batch, int64_t row, int64_t column, const Sum& sum) {
    const size_t i = size_t((batch * p.m + row) * p.n + column);
    const double value = f16_value(got[i]), wanted = f16_value(want[i]);
    const double error = std::fabs(value - double(p.alpha) * sum.exact);
    const double bound = error_bound(sum, p.k, p.alpha, capability);
    const bool inside = may_be(value, sum, p.k, p.alpha, capability);
    const bool close = is_close(value, wanted);
    const std::lock_guard lock(mutex);
    ++v.total;
    v.outside_bound += !inside;
    v.outside_tolerance += !close;
    if (std::isfinite(error) && std::isfinite(bound)) {
      v.largest_ratio = std::max(v.largest_ratio, error / bound);
      if (error > v.largest_error) v.largest_error = error, v.bound_there = bound;
    }
    if ((!inside || !close) && v.first_outside.empty()) {
      char text[128];
      std::snprintf(text, sizeof text, ": got %g, sum %g, error %g, bound %g", value,
                    double(p.alpha) * sum.exact, error, bound);
      v.first_outside = at(batch, row, column) + text;
    }
  };
  for_each_sum(p, judge, progress);
  return v;
}

}  // namespace support
