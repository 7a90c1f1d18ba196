// SPDX-License-Identifier: MIT
// A grid that was launched as a programmatic dependent begins while the grid ahead of it may still
// run: what both access has to come behind griddepcontrol.wait (PTX ISA 9.7.13.12).
#include <bit>

#include "tools/emulator/machine/machine.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/order/hazards.h"
#include "tools/emulator/order/viewer.h"

namespace emu {

void Hazards::dependents_launched() {
  me();
  global_.dependents_launched = true;
  const uint32_t lane = uint32_t(std::countr_zero(active_));
  if (!knows_grids_over(viewer(lane))) launched_early_ |= 1u << warp_->cta.rank;
}

void Hazards::cta_over(const Cta& cta) {
  if (launched_early_ >> cta.rank & 1) return;
  for (const auto& warp : cta.warps)
    if (warp->waited_for_grids) global_.waited_first = true;
}

void Hazards::grids_over() {
  Party& p = me();
  learn(p, active_, earlier_grids(), 1);
}

// Whoever has waited hands it on, in another cluster as well.
bool Hazards::knows_grids_over(const Viewer& v) const {
  const auto in = [&](const Knowledge& k) {
    return k.seen[earlier_grids()] ||
           std::any_of(k.others.begin(), k.others.end(),
                       [&](const auto& far) { return far.second.seen[earlier_grids()]; });
  };
  return in(v.party.all) || (v.own && in(*v.own));
}

void Hazards::meet_earlier_grids(const Rows& rows, const Viewer& viewer, Use use) {
  if (earlier_.empty() || !rows.bytes || knows_grids_over(viewer)) return;
  Viewer v = viewer;
  v.use = use;
  for (GlobalOrder* earlier : earlier_) meet_earlier(*earlier, rows, v);
}

void Hazards::meet_earlier(GlobalOrder& earlier, const Rows& rows, Viewer v) {
  const auto look = [&](Chunk& chunk, uint64_t number, uint16_t mask, uint8_t*) {
    v.mask = mask;
    chunk.each([&](const Access& old) {
      if ((old.mask & mask) && clash(old.use, v.use)) found_earlier(earlier, old, v, number);
    });
  };
  if (is_read(v.use)) return earlier.each_written(rows, look);
  for (uint32_t i = 0; i < rows.count; ++i) {
    const uint64_t address = rows.address + i * rows.stride;
    earlier.each_touched(address, rows.bytes, look);
    earlier.each_read(address, rows.bytes, [&](const Access& old, uint64_t number, uint16_t mask) {
      v.mask = mask;
      found_earlier(earlier, old, v, number);
    });
  }
}

// Without griddepcontrol.launch_dependents the dependent grid starts behind the last block.
void Hazards::found_earlier(const GlobalOrder& earlier, const Access& old, const Viewer& v,
                            uint64_t number) {
  const Severity severity = earlier.dependents_launched ? Severity::error : Severity::formal;
  if (!Findings::wanted(severity)) return;
  const uint64_t key = uint64_t(pc()) << 8 | uint64_t(Reason::earlier_grid);
  if (cluster_.launch.findings->again(severity, key)) return;
  const char* head = severity == Severity::formal ? "the manual's rule alone: " : "";
  const std::string text = format(
      "%s%s by thread %u %s %s, which kernel %s, launched before and perhaps not over, %s: "
      "griddepcontrol.wait comes first",
      head, in_->opcode, warp_->thread(v.lane % every_lane), is_read(v.use) ? "reads" : "writes",
      place(v, number, old.mask & v.mask ? old.mask & v.mask : v.mask).c_str(),
      earlier.kernel.c_str(), is_read(old.use) ? "reads" : "writes");
  const Fault here = report::located(Fault(FaultKind::ordering, text), *warp_, *in_, active_);
  cluster_.launch.findings->add(severity, key, here.text);
}

}  // namespace emu
