// SPDX-License-Identifier: MIT
// A grid that was launched as a programmatic dependent begins while the grid ahead of it may still
// run: what both access has to come after griddepcontrol.wait (PTX ISA 9.7.13.12).
#pragma once

#include "tools/emulator/order/global_order.h"
#include "tools/emulator/order/reporter.h"

namespace emu::order {

class EarlierGrids {
 public:
  EarlierGrids(const Now& now, Parties& parties, const Operations& operations,
               const Reporter& reporter, GlobalOrder& global,
               const std::vector<GlobalOrder*>& earlier)
      : now_(now),
        parties_(parties),
        operations_(operations),
        reporter_(reporter),
        global_(global),
        earlier_(earlier) {}

  void dependents_launched();
  void grids_over();
  void cta_over(const Cta& cta);
  void meet(const Rows& rows, const Viewer& viewer, Use use) const;  // an access of this grid
  bool none() const { return earlier_.empty(); }

 private:
  bool knows_grids_over(const Viewer& v) const;
  void meet_one(GlobalOrder& earlier, const Rows& rows, Viewer v) const;
  void found(const GlobalOrder& earlier, const Access& old, const Viewer& v, uint64_t number) const;

  const Now& now_;
  Parties& parties_;
  const Operations& operations_;
  const Reporter& reporter_;
  GlobalOrder& global_;
  const std::vector<GlobalOrder*> earlier_;
  uint32_t launched_early_ = 0;  // CTAs whose dependents need not wait for the grids ahead
};

}  // namespace emu::order
