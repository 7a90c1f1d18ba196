// SPDX-License-Identifier: MIT
// nvfp4_bench packed: packed weights beside the same weights as a checkpoint has them and beside
// cuBLASLt, 16-bit tokens. D has the same bits both ways where both plans are by one variant, or
// nothing is timed.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bench/figures.h"
#include "bench/turns.h"
#include "bench/weights.h"
#include "bench/yardsticks.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/plan_info.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::Driver;
using support::Shape;

constexpr int64_t kMostTokens = 512;

struct Layer {
  Shape shape;  // without its tokens
  std::vector<std::unique_ptr<Weights>> copies;
  DeviceBuffer workspace;

  Layer(const Gpu& gpu, const Shape& s, int32_t a_type, bool cold)
      : shape(s), workspace(gpu.driver, size_t(64) << 20) {
    const int count = cold ? std::min(48, cold_copies(compulsory_bytes(s), gpu.l2_bytes)) : 1;
    copies.push_back(std::make_unique<Weights>(gpu.driver, Shape{kMostTokens, s.n, s.k}, a_type));
    while (int(copies.size()) < count)
      copies.push_back(std::make_unique<Weights>(gpu.driver, *copies[0]));
  }
};

// A plan of a shape: its own name with the number of K partitions, and what is predicted.
struct Way {
  bool packed, chosen;
  std::string variant;
  double predicted_us;
};

class Bench {
 public:
  explicit Bench(const TurnsOptions& options) : options_(options) {
    std::string no_cublas;
    cublas_ = CublasLt::open(&no_cublas);
  }

  void verify(const Gpu& gpu, const Shape& s) {
    take(gpu, s, false);
    verify_bits(gpu, s);
  }
  void time(const Gpu& gpu, GpuTimer& timer, const Shape& s) {
    take(gpu, s, true);
    verify_bits(gpu, s);
    std::vector<Way> ways = {way(gpu, s, false, nullptr), way(gpu, s, true, nullptr)};
    if (options_.every) add_others(gpu, s, &ways);
    for (const std::string& name : options_.variants) {
      for (const bool packed : {false, true}) ways.push_back(way(gpu, s, packed, name.c_str()));
    }
    std::vector<Series> all;
    for (const Way& one : ways) all.push_back(series(s, one));
    std::unique_ptr<CublasGemm> peer;
    if (cublas_) {
      const auto type = options_.a_type == NVFP4_TYPE_F16 ? GemmType::f16 : GemmType::bf16;
      peer = std::make_unique<CublasGemm>(gpu.driver, *cublas_, type, s, gpu.l2_bytes, 4);
      peer->screen(timer, 3);
      if (peer->available()) all.push_back(peer->best());
    }
    const auto times = timer.interleaved(all, options_.replays);
    for (size_t i = 0; i < ways.size(); ++i) {
      print(s, ways[i].variant.c_str(), ways[i].packed, ways[i].chosen, ways[i].predicted_us,
            times[i]);
    }
    if (all.size() > ways.size()) print(s, "cublaslt", false, true, 0, times.back());
    std::fflush(stdout);
  }

 private:
  static void print(const Shape& s, const char* plan, bool packed, bool chosen, double predicted,
                    const std::vector<double>& times) {
    std::printf("%lld,%lld,%lld,%s,%d,%d,%.2f,%.2f\n", (long long)s.m, (long long)s.n,
                (long long)s.k, plan, packed, chosen, predicted, median(times));
  }

  void take(const Gpu& gpu, const Shape& s, bool cold) {
    if (s.m > kMostTokens) throw std::invalid_argument("there is room for 512 tokens");
    if (layer_ && layer_->shape.n == s.n && layer_->shape.k == s.k) return;
    layer_.reset();
    layer_ = std::make_unique<Layer>(gpu, Shape{1, s.n, s.k}, options_.a_type, cold);
  }

  nvfp4_gemm_desc desc(const Weights& w, const Shape& s, bool packed, const char* variant) const {
    nvfp4_gemm_desc g = w.desc(s, options_.a_type, packed, variant);
    g.workspace = layer_->workspace.pointer(), g.workspace_bytes = layer_->workspace.bytes();
    return g;
  }

  Way way(const Gpu& gpu, const Shape& s, bool packed, const char* variant) const {
    const nvfp4_gemm_desc g = desc(*layer_->copies[0], s, packed, variant);
    const auto info = support::plan_info(g, gpu.info.compute_capability(), gpu.info.sms);
    std::string name = info.variant;
    if (name.find('/') == std::string::npos && info.whole_tiles == 0) {
      name += "/" + std::to_string(info.k_partitions);
    }
    return {packed, variant == nullptr, name, info.predicted_ns / 1e3};
  }

  // Other plans with packed weights that are not predicted to be much slower.
  void add_others(const Gpu& gpu, const Shape& s, std::vector<Way>* ways) const {
    std::vector<Way> others;
    for (const std::string& name : support::variant_names(gpu.info.compute_capability())) {
      for (const char* split : {"/1", "/2", "/4", ""}) {
        try {
          others.push_back(way(gpu, s, true, (name + split).c_str()));
        } catch (const std::runtime_error&) {
          continue;  // of another type of tokens, or without that number of parts
        }
        if (*split == '\0') others.back().variant = name;
      }
    }
    for (const Way& other : others) {
      const bool known = std::any_of(ways->begin(), ways->end(), [&](const Way& one) {
        return one.packed && one.variant == other.variant;
      });
      if (!known && other.predicted_us <= 1.5 * (*ways)[1].predicted_us) ways->push_back(other);
    }
  }

  Series series(const Shape& s, const Way& one) const {
    const bool packed = one.packed;
    const std::string variant = one.chosen ? "" : one.variant;
    return support::in_turns(
        layer_->copies,
        [this, s, packed, variant](const Weights& w, CUstream stream) {
          const nvfp4_gemm_desc g = desc(w, s, packed, variant.empty() ? nullptr : variant.c_str());
          check(nvfp4_gemm_run(&g, stream));
        },
        12);
  }

  std::vector<uint8_t> run(const Gpu& gpu, const Shape& s, bool packed, const char* variant) {
    const Weights& w = *layer_->copies[0];
    gpu.driver.check(gpu.driver.cuMemsetD8(w.d.address(), 0xA5, w.d.bytes()), "cuMemsetD8");
    const nvfp4_gemm_desc g = desc(w, s, packed, variant);
    check(nvfp4_gemm_run(&g, nullptr));
    gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
    return w.d.download();
  }

  // mma.sync adds packed weights in another order.
  void verify_bits(const Gpu& gpu, const Shape& s) {
    const std::string variant = way(gpu, s, true, nullptr).variant;
    if (variant.compare(0, 4, "sm80") == 0) return;
    if (run(gpu, s, true, variant.c_str()) != run(gpu, s, false, variant.c_str())) {
      throw std::runtime_error(to_string(s) + " by " + variant +
                               ": packed weights give other bits");
    }
  }

  const TurnsOptions& options_;
  std::unique_ptr<CublasLt> cublas_;
  std::unique_ptr<Layer> layer_;
};

}  // namespace

int time_packed(const TurnsOptions& options) {
  Bench bench(options);
  return time_in_turns(
      options,
      {"weights in both orders and of cuBLASLt", "m,n,k,plan,packed,chosen,predicted_us,us",
       [&](const Gpu& gpu, const Shape& s) { bench.verify(gpu, s); },
       [&](const Gpu& gpu, GpuTimer& timer, const Shape& s) { bench.time(gpu, timer, s); }});
}

}  // namespace bench
