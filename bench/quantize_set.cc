// SPDX-License-Identifier: MIT
#include "bench/quantize_set.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tools/harness/formats.h"
#include "tools/harness/parallel.h"

namespace bench {
namespace {

constexpr int32_t kLayout = NVFP4_SCALE_LAYOUT_128X4;

void check(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

float value_of(int32_t type, const uint8_t* bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes, element_bytes(type));
  if (type == NVFP4_TYPE_F16) return float(support::f16_value(uint16_t(bits)));
  if (type == NVFP4_TYPE_BF16) bits <<= 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

size_t scale_bytes(const QuantizeSet::Problem& p) {
  return nvfp4_scale_bytes(p.rows, p.k, kLayout);
}

// Of the largest finite element, as the header says.
float scale_of(const std::vector<float>& x) {
  float largest = 0;
  for (const float f : x)
    if (std::isfinite(f)) largest = std::max(largest, std::fabs(f));
  const float t = largest / 2688;
  return t == 0 ? 1 : t;
}

}  // namespace

std::string name(const QuantizeSet::Problem& p) {
  constexpr const char* kOperation[] = {"quantize", "dequantize"};
  constexpr const char* kScale[] = {"value", "device", "amax"};
  constexpr const char* kType[] = {"f16", "bf16", "f32"};
  return std::string(kOperation[p.operation]) + "," + kScale[p.tensor_scale_mode] + "," +
         kType[p.type - NVFP4_TYPE_F16] + "," + std::to_string(p.rows) + "," + std::to_string(p.k);
}

double moved_bytes(const QuantizeSet::Problem& p) {
  return double(p.rows) * double(p.k) * (double(element_bytes(p.type)) + 0.5 + 1.0 / 16);
}

QuantizeSet::QuantizeSet(const support::Driver& driver, const Problem& problem)
    : x(driver, size_t(problem.rows * problem.k) * element_bytes(problem.type)),
      problem_(problem),
      codes_(driver, size_t(problem.rows * problem.k / 2)),
      scales_(driver, scale_bytes(problem)),
      scale_(driver, sizeof(float)),
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
  set_tensor_scale(0.0011f);
}

void QuantizeSet::fill(const Filler& filler) {
  filler.fill(problem_.operation == dequantize ? codes_ : x);
  if (problem_.operation == dequantize) scales_.upload(std::vector<uint8_t>(scales_.bytes(), 0x39));
}

void QuantizeSet::set_tensor_scale(float t) {
  desc_.tensor_scale = t;
  std::vector<uint8_t> bytes(sizeof t);
  std::memcpy(bytes.data(), &t, sizeof t);
  scale_.upload(bytes);
}

float QuantizeSet::tensor_scale() const {
  float t;
  std::memcpy(&t, scale_.download().data(), sizeof t);
  return t;
}

void QuantizeSet::run(CUstream stream) {
  check(problem_.operation == dequantize ? nvfp4_dequantize(&desc_, stream)
                                         : nvfp4_quantize(&desc_, stream));
}

void QuantizeSet::require_host_bits(const std::vector<int64_t>& rows) const {
  const int64_t k = problem_.k;
  const size_t element = element_bytes(problem_.type);
  const std::vector<uint8_t> in = x.download(), codes = codes_.download(),
                             tiles = scales_.download();
  std::vector<uint8_t> scales(size_t(problem_.rows * k / 16));
  check(nvfp4_scale_convert_host(tiles.data(), kLayout, scales.data(), NVFP4_SCALE_LAYOUT_LINEAR,
                                 problem_.rows, k));
  const float t = tensor_scale();
  if (problem_.tensor_scale_mode == NVFP4_TENSOR_SCALE_AMAX) {
    std::vector<float> all(size_t(problem_.rows * k));
    support::parallel_for(problem_.rows, [&](int64_t row) {
      for (int64_t i = row * k; i < (row + 1) * k; ++i)
        all[size_t(i)] = value_of(problem_.type, &in[size_t(i) * element]);
    });
    if (t != scale_of(all)) throw std::runtime_error(name(problem_) + ": another tensor scale");
  }
  std::atomic<int64_t> wrong{0};
  support::parallel_for(int64_t(rows.size()), [&](int64_t i) {
    const int64_t row = rows[size_t(i)];
    std::vector<float> values(static_cast<size_t>(k));
    for (int64_t j = 0; j < k; ++j)
      values[size_t(j)] = value_of(problem_.type, &in[size_t(row * k + j) * element]);
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

}  // namespace bench
