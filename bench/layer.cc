// SPDX-License-Identifier: MIT
#include "bench/layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "bench/check.h"
#include "bench/yardsticks.h"

namespace bench {
namespace {

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

}  // namespace

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
    uint64_t bytes = 0;
    nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
    g.m = tokens, g.n = step->product.n, g.k = step->product.k, g.l = 1;
    g.a_ld = g.b_ld = g.k, g.d_ld = g.c_ld = g.n;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    g.d_type = NVFP4_TYPE_BF16, g.alpha = 1;
    check(nvfp4_gemm_workspace_bytes(&g, gpu.info.compute_capability(), &bytes));
    workspace_bytes_ = std::max(workspace_bytes_, bytes);
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
  g.workspace = bf16_tokens ? nullptr : workspace_;
  g.workspace_bytes = bf16_tokens ? 0 : workspace_bytes_;
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

}  // namespace bench
