// SPDX-License-Identifier: MIT
// nvfp4_bench gpu: every shape verified, then timed beside cuBLASLt in the same run, replay by
// replay in turns. One CSV row per shape and variant; docs/performance.md explains the columns.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/csv.h"
#include "bench/device.h"
#include "bench/figures.h"
#include "bench/head.h"
#include "bench/layers.h"
#include "bench/nvml.h"
#include "bench/ours.h"
#include "bench/peer.h"
#include "bench/yardsticks.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::Driver;
using support::Fields;
using support::Problem;
using support::progress;
using support::Shape;

constexpr int64_t kPairs[][2] = {{7168, 16384}, {4096, 7168}, {7168, 2048}};
constexpr int64_t kTokens[] = {1, 16, 64, 128, 256, 512, 4096};
// Problems with up to so many tokens are parts of one.
constexpr int64_t kSharedTokens = 512;
constexpr int64_t kLayerTokens[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512};

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

constexpr support::Data kData = support::Data::gpumode;
constexpr uint64_t kSeed = 1;

struct Yardsticks {
  std::unique_ptr<GpuTimer> timer;
  std::unique_ptr<Nvml> nvml;
  std::unique_ptr<CublasLt> cublas;
  std::unique_ptr<PeerLibrary> peer;
  Yardstick by;
  double cublas_operations_per_us = 0, wgmma_operations_per_us = 0;
};

Head head_of(const GpuOptions& options, const Gpu& gpu, const Yardsticks& y,
             const std::string& no_cublas) {
  int version = 0;
  gpu.driver.cuDriverGetVersion(&version);
  const auto tera = [](double per_us) { return per_us > 0 ? figure(per_us / 1e6, "%.0f") : "no"; };
  const std::string proposals =
      y.cublas ? formatted("%" PRIu64
                           ", 32 MiB of workspace; fp16_us, bf16_us, fp8_us, x_fp16, x_fp8: its "
                           "first proposal, best: of %d, timed again beside ours",
                           y.cublas->version(), options.candidates)
               : no_cublas;
  return {
      {"date", today()},
      {"command", options.command},
      {"device", formatted("%s, %d SMs, %.0f MB L2, SM clock at most %.0f MHz, memory %.0f MHz",
                           gpu.info.name.c_str(), gpu.info.sms, gpu.l2_bytes / 1048576, gpu.sm_mhz,
                           gpu.memory_mhz)},
      {"driver", driver_release() + formatted("CUDA %d.%d", version / 1000, version % 1000 / 10)},
      {"library", nvfp4_build_info()},
      {"build", build_id()},
      {"reading", formatted("%.2f TB/s measured, %.2f nominal", y.by.rates.bytes_per_us / 1e6,
                            gpu.nominal_bytes_per_us() / 1e6)},
      {"fp16",
       formatted("%s TFLOP/s measured, the larger of %s (a loop of wgmma on random numbers) and "
                 "%s (the best of cuBLASLt's GEMMs), %s nominal",
                 tera(y.by.rates.operations_per_us).c_str(),
                 tera(y.wgmma_operations_per_us).c_str(), tera(y.cublas_operations_per_us).c_str(),
                 tera(gpu.nominal_operations_per_us()).c_str())},
      {"node", formatted("%.2f us for an empty kernel in a graph", y.by.node_us)},
      {"cublasLt", proposals},
      {"peer", y.peer ? y.peer->name() + ": peer_us, bf16 tokens, D in bf16" : "none"},
      {"pdl_us", "launches with NVFP4_PDL_ON_STATIC_WEIGHTS; cuBLASLt has no such launch here"},
      {"bf16_bias_us", "D in bf16 with a bf16 bias for each column, else as us"},
      {"silu_us", "the same through SiLU"},
      {"c_us", "D in fp16 of the product plus a cold C in fp16, else as us"},
      {"sm_mhz", "right after the replays, and what kept it down (slowed_by)"},
      {"spread", formatted("10th and 90th percentile of %d replays, interleaved with the others'",
                           options.replays)},
  };
}

