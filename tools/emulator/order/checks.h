// SPDX-License-Identifier: MIT
// The ordering checks of one launch: everything between an access and the finding that nothing
// orders it.
#pragma once

#include <vector>

#include "tools/emulator/machine/observer.h"
#include "tools/emulator/order/global_order.h"

namespace emu {

class OrderChecks : public GridObserver {
 public:
  // `order` receives the accesses of this launch, since a later launch may run beside it. `earlier`
  // has those of the grids ahead that may still run.
  OrderChecks(GlobalOrder& order, std::vector<GlobalOrder*> earlier)
      : order_(order), earlier_(std::move(earlier)) {}
  std::shared_ptr<Observer> watch(const Cluster& cluster) override;

 private:
  GlobalOrder& order_;
  const std::vector<GlobalOrder*> earlier_;
};

}  // namespace emu
