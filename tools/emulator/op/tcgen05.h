// SPDX-License-Identifier: MIT
// What the tcgen05 instructions have in common: the CTAs they work on, and the pipe.
#pragma once

#include <functional>
#include <vector>

#include "tools/emulator/machine/async_work.h"

namespace emu::ops {

// The CTAs of the instruction's .cta_group, the even rank first. Fault if .cta_group::2 finds no
// peer, or one that has ended.
using CtaGroup = std::vector<Cta*>;
CtaGroup cta_group(Warp& warp, const ptx::Instr& in);

// The other CTA of the pair; nullptr with .cta_group::1.
Cta* peer(Warp& warp, const ptx::Instr& in);

// PTX lets every thread issue; a converged warp then issues the same work up to 32 times, which no
// program means: a Fault.
uint32_t only_lane(const ptx::Instr& in, uint32_t active);

// cp, mma and commit that a CTA issues run on one in-order pipe.
AsyncQueue::Chain pipe(Cta& cta);

// Puts an mma or cp on the pipe: `check` says what it touches until a commit of it was waited for.
void issue(Warp& warp, const ptx::Instr& in, uint32_t lane, Work work, const CtaGroup& group,
           const AsyncWork::Check& check, std::function<void(const Memories&)> effect);

}  // namespace emu::ops
