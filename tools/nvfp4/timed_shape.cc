// SPDX-License-Identifier: MIT
#include "tools/nvfp4/timed_shape.h"

#include <algorithm>
#include <stdexcept>

#include "tools/nvfp4/inputs.h"
#include "tools/nvfp4/memory.h"

namespace nvfp4_tool {

namespace {

constexpr int kLaunches = 20;  // at least, per graph
constexpr int64_t kMostCopies = 128;

// Number of copies such that three times the L2 is read before a copy is used again, so it is cold.
// Very small operands would need more than kMostCopies.
int count_copies(const support::Driver& driver, const support::Shape& shape) {
  int l2 = 0;
  driver.check(driver.cuDeviceGetAttribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0),
               "cuDeviceGetAttribute");
  const double bytes = device_bytes(shape, {});
  return int(std::min<int64_t>(kMostCopies, 2 + int64_t(3.0 * l2 / bytes)));
}

}  // namespace

TimedShape::TimedShape(const support::Driver& driver, const RunOptions& options,
                       uint64_t workspace_bytes)
    : timer_(driver), workspace_(driver, std::max<uint64_t>(workspace_bytes, 256)) {
  const support::Problem problem = problem_from(options);
  const size_t count = size_t(count_copies(driver, options.shape));
  copies_.push_back(std::make_unique<support::DeviceGemm>(driver, problem));
  while (copies_.size() < count)
    copies_.push_back(std::make_unique<support::DeviceGemm>(*copies_[0]));
  for (const auto& copy : copies_) {
    copy->desc.workspace = workspace_.pointer();
    copy->desc.workspace_bytes = workspace_.bytes();
  }
}

std::vector<Measured> TimedShape::time(const std::vector<std::string>& variants, int replays) {
  std::vector<support::Series> series;
  for (const std::string& variant : variants) series.push_back(series_of(variant));
  const auto samples = timer_.interleaved(series, replays);
  std::vector<Measured> all;
  for (size_t i = 0; i < variants.size(); ++i) all.push_back({variants[i], samples[i]});
  return all;
}

support::Series TimedShape::series_of(const std::string& variant) const {
  const int count = int(copies_.size());
  const auto launch = [this, variant](int i, CUstream stream) {
    nvfp4_gemm_desc desc = copies_[size_t(i) % copies_.size()]->desc;
    desc.variant = variant.empty() ? nullptr : variant.c_str();
    if (nvfp4_gemm_run(&desc, stream) != NVFP4_SUCCESS) {
      throw std::runtime_error(nvfp4_last_error());
    }
  };
  return {launch, count * std::max(1, kLaunches / count)};
}

}  // namespace nvfp4_tool