// Numbers as numbers; a cell without a figure is left out.
nlohmann::ordered_json json_of(const Row& row, const Yardstick& by) {
  nlohmann::ordered_json object;
  for (const auto& [name, text] : csv_cells(row, by)) {
    if (text.empty()) continue;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end)
      object[name] = text;
    else
      object[name] = value;
  }
  return object;
}

Yardsticks make_yardsticks(const GpuOptions& options, const Gpu& gpu, std::string* no_cublas) {
  Yardsticks y;
  y.timer = std::make_unique<GpuTimer>(gpu.driver);
  y.nvml = std::make_unique<Nvml>(gpu.driver, gpu.device);
  *no_cublas = "left out";
  if (!options.no_cublas) y.cublas = CublasLt::open(no_cublas);
  if (!options.peer.empty()) y.peer = std::make_unique<PeerLibrary>(options.peer);
  if (!y.cublas) std::fprintf(stderr, "nvfp4_bench: cuBLASLt: %s\n", no_cublas->c_str());
  progress("yardsticks");
  y.by.node_us = empty_node_us(gpu.driver, *y.timer);
  y.by.rates.bytes_per_us = read_bytes_per_us(gpu.driver, *y.timer, gpu.info.sms);
  if (gpu.info.major == 9)
    y.wgmma_operations_per_us = wgmma_operations_per_us(gpu.driver, *y.timer, gpu.info.sms);
  if (y.cublas)
    y.cublas_operations_per_us =
        cublas_operations_per_us(gpu.driver, *y.timer, *y.cublas, gpu.l2_bytes, options.candidates);
  y.by.rates.operations_per_us = std::max(y.wgmma_operations_per_us, y.cublas_operations_per_us);
  return y;
}

// What takes turns for one shape, and where each median goes.
class Turns {
 public:
  void add(Series series, double* median_us) {
    add(std::move(series), median_us, nullptr, nullptr);
  }
  void add(Series series, double* median_us, double* p10, double* p90) {
    series_.push_back(std::move(series));
    to_.push_back({median_us, p10, p90});
  }
  void time(GpuTimer& timer, int replays) const {
    const auto samples = timer.interleaved(series_, replays);
    for (size_t i = 0; i < to_.size(); ++i) {
      *to_[i].median_us = median(samples[i]);
      if (to_[i].p10) *to_[i].p10 = quantile(samples[i], 0.1);
      if (to_[i].p90) *to_[i].p90 = quantile(samples[i], 0.9);
    }
  }

 private:
  struct To {
    double *median_us, *p10, *p90;
  };
  std::vector<Series> series_;
  std::vector<To> to_;
};

std::vector<std::unique_ptr<CublasGemm>> screened(const GpuOptions& options, const Gpu& gpu,
                                                  const Yardsticks& y, const Shape& shape,
                                                  Others* others, Turns* turns) {
  std::vector<std::unique_ptr<CublasGemm>> gemms;
  if (!y.cublas) return gemms;
  const auto add = [&](GemmType type, CublasTime* to) {
    progress(to_string(shape) + ": cuBLASLt " + to_string(type));
    auto gemm = std::make_unique<CublasGemm>(gpu.driver, *y.cublas, type, shape, gpu.l2_bytes,
                                             options.candidates);
    gemm->screen(*y.timer, options.replays);
    if (!gemm->available()) return;
    to->first_us = gemm->first_us();
    turns->add(gemm->best(), &to->best_us);
    gemms.push_back(std::move(gemm));
  };
  add(GemmType::f16, &others->f16);
  add(GemmType::bf16, &others->bf16);
  add(GemmType::e4m3, &others->e4m3);
  if (gpu.info.major >= 10) add(GemmType::nvfp4, &others->nvfp4);
  return gemms;
}

