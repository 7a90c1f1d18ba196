// SPDX-License-Identifier: MIT
// A problem on the device: guarded buffers, the library's call or a plan, and D back on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace support {

// What every problem has on the device: a descriptor, arrays that are read, D, a workspace.
class OnDevice {
 public:
  // With device pointers; callers may change it before enqueue().
  nvfp4_gemm_desc desc;

  // Enqueues on the stream and returns the library's status.
  nvfp4_status enqueue(CUstream stream = nullptr) const { return nvfp4_gemm_run(&desc, stream); }

  // What is wrong around the result, "" if nothing: a guard was written, an input changed.
  std::string damage() const;

 protected:
  // D has so many bytes, or this content.
  template <class Content>
  OnDevice(const Driver& driver, const nvfp4_gemm_desc& g, const Content& d)
      : desc(g), driver_(driver), d_(driver, d) {
    desc.d = d_.pointer();
  }
  // The same operands in buffers of its own, copied on the device; D is not.
  OnDevice(const OnDevice& other);

  const void* add(const char* name, std::vector<uint8_t> content);
  // `poison` fills every scale byte that belongs to no element.
  void add_operands(const Problem& problem, uint8_t poison);
  // Where the device's kernels want one.
  void add_workspace();
  // As it lies in memory, gaps included. Waits for the device.
  std::vector<uint8_t> bytes_of_d() const;

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
  std::vector<std::unique_ptr<Input>> inputs_;
  DeviceBuffer d_;
  std::unique_ptr<DeviceBuffer> workspace_;
};

class DeviceGemm : public OnDevice {
 public:
  DeviceGemm(const Driver& driver, const Problem& problem, uint8_t poison = 0x7F);

  // D as it lies in memory, gaps included, and [l][m][n] without them. Waits for the device.
  std::vector<uint16_t> d_memory() const;
  std::vector<uint16_t> d() const;

  // The same of OnDevice, and "a gap between the rows or batches of D was written".
  std::string damage() const;

 private:
  Shape shape_;
  int64_t d_ld_, d_batch_stride_;
};

// A plan that ends with its scope. Throws the library's sentence where it refuses.
class Plan {
 public:
  explicit Plan(const nvfp4_gemm_desc& desc) { require(nvfp4_gemm_plan_create(&desc, &plan_)); }
  explicit Plan(const nvfp4_grouped_desc& g) { require(nvfp4_grouped_plan_create(&g, &plan_)); }
  ~Plan() { nvfp4_gemm_plan_destroy(plan_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // With the plan's own addresses, or with those that `others` names.
  nvfp4_status run(CUstream stream = nullptr) const {
    return nvfp4_gemm_plan_run(plan_, nullptr, stream);
  }
  nvfp4_status run(const nvfp4_gemm_addresses& others, CUstream stream = nullptr) const {
    return nvfp4_gemm_plan_run(plan_, &others, stream);
  }

 private:
  static void require(nvfp4_status status);
  nvfp4_gemm_plan* plan_ = nullptr;
};

// None, and what a run of a plan needs of a descriptor to do its product.
nvfp4_gemm_addresses no_addresses();
nvfp4_gemm_addresses addresses_of(const nvfp4_gemm_desc& g);

// One whole run: throws std::runtime_error with the library's sentence, or with the damage, if
// either is not as it should be.
std::vector<uint16_t> run_on_device(const Driver& driver, const Problem& problem,
                                    uint8_t poison = 0x7F);

}  // namespace support
