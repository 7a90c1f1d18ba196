// SPDX-License-Identifier: MIT
// nvfp4_bench fields: what a field of the descriptor costs over the plain product, D in fp16 by
// rows, of the same sizes: static weights, batch_invariant, D by columns, SiLU with a bias, C,
// linear scales, MXFP4 operands (A, too, unless it is of 16 bits), d_amax. Each is verified, then
// all are timed in turns.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bench/figures.h"
#include "bench/ours.h"
#include "bench/turns.h"

namespace bench {
namespace {

using support::DeviceGemm;
using support::Problem;
using support::Shape;

// The product with D by columns. Its bits are those of D by rows, since all sums are exact.
class ByColumns {
 public:
  ByColumns(const Gpu& gpu, const Problem& problem, const std::vector<uint16_t>& rows, bool timed)
      : shape_(problem.shape()), rows_(rows) {
    const int count =
        timed ? cold_copies(
                    compulsory_bytes(shape_, problem.a.quantized() ? kQuantizedBytes : kHalfBytes),
                    gpu.l2_bytes)
              : 1;
    copies_.push_back(std::make_unique<DeviceGemm>(gpu.driver, problem));
    copies_[0]->desc.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR;
    copies_[0]->desc.d_ld = shape_.m;
    copies_[0]->fit_workspace();
    while (int(copies_.size()) < count)
      copies_.push_back(std::make_unique<DeviceGemm>(*copies_[0]));
    check(copies_[0]->enqueue());
    require(*copies_[0]);
  }
  Series series() const {
    return support::in_turns(
        copies_, [](const DeviceGemm& copy, CUstream stream) { check(copy.enqueue(stream)); });
  }
  void require_same() const {
    for (const auto& copy : copies_) require(*copy);
  }

 private:
  void require(const DeviceGemm& gemm) const {
    constexpr int64_t kColumns = 32;  // read together, or each element would miss a cache
    const std::vector<uint16_t> d = gemm.d_memory();
    for (int64_t first = 0; first < shape_.n; first += kColumns)
      for (int64_t m = 0; m < shape_.m; ++m)
        for (int64_t n = first; n < std::min(first + kColumns, shape_.n); ++n)
          if (d[size_t(n * shape_.m + m)] != rows_[size_t(m * shape_.n + n)])
            throw std::runtime_error(to_string(shape_) + " by columns is not what it is by rows");
  }

  const Shape shape_;
  const std::vector<uint16_t>& rows_;
  std::vector<std::unique_ptr<DeviceGemm>> copies_;
};

// The plain product and the same with a field, each on copies of its own.
struct Products {
  Problem plain, invariant, linear, mxfp4;
  OurGemm product, batch_invariant, linear_scales, mxfp4_operands, silu, c, amax;
  ByColumns by_columns;

  static Problem with_invariance(Problem problem) {
    problem.batch_invariant = true;
    return problem;
  }
  static Problem with_linear_scales(Problem problem) {
    problem.a.layout = problem.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
    return problem;
  }
  static Problem in_mxfp4(const Shape& s, int32_t a_type) {
    constexpr auto kData = support::Data::gpumode;
    return support::with_a16(support::with_format(support::make_problem(s, kData, 1),
                                                  NVFP4_OPERAND_FORMAT_MXFP4, kData, 1),
                             a_type, kData, 1);
  }
  Products(const Gpu& gpu, const Shape& s, int32_t a_type, bool timed)
      : plain(support::make_a16_problem(s, a_type, support::Data::gpumode, 1)),
        invariant(with_invariance(plain)),
        linear(with_linear_scales(plain)),
        mxfp4(in_mxfp4(s, a_type)),
        product(gpu, plain, timed),
        batch_invariant(gpu, invariant, timed),
        linear_scales(gpu, linear, timed),
        mxfp4_operands(gpu, mxfp4, timed),
        silu(gpu, plain, timed),
        c(gpu, plain, timed),
        amax(gpu, plain, timed),
        by_columns(gpu, plain, product.d(), timed) {
    support::Fields fields;
    fields.activation = NVFP4_ACTIVATION_SILU, fields.bias_type = NVFP4_TYPE_F16;
    silu.set_epilogue(fields);
    fields = {};
    fields.c_type = NVFP4_TYPE_F16, fields.beta = 1;
    c.set_epilogue(fields);
    amax.set_amax();
  }
  // As the columns of the table are, the plain product first.
  std::vector<Series> series() {
    std::vector<Series> all{product.series(NVFP4_PDL_OFF),
                            product.series(NVFP4_PDL_ON_STATIC_WEIGHTS),
                            batch_invariant.series(NVFP4_PDL_OFF), by_columns.series()};
    for (OurGemm* gemm : {&silu, &c, &linear_scales, &mxfp4_operands, &amax})
      all.push_back(gemm->series(NVFP4_PDL_OFF));
    return all;
  }
  void require_same() const {
    for (const OurGemm* gemm :
         {&product, &batch_invariant, &linear_scales, &mxfp4_operands, &silu, &c, &amax})
      gemm->require_same();
    by_columns.require_same();
  }
};

void time_shape(const Gpu& gpu, GpuTimer& timer, const Shape& s, const TurnsOptions& options) {
  Products p(gpu, s, options.a_type, true);
  const auto times = timer.interleaved(p.series(), options.replays);
  p.require_same();
  std::printf("%lld,%lld,%lld,%s,%s,%s,%s,%s", (long long)s.m, (long long)s.n, (long long)s.k,
              word_of(options.a_type), p.product.variant().c_str(),
              p.batch_invariant.variant().c_str(), p.linear_scales.variant().c_str(),
              p.mxfp4_operands.variant().c_str());
  for (const auto& samples : times) std::printf(",%.2f", median(samples));
  for (size_t i = 1; i < times.size(); ++i) {
    std::printf(",%.3f", median(times[i]) / median(times[0]));
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int time_fields(const TurnsOptions& options) {
  return time_in_turns(
      options,
      {"nine",
       "m,n,k,tokens,variant,variant_batch_invariant,variant_linear_scales,variant_mxfp4,us,"
       "static_weights_us,batch_invariant_us,by_columns_us,silu_bias_us,c_us,linear_scales_us,"
       "mxfp4_us,amax_us,x_static_weights,x_batch_invariant,x_by_columns,x_silu_bias,x_c,"
       "x_linear_scales,x_mxfp4,x_amax",
       [&](const Gpu& gpu, const Shape& s) { Products(gpu, s, options.a_type, false); },
       [&](const Gpu& gpu, GpuTimer& timer, const Shape& s) {
         time_shape(gpu, timer, s, options);
       }});
}

}  // namespace bench
