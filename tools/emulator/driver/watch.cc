// SPDX-License-Identifier: MIT
// See watch.h.
#include "tools/emulator/driver/watch.h"

#include "tools/emulator/machine/report.h"
#include "tools/emulator/order/checks.h"
#include "tools/emulator/order/global_order.h"
#include "tools/emulator/trace/trace.h"

namespace emu {

Counters run_watched(Launch launch, GlobalOrder* order, const std::vector<GlobalOrder*>& earlier) {
  GlobalOrder own;
  if (!order) order = &own;
  order->kernel = report::kernel_name(launch.function->name);
  Trace trace;
  OrderChecks checks(*order, earlier);
  launch.observers = {&trace, &checks};
  return run_grid(launch);
}

}  // namespace emu
