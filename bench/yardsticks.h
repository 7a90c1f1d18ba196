// SPDX-License-Identifier: MIT
// What this GPU does at best, measured in the same run: reading, fp16, an empty graph node, cuBLASLt.
#pragma once

#include <memory>
#include <vector>

#include "bench/csv.h"
#include "bench/cublaslt.h"
#include "bench/gpu_timer.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace bench {

// Device-to-device copies of one block of random bytes, which fills operands quickly.
class Filler {
 public:
  Filler(const support::Driver& driver, GemmType type);
  void fill(const support::DeviceBuffer& to) const;

 private:
  const support::Driver& driver_;
  support::DeviceBuffer block_;
  decltype(&::cuMemcpyDtoD) copy_;
};

double read_bytes_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
// Read and written bytes, 16 of them a thread and step, of blocks far beyond the L2.
double copy_bytes_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
double empty_node_us(const support::Driver& driver, GpuTimer& timer);

// fp16 multiplications and additions per microsecond: on a Hopper by tensor_rate.h, and by cuBLASLt's
// fastest proposal for three large GEMMs.
double wgmma_operations_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
double cublas_operations_per_us(const support::Driver& driver, GpuTimer& timer,
                                const CublasLt& library, double l2_bytes, int candidates);

// One GEMM, weights cold.
CublasTime time_cublas(const support::Driver& driver, GpuTimer& timer, const CublasLt& library,
                       GemmType type, const support::Shape& shape, double l2_bytes, int candidates,
                       int replays);

}  // namespace bench
