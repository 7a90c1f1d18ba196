// SPDX-License-Identifier: MIT
#include "tools/nvfp4/layer_values.h"
#include "tools/nvfp4/layers.h"

#include <algorithm>
#include <cmath>

#include "nvfp4_gemm.h"

namespace nvfp4_tool {

namespace {

constexpr int64_t kElementsAtOnce = 1 << 22;

// Some rows of a matrix in 16 or 32 bits.
class Rows {
 public:
  Rows(const TensorInfo& tensor, int64_t expert, int64_t rows, int64_t k, TensorReader& reader)
      : tensor_(tensor), first_(expert * rows), k_(k), reader_(reader) {
    row_bytes_ = uint64_t(k) * (tensor.dtype == "F32" ? 4 : 2);
  }

  std::vector<float> read(int64_t begin, int64_t count) {
    TensorInfo part = tensor_;
    part.begin += uint64_t(first_ + begin) * row_bytes_;
    part.bytes = uint64_t(count) * row_bytes_;
    const std::vector<double> values = reader_.values(part);
    return std::vector<float>(values.begin(), values.end());
  }

 private:
  TensorInfo tensor_;
  int64_t first_, k_;
  TensorReader& reader_;
  uint64_t row_bytes_ = 0;
};

void must(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

// The descriptor of `values` and their codes and linear scales.
nvfp4_quantize_desc desc_of(const MatrixBytes& matrix, float* values, const uint8_t* codes,
                            const uint8_t* scales, int64_t rows, float tensor_scale) {
  nvfp4_quantize_desc desc = {};
  desc.struct_size = sizeof desc;
  desc.rows = rows, desc.k = desc.x_ld = desc.codes_ld = matrix.k;
  desc.x = values, desc.x_type = NVFP4_TYPE_F32;
  desc.codes = const_cast<uint8_t*>(codes), desc.scales = const_cast<uint8_t*>(scales);
  desc.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  desc.tensor_scale = tensor_scale;
  desc.format = !matrix.ue8m0        ? NVFP4_OPERAND_FORMAT_NVFP4
                : matrix.block == 32 ? NVFP4_OPERAND_FORMAT_MXFP4
                                     : NVFP4_OPERAND_FORMAT_E2M1_UE8M0;
  return desc;
}

std::vector<float> dequantized(const MatrixBytes& matrix, const uint8_t* codes,
                               const uint8_t* scales, int64_t rows, float tensor_scale) {
  std::vector<float> values(size_t(rows * matrix.k));
  const nvfp4_quantize_desc desc =
      desc_of(matrix, values.data(), codes, scales, rows, tensor_scale);
  must(nvfp4_dequantize_reference(&desc));
  return values;
}

double squares(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double(a[i]) - b[i], 2);
  return sum;
}

std::vector<float> quantized_anew(const MatrixBytes& matrix, std::vector<float> values,
                                  int64_t rows, float tensor_scale) {
  std::vector<uint8_t> codes(values.size() / 2), scales(values.size() / size_t(matrix.block));
  const nvfp4_quantize_desc desc =
      desc_of(matrix, values.data(), codes.data(), scales.data(), rows, tensor_scale);
  must(nvfp4_quantize_reference(&desc));
  return dequantized(matrix, codes.data(), scales.data(), rows, tensor_scale);
}

}  // namespace

ReferenceError compare_with(const MatrixBytes& matrix, const std::vector<double>& pre_quant_scale,
                            const TensorInfo& reference, int64_t expert, int64_t experts,
                            TensorReader& reader) {
  std::vector<int64_t> shape = reference.shape;
  const bool stacked = shape.size() == 3 && shape[0] == experts;
  if (stacked) shape.erase(shape.begin());
  const bool padded = shape.size() == 2 && shape[0] < matrix.n && shape[0] > matrix.n - 16;
  if (shape.size() != 2 || shape[1] != matrix.k || (shape[0] != matrix.n && !padded)) {
    throw Refusal{reference.name, "of shape " + words(reference.shape) + " in the reference",
                  words({matrix.n, matrix.k})};
  }
  const int64_t rows = shape[0], k = matrix.k, step = std::max<int64_t>(1, kElementsAtOnce / k);
  Rows source(reference, stacked ? expert : 0, rows, k, reader);
  float amax = 0;
  double norm = 0, error = 0, anew = 0;
  for (int64_t begin = 0; begin < rows; begin += step) {
    for (const float value : source.read(begin, std::min(step, rows - begin))) {
      if (std::isfinite(value)) amax = std::max(amax, std::fabs(value));
    }
  }
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin);
    const std::vector<float> values = source.read(begin, count);
    std::vector<float> own = dequantized(matrix, &matrix.codes[size_t(begin * k / 2)],
                                         &matrix.scales[size_t(begin * k / matrix.block)], count,
                                         float(matrix.tensor_scale));
    for (size_t i = 0; i < own.size() && !pre_quant_scale.empty(); ++i) {
      own[i] = float(own[i] * pre_quant_scale[i % size_t(k)]);
    }
    for (const float value : values) norm += double(value) * value;
    error += squares(own, values);
    const float quotient = matrix.ue8m0 ? 0 : amax / 2688;
    const float t = quotient > 0 ? quotient : 1;  // as nvfp4_quantize makes it by AMAX
    anew += squares(quantized_anew(matrix, values, count, t), values);
  }
  if (norm == 0) return {};
  return {std::sqrt(error / norm), std::sqrt(anew / norm)};
}

}  // namespace nvfp4_tool
