// SPDX-License-Identifier: MIT
// A question that a GPU decides for a default of this library or of the emulator: a kernel, what it
// answered in a word, and what that sets.
#pragma once

#include <string>
#include <vector>

#include "tools/harness/driver.h"

namespace probe {

struct Answer {
  std::string word;     // "" if it is not known; a rate is a whole number
  std::string figures;  // what was counted
  std::string sets;     // parameter, setting or place, and what it should be
};

struct Gpu {
  const support::Driver& driver;
  support::DeviceInfo info;
};

struct Probe {
  const char* name;
  int capability;  // from this one on
  Answer (*ask)(const Gpu& gpu);
};

// Throw support::DriverError where a launch fails, which is an answer, too.
Answer lane_bands(const Gpu& gpu);
Answer pair_scales(const Gpu& gpu);
Answer mma_before_cp(const Gpu& gpu);
Answer zero_groups(const Gpu& gpu);
Answer alloc_beside(const Gpu& gpu);
Answer fence_in_flight(const Gpu& gpu);
Answer rows_beyond(const Gpu& gpu);
Answer port_rate(const Gpu& gpu);
Answer push_rate(const Gpu& gpu);
Answer clusters_at_once(const Gpu& gpu);
Answer clusters_of_4(const Gpu& gpu);
Answer setup(const Gpu& gpu);
Answer map_fetch(const Gpu& gpu);
Answer empty_cta(const Gpu& gpu);
Answer n_multiple_of_8(const Gpu& gpu);
Answer mma_before_cp_pair(const Gpu& gpu);
Answer pair_tail(const Gpu& gpu);
Answer scale_copy(const Gpu& gpu);
Answer load_drain(const Gpu& gpu);

// Device memory of `count` values that are zero, and what a kernel has left there.
template <class T>
class Values {
 public:
  Values(const Gpu& gpu, size_t count)
      : buffer_(gpu.driver, std::vector<uint8_t>(count * sizeof(T))), count_(count) {}
  CUdeviceptr address() const { return buffer_.address(); }
  std::vector<T> get() const {
    const std::vector<uint8_t> bytes = buffer_.download();
    std::vector<T> values(count_);
    for (size_t i = 0; i < count_; ++i)
      __builtin_memcpy(&values[i], &bytes[i * sizeof(T)], sizeof(T));
    return values;
  }

 private:
  support::DeviceBuffer buffer_;
  size_t count_;
};

}  // namespace probe
