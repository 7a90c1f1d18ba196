// SPDX-License-Identifier: MIT
// What the instructions of the hardware units (mbarrier, bulk copies, tcgen05) have in common.
#pragma once

#include <string>
#include <utility>

#include "tools/emulator/machine/machine.h"

namespace emu::glue {

// A shared-memory operand: whose memory, and the address in it.
struct Target {
  Cta* cta;
  uint32_t address;
};

// The operand of an instruction that spells .shared::cta (own: another CTA's memory is a Fault),
// .shared::cluster, or no space at all (`generic`: the address has to lie in the shared window).
enum class Where : uint8_t { own, cluster, generic_own, generic_cluster };
Target target(const Warp& warp, const ptx::Operand& op, uint32_t lane, Where where,
              const char* who);
// The same, with the space taken from the modifiers .shared, .shared::cta and .shared::cluster.
Target target(const Warp& warp, const ptx::Instr& in, const ptx::Operand& op, uint32_t lane);

// Work that touches another CTA's memory or barriers after that CTA has ended is a Fault.
void require_running(const Cta& from, const Cta& to, const char* who);

// Asynchronous work of an instruction. It tells observers before and after it takes effect, and a
// Fault in it names the warp and the PTX line that issued it.
class Posted {
 public:
  Posted(const Warp& warp, const ptx::Instr& in)
      : warp_(&warp),
        in_(&in),
        number_(warp.cta.cluster.observers.posted(warp, in)),
        active_(warp.executing),
        actor_(warp.cta.cluster.actor) {}
  template <class F>
  void complete(F& effect) {
    const Actor interrupted = begin();
    try {
      effect();
    } catch (const Fault& fault) {
      rethrow(fault);
    }
    end(interrupted);
  }
  static std::string name(const Warp& warp, const ptx::Instr& in);

 private:
  Actor begin();
  void end(const Actor& interrupted);
  [[noreturn]] void rethrow(const Fault& fault) const;
  const Warp* warp_;
  const ptx::Instr* in_;
  size_t number_;
  uint32_t active_;
  Actor actor_;
};

// Posts work of `in` to the cluster's queue. `effect` and what is around it have one type, so one
// allocation holds all.
template <class F>
void post(const Warp& warp, AsyncQueue::Chain chain, const ptx::Instr& in, F effect) {
  warp.cta.cluster.async.post(
      chain, [&warp, &in] { return Posted::name(warp, in); },
      [posted = Posted(warp, in), effect = std::move(effect)]() mutable {
        posted.complete(effect);
      });
}

// Calls f(lane) for every active lane, lowest first; a Fault names the lane.
template <class F>
void each_lane(uint32_t active, F f) {
  uint32_t lane = 0;
  try {
    for (; active; active &= active - 1) f(lane = uint32_t(__builtin_ctz(active)));
  } catch (Fault& fault) {
    fault.lane = lane;
    throw;
  }
}

}  // namespace emu::glue
