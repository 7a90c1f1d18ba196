// SPDX-License-Identifier: MIT
// See tensor_order.h.
#include "tools/emulator/order/tensor_order.h"

namespace emu::order {

void TensorOrder::wait(Work work) {
  Party& p = parties_.me();
  const bool ld = work == Work::tensor_ld;
  const uint32_t agent = ld ? p.ld : p.st;
  parties_.learn(p, now_.active(), agent, ld ? p.lds : p.sts);
  if (ld) p.lds_used = p.lds_waited = p.lds;
  if (agent != nobody) p.all.tensor.raise(agent, ld ? p.lds : p.sts);
}

// Hardware has waited for the registers, the manual knows nothing of it.
void TensorOrder::use_load() {
  Party& p = parties_.me();
  ++p.lds_used;
  if (now_.whole(now_.active())) return p.all.seen.raise(p.ld, p.lds_used);
  for_lanes(now_.active(),
            [&](uint32_t lane) { parties_.own(p, lane).seen.raise(p.ld, p.lds_used); });
}

void TensorOrder::fence_before() {
  Party& p = parties_.me();
  p.tensor_ready.join(p.all.tensor);
  // Its own ld and st that were waited for, and what a commit has shown to be complete.
  for (uint32_t agent : {p.ld, p.st})
    if (agent != nobody) p.tensor_ready.raise(agent, parties_.known_time(p, agent));
  for (const Lane& lane : p.lanes)
    if (lane.pipe != nobody)
      for (uint32_t agent : {lane.pipe, issue_of(lane.pipe)})
        p.tensor_ready.raise(agent, parties_.known_time(p, agent));
}

void TensorOrder::fence_after() {
  Party& p = parties_.me();
  p.all.tensor.join(p.tensor_arrived);
}

}  // namespace emu::order
