// SPDX-License-Identifier: MIT
// Blocks of 16 are summed in integers, in units of 1/4, and added up in double: a block is an
// integer of 12 bits times a scale product of 8, so its value is exact, and a sum stays exact up to
// 53 bits.
#include "tools/harness/exact.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tools/harness/formats.h"
#include "tools/harness/parallel.h"

namespace support {

namespace {

// One row of an operand, decoded.
struct Row {
  std::vector<int8_t> twice;      // element * 2
  std::vector<double> scale;      // per block of 16; one of 32 counts as two
  std::vector<uint8_t> large;     // whether a block's scale is 256 or more
  std::vector<int16_t> exponent;  // of element * scale, at least that of the lowest
  bool ue8m0 = false;
};

// 9.0 multiplies element * scale * 2^-7 in fp16, whose smallest exponent is -14; with UE8M0 scales
// element * scale * 2^-2 in bf16.
int lowest_exponent(const Operand& o) { return o.ue8m0() ? -124 : -7; }
int16_t factor_exponent(double value, int lowest) {
  return value == 0 || !std::isfinite(value) ? int16_t(lowest)
                                             : int16_t(std::max(std::ilogb(value), lowest));
}

Row decode(const Operand& o, int64_t batch, int64_t row) {
  Row r;
  r.ue8m0 = o.ue8m0();
  r.twice.resize(size_t(o.k));
  r.scale.resize(size_t(o.k / 16));
  r.large.resize(size_t(o.k / 16));
  r.exponent.resize(size_t(o.k));
  for (int64_t i = 0; i < o.k; ++i) r.twice[size_t(i)] = int8_t(e2m1_twice(o.code(batch, row, i)));
  for (int64_t block = 0; block < o.k / 16; ++block) {
    const uint8_t byte = o.scale(batch, row, block * 16 / o.block());
    r.scale[size_t(block)] = o.scale_value(byte);
    r.large[size_t(block)] = !o.ue8m0() && (byte & 0x7F) >= 0x78;
    for (size_t i = size_t(block) * 16; i < size_t(block) * 16 + 16; ++i)
      r.exponent[i] = factor_exponent(r.twice[i] * r.scale[size_t(block)] / 2, lowest_exponent(o));
  }
  return r;
}

// Compiled for AVX2 as well where the loader can choose. The block sums are integers and the rest
// runs in one order, so every version gives the same result.
#if defined(__x86_64__)
[[gnu::target_clones("default", "avx2")]]
#endif
Sum sum_of(const Row& a, const Row& b) {
  Sum s;
  int16_t largest = -1000;
  double raised = 0;  // by the blocks of this step so far
  for (size_t block = 0; block < a.scale.size(); ++block) {
    int16_t sum = 0, magnitude = 0;  // at most 16 * 144
    for (size_t i = block * 16; i < block * 16 + 16; ++i) {
      const int16_t product = int16_t(a.twice[i] * b.twice[i]);
      sum = int16_t(sum + product);
      magnitude = int16_t(magnitude + std::abs(product));
      largest = std::max(largest, int16_t(a.exponent[i] + b.exponent[i]));
    }
    const double scale = a.scale[block] * b.scale[block] * 0.25;
    s.exact += sum * scale;
    s.magnitude += magnitude * scale;
    if (magnitude == 0) {
      const bool large = a.large[block] && b.large[block];
      raised = std::max(raised, a.ue8m0 ? scale * 0x1p-30 : large ? 0x1p-18 : 0);
    }
    if (block % 4 == 3 || block + 1 == a.scale.size()) s.raised += raised, raised = 0;
  }
  s.factors = std::ldexp(1.0, largest);
  s.least = a.ue8m0 ? 0x1p-149 : 0;
  return s;
}

// One row of an A that is not quantized.
struct HalfRow {
  std::vector<double> value;
  std::vector<int16_t> exponent;
};

HalfRow decode_halves(const Operand& o, int64_t batch, int64_t row) {
  const int lowest = o.type == NVFP4_TYPE_F16 ? -14 : -126;
  HalfRow r;
  for (int64_t i = 0; i < o.k; ++i) {
    const double value = o.half(batch, row, i);
    const bool counts = value != 0 && std::isfinite(value);
    r.value.push_back(value);
    r.exponent.push_back(int16_t(counts ? std::max(std::ilogb(value), lowest) : lowest));
  }
  return r;
}

// Products are exact in double; their sum is wrong by 2^-53 of S for each, which no bound here
// sees.
Sum sum_of(const HalfRow& a, const Row& b) {
  Sum s;
  int largest = -1000;
  for (size_t i = 0; i < a.value.size(); ++i) {
    const double product = a.value[i] * b.twice[i] * 0.5 * b.scale[i / 16];
    s.exact += product;
    s.magnitude += std::fabs(product);
    largest = std::max(largest, a.exponent[i] + b.exponent[i]);
  }
  s.factors = std::ldexp(1.0, largest);
  s.halves = true;
  return s;
}

}  // namespace

namespace {

// A step cuts its products and the accumulator, which stays between the sums of the negative and of
// the positive products, to so many bits; parts of K are added in fp32.
double cut_steps(const Sum& sum, int64_t k, double steps, int bits) {
  const double most = (sum.magnitude + std::fabs(sum.exact)) / 2;
  const double accumulator = most > 0 ? std::exp2(std::ilogb(most)) : 0;
  const double cut = std::ldexp(std::max(sum.factors, accumulator), -bits);
  return (steps + 4) * 0x1p-23 * sum.magnitude + (double(k) + steps) * cut;
}

// fp16 wgmma: 16 steps for every 256 of K begun.
double accumulation_bound_90(const Sum& sum, int64_t k) {
  return cut_steps(sum, k, 16.0 * double((k + 255) / 256), 25);
}

// By mma.sync on other GPUs: 8 MMAs for every 128 of K begun, each in two steps.
double accumulation_bound_80(const Sum& sum, int64_t k) {
  return cut_steps(sum, k, 16.0 * double((k + 127) / 128), 24);
}

}  // namespace

double accumulation_bound(const Sum& sum, int64_t k, int capability) {
  if (capability == 90) return accumulation_bound_90(sum, k);
  if (sum.halves) return accumulation_bound_80(sum, k);
  // Parts of K may be added: on 12.x up to 8 of at least 256.
  const double added = capability / 10 == 12 ? (k > 256 ? 4 : 0) : (k > 1792 ? 2 : 0);
  const double steps = double((k + 63) / 64) + added;
  return steps * 0x1p-23 * (1 + 0x1p-7) * sum.magnitude + sum.raised + steps * sum.least;
}

double error_bound(const Sum& sum, int64_t k, float alpha, int capability) {
  const double accumulated = accumulation_bound(sum, k, capability);
  const double scale = std::fabs(double(alpha));
  const double largest = scale * (std::fabs(sum.exact) + accumulated);
  return scale * accumulated + 0x1p-24 * largest + f16_half_ulp(largest);
}

void for_each_sum(const Problem& p,
                  const std::function<void(int64_t, int64_t, int64_t, const Sum&)>& visit,
                  const Progress& progress) {
  for (int64_t batch = 0; batch < p.l; ++batch) {
    std::vector<Row> columns(size_t(p.n));
    parallel_for(p.n, [&](int64_t n) { columns[size_t(n)] = decode(p.b, batch, n); });
    // A few rows per pass over the columns, which do not fit a cache.
    constexpr int64_t kRows = 8;
    const auto batches_done = [&](double part) {
      if (progress) progress((double(batch) + part) / double(p.l));
    };
    const auto each_group = [&](int64_t group) {
      const int64_t first = group * kRows, last = std::min(first + kRows, p.m);
      const auto visit_all = [&](const auto& decode_row) {
        std::vector<decltype(decode_row(p.a, batch, first))> rows;
        for (int64_t m = first; m < last; ++m) rows.push_back(decode_row(p.a, batch, m));
        for (int64_t n = 0; n < p.n; ++n) {
          for (int64_t m = first; m < last; ++m) {
            visit(batch, m, n, sum_of(rows[size_t(m - first)], columns[size_t(n)]));
          }
        }
      };
      if (p.a.quantized()) {
        visit_all(decode);
      } else {
        visit_all(decode_halves);
      }
    };
    parallel_for((p.m + kRows - 1) / kRows, each_group, batches_done);
  }
}

}  // namespace support
