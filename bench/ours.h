// SPDX-License-Identifier: MIT
// One product by the library, verified, on copies of its operands that take turns: weights are
// cold.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/device.h"
#include "tools/harness/device_gemm.h"

namespace bench {

// The first m of these tokens in place of the problem's, whose weights stay.
void take_tokens(const support::Operand& tokens, int64_t m, support::Problem* problem);

class OurGemm {
 public:
  // Runs it once; throws unless a sample of D has the reference's bits. Without a timer one copy
  // will do.
  OurGemm(const Gpu& gpu, const support::Problem& problem, bool timed);

  const std::string& variant() const { return variant_; }
  double a_bytes() const { return a_bytes_; }            // of an element of A
  const std::vector<uint16_t>& d() const { return d_; }  // as verified
  Series series(int32_t pdl);
  // Every copy has the bits that were verified.
  void require_same() const { require(d_); }
  // More than fp16 of the product from here on, verified: fields of D in 16 bits by rows, C without
  // gaps, and a bias of columns.
  void set_epilogue(support::Fields fields);
  // The largest magnitude of D in fp16 as well, verified.
  void set_amax();

 private:
  void require(const std::vector<uint16_t>& want) const;
  void set_epilogue(const nvfp4_gemm_desc& as, const std::vector<uint8_t>& bias,
                    const std::vector<uint8_t>& c);

  const Gpu& gpu_;
  const support::Problem& problem_;
  double a_bytes_;
  std::vector<std::unique_ptr<support::DeviceGemm>> copies_;
  std::unique_ptr<support::DeviceBuffer> bias_;
  std::vector<std::unique_ptr<support::DeviceBuffer>> c_;     // of each copy
  std::vector<std::unique_ptr<support::DeviceBuffer>> amax_;  // of each copy
  std::string variant_;
  std::vector<uint16_t> d_;
};

// GPU MODE's eval_better_bench.py: 50 inputs, L2 cleared, 50 calls on the default stream between
// two events; until the mean's relative error is below 0.1 percent, 1000 repeats or 30 s.
double gpumode_us(const support::Driver& driver, const support::Problem& problem);

}  // namespace bench
