// SPDX-License-Identifier: MIT
// nvfp4_bench peers: layers with bf16 tokens and packed weights beside kernels of other programs
// and cuBLASLt in bf16, and with NVFP4 tokens, codes and packed ones, beside cuBLASLt in fp16, all
// in turns. A row of CSV for each layer and number of tokens.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/csv.h"
#include "bench/figures.h"
#include "bench/head.h"
#include "bench/layers.h"
#include "bench/peer.h"
#include "bench/weights.h"
#include "bench/yardsticks.h"
#include "tools/harness/formats.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/progress.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::Driver;
using support::Shape;

constexpr size_t kWorkspace = size_t(256) << 20;
constexpr int kLeastLaunches = 12;
constexpr double kMostDifference = 0.005;  // of the norm
constexpr size_t kCheckedElements = 1 << 21;
constexpr int32_t kTokenPacking = NVFP4_PACKING_SM90_TOKENS_1;

// What one launch reads and writes: weights in both orders, tokens in bf16 and in NVFP4.
struct Operands {
  Weights weights;
  DeviceBuffer codes, scales, packed_nvfp4;  // of the tokens, in NVFP4

  Operands(const Driver& driver, const Shape& s)
      : weights(driver, s, NVFP4_TYPE_BF16),
        codes(driver, size_t(s.m * s.k / 2)),
        scales(driver, nvfp4_scale_bytes(s.m, s.k, NVFP4_SCALE_LAYOUT_128X4)),
        packed_nvfp4(driver,
                     nvfp4_packed_bytes(s.m, s.k, kTokenPacking, NVFP4_OPERAND_FORMAT_NVFP4)) {}
  Operands(const Driver& driver, const Operands& other)
      : weights(driver, other.weights),
        codes(driver, other.codes.bytes()),
        scales(driver, other.scales.bytes()),
        packed_nvfp4(driver, other.packed_nvfp4.bytes()) {}

  nvfp4_quantize_desc as_codes(const Shape& s, const DeviceBuffer& tokens) const {
    nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
    q.rows = s.m, q.k = s.k, q.x = tokens.pointer(), q.x_ld = s.k;
    q.x_type = NVFP4_TYPE_BF16, q.tensor_scale = 1;
    q.codes = codes.pointer(), q.codes_ld = s.k;
    q.scales = scales.pointer(), q.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    return q;
  }
  void quantize(const Shape& s) const {
    nvfp4_quantize_desc q = as_codes(s, weights.tokens);
    check(nvfp4_quantize(&q, nullptr));
    q.codes = packed_nvfp4.pointer(), q.codes_ld = 0, q.packing = kTokenPacking;
    q.scales = nullptr, q.scale_layout = 0;
    check(nvfp4_quantize(&q, nullptr));
  }

  nvfp4_gemm_desc bf16_tokens(const Shape& s, bool packed, const char* variant) const {
    nvfp4_gemm_desc g = weights.desc(s, NVFP4_TYPE_BF16, packed, variant);
    g.alpha = 1;  // as peers have it
    return g;
  }
  nvfp4_gemm_desc nvfp4_tokens(const Shape& s, const char* variant = nullptr) const {
    nvfp4_gemm_desc g = weights.desc(s, NVFP4_TYPE_F16, false, variant);
    g.a = codes.pointer(), g.a_type = NVFP4_TYPE_NONE, g.a_ld = s.k;
    g.a_scales = scales.pointer(), g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    return g;
  }
  nvfp4_gemm_desc packed_tokens(const Shape& s) const {
    nvfp4_gemm_desc g = weights.desc(s, NVFP4_TYPE_F16, false, nullptr);
    g.a = packed_nvfp4.pointer(), g.a_type = NVFP4_TYPE_NONE, g.a_ld = 0,
    g.a_packing = kTokenPacking;
    return g;
  }
};

// A layer with copies of its operands that take turns, so that weights are cold.
struct Layer {
  Shape shape;  // with the most tokens
  std::vector<std::unique_ptr<Operands>> copies;
  std::vector<uint8_t> codes, scales;  // of the weights, as peers take them
  std::vector<uint8_t> tokens;
  DeviceBuffer workspace, dequantized;  // NVFP4 tokens in bf16

