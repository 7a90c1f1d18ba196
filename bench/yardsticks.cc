// SPDX-License-Identifier: MIT
#include "bench/yardsticks.h"

#include <algorithm>

#include "bench/figures.h"
#include "bench/tensor_rate.h"
#include "tools/harness/module.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::Driver;

// `read_all` adds up 16-byte words, four in flight per thread; it stores only what cannot happen.
constexpr const char* kKernels = R"(
.version 7.8
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry read_all(.param .u64 from, .param .u64 words, .param .u64 out)
{
.reg .pred more, odd;
.reg .b32 t, n, b, a<4>, v<16>;
.reg .b64 at, step, end, i, p<5>, o;
mov.u32 t, %tid.x;
mov.u32 n, %ntid.x;
mov.u32 b, %ctaid.x;
mad.lo.u32 t, b, n, t;
cvt.u64.u32 i, t;
mov.u32 b, %nctaid.x;
mul.lo.u32 n, n, b;
cvt.u64.u32 step, n;
shl.b64 step, step, 4;
ld.param.u64 at, [from];
ld.param.u64 end, [words];
cvta.to.global.u64 at, at;
shl.b64 end, end, 4;
add.u64 end, at, end;
shl.b64 i, i, 4;
add.u64 p0, at, i;
mov.u32 a0, 0;
LOOP:
add.u64 p1, p0, step;
add.u64 p2, p1, step;
add.u64 p3, p2, step;
setp.ge.u64 more, p3, end;
@more bra DONE;
ld.global.nc.v4.u32 {v0, v1, v2, v3}, [p0];
ld.global.nc.v4.u32 {v4, v5, v6, v7}, [p1];
ld.global.nc.v4.u32 {v8, v9, v10, v11}, [p2];
ld.global.nc.v4.u32 {v12, v13, v14, v15}, [p3];
add.u64 p0, p3, step;
xor.b32 v0, v0, v1; xor.b32 v2, v2, v3; xor.b32 v4, v4, v5; xor.b32 v6, v6, v7;
xor.b32 v8, v8, v9; xor.b32 v10, v10, v11; xor.b32 v12, v12, v13; xor.b32 v14, v14, v15;
xor.b32 v0, v0, v2; xor.b32 v4, v4, v6; xor.b32 v8, v8, v10; xor.b32 v12, v12, v14;
xor.b32 v0, v0, v4; xor.b32 v8, v8, v12; xor.b32 v0, v0, v8; or.b32 a0, a0, v0;
bra LOOP;
DONE:
setp.ne.u32 odd, a0, 0;
@!odd bra END;
ld.param.u64 o, [out];
cvta.to.global.u64 o, o;
st.global.u32 [o], a0;
END:
ret;
}
.visible .entry copy_all(.param .u64 from, .param .u64 words, .param .u64 out)
{
.reg .pred more;
.reg .b32 t, n, b, v<16>;
.reg .b64 at, to, step, end, i, p<4>, q<4>;
mov.u32 t, %tid.x;
mov.u32 n, %ntid.x;
mov.u32 b, %ctaid.x;
mad.lo.u32 t, b, n, t;
cvt.u64.u32 i, t;
mov.u32 b, %nctaid.x;
mul.lo.u32 n, n, b;
cvt.u64.u32 step, n;
shl.b64 step, step, 4;
ld.param.u64 at, [from];
ld.param.u64 end, [words];
ld.param.u64 to, [out];
cvta.to.global.u64 at, at;
cvta.to.global.u64 to, to;
shl.b64 end, end, 4;
add.u64 end, at, end;
shl.b64 i, i, 4;
add.u64 p0, at, i;
add.u64 q0, to, i;
LOOP:
add.u64 p1, p0, step;
add.u64 p2, p1, step;
add.u64 p3, p2, step;
setp.ge.u64 more, p3, end;
@more bra END;
ld.global.nc.v4.u32 {v0, v1, v2, v3}, [p0];
ld.global.nc.v4.u32 {v4, v5, v6, v7}, [p1];
ld.global.nc.v4.u32 {v8, v9, v10, v11}, [p2];
ld.global.nc.v4.u32 {v12, v13, v14, v15}, [p3];
add.u64 q1, q0, step;
add.u64 q2, q1, step;
add.u64 q3, q2, step;
st.global.v4.u32 [q0], {v0, v1, v2, v3};
st.global.v4.u32 [q1], {v4, v5, v6, v7};
st.global.v4.u32 [q2], {v8, v9, v10, v11};
st.global.v4.u32 [q3], {v12, v13, v14, v15};
add.u64 p0, p3, step;
add.u64 q0, q3, step;
bra LOOP;
END:
ret;
}
)";

class Kernels {
 public:
  explicit Kernels(const Driver& driver) : driver_(driver) {
    driver.check(driver.cuModuleLoadData(&module_, kKernels), "cuModuleLoadData");
    driver.check(driver.cuModuleGetFunction(&nothing_, module_, "nothing"), "cuModuleGetFunction");
    driver.check(driver.cuModuleGetFunction(&read_, module_, "read_all"), "cuModuleGetFunction");
    driver.check(driver.cuModuleGetFunction(&copy_, module_, "copy_all"), "cuModuleGetFunction");
  }
  ~Kernels() { driver_.cuModuleUnload(module_); }
  void nothing(CUstream stream) const { launch(nothing_, 1, nullptr, stream); }
  void read(unsigned ctas, void** arguments, CUstream stream) const {
    launch(read_, ctas, arguments, stream);
  }
  void copy(unsigned ctas, void** arguments, CUstream stream) const {
    launch(copy_, ctas, arguments, stream);
  }

