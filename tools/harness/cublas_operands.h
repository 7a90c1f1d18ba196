// SPDX-License-Identifier: MIT
// What a product by cuBLASLt reads and writes: random operands, filled on the device.
#pragma once

#include <cstdint>

#include "tools/harness/cublaslt.h"
#include "tools/harness/driver.h"

namespace support {

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
  CublasLt::Addresses addresses() const {
    return {a.address(), b.address(), d.address(), a_scales.address(), b_scales.address()};
  }
};

}  // namespace support
