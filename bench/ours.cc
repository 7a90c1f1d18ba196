// SPDX-License-Identifier: MIT
#include "bench/ours.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "bench/figures.h"
#include "tools/harness/compare.h"
#include "tools/harness/formats.h"
#include "tools/harness/plan_info.h"

namespace bench {
namespace {

using support::DeviceGemm;
using support::Driver;
using support::Problem;

constexpr int64_t kCheckedRows = 16, kCheckedColumns = 512;

std::string variant_of(const nvfp4_gemm_desc& desc, const support::DeviceInfo& device) {
  return support::plan_info(desc, device.compute_capability(), device.sms).variant;
}

// Rows or columns of D spread over all, the last one among them: the reference is too slow for all.
std::vector<int64_t> checked(int64_t all, int64_t at_most) {
  std::vector<int64_t> some;
  const int64_t count = std::min(all, at_most);
  for (int64_t i = 1; i <= count; ++i) some.push_back(i * all / count - 1);
  return some;
}

// Codes and scales, in the format that they have.
void copy_rows(const support::Operand& from, const std::vector<int64_t>& rows,
               support::Operand* to) {
  const size_t codes = size_t(from.k / 2), scales = size_t(from.k / from.block());
  to->format = from.format;
  to->scales.resize(size_t(to->scales_stride()));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(&to->codes[i * codes], &from.codes[size_t(rows[i]) * codes], codes);
    std::memcpy(&to->scales[i * scales], &from.scales[size_t(rows[i]) * scales], scales);
  }
}

// Some tokens.
support::Operand tokens_of(const support::Operand& whole, const std::vector<int64_t>& rows) {
  const int64_t k = whole.k;
  support::Operand part = support::make_problem({int64_t(rows.size()), 1, k}).a;
  if (whole.quantized()) {
    copy_rows(whole, rows, &part);
    return part;
  }
  part.type = whole.type;
  part.codes.clear(), part.scales.clear();
  for (const int64_t row : rows)
    part.halves.insert(part.halves.end(), whole.halves.begin() + row * k,
                       whole.halves.begin() + (row + 1) * k);
  return part;
}

// Some of the tokens and of the weights.
Problem part_of(const Problem& whole, const std::vector<int64_t>& rows,
                const std::vector<int64_t>& columns) {
  Problem part = support::make_problem({int64_t(rows.size()), int64_t(columns.size()), whole.k});
  copy_rows(whole.b, columns, &part.b);
  part.a = tokens_of(whole.a, rows);
  return part;
}

// Throws unless the checked elements have the reference's bits.
void verify_rows(const Problem& problem, const std::vector<uint16_t>& d) {
  const std::vector<int64_t> rows = checked(problem.m, kCheckedRows);
  const std::vector<int64_t> columns = checked(problem.n, kCheckedColumns);
  const Problem part = part_of(problem, rows, columns);
  if (!support::sums_are_exact(part)) throw std::logic_error("the data are not exact");
  std::vector<uint16_t> got;
  for (const int64_t row : rows)
    for (const int64_t column : columns) got.push_back(d[size_t(row * problem.n + column)]);
  const auto verdict = support::compare_bits(part.shape(), got, support::reference(part));
  if (!verdict.passed())
    throw std::runtime_error(to_string(problem.shape()) + " is wrong: " + verdict.first_difference);
}

// For each element, the next one that is checked.
std::vector<size_t> next_of(const std::vector<int64_t>& checked, int64_t all) {
  std::vector<size_t> next;
  for (int64_t i = 0; i < all; ++i)
    next.push_back(size_t(std::lower_bound(checked.begin(), checked.end(), i) - checked.begin()));
  return next;
}

// Values of 16 bits, spread: out[i] = values[at[i]].
std::vector<uint8_t> spread(const uint8_t* values, const std::vector<size_t>& at) {
  std::vector<uint8_t> out(at.size() * 2);
  for (size_t i = 0; i < at.size(); ++i) std::memcpy(&out[i * 2], values + at[i] * 2, 2);
  return out;
}

}  // namespace

void take_tokens(const support::Operand& tokens, int64_t m, Problem* problem) {
  std::vector<int64_t> rows(static_cast<size_t>(m));
  std::iota(rows.begin(), rows.end(), 0);
  problem->a = tokens_of(tokens, rows);
  problem->m = m;
  problem->d_batch_stride = m * problem->d_ld;
}

OurGemm::OurGemm(const Gpu& gpu, const Problem& problem, bool timed)
    : gpu_(gpu), problem_(problem), a_bytes_(problem.a.quantized() ? kQuantizedBytes : kHalfBytes) {
  const double bytes = compulsory_bytes(problem.shape(), a_bytes_);
  const int count = timed ? cold_copies(bytes, gpu.l2_bytes) : 1;
  copies_.push_back(std::make_unique<DeviceGemm>(gpu.driver, problem));
  while (int(copies_.size()) < count) copies_.push_back(std::make_unique<DeviceGemm>(*copies_[0]));
  variant_ = variant_of(copies_[0]->desc, gpu.info);
  check(copies_[0]->enqueue());
  d_ = copies_[0]->d();
  verify_rows(problem, d_);
}

Series OurGemm::series(int32_t pdl) {
  return support::in_turns(copies_, [pdl](DeviceGemm& copy, CUstream stream) {
    copy.desc.pdl = pdl;
    check(copy.enqueue(stream));
  });
}

void OurGemm::require(const std::vector<uint16_t>& want) const {
  for (const auto& copy : copies_)
    if (copy->d() != want) throw std::runtime_error("a timed launch gave other bits");
}

