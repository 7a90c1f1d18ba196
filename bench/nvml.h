// SPDX-License-Identifier: MIT
// What the GPU says of its clock: libnvidia-ml.so.1, which comes with the driver, opened at run
// time.
#pragma once

#include <string>

#include "tools/harness/driver.h"

namespace bench {

class Nvml {
 public:
  // For the device with this ordinal. If there is no such library, every answer is empty.
  Nvml(const support::Driver& driver, CUdevice device);

  int sm_mhz() const;  // now; 0: not known
  std::string slowed_by()
      const;  // "power", "heat", "power brake" with + between them; "" if nothing

 private:
  void* device_ = nullptr;
  int (*clock_)(void* device, int type, unsigned* mhz) = nullptr;
  int (*reasons_)(void* device, unsigned long long* reasons) = nullptr;
};

}  // namespace bench
