// SPDX-License-Identifier: MIT
// nvfp4_bench plans: times of every plan of a product on 9.0, which bench/planner.py judges the
// planner by: bf16 tokens with weights as a checkpoint has them and packed, NVFP4 tokens as codes
// and packed. D is near that of the planner's choice, or nothing is timed. --predicted asks the
// planner alone, on any machine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>

#include "bench/figures.h"
#include "bench/head.h"
#include "bench/turns.h"
#include "bench/weights.h"
#include "tools/harness/formats.h"
#include "tools/harness/plan_info.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::Driver;
using support::Shape;

constexpr int64_t kMostTokens = 512;
constexpr int kMostCopies = 48, kLeastLaunches = 12;
constexpr int32_t kTokenPacking = NVFP4_PACKING_SM90_TOKENS_1;
constexpr double kTooSlow = 1.7;           // times what is predicted of the choice
constexpr double kMostDifference = 0.005;  // of the norm
constexpr size_t kCheckedElements = 1 << 14;

// What is packed, of products with tokens of a_type.
struct Kind {
  int32_t a_type;
  const char* packed;
  bool weights() const { return packed[0] == 'w'; }
  bool tokens() const { return packed[0] == 't'; }
};
constexpr Kind kKinds[] = {{NVFP4_TYPE_BF16, "nothing"},
                           {NVFP4_TYPE_BF16, "weights"},
                           {NVFP4_TYPE_NONE, "nothing"},
                           {NVFP4_TYPE_NONE, "tokens"}};

// Sizes and types without addresses.
nvfp4_gemm_desc question(const Shape& s, const Kind& kind, const std::string& variant) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = s.m, g.n = s.n, g.k = s.k, g.alpha = 1.0f / 1024;
  g.a_type = kind.a_type, g.d_type = NVFP4_TYPE_BF16, g.d_ld = s.n;
  if (!variant.empty()) g.variant = variant.c_str();
  if (kind.weights()) {
    g.b_packing = Weights::kPacking;
  } else {
    g.b_ld = s.k, g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  }
  if (kind.tokens()) {
    g.a_packing = kTokenPacking;
  } else {
    g.a_ld = s.k;
  }
  if (kind.a_type != NVFP4_TYPE_NONE) return g;
  g.d_type = NVFP4_TYPE_F16, g.alpha /= 128;
  if (!kind.tokens()) g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  return g;
}

// `ask` gives the plan, which is known by `name`.
struct Way {
  std::string ask, name;
  double predicted_us;
};

// The GPU that plans are made for.
struct Target {
  int32_t capability, sms;
};

Way way_of(const Target& on, const Shape& s, const Kind& kind, const std::string& ask) {
  const auto info = support::plan_info(question(s, kind, ask), on.capability, on.sms);
  std::string name = info.variant;
  if (name.find('/') == std::string::npos) name += "/" + std::to_string(info.k_partitions);
  if (info.whole_tiles != 0) name += "+" + std::to_string(info.whole_tiles);
  return {ask, name, info.predicted_ns / 1e3};
}

// The choice, then every other plan that is not predicted to be much slower.
std::vector<Way> ways_of(const Target& on, const Shape& s, const Kind& kind) {
  std::vector<Way> ways = {way_of(on, s, kind, "")};
  std::set<std::string> known = {ways[0].name};
  for (const std::string& variant : support::variant_names(on.capability)) {
    for (const char* split : {"", "/1", "/2", "/3", "/4", "/8", "/even"}) {
      try {
        const Way other = way_of(on, s, kind, variant + split);
        if (!known.insert(other.name).second) continue;
        if (other.predicted_us <= kTooSlow * ways[0].predicted_us) ways.push_back(other);
      } catch (const std::runtime_error&) {
        continue;  // of another type of tokens, or without that number of parts
      }
    }
  }
  return ways;
}

constexpr char kColumns[] = "m,n,k,a_type,packed,plan,chosen,predicted_us,us";

