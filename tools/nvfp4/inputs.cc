// SPDX-License-Identifier: MIT
#include "tools/nvfp4/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nvfp4_gemm.h"
#include "tools/harness/progress.h"

namespace nvfp4_tool {

using support::Problem;

namespace {

constexpr float kLargestProduct = 2688;  // of an element and its scale: 6 * 448

// Multiplies the tensor scale into *alpha.
support::Operand quantize(const Matrix& x, const std::string& name, support::Operand o,
                          float* alpha) {
  const float tensor_scale = tensor_scale_of(x, name);
  if (nvfp4_quantize_host(x.values.data(), x.columns, x.rows, x.columns, tensor_scale,
                          o.codes.data(), o.ld, o.scales.data(),
                          NVFP4_SCALE_LAYOUT_LINEAR) != NVFP4_SUCCESS) {
    throw UsageError(nvfp4_last_error());
  }
  *alpha *= tensor_scale;
  return o;
}

// The same of a matrix that nvfp4 quantize wrote.
support::Operand take(const QuantizedMatrix& q, support::Operand o, float* alpha) {
  const size_t row = size_t(q.columns) / 2;
  for (int64_t i = 0; i < q.rows; ++i) {
    std::copy_n(&q.codes[size_t(i) * row], row, &o.codes[size_t(i * o.ld / 2)]);
  }
  std::copy(q.scales.begin(), q.scales.end(), o.scales.begin());
  *alpha *= q.tensor_scale;
  return o;
}

// A matrix from --a or --a-quantized, or --b or --b-quantized.
Matrix load(const char* name, const std::string& path, const std::string& prefix,
            std::optional<QuantizedMatrix>* quantized) {
  if (path.empty() && prefix.empty()) {
    throw UsageError(std::string("which matrix is ") + name + "? --" + name + " FILE or --" + name +
                     "-quantized PREFIX");
  }
  if (!path.empty()) return load_npy(path);
  *quantized = load_quantized(prefix);
  return {(*quantized)->rows, (*quantized)->columns, {}};
}

// Elements between the end of one row or batch and the next. Overlapping rows are no matrix.
int64_t gap(const char* name, int64_t stride, int64_t dense, int64_t least) {
  const int64_t value = stride == kContiguous ? dense : stride;
  if (value < least) {
    throw UsageError(std::string(name) + ": " + std::to_string(value) + " is less than " +
                     std::to_string(least));
  }
  return value - dense;
}

void set_strides(support::Fields* fields, int64_t stride) {
  for (const nvfp4::GemmField& field : nvfp4::fields::gemm) {
    const bool is_stride = field.kind == nvfp4::Kind::ld || field.kind == nvfp4::Kind::stride;
    if (is_stride) nvfp4::fields::set(fields, field, stride);
  }
}

// The problem with what else the options say; alpha is its own.
Problem with_options(Problem p, const RunOptions& options) {
  support::Fields fields = fields_of(options);
  fields.alpha = p.alpha;
  p.a.layout = fields.a_scale_layout, p.b.layout = fields.b_scale_layout;
  return with_fields(std::move(p), fields, options.seed);
}

}  // namespace

RunOptions::RunOptions() {
  for (const nvfp4::GemmField& field : nvfp4::fields::gemm) {
    const bool size = field.kind == nvfp4::Kind::size || field.kind == nvfp4::Kind::batches;
    if (size) nvfp4::fields::set(&product, field, int64_t{field.first});
  }
  set_strides(&product, kContiguous);
}

void RunOptions::set_shape(const support::Shape& s) {
  product.m = s.m, product.n = s.n, product.k = s.k, product.l = s.l;
}

float tensor_scale_of(const Matrix& x, const std::string& name) {
  float largest = 0;
  for (float value : x.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  const float scale = largest / kLargestProduct;
  if (largest > 0 && scale == 0) {
    char text[160];
    std::snprintf(text, sizeof text,
                  ": its largest magnitude, %.3g, divided by 2688 is 0 in fp32, which is no tensor "
                  "scale; multiply the matrix by a power of two first",
                  double(largest));
    throw UsageError(name + text);
  }
  return largest > 0 ? scale : 1.0f;
}

support::Gaps gaps_of(const RunOptions& options) {
  const support::Fields& f = options.product;
  support::Gaps gaps;
  const int64_t row = support::close_ld(f.k), length = f.line_length();
  gaps.a_ld = gap("--a-ld", f.a_ld, row, f.k);
  gaps.b_ld = gap("--b-ld", f.b_ld, row, f.k);
  gaps.d_ld = gap("--d-ld", f.d_ld, length, length);
  gaps.a_batch = gap("--a-batch-stride", f.a_batch_stride, f.m * (row + gaps.a_ld), 0);
  gaps.b_batch = gap("--b-batch-stride", f.b_batch_stride, f.n * (row + gaps.b_ld), 0);
  gaps.d_batch = gap("--d-batch-stride", f.d_batch_stride, f.lines() * (length + gaps.d_ld), 0);
  return gaps;
}

support::Fields fields_of(const RunOptions& options) {
  const support::Gaps gaps = gaps_of(options);
  support::Fields f = options.product;
  const int64_t length = f.line_length();
  f.d_ld_gap = gaps.d_ld, f.d_batch_gap = gaps.d_batch;
  f.c_ld_gap = gap("--c-ld", f.c_ld, length, length);
  f.c_batch_gap = gap("--c-batch-stride", f.c_batch_stride, f.lines() * (length + f.c_ld_gap), 0);
  set_strides(&f, 0);  // they follow from the gaps
  if (f.b_tensor_scale_columns < 0 || f.b_tensor_scale_columns % 64 != 0) {
    throw UsageError("--b-tensor-scale: " + std::to_string(f.b_tensor_scale_columns) +
                     " is not 0 or a multiple of 64 above it");
  }
  f.alpha = options.alpha.value_or(1.0f);
  if (!options.variant.empty()) f.variant = options.variant.c_str();
  return f;
}

bool has_files(const RunOptions& options) {
  return !(options.a_path + options.b_path + options.a_quantized + options.b_quantized).empty();
}

Sources load_sources(const RunOptions& options) {
  Sources from;
  from.alpha = options.alpha.value_or(1.0f);
  from.a = load("a", options.a_path, options.a_quantized, &from.quantized_a);
  from.b = load("b", options.b_path, options.b_quantized, &from.quantized_b);
  const Matrix &a = from.a, &b = from.b;
  if (a.columns != b.columns) {
    throw UsageError("A has " + std::to_string(a.columns) + " columns and B has " +
                     std::to_string(b.columns) + ": both are K");
  }
  if (a.rows == 0 || b.rows == 0 || a.columns == 0 || a.columns % 16 != 0) {
    throw UsageError("M, N and K must be positive and K a multiple of 16; here " +
                     std::to_string(a.rows) + ", " + std::to_string(b.rows) + ", " +
                     std::to_string(a.columns));
  }
  return from;
}

Problem problem_from(const Sources& from, const RunOptions& options) {
  Problem p = support::make_problem({from.a.rows, from.b.rows, from.a.columns, 1});
  p.alpha = from.alpha;
  p.a = from.quantized_a ? take(*from.quantized_a, std::move(p.a), &p.alpha)
                         : quantize(from.a, options.a_path, std::move(p.a), &p.alpha);
  p.b = from.quantized_b ? take(*from.quantized_b, std::move(p.b), &p.alpha)
                         : quantize(from.b, options.b_path, std::move(p.b), &p.alpha);
  const int32_t packing =
      from.quantized_b ? packing_of(*from.quantized_b, p.b, options.b_quantized) : 0;
  p = with_options(std::move(p), options);
  p.b_packing = packing;
  return p;
}

Problem problem_from(const RunOptions& options) {
  support::progress(to_string(options.shape()) + ": data");
  const support::Gaps gaps = gaps_of(options);
  const support::Fields& f = options.product;
  Problem p = support::make_problem(options.shape(), options.data, options.seed, gaps);
  if (f.operand_format != NVFP4_OPERAND_FORMAT_NVFP4) {
    p = with_format(std::move(p), f.operand_format, options.data, options.seed);
  }
  if (f.a_type != NVFP4_TYPE_NONE) {
    p = with_a16(std::move(p), f.a_type, options.data, options.seed);
  }
  p.alpha = options.alpha.value_or(p.alpha);
  return with_options(std::move(p), options);
}

}  // namespace nvfp4_tool
