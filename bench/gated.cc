// SPDX-License-Identifier: MIT
// nvfp4_bench gated: silu(x) * y of the products with b and b2 in one launch, D in bf16 and in
// NVFP4, beside the one product with the rows of both, alone and with the nvfp4_fused_quantize that
// follows it. D in bf16 is that in fp32, rounded, or nothing is timed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/figures.h"
#include "bench/turns.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/plan_info.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::DeviceGemm;
using support::Driver;
using support::Shape;

constexpr int32_t kTiles = NVFP4_SCALE_LAYOUT_128X4;

// Gate and up are the halves of the weights of one product.
struct Set {
  Shape s;  // n: columns of the gated product
  DeviceGemm gemm;
  DeviceBuffer d, codes, scales;
  std::unique_ptr<DeviceBuffer> workspace;

  Set(const Driver& driver, const DeviceGemm& first, const Shape& shape)
      : s(shape),
        gemm(first),
        d(driver, size_t(s.m * s.n) * 2 * sizeof(float)),
        codes(driver, size_t(s.m * s.n / 2)),
        scales(driver, nvfp4_scale_bytes(s.m, s.n, kTiles)) {
    gemm.desc.d = d.pointer(), gemm.desc.d_type = NVFP4_TYPE_BF16, gemm.desc.d_ld = 2 * s.n;
    const int capability = support::devices(driver).at(0).compute_capability();
    uint64_t most = 256;
    for (const nvfp4_gemm_desc& g : {gemm.desc, gated_desc(NVFP4_TYPE_BF16),
                                     gated_desc(NVFP4_TYPE_NVFP4), gated_desc(NVFP4_TYPE_F32)}) {
      uint64_t bytes = 0;
      check(nvfp4_gemm_workspace_bytes(&g, capability, &bytes));
      most = std::max(most, bytes);
    }
    workspace = std::make_unique<DeviceBuffer>(driver, most);
    gemm.desc.workspace = workspace->pointer(), gemm.desc.workspace_bytes = most;
  }

  nvfp4_gemm_desc gated_desc(int32_t type) const {
    nvfp4_gemm_desc g = gemm.desc;
    g.n = g.d_ld = s.n, g.d_type = type;
    g.b2 = static_cast<const uint8_t*>(g.b) + s.n * s.k / 2;
    g.b2_scales = static_cast<const uint8_t*>(g.b_scales) + nvfp4_scale_bytes(s.n, s.k, kTiles);
    g.alpha2 = g.alpha, g.activation = NVFP4_ACTIVATION_SILU;
    if (type == NVFP4_TYPE_NVFP4) {
      g.d = codes.pointer(), g.d_scales = scales.pointer(), g.d_scale_layout = kTiles;
    }
    return g;
  }
  void gated(int32_t type, CUstream stream) const {
    const nvfp4_gemm_desc g = gated_desc(type);
    check(nvfp4_gemm_run(&g, stream));
  }
  void both(CUstream stream) const { check(gemm.enqueue(stream)); }
  void chain(CUstream stream) const {
    both(stream);
    nvfp4_fused_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = s.m, q.k = s.n, q.type = NVFP4_TYPE_BF16, q.operation = NVFP4_FUSED_SILU_MUL;
    q.x = d.pointer(), q.x_ld = q.y_ld = 2 * s.n;
    q.y = static_cast<uint8_t*>(const_cast<void*>(q.x)) + 2 * s.n;
    q.codes = codes.pointer(), q.codes_ld = s.n, q.scales = scales.pointer();
    q.scale_layout = kTiles, q.tensor_scale_mode = NVFP4_TENSOR_SCALE_VALUE, q.tensor_scale = 1;
    q.pdl = gemm.desc.pdl == NVFP4_PDL_OFF ? NVFP4_PDL_OFF : NVFP4_PDL_ON;
    check(nvfp4_fused_quantize(&q, stream));
  }
};

uint16_t bf16(uint32_t bits) {
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void verify(const Driver& driver, const Set& set) {
  const size_t count = size_t(set.s.m * set.s.n);
  std::vector<uint32_t> wide(count);
  std::vector<uint16_t> rounded(count);
  const auto fetch = [&](int32_t type, void* to, size_t bytes) {
    set.gated(type, nullptr);
    driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
    const std::vector<uint8_t> d = set.d.download();
    memcpy(to, d.data(), bytes);
  };
  fetch(NVFP4_TYPE_F32, wide.data(), 4 * count);
  fetch(NVFP4_TYPE_BF16, rounded.data(), 2 * count);
  for (size_t i = 0; i < count; ++i) {
    if (rounded[i] != bf16(wide[i]))
      throw std::runtime_error(to_string(set.s) + ": D in bf16 is not D in fp32, rounded");
  }
}

const char* variant_of(const Gpu& gpu, const nvfp4_gemm_desc& g) {
  return support::plan_info(g, gpu.info.compute_capability(), gpu.info.sms).variant;
}

struct Prepared {
  std::vector<std::unique_ptr<Set>> sets;

  Prepared(const Driver& driver, const Shape& s, int32_t a_type, int count) {
    if (s.n % 128 != 0) throw std::invalid_argument("a half ends inside a tile of scales");
    const Shape both{s.m, 2 * s.n, s.k};
    const DeviceGemm first(driver,
                           support::make_a16_problem(both, a_type, support::Data::random, 1));
    for (int i = 0; i < count; ++i) sets.push_back(std::make_unique<Set>(driver, first, s));
    verify(driver, *sets[0]);
  }
};

void time_shape(const Gpu& gpu, GpuTimer& timer, const Shape& s, const TurnsOptions& options) {
  const int count =
      std::min(16, cold_copies(compulsory_bytes(Shape{s.m, 2 * s.n, s.k}), gpu.l2_bytes));
  const Prepared prepared(gpu.driver, s, options.a_type, count);
  const auto series = [&](const auto& run) { return support::in_turns(prepared.sets, run, 12); };
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    for (const auto& set : prepared.sets) set->gemm.desc.pdl = pdl;
    const auto times = timer.interleaved(
        {series([](const Set& set, CUstream stream) { set.both(stream); }),
         series([](const Set& set, CUstream stream) { set.gated(NVFP4_TYPE_BF16, stream); }),
         series([](const Set& set, CUstream stream) { set.gated(NVFP4_TYPE_NVFP4, stream); }),
         series([](const Set& set, CUstream stream) { set.chain(stream); })},
        options.replays);
    const double both = median(times[0]), gated = median(times[1]);
    const Set& set = *prepared.sets[0];
    std::printf("%lld,%lld,%lld,%s,%d,%s,%s,%.2f,%.2f,%.2f,%.2f,%+.1f\n", (long long)s.m,
                (long long)s.n, (long long)s.k, word_of(options.a_type), pdl,
                variant_of(gpu, set.gemm.desc), variant_of(gpu, set.gated_desc(NVFP4_TYPE_BF16)),
                both, gated, median(times[2]), median(times[3]), (gated / both - 1) * 100);
    std::fflush(stdout);
  }
}

}  // namespace

int time_gated(const TurnsOptions& options) {
  return time_in_turns(
      options,
      {"four",
       "m,n,k,tokens,pdl,variant_of_2n,variant,product_of_2n_us,gated_bf16_us,gated_nvfp4_us,"
       "product_then_fused_quantize_us,over_product_percent",
       [&](const Gpu& gpu, const Shape& s) { Prepared(gpu.driver, s, options.a_type, 1); },
       [&](const Gpu& gpu, GpuTimer& timer, const Shape& s) {
         time_shape(gpu, timer, s, options);
       }});
}

}  // namespace bench