  Layer(const Gpu& gpu, const Shape& s)
      : shape(s),
        scales(random_scales(s.n, s.k)),
        workspace(gpu.driver, kWorkspace),
        dequantized(gpu.driver, size_t(2 * s.m * s.k)) {
    copies.push_back(std::make_unique<Operands>(gpu.driver, s));
    const int count = gpu.info.emulated()
                          ? 1
                          : cold_copies(compulsory_bytes({1, s.n, s.k}, kHalfBytes), gpu.l2_bytes);
    while (int(copies.size()) < count)
      copies.push_back(std::make_unique<Operands>(gpu.driver, *copies[0]));
    codes = copies[0]->weights.codes.download();
    tokens = copies[0]->weights.tokens.download();
  }
  // Units of packed tokens depend on how many there are.
  void quantize(const Shape& s) const {
    for (const auto& copy : copies) copy->quantize(s);
    const nvfp4_quantize_desc q = copies[0]->as_codes(s, dequantized);
    check(nvfp4_dequantize(&q, nullptr));  // exact
  }
  PeerOperands operands() const {
    return {codes.data(), scales.data(), reinterpret_cast<const uint16_t*>(tokens.data())};
  }
};

// Times of ours, by the variant that is named.
struct Way {
  std::string variant;
  double us = 0, pdl_us = 0;
};
struct Result {
  Shape shape;
  Way packed, nvfp4, packed_tokens;
  std::vector<double> peer_us;
  double bf16_us = 0, fp16_us = 0;
};

class Bench {
 public:
  Bench(const PeersOptions& options, const Gpu& gpu) : options_(options), gpu_(gpu) {
    if (!gpu.info.emulated()) cublas_ = CublasLt::open(&no_cublas_);
    for (const std::string& path : options.peers)
      peers_.push_back(std::make_unique<PeerLibrary>(path));
  }

  void take(const Shape& s) { layer_.reset(), layer_ = std::make_unique<Layer>(gpu_, s); }
  Result verify(const Shape& s);
  Result time(GpuTimer& timer, const Shape& s);
  Head head(const Rates& rates) const;
  std::string columns() const;

 private:
  nvfp4_gemm_desc with_workspace(nvfp4_gemm_desc g) const {
    g.workspace = layer_->workspace.pointer(), g.workspace_bytes = layer_->workspace.bytes();
    return g;
  }
  std::string variant_of(const nvfp4_gemm_desc& g) const {
    const auto info =
        support::plan_info(with_workspace(g), gpu_.info.compute_capability(), gpu_.info.sms);
    const std::string name = info.variant;
    const bool complete = name.find('/') != std::string::npos || info.whole_tiles != 0;
    return complete ? name : formatted("%s/%d", info.variant, info.k_partitions);
  }
  template <typename Desc>
  void add(Desc desc, Way* to) {
    const int pairs[] = {NVFP4_PDL_OFF, NVFP4_PDL_ON_STATIC_WEIGHTS};
    for (const int pdl : pairs) {
      const auto run = [this, desc, pdl](const Operands& copy, CUstream stream) {
        nvfp4_gemm_desc g = with_workspace(desc(copy));
        g.pdl = pdl;
        check(nvfp4_gemm_run(&g, stream));
      };
      add(support::in_turns(layer_->copies, run, kLeastLaunches),
          pdl == NVFP4_PDL_OFF ? &to->us : &to->pdl_us);
    }
  }
  void add(Series series, double* to) { series_.push_back(std::move(series)), to_.push_back(to); }
  std::unique_ptr<CublasGemm> add(GpuTimer& timer, const Shape& s, GemmType type, double* to);
  std::vector<uint16_t> run(const nvfp4_gemm_desc& desc, const Shape& s) const;
  void verify_nvfp4_tokens(const Shape& s) const;
  bool packs_tokens(const Shape& s) const;
  void verify_packed_tokens(const Shape& s, const std::string& variant) const;

  const PeersOptions& options_;
  const Gpu& gpu_;
  std::string no_cublas_ = "not asked";
  std::unique_ptr<CublasLt> cublas_;
  std::vector<std::unique_ptr<PeerLibrary>> peers_;
  std::unique_ptr<Layer> layer_;
  std::vector<Series> series_;
  std::vector<double*> to_;
};

std::vector<uint16_t> Bench::run(const nvfp4_gemm_desc& desc, const Shape& s) const {
  const Driver& driver = gpu_.driver;
  const DeviceBuffer& d = layer_->copies[0]->weights.d;
  driver.check(driver.cuMemsetD8(d.address(), 0xA5, d.bytes()), "cuMemsetD8");
  const nvfp4_gemm_desc g = with_workspace(desc);
  check(nvfp4_gemm_run(&g, nullptr));
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
  std::vector<uint16_t> values(size_t(s.m * s.n));
  driver.check(driver.cuMemcpyDtoH(values.data(), d.address(), values.size() * 2), "cuMemcpyDtoH");
  return values;
}

