// SPDX-License-Identifier: MIT
// nvfp4_bench layer: a decoder layer of public models as one graph, without its attention, beside
// the same products by cuBLASLt. One CSV row per model and number of tokens.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/csv.h"
#include "bench/head.h"
#include "bench/yardsticks.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

struct Model {
  const char* name;
  int64_t hidden, attention, qkv, inner;  // attention: columns that the output product reads
};

// The four products of a layer, weights [n, k].
struct Product {
  const char* name;
  int64_t n, k;
};

// Which launches a series has.
enum class Part {
  layer,          // RMSNorm and quantizers too, NVFP4 tokens
  products,       // the four products alone, of the same NVFP4 tokens
  bf16_products,  // the four products of bf16 tokens
};

// A decoder layer without its attention: what an engine enqueues for one, between whose products
// activations are bf16.
class Layer {
 public:
  Layer(const Gpu& gpu, const Model& model, int64_t tokens);
  ~Layer();
  void enqueue(Part part, CUstream stream);
  // Runs it once; throws unless the first tokens and columns of each product are those of the
  // reference for what the kernel before had left there.
  void verify();

 private:
  struct Step;  // a product, its operands and where they come from
  void quantize(const Step& step, CUstream stream);
  void multiply(const Step& step, bool bf16_tokens, CUstream stream);
  void verify(const Step& step);

  const Gpu& gpu_;
  Model model_;
  int64_t tokens_;
  std::vector<std::unique_ptr<support::DeviceBuffer>> buffers_;
  std::vector<std::unique_ptr<Step>> steps_;
  float* tensor_scale_ = nullptr;
  void* workspace_ = nullptr;
  uint64_t workspace_bytes_ = 0;
};

constexpr float kTensorScale = 1.0f / 256, kEpsilon = 1e-5f;