// The problem for some weights, and on request the same with 16-bit tokens.
class Problems {
 public:
  Problem main, f16, bf16;

  Problems() = default;
  Problems(const GpuOptions& options, const Shape& shape)
      : main(support::make_a16_problem(shape, options.a_type, kData, kSeed)) {
    main.batch_invariant = options.batch_invariant;
    if (options.a16) {
      f16 = support::with_a16(main, NVFP4_TYPE_F16, kData, kSeed);
      bf16 = support::with_a16(main, NVFP4_TYPE_BF16, kData, kSeed);
    }
    for (const Problem* problem : {&main, &f16, &bf16}) tokens_.push_back(problem->a);
  }

  bool have(const Shape& shape) const {
    return main.n == shape.n && main.k == shape.k && !tokens_.empty() && tokens_[0].rows >= shape.m;
  }
  // From here on the problems are of their first m tokens.
  void take(int64_t m) {
    take_tokens(tokens_[0], m, &main);
    if (f16.m) take_tokens(tokens_[1], m, &f16), take_tokens(tokens_[2], m, &bf16);
  }

 private:
  std::vector<support::Operand> tokens_;
};

// D in the type of the tokens.
struct Half {
  std::unique_ptr<OurGemm> gemm;
  Half(const Gpu& gpu, const Problem& problem, HalfTokens* to, Turns* turns) {
    gemm = std::make_unique<OurGemm>(gpu, problem, true);
    if (problem.a.type == NVFP4_TYPE_BF16) {
      Fields fields;
      fields.d_type = NVFP4_TYPE_BF16;
      gemm->set_epilogue(fields);
    }
    turns->add(gemm->series(NVFP4_PDL_OFF), &to->us);
    turns->add(gemm->series(NVFP4_PDL_ON_STATIC_WEIGHTS), &to->pdl_us);
  }
};

Fields bf16_bias() {
  Fields fields;
  fields.d_type = fields.bias_type = NVFP4_TYPE_BF16;
  return fields;
}
Fields bf16_bias_silu() {
  Fields fields = bf16_bias();
  fields.activation = NVFP4_ACTIVATION_SILU;
  return fields;
}
Fields c_added() {
  Fields fields;
  fields.c_type = NVFP4_TYPE_F16, fields.beta = 1;
  return fields;
}

Row time_row(const GpuOptions& options, const Gpu& gpu, Yardsticks& y, const Problems& problems) {
  Row row;
  const Problem& problem = problems.main;
  row.shape = problem.shape();
  GpuTimer& timer = *y.timer;
  Turns turns;
  OurGemm ours(gpu, problem, true);
  row.ours.variant = ours.variant(), row.ours.a_bytes = ours.a_bytes();
  turns.add(ours.series(NVFP4_PDL_OFF), &row.ours.us, &row.ours.p10, &row.ours.p90);
  turns.add(ours.series(NVFP4_PDL_ON_STATIC_WEIGHTS), &row.ours.pdl_us);
  std::vector<Half> halves;
  if (options.a16) {
    halves.emplace_back(gpu, problems.f16, &row.f16_tokens, &turns);
    halves.emplace_back(gpu, problems.bf16, &row.bf16_tokens, &turns);
  }
  std::unique_ptr<PeerGemm> peer;
  if (y.peer) {
    progress(to_string(row.shape) + ": " + y.peer->name());
    const Problem& bf16 = problems.bf16;
    peer = std::make_unique<PeerGemm>(
        gpu, *y.peer, row.shape,
        PeerOperands{bf16.b.codes.data(), bf16.b.scales.data(), bf16.a.halves.data()});
    if (peer->available()) {
      peer->require_near(halves.back().gemm->d());
      turns.add(peer->series(), &row.peer_us);
    }
  }
  const auto others = screened(options, gpu, y, row.shape, &row.others, &turns);
  progress(to_string(row.shape) + ": in turns");
  turns.time(timer, options.replays);
  row.sm_mhz = y.nvml->sm_mhz(), row.slowed_by = y.nvml->slowed_by();
  ours.require_same();
  for (const Half& half : halves) half.gemm->require_same();
  const auto [launch, calls] = ours.series(NVFP4_PDL_OFF);
  row.ours.plain_us = median(timer.plain(launch, calls, options.replays));
  row.ours.host_us = median(timer.host(launch, calls, options.replays));
  if (options.gpumode || gpu.info.major >= 10)
    row.ours.gpumode_us = gpumode_us(gpu.driver, problem);
  const auto time_with = [&, &launch = launch, &calls = calls](const Fields& fields) {
    ours.set_epilogue(fields);
    const double us = median(timer.graph(launch, calls, options.replays));
    ours.require_same();
    return us;
  };
  row.ours.bf16_bias_us = time_with(bf16_bias());
  row.ours.silu_us = time_with(bf16_bias_silu());
  row.ours.c_us = time_with(c_added());
  return row;
}

