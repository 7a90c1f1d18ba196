// SPDX-License-Identifier: MIT
// mbarrier objects as threads use them: the only way to change one, except for asynchronous work.
#pragma once

#include "tools/emulator/machine/unit_glue.h"

namespace emu {

class MbarrierAccess {
 public:
  using Target = glue::Target;

  // mbarrier.init by a lane; `again`: the same as an earlier lane's of the instruction, which
  // counts as one of all lanes.
  static void init(const Target& t, uint32_t count, uint32_t lane, bool again);
  static void inval(const Target& t);
  // Tells the observers that the lanes use the mbarrier. The caller then changes the table itself.
  static MbarrierTable& use(const Target& t, uint32_t lanes);
  // The lane's cp.async copies will arrive. `counted`: the expected count includes their arrival.
  static void expect_copies(const Target& t, uint32_t lane, bool counted);

 private:
  static void replace(const Target& t);
};

}  // namespace emu