// NVFP4 tokens and the same in bf16 give the same D, as near as bf16 is.
void Bench::verify_nvfp4_tokens(const Shape& s) const {
  const Operands& operands = *layer_->copies[0];
  const std::vector<uint16_t> d = run(operands.nvfp4_tokens(s), s);
  nvfp4_gemm_desc g = operands.bf16_tokens(s, true, nullptr);
  g.a = layer_->dequantized.pointer(), g.alpha = operands.nvfp4_tokens(s).alpha;
  const std::vector<uint16_t> want = run(g, s);
  double difference = 0, norm = 0;
  const size_t step = d.size() / kCheckedElements | 1;
  for (size_t i = 0; i < d.size(); i += step) {
    const double value = support::bf16_value(want[i]);
    const double error = support::f16_value(d[i]) - value;
    difference += error * error, norm += value * value;
  }
  if (!(difference <= kMostDifference * kMostDifference * norm))
    throw std::runtime_error(to_string(s) + ": NVFP4 tokens give another D than the same in bf16");
}

// Where less time is predicted of it, as quantize_input() of the Python package decides.
bool Bench::packs_tokens(const Shape& s) const {
  const Operands& operands = *layer_->copies[0];
  const auto predicted = [&](const nvfp4_gemm_desc& g) {
    return support::plan_info(with_workspace(g), gpu_.info.compute_capability(), gpu_.info.sms)
        .predicted_ns;
  };
  return predicted(operands.packed_tokens(s)) < predicted(operands.nvfp4_tokens(s));
}

// Packed tokens give the bits of the same codes.
void Bench::verify_packed_tokens(const Shape& s, const std::string& variant) const {
  const Operands& operands = *layer_->copies[0];
  if (run(operands.packed_tokens(s), s) != run(operands.nvfp4_tokens(s, variant.c_str()), s))
    throw std::runtime_error(to_string(s) + " by " + variant + ": packed tokens give other bits");
}

// Packed weights give the bits of the same weights unpacked; mma.sync adds them in another order.
Result Bench::verify(const Shape& s) {
  layer_->quantize(s);
  Result result;
  result.shape = s;
  const Operands& operands = *layer_->copies[0];
  const nvfp4_gemm_desc packed = operands.bf16_tokens(s, true, nullptr);
  result.packed.variant = variant_of(packed);
  result.nvfp4.variant = variant_of(operands.nvfp4_tokens(s));
  const char* name = result.packed.variant.c_str();
  if (std::strncmp(name, "sm80", 4) != 0 &&
      run(packed, s) != run(operands.bf16_tokens(s, false, name), s))
    throw std::runtime_error(to_string(s) + " by " + name + ": packed weights give other bits");
  verify_nvfp4_tokens(s);
  if (packs_tokens(s)) {
    result.packed_tokens.variant = variant_of(operands.packed_tokens(s));
    verify_packed_tokens(s, result.packed_tokens.variant);
  }
  return result;
}

std::unique_ptr<CublasGemm> Bench::add(GpuTimer& timer, const Shape& s, GemmType type, double* to) {
  if (!cublas_) return nullptr;
  auto gemm = std::make_unique<CublasGemm>(gpu_.driver, *cublas_, type, s, gpu_.l2_bytes,
                                           options_.candidates);
  gemm->screen(timer, 3);
  if (gemm->available()) add(gemm->best(), to);
  return gemm;
}

Result Bench::time(GpuTimer& timer, const Shape& s) {
  Result result = verify(s);
  series_.clear(), to_.clear();
  add([s](const Operands& copy) { return copy.bf16_tokens(s, true, nullptr); }, &result.packed);
  add([s](const Operands& copy) { return copy.nvfp4_tokens(s); }, &result.nvfp4);
  if (!result.packed_tokens.variant.empty())
    add([s](const Operands& copy) { return copy.packed_tokens(s); }, &result.packed_tokens);
  const std::vector<uint16_t> ours = run(layer_->copies[0]->bf16_tokens(s, true, nullptr), s);
  std::vector<std::unique_ptr<PeerGemm>> peers;
  result.peer_us.resize(peers_.size());
  for (size_t i = 0; i < peers_.size(); ++i) {
    peers.push_back(std::make_unique<PeerGemm>(gpu_, *peers_[i], s, layer_->operands()));
    if (!peers.back()->available()) continue;
    peers.back()->require_near(ours);
    add(peers.back()->series(), &result.peer_us[i]);
  }
  const auto bf16 = add(timer, s, GemmType::bf16, &result.bf16_us);
  const auto fp16 = add(timer, s, GemmType::f16, &result.fp16_us);
  const auto times = timer.interleaved(series_, options_.replays);
  for (size_t i = 0; i < times.size(); ++i) *to_[i] = median(times[i]);
  return result;
}

