// SPDX-License-Identifier: MIT
// See call_stack.h.
#include "tools/emulator/machine/call_stack.h"

#include <algorithm>

#include "tools/emulator/machine/machine.h"

namespace emu {

namespace {

constexpr uint32_t frame_align = 16;

uint64_t align_up(uint64_t n, uint64_t align) { return (n + align - 1) / align * align; }

}  // namespace

CallStack::Lane& CallStack::of(uint32_t lane) {
  if (lanes_.empty()) {
    lanes_.resize(32);
    for (Lane& l : lanes_) l.top = first_free_;
  }
  return lanes_[lane];
}

uint64_t CallStack::allocate(Warp& warp, uint32_t lane, uint64_t bytes, uint32_t align) {
  Lane& own = of(lane);
  const uint64_t begin = align_up(own.top, align);
  if (bytes > most_bytes || begin + bytes > most_bytes)
    throw Fault(FaultKind::illegal_address,
                format("stack overflow: %llu bytes more than the %llu in use, a thread has %u of "
                       "local memory",
                       (unsigned long long)bytes, (unsigned long long)begin, most_bytes));
  own.top = begin + bytes;
  warp.local.reserve(uint32_t(own.top));
  warp.local.forget(lane, begin, uint32_t(bytes));
  return begin;
}

void CallStack::cut(uint32_t lane, uint64_t top) {
  Lane& own = of(lane);
  const uint64_t least = own.frames.empty()
                             ? first_free_
                             : own.frames.back().base + own.frames.back().routine->frame_bytes;
  if (top < least || top > own.top)
    throw Fault(
        FaultKind::illegal_instruction,
        format("stackrestore to 0x%llx, which no stacksave of this activation gave: the "
               "stack is in use from 0x%llx to 0x%llx",
               (unsigned long long)top, (unsigned long long)least, (unsigned long long)own.top));
  own.top = top;
}

void CallStack::enter(Warp& warp, uint32_t lane, const ptx::Instr& site, uint32_t return_pc,
                      const ptx::Routine& routine) {
  Lane& own = of(lane);
  const ptx::Function& function = *warp.cta.cluster.launch.function;
  Frame frame{&site, &routine, return_pc, 0, 0, own.top, {}, {}};
  frame.callers_base = warp.values_[size_t(function.frame) * 32 + lane];
  const bool runs = std::any_of(own.frames.begin(), own.frames.end(),
                                [&](const Frame& f) { return f.routine == &routine; });
  if (runs) save(warp, lane, frame);
  frame.base = allocate(warp, lane, routine.frame_bytes, frame_align);
  for (size_t i = 0; i < routine.parameters.size(); ++i)
    warp.local.copy(lane, warp.address(site.call->arguments[i].at, lane),
                    frame.base + routine.parameters[i].offset, routine.parameters[i].bytes);
  forget_registers(warp, lane, routine);
  warp.values_[size_t(function.frame) * 32 + lane] = frame.base;
  warp.defined_[function.frame] |= 1u << lane;
  own.frames.push_back(std::move(frame));
}

uint32_t CallStack::leave(Warp& warp, uint32_t lane) {
  Lane& own = of(lane);
  const Frame frame = std::move(own.frames.back());
  own.frames.pop_back();
  const ptx::Function& function = *warp.cta.cluster.launch.function;
  warp.values_[size_t(function.frame) * 32 + lane] = frame.callers_base;
  for (size_t i = 0; i < frame.routine->results.size(); ++i)
    warp.local.copy(lane, frame.base + frame.routine->results[i].offset,
                    warp.address(frame.site->call->results[i].at, lane),
                    frame.routine->results[i].bytes);
  if (frame.values.empty())
    forget_registers(warp, lane, *frame.routine);
  else
    restore(warp, lane, frame);
  own.top = frame.callers_top;
  return frame.return_pc;
}

void CallStack::save(const Warp& warp, uint32_t lane, Frame& frame) {
  for (uint32_t slot = frame.routine->first_slot; slot < frame.routine->end_slot; ++slot) {
    if (warp.owner(slot, 1u << lane) != Warp::Owner::none)
      throw Fault(FaultKind::illegal_instruction,
                  format("%s is called while it runs, and tcgen05.ld or wgmma still owns its "
                         "registers",
                         frame.routine->name.c_str()));
    frame.values.push_back(warp.values_[size_t(slot) * 32 + lane]);
    frame.known.push_back(warp.defined_[slot] >> lane & 1);
  }
}

void CallStack::restore(Warp& warp, uint32_t lane, const Frame& frame) {
  for (size_t i = 0; i < frame.values.size(); ++i) {
    const uint32_t slot = frame.routine->first_slot + uint32_t(i);
    warp.values_[size_t(slot) * 32 + lane] = frame.values[i];
    warp.defined_[slot] = (warp.defined_[slot] & ~(1u << lane)) | uint32_t(frame.known[i]) << lane;
  }
}

void CallStack::forget_registers(Warp& warp, uint32_t lane, const ptx::Routine& routine) {
  for (uint32_t slot = routine.first_slot; slot < routine.end_slot; ++slot)
    warp.defined_[slot] &= ~(1u << lane);
}

}  // namespace emu
