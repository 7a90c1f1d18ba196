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
                           const std::vector<uint16_t>& want, int capability) {
  BoundVerdict v;
  std::mutex mutex;
  for_each_sum(p, [&](int64_t batch, int64_t row, int64_t column, const Sum& sum) {
    const size_t i = size_t((batch * p.shape.m + row) * p.shape.n + column);
    const double value = f16_value(got[i]), wanted = f16_value(want[i]);
    const double error = std::fabs(value - double(p.alpha) * sum.exact);
    const double bound = error_bound(sum, p.shape.k, p.alpha, capability);
    // Written so that a NaN is outside.
    const bool inside = error <= bound;
    const bool close = std::fabs(value - wanted) <= 1e-3 + 1e-3 * std::fabs(wanted);
    const std::lock_guard lock(mutex);
    ++v.total;
    v.outside_bound += !inside;
    v.outside_tolerance += !close;
    v.largest_ratio = std::max(v.largest_ratio, error / bound);
    if (error > v.largest_error) v.largest_error = error, v.bound_there = bound;
    if ((!inside || !close) && v.first_outside.empty()) {
      char text[128];
      std::snprintf(text, sizeof text, ": got %g, sum %g, error %g, bound %g", value,
                    double(p.alpha) * sum.exact, error, bound);
      v.first_outside = at(batch, row, column) + text;
    }
  });
  return v;
}

}  // namespace support
