// SPDX-License-Identifier: MIT
// What only the emulator can show: asynchronous work completes in an order of its choosing, it
// counts what the kernel did, and it records the driver calls of the library.
#include <set>
#include <sstream>

#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

using gemm_test::Emulator;

namespace {

// Sets the order, and puts the process's own back at the end of the test.
class CompletionOrder {
 public:
  CompletionOrder(const Emulator& emulator, const char* order, int seed) : emulator_(emulator) {
    REQUIRE(emulator.set("EMU_ORDER", order) == 0);
    REQUIRE(emulator.set("EMU_SEED", std::to_string(seed).c_str()) == 0);
  }
  ~CompletionOrder() {
    emulator_.set("EMU_ORDER", "random");
    emulator_.set("EMU_SEED", "1");
  }

 private:
  const Emulator& emulator_;
};

uint64_t ceil_div(int64_t a, int64_t b) { return uint64_t((a + b - 1) / b); }

}  // namespace

TEST_CASE("the bits do not depend on when asynchronous work completes", "[order]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  struct Order {
    const char* name;
    int seed;
  };
  // Random scales, so that a changed order of summation would show as well; the ring wraps twice.
  const support::Shape shape = gpu.sized<support::Shape>({130, 136, 4416}, {9, 70, 1088});
  const char* variant = SOME_VARIANTS(3);
  Problem p = forced(variant, make_problem(shape, Data::random, 60));
  p.batch_invariant = gpu.info.major == 10;  // K is whole; split_sm100.cc shares it
  std::set<std::vector<uint16_t>> results;
  for (const Order& order :
       {Order{"soonest", 1}, Order{"latest", 1}, Order{"random", 1}, Order{"random", 2},
        Order{"random", 3}, Order{"random", 4}, Order{"random", 5}}) {
    if (gpu.small() && !gemm_test::everything() && order.seed > 1) continue;
    INFO(order.name << ", seed " << order.seed);
    const CompletionOrder set(emulator, order.name, order.seed);
    const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
    if (results.insert(d).second) REQUIRE(gemm_test::inside_bound(gpu, p, d));
    CHECK(results.size() == 1);
  }
}

TEST_CASE("the kernel multiplies by tensor cores and loads by TMA each tile once",
          "[order][count]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const support::Shape s = GENERATE(support::Shape{128, 256, 256}, support::Shape{129, 200, 1600},
                                    support::Shape{7, 300, 64, 3});
  const int64_t tokens = GENERATE(64, 128);
  const std::string variant = "sm100_128x" + std::to_string(tokens) + "x256";
  support::run_on_device(gpu.driver, forced(variant.c_str(), make_problem(s, Data::exact, 61)));
  const uint64_t tiles = ceil_div(s.m, tokens) * ceil_div(s.n, 128) * uint64_t(s.l);
  const uint64_t blocks = 2;  // of scales: weights, tokens
  const uint64_t steps = uint64_t(s.k / 64), stages = ceil_div(s.k, 256);
  CHECK(emulator.counter("mmas") == tiles * steps);
  CHECK(emulator.counter("scale_copies") == tiles * steps * blocks);
  CHECK(emulator.counter("tma_loads") == tiles * stages * 2);
  CHECK(emulator.counter("bulk_copies") == tiles * stages * blocks);
  CHECK(emulator.counter("bulk_bytes") == tiles * steps * blocks * 512);
}

TEST_CASE("a second call is one launch and allocates nothing", "[order][calls]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 64}, Data::exact, 62));
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  emulator.reset_calls();
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  const std::string text = emulator.recorded();
  INFO(text);
  std::istringstream lines(text);
  int launches = 0;
  for (std::string call; std::getline(lines, call);) {
    launches += call.rfind("cuLaunchKernel", 0) == 0;
    for (const char* forbidden :
         {"Alloc", "Free", "Synchronize", "Memcpy", "ModuleLoad", "LibraryLoad"}) {
      CHECK(call.find(forbidden) == std::string::npos);
    }
  }
  CHECK(launches == 1);
}