 private:
  void launch(CUfunction f, unsigned ctas, void** arguments, CUstream stream) const {
    driver_.check(driver_.cuLaunchKernel(f, ctas, 1, 1, 512, 1, 1, 0, stream, arguments, nullptr),
                  "cuLaunchKernel");
  }
  const Driver& driver_;
  CUmodule module_ = nullptr;
  CUfunction nothing_ = nullptr, read_ = nullptr, copy_ = nullptr;
};

constexpr size_t kWorkspace = size_t(32) << 20;

}  // namespace

double read_bytes_per_us(const Driver& driver, GpuTimer& timer, int sms) {
  const DeviceBuffer data(driver, size_t(2) << 30), out(driver, 16);
  const Kernels kernels(driver);
  CUdeviceptr from = data.address(), to = out.address();
  uint64_t words = data.bytes() / 16;
  void* arguments[] = {&from, &words, &to};
  const auto samples = timer.graph(
      [&](int, CUstream stream) { kernels.read(unsigned(4 * sms), arguments, stream); }, 1, 10);
  return double(data.bytes()) / median(samples);
}

double copy_bytes_per_us(const Driver& driver, GpuTimer& timer, int sms) {
  const DeviceBuffer data(driver, size_t(1) << 30), out(driver, data.bytes());
  const Kernels kernels(driver);
  CUdeviceptr from = data.address(), to = out.address();
  uint64_t words = data.bytes() / 16;
  void* arguments[] = {&from, &words, &to};
  double best = 0;
  for (const int per_sm : {2, 4}) {
    const auto samples = timer.graph(
        [&](int, CUstream stream) { kernels.copy(unsigned(per_sm * sms), arguments, stream); }, 1,
        10);
    best = std::max(best, 2 * double(data.bytes()) / median(samples));
  }
  return best;
}

double empty_node_us(const Driver& driver, GpuTimer& timer) {
  const Kernels kernels(driver);
  return median(timer.graph([&](int, CUstream stream) { kernels.nothing(stream); }, 200, 15));
}

// Launches of about 400 us each, 3 ms between events, as long as the larger rows of the table.
double wgmma_operations_per_us(const Driver& driver, GpuTimer& timer, int sms) {
  constexpr uint32_t kRounds = 200;
  const support::Module module = support::Module::from_text(driver, dense_wgmma_program());
  const CUfunction kernel = module.function("dense_wgmma");
  const DeviceBuffer numbers(driver, kRateSharedBytes), out(driver, size_t(sms) * kRateThreads * 4);
  Filler(driver, GemmType::f16).fill(numbers);
  CUdeviceptr from = numbers.address(), to = out.address();
  uint32_t rounds = kRounds;
  void* arguments[] = {&from, &to, &rounds};
  const auto samples = timer.graph(
      [&](int, CUstream stream) {
        driver.check(driver.cuLaunchKernel(kernel, unsigned(sms), 1, 1, kRateThreads, 1, 1, 0,
                                           stream, arguments, nullptr),
                     "cuLaunchKernel");
      },
      8, 15);
  return 2 * rate_macs(unsigned(sms), kRounds) / median(samples);
}

CublasGemm::CublasGemm(const Driver& driver, const CublasLt& library, GemmType type,
                       const support::Shape& shape, double l2_bytes, int candidates)
    : workspace_(driver, kWorkspace) {
  const double bytes = double((shape.m + shape.n) * shape.k) * element_bytes(type);
  const int copies = cold_copies(bytes, l2_bytes);
  sets_.push_back(std::make_unique<CublasOperands>(driver, type, shape.m, shape.n, shape.k));
  while (int(sets_.size()) < copies)
    sets_.push_back(std::make_unique<CublasOperands>(driver, *sets_[0]));
  plan_ = library.plan({type, shape.m, shape.n, shape.k}, sets_[0]->addresses(), candidates,
                       workspace_.address(), workspace_.bytes());
}

CublasGemm::~CublasGemm() = default;

Series CublasGemm::series(int candidate) const {
  return support::in_turns(sets_, [this, candidate](const CublasOperands& set, CUstream stream) {
    plan_->run(candidate, set.addresses(), stream);
  });
}

void CublasGemm::screen(GpuTimer& timer, int replays) {
  double fastest = 0;
  for (int c = 0; c < plan_->candidates(); ++c) {
    const auto [launch, calls] = series(c);
    const double us =
        median(timer.graph(launch, calls, c == 0 ? replays : std::max(3, replays / 3)));
    if (c == 0) first_us_ = us;
    if (c == 0 || us < fastest) best_ = c, fastest = us;
  }
}

double cublas_operations_per_us(const Driver& driver, GpuTimer& timer, const CublasLt& library,
                                double l2_bytes, int candidates) {
  double best = 0;
  for (const support::Shape& shape :
       {support::Shape{8192, 8192, 8192}, {4096, 7168, 16384}, {4096, 8192, 4096}}) {
    CublasGemm gemm(driver, library, GemmType::f16, shape, l2_bytes, candidates);
    gemm.screen(timer, 5);
    if (gemm.available())
      best = std::max(best, operations(shape) / median(timer.interleaved({gemm.best()}, 5)[0]));
  }
  return best;
}

}  // namespace bench
