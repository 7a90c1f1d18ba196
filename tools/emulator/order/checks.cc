// SPDX-License-Identifier: MIT
// See checks.h.
#include "tools/emulator/order/checks.h"

#include "tools/emulator/base/findings.h"
#include "tools/emulator/order/hazards.h"

namespace emu {

std::shared_ptr<Observer> OrderChecks::watch(const Cluster& cluster) {
  if (!Findings::wanted(Severity::error) && !Findings::wanted(Severity::formal)) return nullptr;
  return std::make_shared<Hazards>(cluster, order_, earlier_);
}

}  // namespace emu
