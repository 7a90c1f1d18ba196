// SPDX-License-Identifier: MIT
// What measured times mean. Pure functions, tested without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "tools/harness/gpu_timer.h"
#include "tools/harness/problem.h"

namespace bench {

using support::cold_copies, support::median, support::quantile;

// Bytes of an element with its share of a scale, and of an element that is not quantized.
constexpr double kQuantizedBytes = 0.5625, kHalfBytes = 2;

// What must move at least once: elements, one scale per 16 quantized ones, D in fp16.
inline double compulsory_bytes(const support::Shape& s, double a_bytes = kQuantizedBytes) {
  const double m = double(s.m), n = double(s.n), k = double(s.k);
  return double(s.l) * ((m * a_bytes + n * kQuantizedBytes) * k + 2 * m * n);
}
inline double operations(const support::Shape& s) {
  return 2 * double(s.l) * double(s.m) * double(s.n) * double(s.k);
}

// The rates that a roofline is made of, per microsecond; 0 = unknown.
struct Rates {
  double bytes_per_us = 0, operations_per_us = 0;
};

// The least time in microseconds; 0 if a rate is unknown.
inline double roofline_us(const support::Shape& s, const Rates& rates,
                          double a_bytes = kQuantizedBytes) {
  if (rates.bytes_per_us <= 0 || rates.operations_per_us <= 0) return 0;
  return std::max(compulsory_bytes(s, a_bytes) / rates.bytes_per_us,
                  operations(s) / rates.operations_per_us);
}

// "128x7168x2048"
inline support::Shape parse_shape(const std::string& text) {
  support::Shape s{};
  char rest = 0;
  long long m = 0, n = 0, k = 0;
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 ||
      k < 1)
    throw std::invalid_argument("'" + text + "' is no shape; 128x7168x2048 is one");
  s.m = m, s.n = n, s.k = k;
  return s;
}

}  // namespace bench
