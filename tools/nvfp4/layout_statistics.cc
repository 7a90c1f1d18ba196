// SPDX-License-Identifier: MIT
// Decides by statistics between linear scales and 128x4 tiles. In the right reading rows and
// columns of the matrix differ more than by chance; in the other one each row mixes the scales of
// many rows.
#include <algorithm>
#include <cmath>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/layer_values.h"

namespace nvfp4_tool {

namespace {

constexpr int64_t kTileRows = 128, kTileScales = 4;

// How many rows are compared: the first, whose scales are the first bytes in both readings, since
// tiles along K come first. More rows add nothing.
int64_t rows_of(int64_t n, int64_t columns) {
  const int64_t most = limit::most_scales / columns / kTileRows * kTileRows;
  return std::min({n, limit::most_rows, std::max(kTileRows, most)});
}

// log2 of a UE4M3 byte; 0 counts as the smallest.
double log_scale(uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  if (exponent == 0) return std::log2(std::max(mantissa, 1) / 512.0);
  return exponent - 7 + std::log2(1 + mantissa / 8.0);
}

// Variance between groups divided by the variance inside them: 1 if only chance separates them.
// Item i of group g is at g * step + i * stride.
double between_over_inside(const std::vector<double>& values, int64_t groups, int64_t step,
                           int64_t items, int64_t stride) {
  double all = 0, between = 0, inside = 0;
  for (const double value : values) all += value;
  all /= double(groups * items);
  for (int64_t g = 0; g < groups; ++g) {
    double mean = 0;
    for (int64_t i = 0; i < items; ++i) mean += values[size_t(g * step + i * stride)];
    mean /= double(items);
    between += (mean - all) * (mean - all);
    for (int64_t i = 0; i < items; ++i) {
      const double off = values[size_t(g * step + i * stride)] - mean;
      inside += off * off;
    }
  }
  if (inside == 0) return 0;
  return double(items) * between / double(groups - 1) * double(groups * (items - 1)) / inside;
}

double structure(const std::vector<uint8_t>& scales, int64_t rows, int64_t columns) {
  std::vector<double> table(256), values(scales.size());
  for (size_t i = 0; i < 256; ++i) table[i] = log_scale(uint8_t(i));
  for (size_t i = 0; i < scales.size(); ++i) values[i] = table[scales[i]];
  return std::max(between_over_inside(values, rows, columns, columns, 1),
                  between_over_inside(values, columns, 1, rows, columns));
}

}  // namespace

bool same_in_both_layouts(int64_t n, int64_t k) {
  return n % kTileRows == 0 && k / 16 % kTileScales == 0;
}

double other_layout_ratio(const MatrixBytes& matrix, bool read_as_tiles) {
  const int64_t columns = matrix.k / 16, rows = rows_of(matrix.n, columns);
  if (!same_in_both_layouts(matrix.n, matrix.k) || rows * columns < limit::fewest_scales) return 0;
  // The file's scales, read the other way.
  const std::vector<uint8_t> own(matrix.scales.begin(), matrix.scales.begin() + rows * columns);
  std::vector<uint8_t> other(own.size());
  const int32_t from = read_as_tiles ? NVFP4_SCALE_LAYOUT_LINEAR : NVFP4_SCALE_LAYOUT_128X4;
  const int32_t to = read_as_tiles ? NVFP4_SCALE_LAYOUT_128X4 : NVFP4_SCALE_LAYOUT_LINEAR;
  if (nvfp4_scale_convert_host(own.data(), from, other.data(), to, rows, matrix.k) !=
      NVFP4_SUCCESS) {
    return 0;
  }
  const double here = structure(own, rows, columns);
  return here == 0 ? 0 : structure(other, rows, columns) / here;
}

}  // namespace nvfp4_tool
