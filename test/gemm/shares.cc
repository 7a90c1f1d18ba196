// SPDX-License-Identifier: MIT
// Tiles of 9.0 beyond those that every CTA of the machine that plans are made for takes alone: a
// cluster shares each of them along K. And what becomes of them where other work keeps SMs.
#include <cstring>

#include "test/gemm/emulator.h"
#include "test/gemm/shares.h"
#include "tools/harness/module.h"

using namespace gemm_test;
using support::DeviceGemm;
using support::Driver;

namespace {

// All that compute several tiles, fewer in the emulator.
std::vector<std::string> variants_of_several_tiles() {
  if (support::devices(Driver::get()).at(0).emulated()) {
    return {"sm90_64x1x256", "sm90_64x8x256", "sm90_128x128x256", "sm90_f16_64x16x256"};
  }
  return {"sm90_64x1x256",        "sm90_64x2x256",        "sm90_64x4x256",
          "sm90_64x8x256",        "sm90_128x16x256",      "sm90_128x128x256",
          "sm90_128x192x256",     "sm90_128x256x256",     "sm90_f16_64x16x256",
          "sm90_bf16_64x16x256",  "sm90_f16_128x128x256", "sm90_bf16_128x128x256",
          "sm90_f16_128x192x256", "sm90_bf16_128x192x256"};
}

// A kernel that keeps so many SMs, one CTA with most of the shared memory on each, for a while.
class Holder {
 public:
  explicit Holder(const Driver& driver)
      : driver_(driver), module_(support::Module::from_text(driver, kText)) {
    driver.check(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    driver.check(driver.cuFuncSetAttribute(module_.function("hold"),
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kBytes),
                 "cuFuncSetAttribute");
  }
  ~Holder() { driver_.cuStreamDestroy(stream_); }
  Holder(const Holder&) = delete;

  void hold(unsigned sms, uint64_t ns) const {
    void* arguments[] = {&ns};
    driver_.check(driver_.cuLaunchKernel(module_.function("hold"), sms, 1, 1, 32, 1, 1, kBytes,
                                         stream_, arguments, nullptr),
                  "cuLaunchKernel");
  }
  void wait() const { driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

 private:
  static constexpr int kBytes = 200 << 10;
  static constexpr const char* kText =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry hold(.param .u64 ns) {\n"
      ".reg .pred %p; .reg .u64 %end, %now;\n"
      "ld.param.u64 %end, [ns]; mov.u64 %now, %globaltimer; add.u64 %end, %end, %now;\n"
      "AGAIN: mov.u64 %now, %globaltimer; setp.lt.u64 %p, %now, %end; @%p bra AGAIN; ret; }\n";
  const Driver& driver_;
  support::Module module_;
  CUstream stream_ = nullptr;
};

// A product on a stream of its own, and recorded as a graph; times by events.
class Run {
 public:
  Run(const Driver& driver, const Problem& problem) : gemm(driver, problem), driver_(driver) {
    driver.check(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (CUevent& event : events_) driver.check(driver.cuEventCreate(&event, 0), "cuEventCreate");
    driver.check(driver.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
    REQUIRE(gemm.enqueue(stream_) == NVFP4_SUCCESS);
    driver.check(driver.cuStreamEndCapture(stream_, &graph_), "cuStreamEndCapture");
    driver.check(driver.cuGraphInstantiateWithFlags(&instance_, graph_, 0), "instantiate");
  }
  ~Run() {
    driver_.cuGraphExecDestroy(instance_);
    driver_.cuGraphDestroy(graph_);
    for (const CUevent event : events_) driver_.cuEventDestroy(event);
    driver_.cuStreamDestroy(stream_);
  }
  Run(const Run&) = delete;

  DeviceGemm gemm;
  void once() const { REQUIRE(gemm.enqueue(stream_) == NVFP4_SUCCESS); }
  void timed() const {
    driver_.cuEventRecord(events_[0], stream_);
    once();
    driver_.cuEventRecord(events_[1], stream_);
  }
  void twice_by_graph() const {
    for (int i = 0; i < 2; ++i) driver_.check(driver_.cuGraphLaunch(instance_, stream_), "launch");
  }
  float wait_ms() const {
    driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
    float ms = 0;
    driver_.check(driver_.cuEventElapsedTime(&ms, events_[0], events_[1]), "cuEventElapsedTime");
    return ms;
  }

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
  CUevent events_[2] = {};
  CUgraph graph_ = nullptr;
  CUgraphExec instance_ = nullptr;
};

}  // namespace

TEST_CASE("a few tiles more than there are SMs are shared and all have the reference's bits",
          "[shares]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE(from_range(gemm_test::taken(variants_of_several_tiles())));
  const Problem problem =
      tiles_of(variant, nominal_sms(gpu) + gpu.sized(20, 2), k_of(gpu, variant), Data::exact);
  CHECK(whole_tiles(gpu, DeviceGemm(gpu.driver, problem).desc) > 0);
  gemm_test::require_reference_bits(gpu, problem);
  const bool narrow =
      gemm_test::tile_weights(variant) == 64 && gemm_test::tile_tokens(variant) == 8;
  if (gpu.small() && !narrow) return;
  // Without a rest of K a plain product is computed by the entry for those.
  const Problem plain = tiles_of(variant, nominal_sms(gpu) + gpu.sized(20, 2),
                                 k_of(gpu, variant) / 64 * 64, Data::exact);
  CHECK(whole_tiles(gpu, DeviceGemm(gpu.driver, plain).desc) > 0);
  gemm_test::require_reference_bits(gpu, plain);
}

// Three rounds: the rings go on from a part of K to whole tiles, whose stages are no multiple of
// the groups. Sums in fp32 from one place, too.
TEST_CASE("a CTA goes on from its part of a tile to whole ones with any epilogue",
          "[shares][epilogue]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small()) SKIP_TEST("hundreds of tiles take the emulator minutes");
  const std::string variant = GENERATE(from_range(variants_of_several_tiles()));
  const int64_t tiles = 2 * nominal_sms(gpu) + 7;
  support::Random random(961);
  const Problem operands = tiles_of(variant, tiles, k_of(gpu, variant), Data::exact);
  gemm_test::require_reference_bits(gpu, operands);
  if (a_type_of(variant) != NVFP4_TYPE_NONE) return;
  const support::Problem p =
      support::with_fields(operands, random_fields(operands.shape(), random), 1);
  CAPTURE(variant, tiles, to_string(p));
  REQUIRE(difference_on_device(gpu.driver, p) == "");
}

// No CTA waits for one that need not be resident. The sums are inexact: another order would show.
TEST_CASE("where other work keeps SMs the bits are the same and nothing hangs", "[shares][held]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.info.emulated()) SKIP_TEST("the emulator runs one launch at a time");
  const std::string variant =
      GENERATE("sm90_64x1x256", "sm90_64x8x256", "sm90_128x16x256", "sm90_128x128x256",
               "sm90_128x192x256", "sm90_f16_64x16x256", "sm90_128x128x256/even");
  const bool even = variant == "sm90_128x128x256/even";
  const int64_t tiles = nominal_sms(gpu) + (even ? 80 : 20);
  const Problem problem = tiles_of(variant, tiles, k_of(gpu, variant), Data::random);
  const Run one(gpu.driver, problem), other(gpu.driver, problem);
  const Holder holder(gpu.driver);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  one.once();
  one.timed();
  const float alone = one.wait_ms();
  const std::vector<uint16_t> want = one.gemm.d();
  for (const unsigned held : {18u, 54u, 92u}) {
    constexpr uint64_t kNs = 20'000'000;
    holder.hold(held, kNs);
    one.timed();
    other.timed();
    const float times[] = {one.wait_ms(), other.wait_ms()};
    one.twice_by_graph();
    other.twice_by_graph();
    one.wait_ms(), other.wait_ms();
    const bool same = one.gemm.d() == want && other.gemm.d() == want;
    CAPTURE(variant, held);
    CHECK(same);
    std::printf("%s: %.1f us alone, %.1f and %.1f beside each other and %u SMs held\n",
                variant.c_str(), 1e3 * double(alone), 1e3 * double(times[0]),
                1e3 * double(times[1]), held);
    holder.wait();
  }
}
