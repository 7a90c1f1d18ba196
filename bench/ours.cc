// SPDX-License-Identifier: MIT
#include "bench/ours.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "bench/check.h"
#include "bench/figures.h"
#include "tools/harness/compare.h"

namespace bench {
namespace {

using support::DeviceGemm;
using support::Driver;
using support::Problem;

constexpr int64_t kCheckedRows = 16, kCheckedColumns = 512;

// Out of nvfp4_gemm_explain's lines: the library's log would slow the calls down.
std::string variant_of(const nvfp4_gemm_desc& desc, const support::DeviceInfo& info) {
  std::string text(4096, 0);
  check(nvfp4_gemm_explain(&desc, info.compute_capability(), info.sms, text.data(), text.size()));
  const std::string key = "\nvariant ";
  const size_t line = text.find(key);
  if (line == std::string::npos) return "?";
  const size_t first = text.find_first_not_of(' ', line + key.size());
  return text.substr(first, text.find_first_of(" \n", first) - first);
}

// Rows or columns of D spread over all, the last one among them: the reference is too slow for all.
std::vector<int64_t> checked(int64_t all, int64_t at_most) {
  std::vector<int64_t> some;
  const int64_t count = std::min(all, at_most);
  for (int64_t i = 1; i <= count; ++i) some.push_back(i * all / count - 1);
  return some;
}

void copy_rows(const support::Operand& from, const std::vector<int64_t>& rows,
               support::Operand* to) {
  const int64_t k = from.k;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(&to->codes[i * size_t(k / 2)], &from.codes[size_t(rows[i] * k / 2)], size_t(k / 2));
    std::memcpy(&to->scales[i * size_t(k / 16)], &from.scales[size_t(rows[i] * k / 16)],
                size_t(k / 16));
  }
}

// Some of the tokens and of the weights.
Problem part_of(const Problem& whole, const std::vector<int64_t>& rows,
                const std::vector<int64_t>& columns) {
  const int64_t k = whole.shape.k;
  Problem part = support::make_problem({int64_t(rows.size()), int64_t(columns.size()), k});
  copy_rows(whole.b, columns, &part.b);
  if (!whole.a.quantized()) {
    part.a.type = whole.a.type;
    part.a.codes.clear();
    for (const int64_t row : rows)
      part.a.halves.insert(part.a.halves.end(), whole.a.halves.begin() + row * k,
                           whole.a.halves.begin() + (row + 1) * k);
    return part;
  }
  copy_rows(whole.a, rows, &part.a);
  return part;
}

// Throws unless the checked elements have the reference's bits.
void verify_rows(const Problem& problem, const std::vector<uint16_t>& d) {
  const std::vector<int64_t> rows = checked(problem.shape.m, kCheckedRows);
  const std::vector<int64_t> columns = checked(problem.shape.n, kCheckedColumns);
  const Problem part = part_of(problem, rows, columns);
  if (!support::sums_are_exact(part)) throw std::logic_error("the data are not exact");
  std::vector<uint16_t> got;
  for (const int64_t row : rows)
    for (const int64_t column : columns) got.push_back(d[size_t(row * problem.shape.n + column)]);
  const auto verdict = support::compare_bits(part.shape, got, support::reference(part));
  if (!verdict.passed())
    throw std::runtime_error(to_string(problem.shape) + " is wrong: " + verdict.first_difference);
}

std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

Problem with_tokens(const Problem& whole, int64_t m) {
  Problem part = part_of(whole, first(m), first(whole.shape.n));
  part.batch_invariant = whole.batch_invariant;
  return part;
}

OurGemm::OurGemm(const Gpu& gpu, const Problem& problem, bool timed)
    : gpu_(gpu), problem_(problem), a_bytes_(problem.a.quantized() ? kQuantizedBytes : kHalfBytes) {
  const double bytes = compulsory_bytes(problem.shape, a_bytes_);
  const int count = timed ? cold_copies(bytes, gpu.l2_bytes) : 1;
  for (int i = 0; i < count; ++i)
    copies_.push_back(std::make_unique<DeviceGemm>(gpu.driver, problem));
  variant_ = variant_of(copies_[0]->desc, gpu.info);
  check(copies_[0]->enqueue());
  d_ = copies_[0]->d();
  verify_rows(problem, d_);
}

Series OurGemm::series(int32_t pdl) {
  const auto launch = [this, pdl](int i, CUstream stream) {
    DeviceGemm& copy = *copies_[size_t(i) % copies_.size()];
    copy.desc.pdl = pdl;
    check(copy.enqueue(stream));
  };
  const int count = int(copies_.size());
  return {launch, count * std::max(1, 20 / count)};
}

void OurGemm::require(const std::vector<uint16_t>& want) const {
  for (const auto& copy : copies_)
    if (copy->d() != want) throw std::runtime_error("a timed launch gave other bits");
}

// Two rows are compared with the reference, which takes one thread here.
void OurGemm::set_epilogue(support::EpilogueFields fields) {
  fields.alpha = problem_.alpha;
  const int64_t n = problem_.shape.n;
  const std::vector<int64_t> rows = checked(problem_.shape.m, 2);
  const support::GeneralProblem part(part_of(problem_, rows, first(n)), fields, 1);
  const nvfp4_gemm_desc as = part.desc(NVFP4_SCALE_LAYOUT_128X4);
  const auto of_part = [&](int64_t row) { return std::lower_bound(rows.begin(), rows.end(), row); };
  std::vector<uint8_t> c;
  for (int64_t row = 0; row < problem_.shape.m && !part.c.empty(); ++row) {
    const auto from = part.c.begin() + (of_part(row) - rows.begin()) * n * 2;
    c.insert(c.end(), from, from + n * 2);
  }
  bias_ = std::make_unique<support::DeviceBuffer>(gpu_.driver, part.bias);
  c_.clear();
  for (const auto& copy : copies_) {
    c_.push_back(std::make_unique<support::DeviceBuffer>(gpu_.driver, c));
    nvfp4_gemm_desc& desc = copy->desc;
    desc.d_type = as.d_type, desc.activation = as.activation, desc.beta = as.beta;
    desc.bias_type = as.bias_type, desc.bias = part.bias.empty() ? nullptr : bias_->pointer();
    desc.c_type = as.c_type, desc.c = c.empty() ? nullptr : c_.back()->pointer();
    desc.c_ld = as.c_ld;
  }
  check(copies_[0]->enqueue());
  d_ = copies_[0]->d();
  std::vector<uint16_t> want(rows.size() * size_t(n));
  const std::vector<uint8_t> bytes = part.reference();
  std::memcpy(want.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto got = d_.begin() + rows[i] * n;
    if (!std::equal(got, got + n, want.begin() + long(i) * n))
      throw std::runtime_error(to_string(problem_.shape) + " is wrong with " + to_string(fields));
  }
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