void verify_row(const Gpu& gpu, const Problems& problems) {
  OurGemm ours(gpu, problems.main, false);
  for (const Fields& fields : {bf16_bias(), bf16_bias_silu(), c_added()}) ours.set_epilogue(fields);
  for (const Problem* half : {&problems.f16, &problems.bf16})
    if (half->m) OurGemm(gpu, *half, false);
  std::printf("# %s by %s: the checked elements have the reference's bits\n",
              to_string(problems.main.shape()).c_str(), ours.variant().c_str());
}

void write_json(const std::string& path, const Head& head, const nlohmann::ordered_json& rows) {
  nlohmann::ordered_json all;
  for (const auto& [name, text] : head) all["head"][name] = text;
  all["rows"] = rows;
  std::ofstream file(path);
  file << all.dump(1) << "\n";
  if (!file.flush()) throw std::runtime_error(path + " could not be written");
}

}  // namespace

int time_gpu(const GpuOptions& options) {
  const std::vector<Shape> shapes = shapes_of(options);
  const Driver& driver = Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  Yardsticks y;
  Head head;
  const bool timed = !gpu.info.emulated();
  if (timed) {
    std::string no_cublas;
    y = make_yardsticks(options, gpu, &no_cublas);
    head = head_of(options, gpu, y, no_cublas);
    std::printf(
        "# Microseconds by graph replay, weights cold: working sets rotate over more than three "
        "times the L2.\n%s%s\n",
        as_comments(head).c_str(), csv_columns().c_str());
  }
  std::vector<std::string> variants = options.variants;
  if (variants.empty()) variants.emplace_back();
  nlohmann::ordered_json rows;
  Problems problems;
  for (const Shape& shape : shapes) {
    progress(to_string(shape) + ": data");
    if (!problems.have(shape)) {
      int64_t m = shape.m;
      for (const Shape& other : shapes)
        if (other.n == shape.n && other.k == shape.k && other.m <= kSharedTokens)
          m = std::max(m, other.m);
      problems = Problems(options, {m, shape.n, shape.k});
    }
    problems.take(shape.m);
    for (const std::string& variant : variants) {
      progress(to_string(shape) + ": " + (variant.empty() ? "ours" : variant));
      problems.main.variant = variant.empty() ? nullptr : variant.c_str();
      if (!timed) {
        verify_row(gpu, problems);
        continue;
      }
      const Row row = time_row(options, gpu, y, problems);
      std::printf("%s\n", csv_row(row, y.by).c_str());
      std::fflush(stdout);
      rows.push_back(json_of(row, y.by));
    }
  }
  support::progress_done();
  if (!timed) std::printf("# %s: nothing is timed in the emulator\n", gpu.info.name.c_str());
  if (timed && !options.json.empty()) write_json(options.json, head, rows);
  return 0;
}

}  // namespace bench
