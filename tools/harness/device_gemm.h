// SPDX-License-Identifier: MIT
// A problem on the device: guarded buffers, the library's call, and D back on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace support {

class DeviceGemm {
 public:
  // Uploads the operands. `poison` fills every scale byte that belongs to no element.
  DeviceGemm(const Driver& driver, const Problem& problem, uint8_t poison = 0x7F);
  // The same operands in buffers of its own, copied on the device; D is not.
  DeviceGemm(const DeviceGemm& other);

  // The descriptor with device pointers; callers may change it before enqueue().
  nvfp4_gemm_desc desc;

  // Enqueues on the stream and returns the library's status.
  nvfp4_status enqueue(CUstream stream = nullptr) const { return nvfp4_gemm_run(&desc, stream); }

  // D as it lies in memory, gaps included, and [l][m][n] without them. Waits for the device.
  std::vector<uint16_t> d_memory() const;
  std::vector<uint16_t> d() const;

  // What is wrong around the result, "" if nothing: a guard or a gap of D was written, an input
  // changed.
  std::string damage() const;

 private:
  struct Input {
    const char* name;
    std::shared_ptr<const std::vector<uint8_t>> content;
    DeviceBuffer buffer;
    Input(const Driver& driver, const char* n, std::vector<uint8_t> c)
        : name(n),
          content(std::make_shared<const std::vector<uint8_t>>(std::move(c))),
          buffer(driver, *content) {}
    Input(const Driver& driver, const Input& other)
        : name(other.name), content(other.content), buffer(driver, other.buffer) {}
  };

  const Driver& driver_;
  Shape shape_;
  int64_t d_ld_, d_batch_stride_;
  std::vector<std::unique_ptr<Input>> inputs_;
  DeviceBuffer d_;
  std::unique_ptr<DeviceBuffer> workspace_;  // where the device's kernels want one
};

// One whole run: throws std::runtime_error with the library's sentence, or with the damage, if
// either is not as it should be.
std::vector<uint16_t> run_on_device(const Driver& driver, const Problem& problem,
                                    uint8_t poison = 0x7F);

}  // namespace support
