// SPDX-License-Identifier: MIT
// What others take for the same shapes: cuBLASLt, where it is installed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/harness/cublaslt.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"
#include "tools/nvfp4/verify.h"

namespace nvfp4_tool {

class Peers {
 public:
  Peers(const support::Driver& driver, const support::DeviceInfo& device);

  // "cuBLASLt 130100", or why there is none.
  std::string names() const;

  // Of the types that the device multiplies: fp16 and fp8, from 10.0 on NVFP4. Empty times where
  // it does not do this shape, or where there is no cuBLASLt.
  struct Row {
    support::GemmType type;
    std::optional<Times> times;  // of the best of its first eight proposals, timed once more
  };
  std::vector<Row> time(const support::Shape& shape) const;

 private:
  std::optional<Times> time(support::GemmType type, const support::Shape& shape) const;

  const support::Driver& driver_;
  std::vector<support::GemmType> types_;
  std::string why_not_;
  std::unique_ptr<support::CublasLt> library_;
};

}  // namespace nvfp4_tool