void print(const Shape& s, const Kind& kind, const Way& way, bool chosen, const std::string& us) {
  std::printf("%lld,%lld,%lld,%s,%s,%s,%d,%.2f,%s\n", (long long)s.m, (long long)s.n,
              (long long)s.k, word_of(kind.a_type), kind.packed, way.name.c_str(), chosen,
              way.predicted_us, us.c_str());
}

// What one launch reads and writes. NVFP4 tokens are those of bf16, quantized both ways.
struct Operands {
  Weights weights;
  DeviceBuffer codes, scales, packed;

  Operands(const Driver& driver, const Shape& s)
      : weights(driver, s, NVFP4_TYPE_BF16),
        codes(driver, size_t(s.m * s.k / 2)),
        scales(driver, nvfp4_scale_bytes(s.m, s.k, NVFP4_SCALE_LAYOUT_128X4)),
        packed(driver, nvfp4_packed_bytes(s.m, s.k, kTokenPacking, NVFP4_OPERAND_FORMAT_NVFP4)) {}
  Operands(const Driver& driver, const Operands& other)
      : weights(driver, other.weights),
        codes(driver, other.codes.bytes()),
        scales(driver, other.scales.bytes()),
        packed(driver, other.packed.bytes()) {}

  void quantize(const Shape& s) const {
    nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
    q.rows = s.m, q.k = s.k, q.x = weights.tokens.pointer(), q.x_ld = s.k;
    q.x_type = NVFP4_TYPE_BF16, q.tensor_scale = 0.01f;
    q.codes = packed.pointer(), q.packing = kTokenPacking;
    check(nvfp4_quantize(&q, nullptr));
    q.codes = codes.pointer(), q.codes_ld = s.k, q.packing = NVFP4_PACKING_NONE;
    q.scales = scales.pointer(), q.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    check(nvfp4_quantize(&q, nullptr));
  }
  nvfp4_gemm_desc desc(const Shape& s, const Kind& kind, const std::string& variant) const {
    nvfp4_gemm_desc g = question(s, kind, variant);
    g.d = weights.d.pointer();
    g.b = kind.weights() ? weights.packed.pointer() : weights.codes.pointer();
    g.a = kind.tokens() ? packed.pointer() : codes.pointer();
    if (!kind.weights()) g.b_scales = weights.scales.pointer();
    if (kind.a_type != NVFP4_TYPE_NONE) {
      g.a = weights.tokens.pointer();
    } else if (!kind.tokens()) {
      g.a_scales = scales.pointer();
    }
    return g;
  }
};

class Bench {
 public:
  explicit Bench(const TurnsOptions& options) : options_(options) {}

  void time(const Gpu& gpu, GpuTimer* timer, const Shape& s) {
    take(gpu, s, timer != nullptr);
    for (const auto& copy : copies_) copy->quantize(s);
    for (const Kind& kind : kKinds) {
      const std::vector<Way> ways = ways_of(target(gpu), s, kind);
      verify(gpu, s, kind, ways);
      if (timer == nullptr) continue;
      std::vector<Series> all;
      for (const Way& one : ways) all.push_back(series(s, kind, one));
      const auto times = timer->interleaved(all, options_.replays);
      for (size_t i = 0; i < ways.size(); ++i)
        print(s, kind, ways[i], i == 0, formatted("%.2f", median(times[i])));
    }
    std::fflush(stdout);
  }

 private:
  static Target target(const Gpu& gpu) { return {gpu.info.compute_capability(), gpu.info.sms}; }

  void take(const Gpu& gpu, const Shape& s, bool cold) {
    if (s.m > kMostTokens) throw std::invalid_argument("there is room for 512 tokens");
    if (n_ == s.n && k_ == s.k) return;
    n_ = s.n, k_ = s.k;
    copies_.clear();
    if (!workspace_) workspace_ = std::make_unique<DeviceBuffer>(gpu.driver, size_t(256) << 20);
    const Shape most{kMostTokens, s.n, s.k};
    const int count =
        cold ? std::min(kMostCopies, cold_copies(compulsory_bytes({1, s.n, s.k}), gpu.l2_bytes))
             : 1;
    copies_.push_back(std::make_unique<Operands>(gpu.driver, most));
    while (int(copies_.size()) < count)
      copies_.push_back(std::make_unique<Operands>(gpu.driver, *copies_[0]));
  }

