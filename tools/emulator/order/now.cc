// SPDX-License-Identifier: MIT
// See now.h.
#include "tools/emulator/order/now.h"

namespace emu::order {

namespace {

uint32_t serial_of(const Cluster& cluster) {
  const Launch& l = cluster.launch;
  const uint32_t x = l.grid.x / l.cluster.x, y = l.grid.y / l.cluster.y;
  return cluster.id.x + x * (cluster.id.y + y * cluster.id.z);
}

}  // namespace

Now::Now(const Cluster& of)
    : cluster(of), warps(uint32_t(of.ctas[0]->warps.size())), serial(serial_of(of)) {}

}  // namespace emu::order
