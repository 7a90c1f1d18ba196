// SPDX-License-Identifier: MIT
// nvfp4_bench host: each function timed on the idle driver; CSV to stdout. bench/host_overhead.sh
// asks nvfp4_bench verify first, which is here too.
//
// A row: 200 batches of 500 calls, median and minimum of the batches' means; then 20,000 calls
// timed one by one, 99th percentile, the clock's own time taken off.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "bench/commands.h"
#include "bench/idle_driver.h"
#include "host/cuda/driver.h"
#include "nvfp4_gemm.h"
#include "tools/harness/compare.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/problem.h"

namespace {

// ---- clock --------------------------------------------------------------------------------------

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

double quantile(std::vector<double>& samples, double q) {
  const auto at = samples.begin() + static_cast<ptrdiff_t>(q * double(samples.size() - 1));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

struct Timing {
  double median, minimum, p99;
};

template <class Call>
std::vector<double> one_by_one(Call&& call) {
  std::vector<double> samples(20000);
  for (double& sample : samples) {
    const double start = now_ns();
    call();
    sample = now_ns() - start;
  }
  return samples;
}

template <class Call>
Timing measure(Call&& call) {
  constexpr int kBatches = 200, kCalls = 500;
  for (int i = 0; i < 10 * kCalls; ++i) call();
  std::vector<double> means(kBatches);
  for (double& mean : means) {
    const double start = now_ns();
    for (int i = 0; i < kCalls; ++i) call();
    mean = (now_ns() - start) / kCalls;
  }
  std::vector<double> clock = one_by_one([] {});
  std::vector<double> single = one_by_one(call);
  const double p99 = quantile(single, 0.99) - quantile(clock, 0.5);
  return {quantile(means, 0.5), *std::min_element(means.begin(), means.end()), p99};
}

// ---- host ---------------------------------------------------------------------------------------

// Addresses that nobody reads: far apart, aligned.
void* address(uint64_t number) { return reinterpret_cast<void*>(number << 36); }

nvfp4_gemm_desc problem_of(const support::Shape& shape) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = shape.m, g.n = shape.n, g.k = shape.k, g.l = shape.l;
  g.a = address(1), g.a_ld = g.k, g.a_scales = address(2);
  g.b = address(3), g.b_ld = g.k, g.b_scales = address(4);
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.a_batch_stride = g.m * g.k, g.b_batch_stride = g.n * g.k;
  g.a_scales_batch_stride_bytes =
      static_cast<int64_t>(nvfp4_scale_bytes(g.m, g.k, g.a_scale_layout));
  g.b_scales_batch_stride_bytes =
      static_cast<int64_t>(nvfp4_scale_bytes(g.n, g.k, g.b_scale_layout));
  g.d = address(5), g.d_ld = g.n, g.d_batch_stride = g.m * g.n, g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  return g;
}

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

void* idle_entry(void* library, const char* name) {
  const auto get =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  void* function = nullptr;
  CUdriverProcAddressQueryResult found;
  get(name, &function, 13000, 0, &found);
  return function;
}

// The driver calls of one run, made by hand: what no library could save.
struct BareCalls {
  decltype(&::cuCtxGetCurrent) current;
  decltype(&::cuCtxGetDevice) device;
  decltype(&::cuTensorMapEncodeTiled) encode;
  decltype(&::cuLaunchKernelEx) launch;
  CUtensorMap map{};

  explicit BareCalls(void* library)
      : current(reinterpret_cast<decltype(current)>(idle_entry(library, "cuCtxGetCurrent"))),
        device(reinterpret_cast<decltype(device)>(idle_entry(library, "cuCtxGetDevice"))),
        encode(reinterpret_cast<decltype(encode)>(idle_entry(library, "cuTensorMapEncodeTiled"))),
        launch(reinterpret_cast<decltype(launch)>(idle_entry(library, "cuLaunchKernelEx"))) {}

