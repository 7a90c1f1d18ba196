// SPDX-License-Identifier: MIT
// How a cluster's warps share their host thread: how long each runs, which fall behind, and which
// run only while no other can.
#pragma once

#include <cstdint>

#include "tools/emulator/base/settings.h"

namespace emu {

class Warp;

class Policy {
 public:
  explicit Policy(uint64_t seed);

  uint64_t first(uint64_t warps);  // number of the warp that begins
  uint64_t quantum();              // instructions of one turn
  uint64_t rest();                 // instructions of the others after it; 0: none
  // The warp runs only while no other warp of the cluster can and no asynchronous work is pending.
  bool is_late(const Warp& warp) const;

 private:
  uint64_t draw();
  uint64_t random_;
  const Late late_;
};

}  // namespace emu
