// SPDX-License-Identifier: MIT
// See earlier_grids.h.
#include "tools/emulator/order/earlier_grids.h"

#include <bit>

#include "tools/emulator/machine/report.h"

namespace emu::order {

void EarlierGrids::dependents_launched() {
  global_.dependents_launched = true;
  const uint32_t lane = uint32_t(std::countr_zero(now_.active()));
  if (!knows_grids_over(operations_.viewer(lane))) launched_early_ |= 1u << now_.warp().cta.rank;
}

void EarlierGrids::cta_over(const Cta& cta) {
  if (launched_early_ >> cta.rank & 1) return;
  for (const auto& warp : cta.warps)
    if (warp->waited_for_grids) global_.waited_first = true;
}

void EarlierGrids::grids_over() {
  Party& p = parties_.me();
  parties_.learn(p, now_.active(), parties_.earlier_grids(), 1);
}

// A thread that has executed griddepcontrol.wait passes its knowledge on when it synchronises with
// other threads, in another cluster as well.
bool EarlierGrids::knows_grids_over(const Viewer& v) const {
  const auto in = [&](const Knowledge& k) {
    return k.seen[parties_.earlier_grids()] ||
           std::any_of(k.others.begin(), k.others.end(),
                       [&](const auto& far) { return far.second.seen[parties_.earlier_grids()]; });
  };
  return in(v.party.all) || (v.own && in(*v.own));
}

void EarlierGrids::meet(const Rows& rows, const Viewer& viewer, Use use) const {
  if (earlier_.empty() || !rows.bytes || knows_grids_over(viewer)) return;
  Viewer v = viewer;
  v.use = use;
  for (GlobalOrder* earlier : earlier_) meet_one(*earlier, rows, v);
}

void EarlierGrids::meet_one(GlobalOrder& earlier, const Rows& rows, Viewer v) const {
  const auto look = [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
    v.mask = mask;
    chunk.each([&](const Access& old) {
      if ((old.mask & mask) && clash(old.use, v.use)) found(earlier, old, v, number);
    });
  };
  if (is_read(v.use)) return earlier.each_written(rows, look);
  for (uint32_t i = 0; i < rows.count; ++i) {
    const uint64_t address = rows.address + i * rows.stride;
    earlier.each_touched(address, rows.bytes, look);
    earlier.each_read(address, rows.bytes, [&](const Access& old, uint64_t number, uint16_t mask) {
      v.mask = mask;
      found(earlier, old, v, number);
    });
  }
}

// Without griddepcontrol.launch_dependents the dependent grid starts after the last block.
void EarlierGrids::found(const GlobalOrder& earlier, const Access& old, const Viewer& v,
                         uint64_t number) const {
  const Severity severity = earlier.dependents_launched ? Severity::error : Severity::formal;
  if (!Findings::wanted(severity)) return;
  const uint64_t key = uint64_t(now_.pc()) << 8 | uint64_t(Reason::earlier_grid);
  if (now_.cluster.launch.findings->again(severity, key)) return;
  const std::string text = format(
      "%s by thread %u %s %s, which kernel %s, launched before and perhaps not over, %s: "
      "griddepcontrol.wait comes first",
      now_.in().opcode, now_.warp().thread(v.lane % every_lane),
      is_read(v.use) ? "reads" : "writes",
      reporter_.place(v, number, old.mask & v.mask ? old.mask & v.mask : v.mask).c_str(),
      earlier.kernel.c_str(), is_read(old.use) ? "reads" : "writes");
  const Fault here = report::located(Fault(FaultKind::ordering, text), now_.warp(), now_.in(),
                                     now_.active(), severity);
  now_.cluster.launch.findings->add(severity, {key, now_.in().pos.line},
                                    name_of(Reason::earlier_grid), here.text);
}

}  // namespace emu::order
