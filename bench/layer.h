// SPDX-License-Identifier: MIT
// A decoder layer without its attention: what an engine enqueues for one, between whose products
// activations are bf16.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/device.h"
#include "bench/gpu_timer.h"
#include "nvfp4_gemm.h"

namespace bench {

struct Model {
  const char* name;
  int64_t hidden, attention, qkv, inner;  // attention: columns that the output product reads
};

// The four products of a layer, weights [n, k].
struct Product {
  const char* name;
  int64_t n, k;
};
std::vector<Product> products_of(const Model& model);

// Which launches a series has.
enum class Part {
  layer,          // RMSNorm and quantizers too, NVFP4 tokens
  products,       // the four products alone, of the same NVFP4 tokens
  bf16_products,  // the four products of bf16 tokens
};

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

}  // namespace bench
