// SPDX-License-Identifier: MIT
// nvfp4_bench gpu: every shape verified, then timed beside cuBLASLt in the same run. One CSV row per
// shape and variant; docs/performance.md explains the columns.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/csv.h"
#include "bench/figures.h"
#include "bench/yardsticks.h"
#include "tools/harness/compare.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/general_gemm.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::DeviceGemm;
using support::Driver;
using support::Problem;
using support::progress;
using support::Shape;

constexpr int64_t kPairs[][2] = {{7168, 16384}, {4096, 7168}, {7168, 2048}};
constexpr int64_t kTokens[] = {1, 16, 64, 128, 256, 512, 4096};
constexpr int64_t kLayerTokens[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512};
constexpr int64_t kCheckedRows = 16, kCheckedColumns = 512;

// model,layer,tensor_parallel,n,k: each distinct (n, k) once, in the order of the file.
std::vector<std::pair<int64_t, int64_t>> read_layers(const std::string& path) {
  std::vector<std::pair<int64_t, int64_t>> layers;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  if (line != "model,layer,tensor_parallel,n,k")
    throw std::runtime_error(path + " does not begin with model,layer,tensor_parallel,n,k");
  while (std::getline(file, line)) {
    const size_t k = line.rfind(','), n = line.rfind(',', k - 1);
    if (k == std::string::npos || n == std::string::npos)
      throw std::runtime_error(path + " has no n and k in: " + line);
    const std::pair<int64_t, int64_t> layer{std::stoll(line.substr(n + 1)),
                                            std::stoll(line.substr(k + 1))};
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

void add_layers(const GpuOptions& options, std::vector<Shape>* shapes) {
  std::vector<int64_t> tokens = options.tokens;
  if (tokens.empty()) tokens.assign(std::begin(kLayerTokens), std::end(kLayerTokens));
  const auto [part, parts] = options.slice;
  if (part < 1 || part > parts)
    throw std::runtime_error("--slice wants which part of how many, such as 1 4");
  const auto layers = read_layers(options.layers);
  for (size_t i = size_t(part - 1); i < layers.size(); i += size_t(parts))
    for (const int64_t m : tokens) shapes->push_back({m, layers[i].first, layers[i].second});
}

std::vector<Shape> shapes_of(const GpuOptions& options) {
  std::vector<Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(parse_shape(text));
  if (!options.layers.empty()) add_layers(options, &shapes);
  if (shapes.empty())
    for (const auto& pair : kPairs)
      for (const int64_t m : kTokens) shapes.push_back({m, pair[0], pair[1]});
  return shapes;
}

void check(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw std::runtime_error(nvfp4_last_error());
}

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

Problem make_data(const Shape& shape, int32_t a_type) {
  constexpr uint64_t kSeed = 1;
  if (a_type == NVFP4_TYPE_NONE) return support::make_problem(shape, support::Data::gpumode, kSeed);
  return support::make_a16_problem(shape, a_type, support::Data::gpumode, kSeed);
}

struct Gpu {
  const Driver& driver;
  support::DeviceInfo info;
  double l2_bytes = 0, sm_mhz = 0, memory_mhz = 0, memory_bits = 0;

  explicit Gpu(const Driver& d) : driver(d), info(support::devices(d).at(0)) {
    CUdevice device{};
    d.check(d.cuDeviceGet(&device, 0), "cuDeviceGet");
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      d.check(d.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
      return double(value);
    };
    l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    sm_mhz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e3;
    memory_mhz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1e3;
    memory_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  }
  // Two transfers per clock; 4096 fp16 operations per SM and clock is Hopper's.
  double nominal_bytes_per_us() const { return memory_mhz * 2 * memory_bits / 8; }
  double nominal_operations_per_us() const {
    return info.major == 9 ? 4096.0 * info.sms * sm_mhz : 0;
  }
};

// Copies of one problem on the device, each with buffers of its own.
class Copies {
 public:
  Copies(const Driver& driver, const Problem& problem, int count) {
    for (int i = 0; i < count; ++i)
      copies_.push_back(std::make_unique<DeviceGemm>(driver, problem));
  }
  int count() const { return int(copies_.size()); }
  DeviceGemm& at(int i) { return *copies_[size_t(i % count())]; }
  void set_pdl(int32_t pdl) {
    for (const auto& copy : copies_) copy->desc.pdl = pdl;
  }
  void set_bf16_bias(const void* bias) {
    for (const auto& copy : copies_) {
      copy->desc.d_type = copy->desc.bias_type = NVFP4_TYPE_BF16;
      copy->desc.bias = bias;
    }
  }
  Launch launcher() {
    return [this](int i, CUstream stream) { check(at(i).enqueue(stream)); };
  }
  void require_same(const std::vector<uint16_t>& want) const {
    for (const auto& copy : copies_)
      if (copy->d() != want) throw std::runtime_error("a timed launch gave other bits");
  }

 private:
  std::vector<std::unique_ptr<DeviceGemm>> copies_;
};

// D in bf16 with a bias for each column, as a decoder layer wants it: the general epilogue. Of D two rows
// are compared with the reference, which takes one thread here.
double bf16_bias_us(const Gpu& gpu, GpuTimer* timer, const Problem& problem, Copies& copies,
                    int calls, int replays) {
  support::EpilogueFields fields;
  fields.d_type = fields.bias_type = NVFP4_TYPE_BF16;
  fields.alpha = problem.alpha;
  const int64_t n = problem.shape.n;
  const std::vector<int64_t> rows = checked(problem.shape.m, 2), columns = checked(n, n);
  const support::GeneralProblem part(part_of(problem, rows, columns), fields, 1);
  const support::DeviceBuffer bias(gpu.driver, part.bias);
  copies.set_bf16_bias(bias.pointer());
  check(copies.at(0).enqueue());
  const std::vector<uint16_t> d = copies.at(0).d();
  std::vector<uint16_t> want(rows.size() * size_t(problem.shape.n));
  const std::vector<uint8_t> bytes = part.reference();
  std::memcpy(want.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto got = d.begin() + rows[i] * problem.shape.n;
    if (!std::equal(got, got + problem.shape.n, want.begin() + long(i) * problem.shape.n))
      throw std::runtime_error(to_string(problem.shape) + " is wrong in bf16 with a bias");
  }
  if (!timer) return 0;
  const double us = median(timer->graph(copies.launcher(), calls, replays));
  copies.require_same(d);
  return us;
}

// GPU MODE's eval_better_bench.py: 50 inputs, L2 cleared, 50 calls on the default stream between two
// events; until the mean's relative error is below 0.1 percent, 1000 repeats or 30 s.
double gpumode_us(const Driver& driver, const Problem& problem) {
  constexpr int kCalls = 50;
  Copies copies(driver, problem, kCalls);
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
    for (int i = 0; i < kCalls; ++i) check(copies.at(i).enqueue(nullptr));
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

// Verifies, and times where there is a timer.
Ours run_ours(const Gpu& gpu, GpuTimer* timer, const Problem& problem, bool gpumode, int replays) {
  Ours ours;
  if (!problem.a.quantized()) ours.a_bytes = kHalfBytes;
  const double bytes = compulsory_bytes(problem.shape, ours.a_bytes);
  const int count = timer ? cold_copies(bytes, gpu.l2_bytes) : 1;
  Copies copies(gpu.driver, problem, count);
  ours.variant = variant_of(copies.at(0).desc, gpu.info);
  check(copies.at(0).enqueue());
  const std::vector<uint16_t> d = copies.at(0).d();
  verify_rows(problem, d);
  const int calls = count * std::max(1, 20 / count);
  if (!timer) {
    bf16_bias_us(gpu, timer, problem, copies, calls, replays);
    return ours;
  }
  const std::vector<double> graph = timer->graph(copies.launcher(), calls, replays);
  ours.us = median(graph), ours.p10 = quantile(graph, 0.1), ours.p90 = quantile(graph, 0.9);
  ours.plain_us = median(timer->plain(copies.launcher(), calls, replays));
  ours.host_us = median(timer->host(copies.launcher(), calls, replays));
  copies.set_pdl(NVFP4_PDL_ON_STATIC_WEIGHTS);
  ours.pdl_us = median(timer->graph(copies.launcher(), calls, replays));
  copies.set_pdl(NVFP4_PDL_OFF);
  copies.require_same(d);
  if (gpumode) ours.gpumode_us = gpumode_us(gpu.driver, problem);
  ours.bf16_bias_us = bf16_bias_us(gpu, timer, problem, copies, calls, replays);
  return ours;
}

struct Yardsticks {
  std::unique_ptr<GpuTimer> timer;
  std::unique_ptr<CublasLt> cublas;
  Rates measured;
  double cublas_operations_per_us = 0, wgmma_operations_per_us = 0;
  double node_us = 0;
};

// "580.159.04, " where the kernel module says so.
std::string driver_release() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string release;
  return file >> release ? release + ", " : "";
}

void print_head(const GpuOptions& options, const Gpu& gpu, const Yardsticks& y,
                const std::string& no_cublas) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%F", std::gmtime(&now));
  int version = 0;
  gpu.driver.cuDriverGetVersion(&version);
  std::printf(
      "# Microseconds by graph replay, weights cold: working sets rotate over more than "
      "three times the L2.\n# date      %s\n# command   %s\n",
      date, options.command.c_str());
  std::printf("# device    %s, %d SMs, %.0f MB L2, SM clock at most %.0f MHz, memory %.0f MHz\n",
              gpu.info.name.c_str(), gpu.info.sms, gpu.l2_bytes / 1048576, gpu.sm_mhz,
              gpu.memory_mhz);
  std::printf("# driver    %sCUDA %d.%d\n# library   %s\n", driver_release().c_str(),
              version / 1000, version % 1000 / 10, nvfp4_build_info());
  std::printf("# reading   %.2f TB/s measured, %.2f nominal\n", y.measured.bytes_per_us / 1e6,
              gpu.nominal_bytes_per_us() / 1e6);
  const auto tera = [](double per_us) { return per_us > 0 ? figure(per_us / 1e6, "%.0f") : "no"; };
  std::printf(
      "# fp16      %s TFLOP/s measured, the larger of %s (a loop of wgmma on random numbers) and "
      "%s "
      "(the best of cuBLASLt's GEMMs), %s nominal\n",
      tera(y.measured.operations_per_us).c_str(), tera(y.wgmma_operations_per_us).c_str(),
      tera(y.cublas_operations_per_us).c_str(), tera(gpu.nominal_operations_per_us()).c_str());
  std::printf("# node      %.2f us for an empty kernel in a graph\n", y.node_us);
  if (y.cublas)
    std::printf("# cublasLt  %" PRIu64
                "; fp16_us, fp8_us, x_fp16, x_fp8: its first proposal, best: of %d\n",
                y.cublas->version(), options.candidates);
  else
    std::printf("# cublasLt  %s\n", no_cublas.c_str());
  std::printf(
      "# pdl_us    launches with NVFP4_PDL_ON_STATIC_WEIGHTS; cuBLASLt has no such launch here\n");
  std::printf("# bf16_bias_us  D in bf16 with a bf16 bias for each column, else as us\n");
  std::printf("# spread    10th and 90th percentile of %d replays\n", options.replays);
  std::printf("%s\n", csv_columns().c_str());
}

Others time_others(const GpuOptions& options, const Gpu& gpu, Yardsticks& y, const Shape& shape) {
  Others others;
  if (!y.cublas) return others;
  const auto time = [&](GemmType type) {
    progress(to_string(shape) + ": cuBLASLt " + to_string(type));
    return time_cublas(gpu.driver, *y.timer, *y.cublas, type, shape, gpu.l2_bytes,
                       options.candidates, options.replays);
  };
  others.f16 = time(GemmType::f16);
  others.e4m3 = time(GemmType::e4m3);
  if (gpu.info.major >= 10) others.nvfp4 = time(GemmType::nvfp4);
  return others;
}

Yardsticks make_yardsticks(const GpuOptions& options, const Gpu& gpu, std::string* no_cublas) {
  Yardsticks y;
  y.timer = std::make_unique<GpuTimer>(gpu.driver);
  *no_cublas = "left out";
  if (!options.no_cublas) y.cublas = CublasLt::open(no_cublas);
  if (!y.cublas) std::fprintf(stderr, "nvfp4_bench: cuBLASLt: %s\n", no_cublas->c_str());
  progress("yardsticks");
  y.node_us = empty_node_us(gpu.driver, *y.timer);
  y.measured.bytes_per_us = read_bytes_per_us(gpu.driver, *y.timer, gpu.info.sms);
  if (gpu.info.major == 9)
    y.wgmma_operations_per_us = wgmma_operations_per_us(gpu.driver, *y.timer, gpu.info.sms);
  if (y.cublas)
    y.cublas_operations_per_us =
        cublas_operations_per_us(gpu.driver, *y.timer, *y.cublas, gpu.l2_bytes, options.candidates);
  y.measured.operations_per_us = std::max(y.wgmma_operations_per_us, y.cublas_operations_per_us);
  return y;
}

}  // namespace

