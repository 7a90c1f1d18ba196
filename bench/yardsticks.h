// SPDX-License-Identifier: MIT
// What this GPU does at best, measured in the same run: reading, an empty graph node, cuBLASLt.
#pragma once

#include <memory>
#include <vector>

#include "bench/cublaslt.h"
#include "bench/gpu_timer.h"
#include "support/driver.h"
#include "support/problem.h"

namespace bench {

// Device-to-device copies of one block of random bytes, which fills operands quickly.
class Filler {
 public:
  Filler(const support::Driver& driver, GemmType type);
  void fill(const support::DeviceBuffer& to) const;

 private:
  const support::Driver& driver_;
  support::DeviceBuffer block_;
  decltype(&::cuMemcpyDtoD_v2) copy_;
};

double read_bytes_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
double empty_node_us(const support::Driver& driver, GpuTimer& timer);

// Microseconds of one GEMM, weights cold: what the heuristic proposes first, and the best of its
// proposals. 0: cuBLASLt does not do this one.
struct CublasTime {
  double first_us = 0, best_us = 0;
};
CublasTime time_cublas(const support::Driver& driver, GpuTimer& timer, const CublasLt& library,
                       GemmType type, const support::Shape& shape, double l2_bytes, int candidates,
                       int replays);

}  // namespace bench
