// SPDX-License-Identifier: MIT
// The benchmark's loop of wgmma: that it multiplies what it counts, and numbers at all.
#include "bench/tensor_rate.h"

#include <set>

#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "tools/harness/module.h"

TEST_CASE("the loop that measures fp16 multiplies what it is counted for", "[wgmma]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const support::Driver& driver = gpu.driver;
  const support::Module module = support::Module::from_text(driver, bench::dense_wgmma_program());
  support::Random random(8);
  std::vector<uint8_t> numbers(bench::kRateSharedBytes);  // fp16 in +-[1, 2)
  for (size_t i = 0; i < numbers.size(); i += 2) {
    numbers[i] = uint8_t(random.below(256));
    numbers[i + 1] = uint8_t(0x3C | random.below(4) | random.below(2) << 7);
  }
  constexpr unsigned kCtas = 2;
  constexpr uint32_t kRounds = 2;
  const support::DeviceBuffer from(driver, numbers);
  const auto sums_after = [&](uint32_t rounds) {
    const support::DeviceBuffer out(driver, kCtas * bench::kRateThreads * 4);
    CUdeviceptr source = from.address(), target = out.address();
    void* arguments[] = {&source, &target, &rounds};
    module.launch("dense_wgmma", kCtas, bench::kRateThreads, 0, arguments);
    return out.download();
  };
  const std::vector<uint8_t> sums = sums_after(kRounds);
  if (gpu.info.emulated()) {
    const gemm_test::Emulator emulator(driver);
    CHECK(double(emulator.counter("macs")) == bench::rate_macs(kCtas, kRounds));
  }
  // Both CTAs have the same sums, no two threads of one, and another round changes them.
  const size_t half = sums.size() / 2;
  CHECK(std::equal(sums.begin(), sums.begin() + long(half), sums.begin() + long(half)));
  std::set<std::vector<uint8_t>> different;
  for (size_t i = 0; i < half; i += 4)
    different.insert({sums.begin() + long(i), sums.begin() + long(i) + 4});
  CHECK(different.size() > bench::kRateThreads * 9 / 10);
  CHECK(sums_after(kRounds + 1) != sums);
}
