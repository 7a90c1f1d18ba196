// SPDX-License-Identifier: MIT
#include "bench/quantize_set.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "bench/device.h"
#include "tools/harness/formats.h"
#include "tools/harness/parallel.h"

namespace bench {
namespace {

constexpr int32_t kLayout = NVFP4_SCALE_LAYOUT_128X4;

float value_of(int32_t type, const uint8_t* bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes, element_bytes(type));
  if (type == NVFP4_TYPE_F16) return float(support::f16_value(uint16_t(bits)));
  if (type == NVFP4_TYPE_BF16) bits <<= 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

bool is_of_rows(const QuantizeSet::Problem& p) {
  return p.tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX;
}

size_t scale_bytes(const QuantizeSet::Problem& p) {
  return nvfp4_scale_bytes(p.rows, p.k, kLayout);
}

// Tensor scale from the largest finite element, as the header says.
float scale_of(const std::vector<float>& x) {
  float largest = 0;
  for (const float f : x)
    if (std::isfinite(f)) largest = std::max(largest, std::fabs(f));
  const float t = largest / 2688;
  return t == 0 ? 1 : t;
}

}  // namespace

std::string name(const QuantizeSet::Problem& p) {
  constexpr const char* kOperation[] = {"quantize", "dequantize", "silu_mul", "rms_norm",
                                        "add_rms_norm"};
  constexpr const char* kScale[] = {"value", "device", "amax", "row_amax"};
  constexpr const char* kType[] = {"f16", "bf16", "f32"};
  return std::string(kOperation[p.operation]) + "," + kScale[p.tensor_scale_mode] + "," +
         kType[p.type - NVFP4_TYPE_F16] + "," + std::to_string(p.rows) + "," + std::to_string(p.k);
}

double moved_bytes(const QuantizeSet::Problem& p) {
  const double elements = p.operation == QuantizeSet::silu_mul       ? 2
                          : p.operation == QuantizeSet::add_rms_norm ? 3
                                                                     : 1;
  return double(p.rows) * double(p.k) * (elements * double(element_bytes(p.type)) + 0.5 + 1.0 / 16);
}

QuantizeSet::QuantizeSet(const support::Driver& driver, const Problem& problem)
    : x(driver, size_t(problem.rows * problem.k) * element_bytes(problem.type)),
      problem_(problem),
      y_(driver,
         problem.operation == silu_mul || problem.operation == add_rms_norm ? x.bytes() : 16),
      weight_(driver, size_t(problem.k) * element_bytes(problem.type)),
      codes_(driver, size_t(problem.rows * problem.k / 2)),
      scales_(driver, scale_bytes(problem)),
      scale_(driver, sizeof(float) * (is_of_rows(problem) ? size_t(problem.rows) : 1)),
      workspace_(driver, 4096) {
  desc_.struct_size = sizeof desc_;
  desc_.rows = problem.rows;
  desc_.k = desc_.x_ld = desc_.codes_ld = problem.k;
  desc_.x = x.pointer();
  desc_.codes = codes_.pointer();
  desc_.scales = scales_.pointer();
  desc_.tensor_scale_device = static_cast<float*>(scale_.pointer());
  desc_.workspace = workspace_.pointer();
  desc_.workspace_bytes = workspace_.bytes();
  desc_.x_type = problem.type;
  desc_.scale_layout = kLayout;
  desc_.tensor_scale_mode = problem.tensor_scale_mode;
  fused_.struct_size = sizeof fused_;
  fused_.rows = problem.rows;
  fused_.k = fused_.x_ld = fused_.y_ld = fused_.codes_ld = problem.k;
  fused_.x = x.pointer();
  fused_.y = problem.operation == rms_norm ? nullptr : y_.pointer();
  fused_.weight = problem.operation == silu_mul ? nullptr : weight_.pointer();
  fused_.epsilon = problem.operation == silu_mul ? 0 : 1e-6f;
  fused_.codes = codes_.pointer();
  fused_.scales = scales_.pointer();
  fused_.tensor_scale_device = desc_.tensor_scale_device;
  fused_.operation = problem.operation == silu_mul ? NVFP4_FUSED_SILU_MUL : NVFP4_FUSED_RMS_NORM;
  fused_.type = problem.type;
  fused_.scale_layout = kLayout;
  fused_.tensor_scale_mode = problem.tensor_scale_mode;
  set_tensor_scale(0.0011f);
}

void QuantizeSet::fill(const Filler& filler) {
  filler.fill(problem_.operation == dequantize ? codes_ : x);
  filler.fill(weight_);
  filler.fill(y_);
  if (problem_.operation == dequantize) scales_.upload(std::vector<uint8_t>(scales_.bytes(), 0x39));
}

void QuantizeSet::set_tensor_scale(float t) {
  desc_.tensor_scale = t;
  std::vector<uint8_t> bytes(scale_.bytes());
  for (size_t i = 0; i < bytes.size(); i += sizeof t) std::memcpy(&bytes[i], &t, sizeof t);
  scale_.upload(bytes);
}

std::vector<float> QuantizeSet::tensor_scales() const {
  std::vector<float> t(scale_.bytes() / sizeof(float));
  std::memcpy(t.data(), scale_.download().data(), scale_.bytes());
  return t;
}

void QuantizeSet::run(CUstream stream) {
  check(is_fused()                         ? nvfp4_fused_quantize(&fused_, stream)
        : problem_.operation == dequantize ? nvfp4_dequantize(&desc_, stream)
                                           : nvfp4_quantize(&desc_, stream));
}

void QuantizeSet::require_host_bits(const std::vector<int64_t>& rows) const {
  if (is_fused()) return require_fused_host_bits(rows);
  const std::vector<float> scales_of_rows = tensor_scales();
  const int64_t k = problem_.k;
  const size_t element = element_bytes(problem_.type);
  const std::vector<uint8_t> in = x.download(), codes = codes_.download(),
                             tiles = scales_.download();
  std::vector<uint8_t> scales(size_t(problem_.rows * k / 16));
  check(nvfp4_scale_convert_host(tiles.data(), kLayout, scales.data(), NVFP4_SCALE_LAYOUT_LINEAR,
                                 problem_.rows, k));
  if (problem_.tensor_scale_mode == NVFP4_TENSOR_SCALE_AMAX) {
    std::vector<float> all(size_t(problem_.rows * k));
    support::parallel_for(problem_.rows, [&](int64_t row) {
      for (int64_t i = row * k; i < (row + 1) * k; ++i)
        all[size_t(i)] = value_of(problem_.type, &in[size_t(i) * element]);
    });
    if (scales_of_rows[0] != scale_of(all))
      throw std::runtime_error(name(problem_) + ": another tensor scale");
  }
  std::atomic<int64_t> wrong{0};
  support::parallel_for(int64_t(rows.size()), [&](int64_t i) {
    const int64_t row = rows[size_t(i)];
    std::vector<float> values(static_cast<size_t>(k));
    for (int64_t j = 0; j < k; ++j)
      values[size_t(j)] = value_of(problem_.type, &in[size_t(row * k + j) * element]);
    const float t = scales_of_rows[is_of_rows(problem_) ? size_t(row) : 0];
    if (is_of_rows(problem_)) wrong += t != scale_of(values);
    if (problem_.operation == dequantize) {
      std::vector<float> want(static_cast<size_t>(k));
      check(nvfp4_dequantize_host(&codes[size_t(row * k / 2)], k, &scales[size_t(row * k / 16)],
                                  NVFP4_SCALE_LAYOUT_LINEAR, 1, k, t, want.data(), k));
      // To within half of the type's last bit; test/gemm/quantize.cc has the rounding itself.
      const float last = problem_.type == NVFP4_TYPE_F32 ? 0 : 0x1p-8f;
      for (int64_t j = 0; j < k; ++j)
        wrong += !(std::fabs(values[size_t(j)] - want[size_t(j)]) <=
                   std::fabs(want[size_t(j)]) * last + (last > 0 ? 0x1p-24f : 0));
      return;
    }
    std::vector<uint8_t> want_codes(size_t(k / 2)), want_scales(size_t(k / 16));
    check(nvfp4_quantize_host(values.data(), k, 1, k, t, want_codes.data(), k, want_scales.data(),
                              NVFP4_SCALE_LAYOUT_LINEAR));
    wrong += std::memcmp(want_codes.data(), &codes[size_t(row * k / 2)], size_t(k / 2)) != 0 ||
             std::memcmp(want_scales.data(), &scales[size_t(row * k / 16)], size_t(k / 16)) != 0;
  });
  if (wrong != 0)
    throw std::runtime_error(name(problem_) + ": " + std::to_string(wrong.load()) +
                             " rows or elements differ from the host's");
}

// A residual that has been added is the x of a norm without one.
void QuantizeSet::require_fused_host_bits(const std::vector<int64_t>& rows) const {
  const int64_t k = problem_.k;
  const size_t row_bytes = size_t(k) * element_bytes(problem_.type);
  const bool added = problem_.operation == add_rms_norm;
  const std::vector<uint8_t> in = added ? y_.download() : x.download(), y = y_.download(),
                             weight = weight_.download(), codes = codes_.download(),
                             tiles = scales_.download();
  const std::vector<float> scales_of_rows = tensor_scales();
  std::vector<uint8_t> scales(size_t(problem_.rows * k / 16));
  check(nvfp4_scale_convert_host(tiles.data(), kLayout, scales.data(), NVFP4_SCALE_LAYOUT_LINEAR,
                                 problem_.rows, k));
  std::atomic<int64_t> wrong{0};
  support::parallel_for(int64_t(rows.size()), [&](int64_t i) {
    const auto row = size_t(rows[size_t(i)]);
    std::vector<uint8_t> factor;
    nvfp4_fused_quantize_desc q = fused_;
    std::vector<uint8_t> want_codes(size_t(k / 2)), want_scales(size_t(k / 16));
    if (problem_.operation == silu_mul)
      factor.assign(y.begin() + std::ptrdiff_t(row * row_bytes),
                    y.begin() + std::ptrdiff_t((row + 1) * row_bytes));
    q.rows = 1;
    q.x = &in[row * row_bytes];
    q.y = factor.empty() ? nullptr : factor.data();
    q.weight = problem_.operation == silu_mul ? nullptr : weight.data();
    q.codes = want_codes.data();
    q.scales = want_scales.data();
    q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    float t = scales_of_rows[0];
    q.tensor_scale_device = &t;  // which is made where there is one for each row
    check(nvfp4_fused_quantize_host(&q));
    wrong += is_of_rows(problem_) && t != scales_of_rows[row];
    wrong += std::memcmp(want_codes.data(), &codes[row * size_t(k / 2)], size_t(k / 2)) != 0 ||
             std::memcmp(want_scales.data(), &scales[row * size_t(k / 16)], size_t(k / 16)) != 0;
  });
  if (wrong != 0)
    throw std::runtime_error(name(problem_) + ": " + std::to_string(wrong.load()) +
                             " rows differ from the host's");
}

}  // namespace bench
