// SPDX-License-Identifier: MIT
// A problem on the device: guarded buffers, the library's call or a plan, and D back on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace support {

class DeviceGemm {
 public:
  // `poison` fills every byte of scales that belongs to no element.
  DeviceGemm(const Driver& driver, const Problem& problem, uint8_t poison = 0xFF);
  // The same in buffers of its own, copied on the device; D's content is not.
  DeviceGemm(const DeviceGemm& other);

  // With device pointers; callers may change it before enqueue().
  nvfp4_gemm_desc desc;

  // Gives desc the workspace that it needs now. Callers that change its epilogue call this.
  void fit_workspace();

  // Enqueues on the stream and returns the library's status.
  nvfp4_status enqueue(CUstream stream = nullptr) const { return nvfp4_gemm_run(&desc, stream); }

  // The memory of D, gaps included; the same of a D in 16 bits, and [l][m][n] without gaps if it is
  // by rows. Each waits for the device.
  std::vector<uint8_t> d_bytes() const;
  std::vector<uint16_t> d_memory() const;
  std::vector<uint16_t> d() const;

  // What is wrong around the result, "" if nothing: a guard or a gap of D was written, an
  // input changed.
  std::string damage() const;

 private:
  struct Array {
    const GemmField* field;
    std::shared_ptr<const std::vector<uint8_t>> content;
    DeviceBuffer buffer;
    Array(const Driver& driver, Input input)
        : field(input.field),
          content(std::make_shared<const std::vector<uint8_t>>(std::move(input.bytes))),
          buffer(driver, *content) {}
    Array(const Driver& driver, const Array& other)
        : field(other.field), content(other.content), buffer(driver, other.buffer) {}
  };

  const Driver& driver_;
  const Fields fields_;
  std::vector<std::unique_ptr<Array>> inputs_;
  DeviceBuffer d_;
  std::unique_ptr<DeviceBuffer> workspace_;
};

// Throws std::runtime_error with the library's sentence where it refuses.
void require(nvfp4_status status);

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
  nvfp4_gemm_plan* plan_ = nullptr;
};

// None, and what a run of a plan needs of a descriptor to do its product.
nvfp4_gemm_addresses no_addresses();
nvfp4_gemm_addresses addresses_of(const nvfp4_gemm_desc& g);

// D and its memory after one whole run: throws std::runtime_error with the library's sentence, or
// with the damage, if either is not as it should be.
std::vector<uint16_t> run_on_device(const Driver& driver, const Problem& problem,
                                    uint8_t poison = 0xFF);
std::vector<uint8_t> bytes_on_device(const Driver& driver, const Problem& problem);

// Runs it and compares with the reference: "" or the first difference or damage. Throws the
// library's sentence where it refuses.
std::string difference_on_device(const Driver& driver, const Problem& problem);

}  // namespace support
