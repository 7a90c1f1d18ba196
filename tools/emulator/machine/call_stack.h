// SPDX-License-Identifier: MIT
// The stacks of a warp's threads: where each call returns to, the registers that a recursive call
// saves for the activation before it, and the frame in local memory. The memory of alloca lies
// above the frames.
#pragma once

#include <cstdint>
#include <vector>

namespace emu {

namespace ptx {
struct Instr;
struct Routine;
}  // namespace ptx
class Warp;

class CallStack {
 public:
  static constexpr uint32_t most_bytes = 512 << 10;  // local memory of a thread, of every GPU

  explicit CallStack(uint32_t first_free) : first_free_(first_free) {}

  // Throws Fault illegal_address where the stack is full.
  void enter(Warp& warp, uint32_t lane, const ptx::Instr& site, uint32_t return_pc,
             const ptx::Routine& routine);
  // Returns where the lane goes on.
  uint32_t leave(Warp& warp, uint32_t lane);

  // alloca: the address in local memory; stacksave and stackrestore: the end of what is in use.
  uint64_t allocate(Warp& warp, uint32_t lane, uint64_t bytes, uint32_t align);
  uint64_t top(uint32_t lane) const { return lanes_.empty() ? first_free_ : lanes_[lane].top; }
  void cut(uint32_t lane, uint64_t top);

 private:
  struct Frame {
    const ptx::Instr* site;
    const ptx::Routine* routine;
    uint32_t return_pc;
    uint64_t base, callers_base, callers_top;
    std::vector<uint64_t> values;  // of an earlier activation's registers
    std::vector<bool> known;
  };
  struct Lane {
    std::vector<Frame> frames;
    uint64_t top = 0;
  };
  Lane& of(uint32_t lane);
  static void save(const Warp& warp, uint32_t lane, Frame& frame);
  static void restore(Warp& warp, uint32_t lane, const Frame& frame);
  static void forget_registers(Warp& warp, uint32_t lane, const ptx::Routine& routine);

  uint32_t first_free_;
  std::vector<Lane> lanes_;  // none until the first call
};

}  // namespace emu
