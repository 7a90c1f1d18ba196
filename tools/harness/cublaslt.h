// SPDX-License-Identifier: MIT
// cuBLASLt, opened at run time if it is there: what build/nvfp4_bench and `nvfp4 bench` compare
// with, never linked and its header not needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/cuda/driver.h"
#include "tools/harness/driver.h"

namespace support {

// Type of A and B. D is bf16 where they are, otherwise fp16; sums are fp32.
enum class GemmType { f16, bf16, e4m3, nvfp4 };
const char* to_string(GemmType type);

class CublasLt {
 public:
  // nullptr and why where it cannot be had.
  static std::unique_ptr<CublasLt> open(std::string* why);
  virtual ~CublasLt() = default;

  virtual uint64_t version() const = 0;

  // D[m, n] = A[m, k] * B[n, k]^T, all row-major; scales (128x4 tiles) for nvfp4 only.
  struct Gemm {
    GemmType type;
    int64_t m, n, k;
  };
  struct Addresses {
    CUdeviceptr a, b, d, a_scales, b_scales;
  };
  // Up to `most` algorithms that its heuristic proposes, best guess first; empty: it cannot do it.
  class Plan {
   public:
    virtual ~Plan() = default;
    virtual int candidates() const = 0;
    virtual void run(int candidate, const Addresses& at, CUstream stream) const = 0;
  };
  // The plan uses `workspace`; `sample` has addresses of the alignment that run() will see.
  virtual std::unique_ptr<Plan> plan(const Gemm& gemm, const Addresses& sample, int most,
                                     CUdeviceptr workspace, uint64_t workspace_bytes) const = 0;
};

// What a product by cuBLASLt reads and writes: random operands, filled on the device.
double element_bytes(GemmType type);

// Device-to-device copies of one block of random bytes, which fills operands quickly.
class Filler {
 public:
  Filler(const Driver& driver, GemmType type);
  void fill(const DeviceBuffer& to) const;

 private:
  const Driver& driver_;
  DeviceBuffer block_;
};

struct CublasOperands {
  DeviceBuffer a, b, d, a_scales, b_scales;

  CublasOperands(const Driver& driver, GemmType type, int64_t m, int64_t n, int64_t k);
  CublasOperands(const Driver& driver, const CublasOperands& other);  // D's content is not copied
  CublasLt::Addresses addresses() const {
    return {a.address(), b.address(), d.address(), a_scales.address(), b_scales.address()};
  }
};

}  // namespace support
