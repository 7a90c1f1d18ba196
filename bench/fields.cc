// SPDX-License-Identifier: MIT
// nvfp4_bench fields: what a field of the descriptor costs over the plain product, D in fp16 by
// rows, of the same sizes: batch_invariant, D by columns, linear scales, SiLU, and static weights.
// Each is verified, then all are timed in turns.
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bench/check.h"
#include "bench/commands.h"
#include "bench/device.h"
#include "bench/figures.h"
#include "bench/gpu_timer.h"
#include "bench/head.h"
#include "bench/ours.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::DeviceGemm;
using support::Problem;
using support::Shape;

constexpr support::Data kData = support::Data::gpumode;
constexpr uint64_t kSeed = 1;

Problem problem_of(const Shape& s, int32_t a_type) {
  if (a_type == NVFP4_TYPE_NONE) return support::make_problem(s, kData, kSeed);
  return support::make_a16_problem(s, a_type, kData, kSeed);
}

// The product with D by columns. Its bits are those of D by rows, since all sums are exact.
class ByColumns {
 public:
  ByColumns(const Gpu& gpu, const Problem& problem, const std::vector<uint16_t>& rows, bool timed)
      : shape_(problem.shape), rows_(rows) {
    const int count =
        timed ? cold_copies(
                    compulsory_bytes(shape_, problem.a.quantized() ? kQuantizedBytes : kHalfBytes),
                    gpu.l2_bytes)
              : 1;
    copies_.push_back(std::make_unique<DeviceGemm>(gpu.driver, problem));
    copies_[0]->desc.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR;
    copies_[0]->desc.d_ld = shape_.m;
    while (int(copies_.size()) < count)
      copies_.push_back(std::make_unique<DeviceGemm>(*copies_[0]));
    check(copies_[0]->enqueue());
    require(*copies_[0]);
  }
  Series series() const {
    const int count = int(copies_.size());
    const Launch launch = [this](int i, CUstream stream) {
      check(copies_[size_t(i) % copies_.size()]->enqueue(stream));
    };
    return {launch, count * std::max(1, 20 / count)};
  }
  void require_same() const {
    for (const auto& copy : copies_) require(*copy);
  }

 private:
  void require(const DeviceGemm& gemm) const {
    const std::vector<uint16_t> d = gemm.d_memory();
    for (int64_t m = 0; m < shape_.m; ++m)
      for (int64_t n = 0; n < shape_.n; ++n)
        if (d[size_t(n * shape_.m + m)] != rows_[size_t(m * shape_.n + n)])
          throw std::runtime_error(to_string(shape_) + " by columns is not what it is by rows");
  }

  const Shape shape_;
  const std::vector<uint16_t>& rows_;
  std::vector<std::unique_ptr<DeviceGemm>> copies_;
};

struct Products {
  Problem plain, invariant, linear;
  OurGemm product, batch_invariant, linear_scales, silu;
  ByColumns by_columns;

  static Problem with_invariance(Problem problem) {
    problem.batch_invariant = true;
    return problem;
  }
  static Problem with_linear_scales(Problem problem) {
    problem.a.layout = problem.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
    return problem;
  }
  Products(const Gpu& gpu, const Shape& s, int32_t a_type, bool timed)
      : plain(problem_of(s, a_type)),
        invariant(with_invariance(plain)),
        linear(with_linear_scales(plain)),
        product(gpu, plain, timed),
        batch_invariant(gpu, invariant, timed),
        linear_scales(gpu, linear, timed),
        silu(gpu, plain, timed),
        by_columns(gpu, plain, product.d(), timed) {
    support::EpilogueFields fields;
    fields.activation = NVFP4_ACTIVATION_SILU;
    silu.set_epilogue(fields);
  }
  void require_same() const {
    for (const OurGemm* gemm : {&product, &batch_invariant, &linear_scales, &silu})
      gemm->require_same();
    by_columns.require_same();
  }
};

const char* name_of_tokens(int32_t a_type) {
  return a_type == NVFP4_TYPE_NONE ? "nvfp4" : a_type == NVFP4_TYPE_F16 ? "f16" : "bf16";
}

void time_shape(const Gpu& gpu, GpuTimer& timer, const Shape& s, const FieldsOptions& options) {
  support::progress(to_string(s));
  Products p(gpu, s, options.a_type, true);
  const auto times = timer.interleaved(
      {p.product.series(NVFP4_PDL_OFF), p.product.series(NVFP4_PDL_ON_STATIC_WEIGHTS),
       p.batch_invariant.series(NVFP4_PDL_OFF), p.by_columns.series(),
       p.linear_scales.series(NVFP4_PDL_OFF), p.silu.series(NVFP4_PDL_OFF)},
      options.replays);
  p.require_same();
  std::printf("%lld,%lld,%lld,%s,%s,%s,%s", (long long)s.m, (long long)s.n, (long long)s.k,
              name_of_tokens(options.a_type), p.product.variant().c_str(),
              p.batch_invariant.variant().c_str(), p.linear_scales.variant().c_str());
  for (const auto& samples : times) std::printf(",%.2f", median(samples));
  for (size_t i = 1; i < times.size(); ++i) {
    std::printf(",%.3f", median(times[i]) / median(times[0]));
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int time_fields(const FieldsOptions& options) {
  const support::Driver& driver = support::Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  std::vector<Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(parse_shape(text));
  if (gpu.info.emulated()) {
    for (const Shape& s : shapes) Products(gpu, s, options.a_type, false);
    std::printf("# %s: nothing is timed in the emulator\n", gpu.info.name.c_str());
    return 0;
  }
  GpuTimer timer(driver);
  std::fputs(
      head_of_turns("six", options.replays, options.command, gpu.info.name, int(gpu.info.sms))
          .c_str(),
      stdout);
  std::printf(
      "m,n,k,tokens,variant,variant_batch_invariant,variant_linear_scales,us,static_weights_us,"
      "batch_invariant_us,by_columns_us,linear_scales_us,silu_us,x_static_weights,"
      "x_batch_invariant,x_by_columns,x_linear_scales,x_silu\n");
  for (const Shape& s : shapes) time_shape(gpu, timer, s, options);
  support::progress_done();
  return 0;
}

}  // namespace bench
