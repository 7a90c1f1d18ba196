// SPDX-License-Identifier: MIT
// nvfp4 quantize: converts a matrix from an .npy file to codes, scales and the tensor scale, three
// .npy files, and packs it into a fourth.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"
#include "tools/nvfp4/npy.h"
#include "tools/nvfp4/output_files.h"

namespace nvfp4_tool {

namespace {

void must(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw UsageError(nvfp4_last_error());
}

struct Quantized {
  std::vector<float> tensor_scale;  // one, or one for each row
  std::vector<uint8_t> codes, scales;
};

// The matrix as the library's descriptor. The mode says where tensor scales are.
nvfp4_quantize_desc desc_of(const std::vector<float>& values, const Matrix& x, Quantized& q,
                            int32_t layout, int32_t mode) {
  nvfp4_quantize_desc desc{};
  desc.struct_size = sizeof desc;
  desc.rows = x.rows, desc.k = desc.x_ld = desc.codes_ld = x.columns;
  desc.x = const_cast<float*>(values.data()), desc.x_type = NVFP4_TYPE_F32;
  desc.codes = q.codes.data(), desc.scales = q.scales.data(), desc.scale_layout = layout;
  desc.tensor_scale_mode = mode, desc.tensor_scale_device = q.tensor_scale.data();
  if (mode == NVFP4_TENSOR_SCALE_VALUE) desc.tensor_scale = q.tensor_scale[0];
  return desc;
}

Quantized quantized(const Matrix& x, const QuantizeOptions& options) {
  if (x.rows == 0 || x.columns == 0 || x.columns % 16 != 0) {
    throw UsageError(options.path + ": " + std::to_string(x.rows) + " x " +
                     std::to_string(x.columns) +
                     " values; columns must be a positive multiple of 16, one scale each");
  }
  Quantized q;
  q.codes.resize(x.values.size() / 2);
  q.scales.resize(nvfp4_scale_bytes(x.rows, x.columns, options.layout));
  if (options.rows) {
    q.tensor_scale.resize(size_t(x.rows));
  } else {
    q.tensor_scale = {options.tensor_scale ? *options.tensor_scale
                                           : tensor_scale_of(x, options.path)};
  }
  auto desc = desc_of(x.values, x, q, options.layout,
                      options.rows ? NVFP4_TENSOR_SCALE_ROW_AMAX : NVFP4_TENSOR_SCALE_VALUE);
  desc.scale_rule = options.scale_rule;
  must(nvfp4_quantize_reference(&desc));
  return q;
}

// |x - quantized| / |x|, over the values that are numbers on both sides.
double relative_error(const Matrix& x, Quantized& q, const QuantizeOptions& options) {
  std::vector<float> back(x.values.size());
  const auto desc = desc_of(back, x, q, options.layout,
                            options.rows ? NVFP4_TENSOR_SCALE_ROWS : NVFP4_TENSOR_SCALE_VALUE);
  must(nvfp4_dequantize_reference(&desc));
  double error = 0, norm = 0;
  for (size_t i = 0; i < back.size(); ++i) {
    if (!std::isfinite(x.values[i]) || !std::isfinite(back[i])) continue;
    error += std::pow(double(back[i]) - x.values[i], 2);
    norm += std::pow(double(x.values[i]), 2);
  }
  return norm > 0 ? std::sqrt(error / norm) : 0;
}

std::vector<size_t> scale_shape(const Matrix& x, int32_t layout) {
  const size_t rows = size_t(x.rows), columns = size_t(x.columns);
  if (layout == NVFP4_SCALE_LAYOUT_LINEAR) return {rows, columns / 16};
  return {(rows + 127) / 128, (columns + 63) / 64, 512};  // tiles
}

void save_packed(OutputFiles& files, const Matrix& x, Quantized& q,
                 const QuantizeOptions& options) {
  // Rows of codes begin at multiples of 16 bytes there.
  support::Operand weights = support::make_problem({1, x.rows, x.columns}).b;
  const size_t row = size_t(x.columns) / 2;
  for (int64_t i = 0; i < x.rows; ++i) {
    std::copy_n(&q.codes[size_t(i) * row], row, &weights.codes[size_t(i * weights.ld / 2)]);
  }
  must(nvfp4_scale_convert_host(q.scales.data(), options.layout, weights.scales.data(),
                                NVFP4_SCALE_LAYOUT_LINEAR, x.rows, x.columns));
  save_npy(files, options.out + ".packed.npy", packed_shape(x.rows, x.columns, options.packing),
           weights.packed(options.packing));
}

}  // namespace

int quantize(const QuantizeOptions& options) {
  const Matrix x = load_npy(options.path);
  // Codes and scales, and the values that they represent.
  require_memory(options.path, (0.5 + 1.0 / 16 + sizeof(float)) * double(x.values.size()));
  Quantized q = quantized(x, options);
  OutputFiles files;
  save_npy(files, options.out + ".codes.npy", {size_t(x.rows), size_t(x.columns) / 2}, q.codes);
  save_npy(files, options.out + ".scales.npy", scale_shape(x, options.layout), q.scales);
  save_npy(files, options.out + ".tensor_scale.npy", {q.tensor_scale.size()}, q.tensor_scale);
  if (options.packing != NVFP4_PACKING_NONE) save_packed(files, x, q, options);
  files.commit();
  const auto odd = std::count_if(x.values.begin(), x.values.end(),
                                 [](float value) { return !std::isfinite(value); });
  std::printf("matrix        %lld x %lld\n", static_cast<long long>(x.rows),
              static_cast<long long>(x.columns));
  const auto [least, most] = std::minmax_element(q.tensor_scale.begin(), q.tensor_scale.end());
  if (options.rows) {
    std::printf("tensor scales %.9g to %.9g, multipliers of rows: value = code * scale * this\n",
                double(*least), double(*most));
  } else {
    std::printf("tensor scale  %.9g, a multiplier: value = code * scale * this\n", double(*most));
  }
  std::printf("error         %.4f of the matrix's norm\n", relative_error(x, q, options));
  if (odd > 0) {
    std::printf(
        "not finite    %lld values: NaN makes its block NaN, infinity becomes the largest\n",
        static_cast<long long>(odd));
  }
  std::printf("written       %s.codes.npy, .scales.npy, .tensor_scale.npy%s\n", options.out.c_str(),
              options.packing != NVFP4_PACKING_NONE ? ", .packed.npy" : "");
  return kPassed;
}

}  // namespace nvfp4_tool