Head Bench::head(const Rates& rates) const {
  Head head{
      {"date", today()},
      {"command", options_.command},
      {"device", formatted("%s, %d SMs", gpu_.info.name.c_str(), gpu_.info.sms)},
      {"driver", driver_release()},
      {"library", nvfp4_build_info()},
      {"build", build_id()},
      {"reading", formatted("%.2f TB/s measured", rates.bytes_per_us / 1e6)},
      {"fp16", formatted("%.0f TFLOP/s measured by a loop of wgmma on random numbers",
                         rates.operations_per_us / 1e6)},
      {"cublasLt", cublas_ ? formatted("%llu; the best of %d proposals, timed again beside ours",
                                       (unsigned long long)cublas_->version(), options_.candidates)
                           : no_cublas_},
      {"us", formatted("medians of %d replays, all in turns; pdl: launches with "
                       "NVFP4_PDL_ON_STATIC_WEIGHTS",
                       options_.replays)},
      {"w4a16", "bf16 tokens, packed weights"},
      {"w4a4", "NVFP4 tokens, codes and scales"},
      {"w4a4_packed", "the same tokens packed, where less time is predicted of them"}};
  for (size_t i = 0; i < peers_.size(); ++i)
    head.emplace_back(formatted("peer%zu", i + 1), peers_[i]->name());
  return head;
}

std::string Bench::columns() const {
  std::string peers;
  for (size_t i = 0; i < peers_.size(); ++i) peers += formatted("peer%zu_us,", i + 1);
  return "n,k,m,w4a16_variant,w4a16_us,w4a16_pdl_us,w4a16_roofline_us," + peers +
         "bf16_best_us,w4a4_variant,w4a4_us,w4a4_pdl_us,w4a4_packed_variant,w4a4_packed_us,"
         "w4a4_packed_pdl_us,w4a4_roofline_us,fp16_best_us";
}

void print(const Result& r, const Rates& rates) {
  const Shape& s = r.shape;
  const auto us = [](double value) { return figure(value, "%.2f"); };
  std::string line = formatted("%lld,%lld,%lld,", (long long)s.n, (long long)s.k, (long long)s.m);
  line += r.packed.variant + "," + us(r.packed.us) + "," + us(r.packed.pdl_us) + "," +
          us(roofline_us(s, rates, kHalfBytes)) + ",";
  for (const double peer : r.peer_us) line += us(peer) + ",";
  line += us(r.bf16_us) + "," + r.nvfp4.variant + "," + us(r.nvfp4.us) + "," + us(r.nvfp4.pdl_us) +
          "," + r.packed_tokens.variant + "," + us(r.packed_tokens.us) + "," +
          us(r.packed_tokens.pdl_us) + "," + us(roofline_us(s, rates)) + "," + us(r.fp16_us);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

int time_peers(const PeersOptions& options) {
  const Driver& driver = Driver::get();
  const support::Context context(driver);
  const Gpu gpu(driver);
  Bench bench(options, gpu);
  const bool timed = !gpu.info.emulated();
  GpuTimer timer(driver);
  Rates rates;
  if (timed) {
    rates.bytes_per_us = read_bytes_per_us(driver, timer, gpu.info.sms);
    rates.operations_per_us = wgmma_operations_per_us(driver, timer, gpu.info.sms);
    std::printf("# Microseconds by graph replay, weights cold.\n%s%s\n",
                as_comments(bench.head(rates)).c_str(), bench.columns().c_str());
  }
  const int64_t most = *std::max_element(options.tokens.begin(), options.tokens.end());
  for (const auto& [n, k] : read_layers(options.layers)) {
    bench.take({most, n, k});
    for (const int64_t m : options.tokens) {
      support::progress(to_string(Shape{m, n, k}));
      if (timed)
        print(bench.time(timer, {m, n, k}), rates);
      else
        bench.verify({m, n, k});
    }
  }
  support::progress_done();
  if (!timed) std::printf("# %s: nothing is timed in the emulator\n", gpu.info.name.c_str());
  return 0;
}

}  // namespace bench