float bf16_value(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// The first bytes that `address` names on the device.
std::vector<uint8_t> fetched(const support::Driver& driver, const void* address, size_t bytes) {
  std::vector<uint8_t> content(bytes);
  driver.check(driver.cuMemcpyDtoH(content.data(), reinterpret_cast<CUdeviceptr>(address), bytes),
               "cuMemcpyDtoH");
  return content;
}

std::vector<Product> products_of(const Model& m) {
  return {{"qkv", m.qkv, m.hidden},
          {"o", m.hidden, m.attention},
          {"gate-up", 2 * m.inner, m.hidden},
          {"down", m.hidden, m.inner}};
}

struct Layer::Step {
  enum Source { norm, as_it_is, norm_of_sum, gated };
  Product product;
  Source source;
  const void* x;  // bf16, rows of x_ld
  int64_t x_ld;
  void *codes, *scales;  // of the tokens
  void *b, *b_scales;
  void* d;             // bf16 [tokens, n]
  const void* c;       // the residual that is added, or NULL
  void* residual;      // what norm_of_sum adds and writes
  const void* weight;  // of the norm
};

Layer::Layer(const Gpu& gpu, const Model& model, int64_t tokens)
    : gpu_(gpu), model_(model), tokens_(tokens) {
  const auto buffer = [&](int64_t bytes) {
    buffers_.push_back(std::make_unique<support::DeviceBuffer>(gpu.driver, size_t(bytes)));
    return buffers_.back()->pointer();
  };
  // Any byte is two codes. Scales are positive and small; activations lie in +-[1, 2).
  const Filler codes(gpu.driver, GemmType::nvfp4), halves(gpu.driver, GemmType::bf16);
  const auto filled = [&](int64_t bytes, const Filler& filler) {
    void* address = buffer(bytes);
    filler.fill(*buffers_.back());
    return address;
  };
  void* x = filled(2 * tokens * model.hidden, halves);
  void* residual = filled(2 * tokens * model.hidden, halves);
  const void* weight = filled(2 * model.hidden, halves);
  tensor_scale_ = static_cast<float*>(buffer(16));
  std::vector<uint8_t> t(16);
  std::memcpy(t.data(), &kTensorScale, sizeof kTensorScale);
  buffers_.back()->upload(t);

  const std::vector<Product> products = products_of(model);
  const Step::Source sources[] = {Step::norm, Step::as_it_is, Step::norm_of_sum, Step::gated};
  for (size_t i = 0; i < products.size(); ++i) {
    const Product& p = products[i];
    auto step = std::make_unique<Step>();
    step->product = p, step->source = sources[i];
    step->x = i == 0 ? x : steps_.back()->d;
    step->x_ld = i == 0 ? model.hidden : products[i - 1].n;
    step->codes = buffer(tokens * p.k / 2);
    step->scales = buffer(int64_t(nvfp4_scale_bytes(tokens, p.k, NVFP4_SCALE_LAYOUT_128X4)));
    step->b = filled(p.n * p.k / 2, codes);
    const auto scale_bytes = int64_t(nvfp4_scale_bytes(p.n, p.k, NVFP4_SCALE_LAYOUT_128X4));
    step->b_scales = buffer(scale_bytes);
    gpu.driver.check(gpu.driver.cuMemsetD8(buffers_.back()->address(), 0x18, size_t(scale_bytes)),
                     "cuMemsetD8");
    step->d = buffer(2 * tokens * p.n);
    step->c = i == 3 ? residual : nullptr;
    step->residual = residual, step->weight = weight;
    steps_.push_back(std::move(step));
  }
  for (const auto& step : steps_) {
    for (const int32_t a_type : {NVFP4_TYPE_NONE, NVFP4_TYPE_BF16}) {
      uint64_t bytes = 0;
      nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
      g.m = tokens, g.n = step->product.n, g.k = step->product.k, g.l = 1;
      g.a_type = a_type, g.a_ld = g.b_ld = g.k, g.d_ld = g.c_ld = g.n;
      g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
      if (a_type == NVFP4_TYPE_NONE) g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
      if (step->c) g.c_type = NVFP4_TYPE_BF16, g.beta = 1;
      g.d_type = NVFP4_TYPE_BF16, g.alpha = 1;
      check(nvfp4_gemm_workspace_bytes(&g, gpu.info.compute_capability(), &bytes));
      workspace_bytes_ = std::max(workspace_bytes_, bytes);
    }
  }
  if (workspace_bytes_) workspace_ = buffer(int64_t(workspace_bytes_));
}

Layer::~Layer() = default;

void Layer::quantize(const Step& s, CUstream stream) {
  if (s.source == Step::as_it_is) {
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = tokens_, q.k = s.product.k;
    q.x = const_cast<void*>(s.x), q.x_ld = s.x_ld, q.x_type = NVFP4_TYPE_BF16;
    q.codes = s.codes, q.codes_ld = q.k, q.scales = s.scales;
    q.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    q.tensor_scale_mode = NVFP4_TENSOR_SCALE_DEVICE, q.tensor_scale_device = tensor_scale_;
    q.pdl = NVFP4_PDL_ON;
    check(nvfp4_quantize(&q, stream));
    return;
  }
  nvfp4_fused_quantize_desc q{};
  q.struct_size = sizeof q;
  q.rows = tokens_, q.k = s.product.k;
  q.x = s.x, q.x_ld = s.x_ld, q.type = NVFP4_TYPE_BF16;
  q.codes = s.codes, q.codes_ld = q.k, q.scales = s.scales;
  q.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  q.tensor_scale_mode = NVFP4_TENSOR_SCALE_DEVICE, q.tensor_scale_device = tensor_scale_;
  q.pdl = NVFP4_PDL_ON;
  if (s.source == Step::gated) {
    q.operation = NVFP4_FUSED_SILU_MUL;
    q.y = const_cast<char*>(static_cast<const char*>(s.x)) + 2 * s.product.k, q.y_ld = s.x_ld;
  } else {
    q.operation = NVFP4_FUSED_RMS_NORM;
    q.weight = s.weight, q.epsilon = kEpsilon;
    if (s.source == Step::norm_of_sum) q.y = s.residual, q.y_ld = s.product.k;
  }
  check(nvfp4_fused_quantize(&q, stream));
}

void Layer::multiply(const Step& s, bool bf16_tokens, CUstream stream) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = tokens_, g.n = s.product.n, g.k = s.product.k, g.l = 1;
  g.b = s.b, g.b_ld = g.k, g.b_scales = s.b_scales, g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.b_tensor_scale = tensor_scale_;
  if (bf16_tokens) {
    // Tokens of this width: for `down` those of the gated half.
    g.a = s.x, g.a_ld = s.x_ld, g.a_type = NVFP4_TYPE_BF16;
  } else {
    g.a = s.codes, g.a_ld = g.k, g.a_scales = s.scales;
    g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4, g.a_tensor_scale = tensor_scale_;
  }
  g.d = s.d, g.d_ld = g.n, g.d_type = NVFP4_TYPE_BF16, g.alpha = 1;
  if (s.c) g.c = s.c, g.c_ld = g.n, g.c_type = NVFP4_TYPE_BF16, g.beta = 1;
  g.workspace = workspace_, g.workspace_bytes = workspace_bytes_;
  g.pdl = NVFP4_PDL_ON_STATIC_WEIGHTS;
  check(nvfp4_gemm_run(&g, stream));
}

