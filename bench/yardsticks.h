// SPDX-License-Identifier: MIT
// What this GPU does at best, measured in the same run: reading, fp16, an empty graph node,
// cuBLASLt.
#pragma once

#include <memory>
#include <vector>

#include "bench/csv.h"
#include "bench/device.h"
#include "tools/harness/cublaslt.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace bench {

using support::CublasLt, support::CublasOperands, support::Filler, support::GemmType;

double read_bytes_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
// Read and written bytes, 16 of them a thread and step, of blocks far beyond the L2.
double copy_bytes_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
double empty_node_us(const support::Driver& driver, GpuTimer& timer);

// fp16 multiplications and additions per microsecond: on a Hopper by tensor_rate.h, and by
// cuBLASLt's fastest proposal for three large GEMMs.
double wgmma_operations_per_us(const support::Driver& driver, GpuTimer& timer, int sms);
double cublas_operations_per_us(const support::Driver& driver, GpuTimer& timer,
                                const CublasLt& library, double l2_bytes, int candidates);

// One GEMM by cuBLASLt, weights cold: screen() times what its heuristic proposes, best() is the
// fastest of them, to be timed again beside others.
class CublasGemm {
 public:
  CublasGemm(const support::Driver& driver, const CublasLt& library, GemmType type,
             const support::Shape& shape, double l2_bytes, int candidates);
  ~CublasGemm();
  void screen(GpuTimer& timer, int replays);
  bool available() const { return plan_->candidates() > 0; }
  double first_us() const { return first_us_; }  // of its first proposal
  Series best() const { return series(best_); }

 private:
  Series series(int candidate) const;

  std::vector<std::unique_ptr<CublasOperands>> sets_;
  support::DeviceBuffer workspace_;
  std::unique_ptr<CublasLt::Plan> plan_;
  int best_ = 0;
  double first_us_ = 0;
};

}  // namespace bench
