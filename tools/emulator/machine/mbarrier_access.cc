// SPDX-License-Identifier: MIT
// See mbarrier_access.h.
#include "tools/emulator/machine/mbarrier_access.h"

#include "tools/emulator/machine/report.h"

namespace emu {

// On hardware mbarrier.init overwrites whatever was there. If the old barrier is idle, the result
// is the same as after an mbarrier.inval.
void MbarrierAccess::replace(const Target& t) {
  const Moment& now = t.cta->cluster.now;
  report::formal(report::Rule::living_barrier,
                 format("mbarrier.init at 0x%x, where one lives already without mbarrier.inval: %s",
                        t.address, t.cta->mbarriers.describe(t.address).c_str()),
                 *now.warp, *now.in, now.active);
  inval(t);
}

void MbarrierAccess::init(const Target& t, uint32_t count, uint32_t lane, bool again) {
  if (!again && t.cta->mbarriers.idle(t.address)) replace(t);
  const uint32_t who = again ? every_lane : lane;
  t.cta->cluster.observers.tell(event::BarrierInit{*t.cta, t.address, who});
  if (again) return;
  t.cta->mbarrier_table(Teller{}).init(t.address, count);
  t.cta->shared(Teller{}).mark_mbarrier(t.address, true);
}

void MbarrierAccess::inval(const Target& t) {
  t.cta->mbarrier_table(Teller{}).inval(t.address);
  t.cta->cluster.observers.tell(event::BarrierInval{*t.cta, t.address});
  t.cta->shared(Teller{}).mark_mbarrier(t.address, false);
}

MbarrierTable& MbarrierAccess::use(const Target& t, uint32_t lanes) {
  t.cta->cluster.observers.tell(event::BarrierUse{*t.cta, t.address, lanes});
  return t.cta->mbarrier_table(Teller{});
}

void MbarrierAccess::expect_copies(const Target& t, uint32_t lane, bool counted) {
  if (!counted) t.cta->mbarrier_table(Teller{}).add_pending(t.address);
  use(t, 1u << lane);
}

}  // namespace emu
