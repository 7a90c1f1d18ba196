// SPDX-License-Identifier: MIT
// nvfp4_bench scaled-d: D in NVFP4 or MXFP4 beside D in bf16, and beside D in bf16 that
// nvfp4_quantize then reads. The bits are those of the fp32 product, quantized, or nothing is
// timed.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bench/figures.h"
#include "bench/turns.h"
#include "tools/harness/device_gemm.h"

namespace bench {
namespace {

using support::DeviceBuffer;
using support::DeviceGemm;
using support::Driver;
using support::Shape;

constexpr int32_t kTiles = NVFP4_SCALE_LAYOUT_128X4;

// One product with room for D of every type. Operands are those of the first one.
struct Set {
  int32_t scaled_type;  // of D with scales
  DeviceGemm gemm;
  DeviceBuffer d, codes, scales;

  Set(const Driver& driver, const DeviceGemm& first, const Shape& s, int32_t type)
      : scaled_type(type),
        gemm(first),
        d(driver, size_t(s.m * s.n) * sizeof(float)),
        codes(driver, size_t(s.m * s.n / 2)),
        scales(driver, nvfp4_scale_bytes(s.m, s.n, kTiles)) {
    take(scaled_type);
    gemm.fit_workspace();  // no other D needs more
  }

  void take(int32_t type) {
    nvfp4_gemm_desc& g = gemm.desc;
    const bool scaled = type == scaled_type;
    g.d_type = type, g.d = scaled ? codes.pointer() : d.pointer();
    g.d_scales = scaled ? scales.pointer() : nullptr;
    g.d_scale_layout = scaled ? kTiles : NVFP4_SCALE_LAYOUT_UNSET;
  }
  void run(int32_t type, CUstream stream) {
    take(type);
    check(gemm.enqueue(stream));
  }
  void quantize(int32_t type, CUstream stream) {
    const nvfp4_gemm_desc& g = gemm.desc;
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = g.m, q.k = g.n, q.x = d.pointer(), q.x_ld = g.n, q.x_type = type;
    q.codes = codes.pointer(), q.codes_ld = g.n, q.scales = scales.pointer();
    q.scale_layout = kTiles, q.tensor_scale = 1;
    q.format = support::format_of_d(scaled_type);
    q.pdl = g.pdl == NVFP4_PDL_OFF ? NVFP4_PDL_OFF : NVFP4_PDL_ON;
    check(nvfp4_quantize(&q, stream));
  }
};

// Padding of scales is the quantizer's zeros in both.
void verify(const Driver& driver, Set& set, const Shape& s) {
  set.run(NVFP4_TYPE_F32, nullptr);
  set.quantize(NVFP4_TYPE_F32, nullptr);
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
  const std::vector<uint8_t> codes = set.codes.download(), scales = set.scales.download();
  set.codes.upload(std::vector<uint8_t>(codes.size(), 0xA5));
  set.run(set.scaled_type, nullptr);
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
  if (set.codes.download() != codes || set.scales.download() != scales)
    throw std::runtime_error(to_string(s) + ": D with scales is not the fp32 product, quantized");
}

// The first of the sets is right.
std::vector<std::unique_ptr<Set>> verified(const Gpu& gpu, const Shape& s,
                                           const TurnsOptions& options, int count) {
  if (s.n % support::scale_block_of_d(options.d_type) != 0)
    throw std::invalid_argument("a block of D ends beyond N");
  const DeviceGemm first(gpu.driver,
                         support::make_a16_problem(s, options.a_type, support::Data::random, 1));
  std::vector<std::unique_ptr<Set>> sets;
  for (int i = 0; i < count; ++i)
    sets.push_back(std::make_unique<Set>(gpu.driver, first, s, options.d_type));
  verify(gpu.driver, *sets[0], s);
  return sets;
}

void time_shape(const Gpu& gpu, GpuTimer& timer, const Shape& s, const TurnsOptions& options) {
  const int count = std::min(64, cold_copies(compulsory_bytes(s), gpu.l2_bytes));
  const auto sets = verified(gpu, s, options, count);
  const auto series = [&](int32_t type, bool quantizes) {
    return support::in_turns(sets, [type, quantizes](Set& set, CUstream stream) {
      set.run(type, stream);
      if (quantizes) set.quantize(type, stream);
    });
  };
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    for (const auto& set : sets) set->gemm.desc.pdl = pdl;
    const auto times =
        timer.interleaved({series(NVFP4_TYPE_BF16, false), series(options.d_type, false),
                           series(NVFP4_TYPE_BF16, true)},
                          options.replays);
    const double bf16 = median(times[0]), scaled = median(times[1]), chain = median(times[2]);
    std::printf("%lld,%lld,%lld,%d,%.2f,%.2f,%.2f,%+.2f,%+.1f,%+.2f\n", (long long)s.m,
                (long long)s.n, (long long)s.k, pdl, bf16, scaled, chain, scaled - bf16,
                (scaled / bf16 - 1) * 100, scaled - chain);
    std::fflush(stdout);
  }
}

}  // namespace

int time_scaled_d(const TurnsOptions& options) {
  return time_in_turns(
      options, {"three",
                "m,n,k,pdl,bf16_us,scaled_us,bf16_then_quantize_us,over_bf16_us,over_bf16_percent,"
                "over_chain_us",
                [&](const Gpu& gpu, const Shape& s) { verified(gpu, s, options, 1); },
                [&](const Gpu& gpu, GpuTimer& timer, const Shape& s) {
                  time_shape(gpu, timer, s, options);
                }});
}

}  // namespace bench