int time_gpu(const GpuOptions& options) {
  const std::vector<Shape> shapes = shapes_of(options);
  const Driver& driver = Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  Yardsticks y;
  std::string no_cublas;
  const bool timed = !gpu.info.emulated();
  if (timed) {
    y = make_yardsticks(options, gpu, &no_cublas);
    print_head(options, gpu, y, no_cublas);
  }
  std::vector<std::string> variants = options.variants;
  if (variants.empty()) variants.emplace_back();
  for (const Shape& shape : shapes) {
    progress(to_string(shape) + ": data");
    Problem problem = make_data(shape, options.a_type);
    problem.batch_invariant = options.batch_invariant;
    std::optional<Others> others;
    for (const std::string& variant : variants) {
      progress(to_string(shape) + ": " + (variant.empty() ? "ours" : variant));
      problem.variant = variant.empty() ? nullptr : variant.c_str();
      const bool gpumode = options.gpumode || gpu.info.major >= 10;
      const Ours ours = run_ours(gpu, y.timer.get(), problem, gpumode, options.replays);
      if (!timed) {
        std::printf("# %s by %s: the checked elements have the reference's bits\n",
                    to_string(shape).c_str(), ours.variant.c_str());
        continue;
      }
      if (!others) others = time_others(options, gpu, y, shape);
      std::printf("%s\n", csv_row(shape, ours, *others, y.measured, y.node_us).c_str());
      std::fflush(stdout);
    }
  }
  support::progress_done();
  if (!timed) std::printf("# %s: nothing is timed in the emulator\n", gpu.info.name.c_str());
  return 0;
}

}  // namespace bench