// Where C and the bias are not checked, they repeat the next that are.
void OurGemm::set_epilogue(support::Fields fields) {
  fields.alpha = problem_.alpha;
  const int64_t n = problem_.n;
  const std::vector<int64_t> rows = checked(problem_.m, 2);
  const std::vector<int64_t> columns = checked(n, kCheckedColumns);
  const support::Problem part = support::with_fields(part_of(problem_, rows, columns), fields, 1);
  const std::vector<size_t> column = next_of(columns, n);
  std::vector<uint8_t> c, bias;
  if (!part.bias.empty()) bias = spread(part.bias.data(), column);
  if (!part.c.empty())
    for (const size_t row : next_of(rows, problem_.m)) {
      const std::vector<uint8_t> line = spread(&part.c[row * columns.size() * 2], column);
      c.insert(c.end(), line.begin(), line.end());
    }
  set_epilogue(make_desc(part, NVFP4_SCALE_LAYOUT_128X4), bias, c);
  check(copies_[0]->enqueue());
  d_ = copies_[0]->d();
  std::vector<uint16_t> want(rows.size() * columns.size());
  const std::vector<uint8_t> bytes = part.reference();
  std::memcpy(want.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (d_[size_t(rows[i / columns.size()] * n + columns[i % columns.size()])] != want[i])
      throw std::runtime_error(to_string(problem_.shape()) + " is wrong with " + to_string(fields));
}

void OurGemm::set_epilogue(const nvfp4_gemm_desc& as, const std::vector<uint8_t>& bias,
                           const std::vector<uint8_t>& c) {
  bias_ = std::make_unique<support::DeviceBuffer>(gpu_.driver, bias);
  c_.clear();
  for (const auto& copy : copies_) {
    if (c_.empty())
      c_.push_back(std::make_unique<support::DeviceBuffer>(gpu_.driver, c));
    else
      c_.push_back(std::make_unique<support::DeviceBuffer>(gpu_.driver, *c_[0]));
    nvfp4_gemm_desc& desc = copy->desc;
    desc.d_type = as.d_type, desc.activation = as.activation, desc.beta = as.beta;
    desc.bias_type = as.bias_type, desc.bias = bias.empty() ? nullptr : bias_->pointer();
    desc.c_type = as.c_type, desc.c = c.empty() ? nullptr : c_.back()->pointer();
    desc.c_ld = c.empty() ? as.c_ld : problem_.n;
    copy->fit_workspace();
  }
}

void OurGemm::set_amax() {
  uint16_t largest = 0;
  for (const uint16_t x : d_) largest = std::max<uint16_t>(largest, x & 0x7FFF);
  for (const auto& copy : copies_) {
    amax_.push_back(std::make_unique<support::DeviceBuffer>(gpu_.driver, sizeof(float)));
    gpu_.driver.check(gpu_.driver.cuMemsetD8(amax_.back()->address(), 0, sizeof(float)),
                      "cuMemsetD8");
    copy->desc.d_amax = static_cast<float*>(amax_.back()->pointer());
    copy->fit_workspace();
  }
  check(copies_[0]->enqueue());
  if (copies_[0]->d() != d_) throw std::runtime_error("with d_amax D has other bits");
  float amax;
  std::memcpy(&amax, amax_[0]->download().data(), sizeof amax);
  // D is rounded to even: a tie may be either neighbour.
  const double least = support::f16_value(uint16_t(largest - 1)),
               value = support::f16_value(largest);
  const double most = support::f16_value(uint16_t(largest + 1));
  if (2.0 * amax < least + value || 2.0 * amax > value + most)
    throw std::runtime_error(to_string(problem_.shape()) + ": d_amax is not D's largest");
}

double gpumode_us(const Driver& driver, const Problem& problem) {
  constexpr int kCalls = 50;
  std::vector<std::unique_ptr<DeviceGemm>> copies;
  for (int i = 0; i < kCalls; ++i) copies.push_back(std::make_unique<DeviceGemm>(driver, problem));
  const support::DeviceBuffer dummy(driver, size_t(1) << 30);
  CUevent start{}, stop{};
  driver.check(driver.cuEventCreate(&start, CU_EVENT_DEFAULT), "cuEventCreate");
  driver.check(driver.cuEventCreate(&stop, CU_EVENT_DEFAULT), "cuEventCreate");
  const auto begin = std::chrono::steady_clock::now();
  double sum = 0, squares = 0;
  int n = 0;
  for (bool enough = false; !enough;) {
    driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
    driver.check(driver.cuMemsetD8(dummy.address(), uint8_t(n), dummy.bytes()), "cuMemsetD8");
    driver.cuEventRecord(start, nullptr);
    for (const auto& copy : copies) check(copy->enqueue(nullptr));
    driver.cuEventRecord(stop, nullptr);
    float ms = 0;
    driver.check(driver.cuEventSynchronize(stop), "cuEventSynchronize");
    driver.check(driver.cuEventElapsedTime(&ms, start, stop), "cuEventElapsedTime");
    const double us = 1e3 * double(ms) / kCalls;
    sum += us, squares += us * us, ++n;
    const double mean = sum / n, variance = std::max(0.0, squares / n - mean * mean);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    enough = (n > 2 && std::sqrt(variance / n) < 1e-3 * mean) || n == 1000 || spent.count() > 30;
  }
  driver.cuEventDestroy(start);
  driver.cuEventDestroy(stop);
  return sum / n;
}

}  // namespace bench
