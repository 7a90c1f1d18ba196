// SPDX-License-Identifier: MIT
// The kernel behind a library's call: the last one that the call enqueues, found by recording it.
#pragma once

#include <functional>
#include <string>

#include "host/cuda/driver.h"
#include "tools/harness/driver.h"
#include "tools/harness/module.h"

namespace bench {

class Launched {
 public:
  // Records `call` on the stream, whose image is loaded already, and launches nothing. Throws where
  // the call launches no kernel or the driver cannot say which.
  Launched(const support::Driver& driver, CUstream stream, const std::function<void()>& call);

  const std::string& name() const { return name_; }

  // A variable of the kernel's module.
  support::Global global(const char* name) const;

 private:
  const support::Driver& driver_;
  CUfunction function_ = nullptr;
  std::string name_;
};

}  // namespace bench
