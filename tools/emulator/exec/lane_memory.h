// SPDX-License-Identifier: MIT
// One lane's access to memory of any state space: where an address leads, and reading and writing
// there.
#pragma once

#include "machine.h"

namespace emu {

// The place that an address of one lane leads to. Only one of the members is used.
struct Place {
  ptx::Space space = ptx::Space::global;  // shared_cta (of any CTA), local, param or global
  uint8_t* host = nullptr;                // global, param
  Cta* cta = nullptr;                     // whose shared memory
  LocalMemory* local = nullptr;
  uint64_t offset = 0;  // in shared or local memory
  uint32_t lane = 0;

  // `bytes` of 1, 2, 4, 8, aligned. Global accesses are single-copy atomic, as warps on other host
  // threads may access the same word; ordering is acquire and release, stronger than .weak needs.
  uint64_t read(uint32_t at, uint32_t bytes, const char* who) const;
  void write(uint32_t at, uint32_t bytes, uint64_t value, const char* who) const;
};

// Checks bounds and alignment for `bytes` in all. Space::generic looks at the address's window.
// Throws Fault illegal_address, misaligned_address.
Place locate(Warp& warp, uint32_t lane, ptx::Space space, uint64_t address, uint32_t bytes,
             const char* who);

// The state space that an instruction names; generic if none.
ptx::Space space_named(const ptx::Instr& in);

}  // namespace emu
