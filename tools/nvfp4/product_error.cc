// SPDX-License-Identifier: MIT
#include "tools/nvfp4/product_error.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "tools/harness/formats.h"

namespace nvfp4_tool {

namespace {

// Eight independent sums, which the compiler vectorises.
double dot(const float* a, const float* b, int64_t k) {
  double sums[8] = {};
  for (int64_t i = 0; i < k; i += 8) {  // K is a multiple of 16
    for (int64_t j = 0; j < 8; ++j) sums[j] += double(a[i + j]) * double(b[i + j]);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace

ProductError product_error(const Sources& from, const std::vector<uint16_t>& d,
                           const support::Progress& progress) {
  const int64_t m = from.a.rows, n = from.b.rows, k = from.a.columns;
  ProductError whole;
  double errors = 0, norm = 0;
  std::mutex mutex;
  const auto each_column = [&](int64_t column) {
    ProductError mine;
    double my_errors = 0, my_norm = 0;
    for (int64_t row = 0; row < m; ++row) {
      const double wanted = double(from.alpha) * dot(&from.a.values[size_t(row * k)],
                                                     &from.b.values[size_t(column * k)], k);
      const double got = support::f16_value(d[size_t(row * n + column)]);
      if (!std::isfinite(wanted) || !std::isfinite(got)) continue;
      ++mine.elements;
      mine.largest = std::max(mine.largest, std::fabs(got - wanted));
      my_errors += (got - wanted) * (got - wanted);
      my_norm += wanted * wanted;
    }
    const std::lock_guard lock(mutex);
    whole.elements += mine.elements;
    whole.largest = std::max(whole.largest, mine.largest);
    errors += my_errors, norm += my_norm;
  };
  support::parallel_for(n, each_column, progress);
  if (norm > 0) whole.relative = std::sqrt(errors / norm);
  return whole;
}

}  // namespace nvfp4_tool