  nvfp4_gemm_desc desc(const Operands& o, const Shape& s, const Kind& kind,
                       const std::string& variant) const {
    nvfp4_gemm_desc g = o.desc(s, kind, variant);
    g.workspace = workspace_->pointer(), g.workspace_bytes = workspace_->bytes();
    return g;
  }

  Series series(const Shape& s, const Kind& kind, const Way& one) const {
    const std::string ask = one.ask;
    return support::in_turns(
        copies_,
        [this, s, &kind, ask](const Operands& o, CUstream stream) {
          const nvfp4_gemm_desc g = desc(o, s, kind, ask);
          check(nvfp4_gemm_run(&g, stream));
        },
        kLeastLaunches);
  }

  // The last elements of D.
  std::vector<double> run(const Gpu& gpu, const Shape& s, const Kind& kind, const Way& one) const {
    const Driver& driver = gpu.driver;
    const DeviceBuffer& d = copies_[0]->weights.d;
    const size_t count = std::min(kCheckedElements, size_t(s.m * s.n));
    const CUdeviceptr at = d.address() + 2 * (size_t(s.m * s.n) - count);
    driver.check(driver.cuMemsetD8(at, 0xFF, 2 * count), "cuMemsetD8");
    const nvfp4_gemm_desc g = desc(*copies_[0], s, kind, one.ask);
    check(nvfp4_gemm_run(&g, nullptr));
    driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
    std::vector<uint16_t> bits(count);
    driver.check(driver.cuMemcpyDtoH(bits.data(), at, 2 * count), "cuMemcpyDtoH");
    std::vector<double> values;
    for (const uint16_t each : bits)
      values.push_back(g.d_type == NVFP4_TYPE_F16 ? support::f16_value(each)
                                                  : support::bf16_value(each));
    return values;
  }

  void verify(const Gpu& gpu, const Shape& s, const Kind& kind,
              const std::vector<Way>& ways) const {
    // The other order has the same D.
    Kind plain = kind;
    plain.packed = "nothing";
    const std::vector<double> want = run(gpu, s, plain, way_of(target(gpu), s, plain, ""));
    for (const Way& one : ways) {
      const std::vector<double> d = run(gpu, s, kind, one);
      double difference = 0, norm = 0;
      for (size_t i = 0; i < d.size(); ++i) {
        difference += (d[i] - want[i]) * (d[i] - want[i]), norm += want[i] * want[i];
      }
      if (!(norm > 0 && difference <= kMostDifference * kMostDifference * norm))
        throw std::runtime_error(to_string(s) + " by " + one.name + " gives another D");
    }
  }

  const TurnsOptions& options_;
  int64_t n_ = 0, k_ = 0;
  std::vector<std::unique_ptr<Operands>> copies_;
  std::unique_ptr<DeviceBuffer> workspace_;
};

// Choices and predictions for the GPU that the planner assumes.
int predict_plans(const TurnsOptions& options) {
  constexpr Target kAssumed{90, 132};
  std::printf("# Predictions alone.\n# command   %s\n# library   %s\n%s\n", options.command.c_str(),
              nvfp4_build_info(), kColumns);
  for (const std::string& text : options.shapes) {
    const Shape s = parse_shape(text);
    for (const Kind& kind : kKinds) {
      const std::vector<Way> ways = ways_of(kAssumed, s, kind);
      for (size_t i = 0; i < ways.size(); ++i) print(s, kind, ways[i], i == 0, "");
    }
  }
  return 0;
}

}  // namespace

int time_plans(const TurnsOptions& options) {
  if (options.predicted) return predict_plans(options);
  Bench bench(options);
  return time_in_turns(
      options,
      {"plans", kColumns, [&](const Gpu& gpu, const Shape& s) { bench.time(gpu, nullptr, s); },
       [&](const Gpu& gpu, GpuTimer& timer, const Shape& s) { bench.time(gpu, &timer, s); }});
}

}  // namespace bench
