// SPDX-License-Identifier: MIT
// The instruction that executes now. Whatever the machine reports belongs to it and to one of its
// lanes.
#pragma once

#include <cstring>

#include "tools/emulator/machine/machine.h"

namespace emu::order {

struct Now {
  explicit Now(const Cluster& of);
  const Cluster& cluster;
  const uint32_t warps;   // of a CTA
  const uint32_t serial;  // of the cluster in the grid

  const Warp& warp() const { return *cluster.now.warp; }
  const ptx::Instr& in() const { return *cluster.now.in; }
  uint32_t active() const { return cluster.now.active; }
  uint16_t instance() const { return cluster.now.instance; }

  bool updates() const { return !std::strcmp(in().opcode, "atom"); }
  uint32_t pc() const { return uint32_t(cluster.now.in - cluster.launch.function->code.data()); }
  uint32_t self() const {
    return warp().cta.rank * warps + warp().index;
  }                                                                       // the warp in the cluster
  bool whole(uint32_t lanes) const { return !(warp().live() & ~lanes); }  // all that are left of it
};

}  // namespace emu::order
