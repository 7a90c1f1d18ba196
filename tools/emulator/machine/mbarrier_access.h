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
  // The lanes use it; what they do, they do to the table.
  static MbarrierTable& use(const Target& t, uint32_t lanes);
  // The lane's copies will arrive, an arrival that the count does or does not hold already.
  static void expect_copies(const Target& t, uint32_t lane, bool counted);

 private:
  static void replace(const Target& t);
};

}  // namespace emu
