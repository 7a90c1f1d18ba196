// SPDX-License-Identifier: MIT
// Products whose inputs and workspace lie in memory without a guard: the emulator's allocation ends
// with the last byte, and so does what compute-sanitizer's memcheck takes for one. A read beyond it
// that changes no bit of D shows here alone.
#pragma once

#include <memory>
#include <vector>

#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

namespace gemm_test {

class Tight {
 public:
  Tight(const support::Driver& driver, size_t bytes) : driver_(driver) {
    driver.check(driver.cuMemAlloc(&address_, bytes), "cuMemAlloc");
  }
  Tight(const support::Driver& driver, const std::vector<uint8_t>& content)
      : Tight(driver, content.size()) {
    driver.check(driver.cuMemcpyHtoD(address_, content.data(), content.size()), "cuMemcpyHtoD");
  }
  ~Tight() { driver_.cuMemFree(address_); }
  Tight(const Tight&) = delete;
  Tight& operator=(const Tight&) = delete;
  void* pointer() const { return reinterpret_cast<void*>(address_); }

 private:
  const support::Driver& driver_;
  CUdeviceptr address_ = 0;
};

// "" or the first element of D that is not the reference's.
inline std::string difference_without_guards(const Gpu& gpu, const support::Problem& p) {
  support::DeviceGemm gemm(gpu.driver, p);
  std::vector<std::unique_ptr<Tight>> memory;
  for (const support::Input& input : inputs(p, NVFP4_SCALE_LAYOUT_UNSET, 0xFF)) {
    memory.push_back(std::make_unique<Tight>(gpu.driver, input.bytes));
    nvfp4::fields::set<const void*>(&gemm.desc, *input.field, memory.back()->pointer());
  }
  if (gemm.desc.workspace_bytes > 0) {
    memory.push_back(std::make_unique<Tight>(gpu.driver, gemm.desc.workspace_bytes));
    gemm.desc.workspace = memory.back()->pointer();
  }
  support::require(gemm.enqueue());
  return first_difference(p, gemm.d_bytes(), p.reference());
}

}  // namespace gemm_test
