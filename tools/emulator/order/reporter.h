// SPDX-License-Identifier: MIT
// What a finding says.
#pragma once

#include <string>

#include "tools/emulator/order/operations.h"
#include "tools/emulator/order/reason.h"

namespace emu::order {

class Reporter {
 public:
  Reporter(const Now& now, const Operations& operations) : now_(now), operations_(operations) {}

  // Between a remembered access and the viewer's; `index`: the number of the chunk or column.
  void found(Reason reason, const Access& old, const Viewer& v, uint64_t index) const;
  std::string place(const Viewer& v, uint64_t index, uint16_t mask) const;

 private:
  const char* left_to(Reason reason) const;
  bool has_exited(const Access& old, const Viewer& v) const;
  std::string missing(Reason reason, const Access& old) const;
  static std::string wait_for(const Issued& op);

  const Now& now_;
  const Operations& operations_;
};

}  // namespace emu::order
