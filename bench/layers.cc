// SPDX-License-Identifier: MIT
// nvfp4_bench layer: a decoder layer of public models as one graph, without its attention, beside
// the same products by cuBLASLt. One CSV row per model and number of tokens.
#include <cstdio>
#include <memory>

#include "bench/commands.h"
#include "bench/csv.h"
#include "bench/head.h"
#include "bench/layer.h"
#include "bench/yardsticks.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

constexpr Model kModels[] = {{"Llama 3 8B", 4096, 4096, 6144, 14336},
                             {"Qwen3 14B", 5120, 5120, 7168, 17408},
                             {"Llama 3 70B", 8192, 8192, 10240, 28672}};
constexpr int64_t kTokens[] = {1, 8, 32, 128, 512};

double weight_bytes(const Model& model) {
  double bytes = 0;
  for (const Product& p : products_of(model)) bytes += double(p.n) * double(p.k) * kQuantizedBytes;
  return bytes;
}

// The four products by cuBLASLt, each by its best proposal.
struct CublasLayer {
  std::vector<std::unique_ptr<CublasGemm>> gemms;
  std::vector<Launch> launches;

  CublasLayer(const Gpu& gpu, GpuTimer& timer, const CublasLt& library, GemmType type,
              const Model& model, int64_t tokens, const LayerOptions& options) {
    for (const Product& p : products_of(model)) {
      gemms.push_back(std::make_unique<CublasGemm>(gpu.driver, library, type,
                                                   support::Shape{tokens, p.n, p.k, 1},
                                                   gpu.l2_bytes, options.candidates));
      gemms.back()->screen(timer, 5);
      if (!gemms.back()->available()) throw std::runtime_error("cuBLASLt has no such product");
      launches.push_back(gemms.back()->best().launch);
    }
  }
  Series series(int calls) const {
    return {[this](int i, CUstream stream) {
              for (const Launch& launch : launches) launch(i, stream);
            },
            calls};
  }
};

struct Times {
  double layer = 0, products = 0, bf16_tokens = 0, bf16 = 0, fp8 = 0;
};

Times time_layer(const LayerOptions& options, const Gpu& gpu, GpuTimer& timer,
                 const CublasLt* cublas, const Model& model, int64_t tokens) {
  std::vector<std::unique_ptr<Layer>> copies;
  const int count = cold_copies(weight_bytes(model), gpu.l2_bytes);
  for (int i = 0; i < count; ++i) copies.push_back(std::make_unique<Layer>(gpu, model, tokens));
  copies[0]->verify();
  const int calls = count * std::max(1, 8 / count);
  const auto series = [&](Part part) -> Series {
    return {[&copies, part](int i, CUstream stream) {
              copies[size_t(i) % copies.size()]->enqueue(part, stream);
            },
            calls};
  };
  std::vector<Series> all = {series(Part::layer), series(Part::products)};
  std::unique_ptr<CublasLayer> bf16, fp8;
  if (gpu.info.major == 9) all.push_back(series(Part::bf16_products));
  if (cublas) {
    bf16 =
        std::make_unique<CublasLayer>(gpu, timer, *cublas, GemmType::bf16, model, tokens, options);
    fp8 =
        std::make_unique<CublasLayer>(gpu, timer, *cublas, GemmType::e4m3, model, tokens, options);
    all.push_back(bf16->series(calls));
    all.push_back(fp8->series(calls));
  }
  const auto samples = timer.interleaved(all, options.replays);
  size_t at = 0;
  Times t;
  t.layer = median(samples[at++]), t.products = median(samples[at++]);
  if (gpu.info.major == 9) t.bf16_tokens = median(samples[at++]);
  if (cublas) t.bf16 = median(samples[at++]), t.fp8 = median(samples[at++]);
  return t;
}

}  // namespace

int time_layers(const LayerOptions& options) {
  const support::Driver& driver = support::Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  if (gpu.info.emulated()) {
    const Model small{"a small layer", 256, 256, 512, 512};
    Layer(gpu, small, 5).verify();
    std::printf("# %s: a small layer is right; nothing is timed in the emulator\n",
                gpu.info.name.c_str());
    return 0;
  }
  GpuTimer timer(driver);
  std::string no_cublas;
  const auto cublas = CublasLt::open(&no_cublas);
  const Head head = {
      {"date", today()},
      {"command", options.command},
      {"device", gpu.info.name},
      {"driver", driver_release()},
      {"library", nvfp4_build_info()},
      {"build", build_id()},
      {"layer_us",
       "RMSNorm, QKV, quantizer, output, RMSNorm with residual, gate-up, SiLU(x) * y, "
       "down with residual: eight launches, programmatic, without attention"},
      {"products_us", "the four products of the same NVFP4 tokens; w4a16_us: of bf16 tokens"},
      {"bf16_us",
       "the four products by cuBLASLt's best proposals in turns with ours, no norm, no "
       "activation; fp8_us the same without quantizing"},
  };
  std::printf("# Microseconds a layer, weights cold.\n%s%s\n", as_comments(head).c_str(),
              "model,tokens,layer_us,products_us,w4a16_us,bf16_us,fp8_us,x_bf16");
  for (const Model& model : kModels) {
    for (const int64_t tokens : kTokens) {
      support::progress(std::string(model.name) + ", " + std::to_string(tokens) + " tokens");
      const Times t = time_layer(options, gpu, timer, cublas.get(), model, tokens);
      const auto us = [](double value) { return figure(value, "%.1f"); };
      std::printf("%s,%lld,%s,%s,%s,%s,%s,%s\n", model.name, static_cast<long long>(tokens),
                  us(t.layer).c_str(), us(t.products).c_str(), us(t.bf16_tokens).c_str(),
                  us(t.bf16).c_str(), us(t.fp8).c_str(), figure(t.bf16 / t.layer, "%.2f").c_str());
      std::fflush(stdout);
    }
  }
  support::progress_done();
  return 0;
}

}  // namespace bench
