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
  // `ctas` of a cluster, of this many warps each.
  Policy(uint64_t seed, uint32_t ctas, uint32_t warps);

  uint64_t first(uint64_t warps);  // number of the warp that begins
  uint64_t quantum();              // instructions of one turn
  uint64_t rest();                 // instructions of the others after it; 0: none
  // The warp runs only while no other warp of the cluster can and no asynchronous work is pending.
  bool is_late(const Warp& warp) const;
  // For EMU_LATE=seed. The scheduler calls is_over() after each turn that a late warp had because
  // no other warp could run, and after each turn of another warp while the late warps were blocked.
  // True: the late warps have used up their turns. Then next_role() makes other warps late. It
  // returns false if there are no others.
  bool by_seed() const { return late_.by_seed; }
  bool is_over();
  bool next_role();

 private:
  class Random {
   public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t draw();

   private:
    uint64_t state_;
  };
  const uint32_t ctas_, warps_;
  Random random_, roles_;  // roles_ is apart: who is late does not change the rest of a schedule
  Late late_;
  uint64_t times_left_ = 0;  // turns until others are late
};

}  // namespace emu
