// SPDX-License-Identifier: MIT
// nvfp4_bench clocks: what the CTAs of a kernel built with CLOCKS=1 noted
// (kernel/common/clocks.cuh).
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "bench/device.h"
#include "bench/figures.h"
#include "host/cuda/driver.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/module.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::DeviceGemm;
using support::Driver;
using support::Problem;

enum Point : size_t {
#define CLOCK_POINT(name, text) name,
#include "kernel/common/clocks.def"
#undef CLOCK_POINT
  kPoints
};
constexpr const char* kNames[] = {
#define CLOCK_POINT(name, text) #name,
#include "kernel/common/clocks.def"
#undef CLOCK_POINT
};

// By the name of the symbol, version and all.
template <class Function>
Function* find(const support::Driver& driver, Function*, const char* name) {
  auto* function = reinterpret_cast<Function*>(driver.extension(name));
  if (!function) throw std::runtime_error(std::string("the driver has no ") + name);
  return function;
}

#define NVFP4_FIND(driver, name) find(driver, &::name, #name)

CUgraph record(const support::Driver& driver, CUstream stream, const std::function<void()>& call) {
  CUgraph graph = nullptr;
  driver.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
               "cuStreamBeginCapture");
  call();
  driver.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  return graph;
}

// A node names a function, or a kernel of a library.
CUfunction function_of(const support::Driver& driver, CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const auto get = find(driver, &::cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2");
  driver.check(get(node, &params), "cuGraphKernelNodeGetParams");
  CUfunction function = params.func;
  if (!function)
    driver.check(NVFP4_FIND(driver, cuKernelGetFunction)(&function, params.kern),
                 "cuKernelGetFunction");
  return function;
}

CUfunction last_kernel(const support::Driver& driver, CUgraph graph) {
  size_t count = 0;
  driver.check(driver.cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  driver.check(driver.cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  CUfunction function = nullptr;
  for (const CUgraphNode node : nodes) {  // in launch order: one stream recorded them
    CUgraphNodeType type{};
    driver.check(NVFP4_FIND(driver, cuGraphNodeGetType)(node, &type), "cuGraphNodeGetType");
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) function = function_of(driver, node);
  }
  if (!function) throw std::runtime_error("the call launches no kernel");
  return function;
}

// The kernel behind a library's call: the last one that the call enqueues, found by recording it.
class Launched {
 public:
  // Records `call` on the stream, whose image is loaded already, and launches nothing. Throws where
  // the call launches no kernel or the driver cannot say which.
  Launched(const support::Driver& driver, CUstream stream, const std::function<void()>& call);

  const std::string& name() const { return name_; }

  // A variable of the kernel's module.
  support::Global global(const char* name) const;

 private:
  const support::Driver& driver_;
  CUfunction function_ = nullptr;
  std::string name_;
};

Launched::Launched(const support::Driver& driver, CUstream stream,
                   const std::function<void()>& call)
    : driver_(driver) {
  const CUgraph graph = record(driver, stream, call);
  function_ = last_kernel(driver, graph);
  const char* name = nullptr;
  driver.check(NVFP4_FIND(driver, cuFuncGetName)(&name, function_), "cuFuncGetName");
  name_ = name;
  driver.check(driver.cuGraphDestroy(graph), "cuGraphDestroy");
}

support::Global Launched::global(const char* name) const {
  CUmodule module = nullptr;
  driver_.check(NVFP4_FIND(driver_, cuFuncGetModule)(&module, function_), "cuFuncGetModule");
  return support::global_of(driver_, module, name);
}

using Cta = std::vector<uint64_t>;  // a value for each point

// The array of the module that `launched` is of, and its CTAs after a launch.
class Clocks {
 public:
  Clocks(const Driver& driver, const Launched& launched)
      : driver_(driver), array_(launched.global("nvfp4_clocks")) {
    if (array_.bytes == 0)
      throw std::runtime_error("this library's kernels have no clocks: make CLOCKS=1 builds some");
  }
  void clear() const {
    driver_.check(driver_.cuMemsetD8(array_.address, 0, array_.bytes), "cuMemsetD8");
  }
  std::vector<Cta> read() const {
    std::vector<uint64_t> words(array_.bytes / 8);
    driver_.check(driver_.cuMemcpyDtoH(words.data(), array_.address, array_.bytes), "cuMemcpyDtoH");
    std::vector<Cta> ctas;
    for (auto at = words.begin(); at != words.end(); at += kPoints)
      if (at[start] != 0) ctas.emplace_back(at, at + kPoints);
    return ctas;
  }

 private:
  const Driver& driver_;
  support::Global array_;
};

// One launch: clock cycles since a CTA's start, over all its CTAs, and the span of the grid.
struct Sample {
  double span_us = 0, mhz = 0;
  std::vector<double> median_of, max_of;
};

Sample sample_of(const std::vector<Cta>& ctas) {
  Sample sample;
  uint64_t begin = UINT64_MAX, end = 0;
  std::vector<double> mhz;
  for (const Cta& cta : ctas) {
    begin = std::min(begin, cta[begin_ns]);
    end = std::max(end, cta[end_ns]);
    mhz.push_back(1e3 * double(cta[last_store] - cta[start]) /
                  std::max(1.0, double(cta[end_ns] - cta[begin_ns])));
  }
  sample.span_us = 1e-3 * double(end - begin);
  sample.mhz = median(mhz);
  for (size_t point = first_load; point < kPoints; ++point) {
    std::vector<double> since;
    for (const Cta& cta : ctas)  // a CTA without stages of its own has not seen every point
      if (cta[point] != 0) since.push_back(double(cta[point] - cta[start]));
    sample.median_of.push_back(since.empty() ? 0 : median(since));
    sample.max_of.push_back(since.empty() ? 0 : quantile(since, 1));
  }
  return sample;
}

template <typename Value>
double middle(const std::vector<Sample>& samples, const Value& value) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(value(sample));
  return median(values);
}

void print_head(const ClocksOptions& options, const support::DeviceInfo& info) {
  std::printf(
      "# Clocks since a CTA's start: median and maximum over the CTAs of a launch, median over %d\n"
      "# launches, weights cold. span_us: first start to last store, by the GPU's timer.\n"
      "# command   %s\n# device    %s\n# library   %s\n",
      options.replays, options.command.c_str(), info.name.c_str(), nvfp4_build_info());
  for (size_t point = 0; point < kPoints; ++point) {
    constexpr const char* kTexts[] = {
#define CLOCK_POINT(name, text) text,
#include "kernel/common/clocks.def"
#undef CLOCK_POINT
    };
    std::printf("# %-11s %s\n", kNames[point], kTexts[point]);
  }
  std::printf("m,n,k,kernel,ctas,span_us,mhz");
  for (size_t point = first_load; point < kPoints; ++point)
    std::printf(",%s,%s_max", kNames[point], kNames[point]);
  std::printf("\n");
}

void print_row(const support::Shape& shape, const std::string& kernel, size_t ctas,
               const std::vector<Sample>& samples) {
  std::printf("%lld,%lld,%lld,%s,%zu,%.2f,%.0f", static_cast<long long>(shape.m),
              static_cast<long long>(shape.n), static_cast<long long>(shape.k), kernel.c_str(),
              ctas, middle(samples, [](const Sample& s) { return s.span_us; }),
              middle(samples, [](const Sample& s) { return s.mhz; }));
  for (size_t i = 0; i < kPoints - first_load; ++i)
    std::printf(",%.0f,%.0f", middle(samples, [i](const Sample& s) { return s.median_of[i]; }),
                middle(samples, [i](const Sample& s) { return s.max_of[i]; }));
  std::printf("\n");
  std::fflush(stdout);
}

// Each sample is of the launch after all other copies have passed through the L2.
void time_clocks(const Driver& driver, GpuTimer& timer, const Problem& problem, double l2_bytes,
                 int replays, int32_t pdl) {
  const int count = cold_copies(compulsory_bytes(problem.shape()), l2_bytes);
  std::vector<std::unique_ptr<DeviceGemm>> copies;
  for (int i = 0; i < count; ++i) {
    copies.push_back(std::make_unique<DeviceGemm>(driver, problem));
    copies.back()->desc.pdl = pdl;
  }
  check(copies[0]->enqueue(timer.stream()));  // loads the image: not while a stream is captured
  timer.wait();
  const Launched launched(driver, timer.stream(),
                          [&] { check(copies[0]->enqueue(timer.stream())); });
  const Clocks clocks(driver, launched);
  std::vector<Sample> samples;
  size_t ctas = 0;
  for (int i = 0; i < replays; ++i) {
    for (int c = 1; c < count; ++c) check(copies[size_t(c)]->enqueue(timer.stream()));
    timer.wait();
    clocks.clear();
    check(copies[0]->enqueue(timer.stream()));
    timer.wait();
    const std::vector<Cta> noted = clocks.read();
    if (noted.empty()) throw std::runtime_error("no CTA has noted its clocks");
    ctas = noted.size();
    samples.push_back(sample_of(noted));
  }
  print_row(problem.shape(), launched.name(), ctas, samples);
}

}  // namespace

int time_clocks(const ClocksOptions& options) {
  const Driver& driver = Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  const support::DeviceInfo& info = gpu.info;
  if (info.emulated()) throw std::runtime_error(info.name + ": the emulator's clocks say nothing");
  GpuTimer timer(driver);
  print_head(options, info);
  for (const std::string& text : options.shapes) {
    support::progress(text);
    Problem problem = support::make_problem(parse_shape(text), support::Data::gpumode, 1);
    problem.variant = options.variant.empty() ? nullptr : options.variant.c_str();
    time_clocks(driver, timer, problem, gpu.l2_bytes, options.replays,
                options.pdl ? NVFP4_PDL_ON_STATIC_WEIGHTS : NVFP4_PDL_OFF);
  }
  support::progress_done();
  return 0;
}

}  // namespace bench