  void operator()() {
    CUcontext context;
    CUdevice number;
    CUlaunchConfig config{};
    current(&context);
    device(&number);
    for (int i = 0; i < 2; ++i) {
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, nullptr, nullptr, nullptr, nullptr, nullptr,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    }
    launch(&config, nullptr, nullptr, nullptr);
  }
};

void row(const char* what, const support::Shape& s, const Timing& t) {
  printf("%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.0f,%.0f,%.0f\n", what, s.m, s.n, s.k,
         s.l, t.median, t.minimum, t.p99);
}

// A plan makes no tensor map for its own addresses, and one for each of a and b that is replaced.
void time_plan(const support::Shape& shape, const nvfp4_gemm_desc& g, const IdleCounts& counts) {
  nvfp4_gemm_plan* plan = nullptr;
  require(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_SUCCESS, nvfp4_last_error());
  nvfp4_gemm_addresses other{};
  other.struct_size = sizeof other;
  other.a = address(6);
  other.d = address(7);
  const nvfp4_gemm_addresses* choices[] = {nullptr, &other};
  for (const nvfp4_gemm_addresses* addresses : choices) {
    const IdleCounts before = counts;
    uint64_t calls = 0;
    bool good = true;
    const Timing run = measure([&] {
      good &= nvfp4_gemm_plan_run(plan, addresses, nullptr) == NVFP4_SUCCESS;
      ++calls;
    });
    require(good && counts.launches - before.launches == calls, "a plan's run without its launch");
    require(counts.encodes - before.encodes == (addresses ? calls : 0), "tensor maps of a plan");
    require(counts.loads == before.loads, "a plan's run loaded an image again");
    row(addresses ? "nvfp4_gemm_plan_run with a and d" : "nvfp4_gemm_plan_run", shape, run);
  }
  nvfp4_gemm_plan_destroy(plan);
}

void time_shape(const support::Shape& shape, const IdleCounts& counts, void* library) {
  const nvfp4_gemm_desc g = problem_of(shape);
  nvfp4_gemm_desc bad = g;
  bad.d_ld = g.n - 1;
  require(nvfp4_gemm_run(&g, nullptr) == NVFP4_SUCCESS, nvfp4_last_error());
  require(nvfp4_gemm_run(&bad, nullptr) == NVFP4_STATUS_INVALID_VALUE, "d_ld < n was not refused");

  const IdleCounts before = counts;
  uint64_t calls = 0;
  bool good = true;
  const Timing run = measure([&] {
    good &= nvfp4_gemm_run(&g, nullptr) == NVFP4_SUCCESS;
    ++calls;
  });
  require(good && counts.launches - before.launches == calls, "a run without its launch");
  require(counts.encodes - before.encodes == 2 * calls, "a run without its two tensor maps");
  require(counts.others - before.others == 2 * calls, "a run asked more of the driver");
  require(counts.loads == before.loads, "a run loaded an image again");

  const auto supported = [&] { good &= nvfp4_gemm_supported(&g, 100) == NVFP4_SUCCESS; };
  const auto refused = [&] { good &= nvfp4_gemm_run(&bad, nullptr) != NVFP4_SUCCESS; };
  row("driver calls alone", shape, measure(BareCalls(library)));
  row("nvfp4_gemm_run", shape, run);
  time_plan(shape, g, counts);
  row("nvfp4_gemm_supported", shape, measure(supported));
  row("nvfp4_gemm_run refused", shape, measure(refused));
  require(good, "an answer changed while it was timed");
}

}  // namespace

namespace bench {

const support::Shape kShapes[] = {
    {128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}, {1, 4096, 4096}, {100, 1000, 192, 4},
};

bool verify() {
  const support::Driver& driver = support::Driver::get();
  const support::Context context(driver);
  const std::string device = support::devices(driver).at(0).name;
  bool good = true;
  for (const support::Shape& shape : kShapes) {
    const support::Problem problem = support::make_problem(shape, support::Data::gpumode, 1);
    const std::vector<uint16_t> d = support::run_on_device(driver, problem);
    const auto verdict = support::compare_bits(shape, d, support::reference(problem));
    good &= verdict.passed() && support::sums_are_exact(problem);
    printf("# %s: %" PRId64 " of %" PRId64 " elements equal the reference on %s\n",
           support::to_string(shape).c_str(), verdict.equal, verdict.total, device.c_str());
  }
  return good;
}

void time_host() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, "no libcuda.so.1");
  const auto get = reinterpret_cast<decltype(&idle_counts)>(dlsym(library, "idle_counts"));
  require(get != nullptr, "this libcuda.so.1 is not the idle driver");
  printf("call,m,n,k,l,median_ns,min_ns,p99_ns\n");
  for (const support::Shape& shape : kShapes) time_shape(shape, *get(), library);
}

}  // namespace bench