void Layer::enqueue(Part part, CUstream stream) {
  for (const auto& step : steps_) {
    if (part == Part::layer) quantize(*step, stream);
    multiply(*step, part == Part::bf16_products, stream);
  }
}

// Four tokens and 256 columns: tiles of scales begin with them.
void Layer::verify(const Step& s) {
  const int64_t m = std::min<int64_t>(tokens_, 4), n = 256, k = s.product.k;
  const auto host = [&](const void* address, int64_t bytes) {
    return fetched(gpu_.driver, address, size_t(bytes));
  };
  const auto tile = [&](int64_t rows) {
    return int64_t(nvfp4_scale_bytes(rows, k, NVFP4_SCALE_LAYOUT_128X4));
  };
  const auto a = host(s.codes, m * k / 2), a_scales = host(s.scales, tile(m));
  const auto b = host(s.b, n * k / 2), b_scales = host(s.b_scales, tile(n));
  const auto d = host(s.d, 2 * ((m - 1) * s.product.n + n));
  std::vector<uint8_t> c;
  if (s.c) c = host(s.c, 2 * ((m - 1) * s.product.n + n));
  std::vector<float> want(size_t(m * n));
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = k, g.l = 1;
  g.a = a.data(), g.a_ld = k, g.a_scales = a_scales.data();
  g.b = b.data(), g.b_ld = k, g.b_scales = b_scales.data();
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.a_tensor_scale = g.b_tensor_scale = &kTensorScale;
  g.alpha = 1, g.d = want.data(), g.d_ld = n, g.d_type = NVFP4_TYPE_F32;
  if (s.c) g.c = c.data(), g.c_ld = s.product.n, g.c_type = NVFP4_TYPE_BF16, g.beta = 1;
  check(nvfp4_gemm_reference(&g));
  float largest = 0;
  for (const float value : want) largest = std::max(largest, std::fabs(value));
  if (!(largest > 0)) throw std::runtime_error(std::string(s.product.name) + " is all zero");
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      uint16_t bits;
      std::memcpy(&bits, &d[size_t(2 * (row * s.product.n + column))], sizeof bits);
      const float value = want[size_t(row * n + column)];
      // bf16's rounding, and sums in another order.
      if (!(std::fabs(bf16_value(bits) - value) <= std::fabs(value) / 128 + largest * 1e-5f))
        throw std::runtime_error(std::string(s.product.name) + " of " + model_.name + " is wrong");
    }
  }
}

void Layer::verify() {
  for (const auto& step : steps_) {
    quantize(*step, nullptr);
    multiply(*step, false, nullptr);
    gpu_.driver.check(gpu_.driver.cuCtxSynchronize(), "cuCtxSynchronize");
    verify(*step);
  }
}

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
  const auto series = [&](Part part) {
    return support::in_turns(
        copies, [part](Layer& layer, CUstream stream) { layer.enqueue(part, stream); }, 8);
  };
  const int calls = series(Part::layer).calls;
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
