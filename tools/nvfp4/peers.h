// SPDX-License-Identifier: MIT
// Times of other libraries for the same shapes: cuBLASLt, if it is installed.
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

  // One row per type that the device multiplies: fp16 and fp8, and NVFP4 from 10.0 on. No times if
  // cuBLASLt is missing or refuses the shape.
  struct Row {
    support::GemmType type;
    std::optional<Times> times;  // the best of its first eight proposals, timed again
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
