// SPDX-License-Identifier: MIT
// One lane's access to memory of any state space: where an address leads, and reading and writing
// there.
#pragma once

#include "tools/emulator/machine/machine.h"

namespace emu {

// The place that an address of one lane leads to. Only one of the members is used.
struct Place {
  ptx::Space space = ptx::Space::global;  // shared_cta (of any CTA), local, param or global
  uint8_t* host = nullptr;                // global, param
  Cta* cta = nullptr;                     // whose shared memory
  LocalMemory* local = nullptr;
  Cluster* cluster = nullptr;  // of the warp that accesses
  uint64_t address = 0;        // global
  uint64_t offset = 0;         // in shared or local memory
  uint32_t lane = 0;

  // `bytes` of 1, 2, 4, 8, aligned. Global accesses are single-copy atomic, as warps on other host
  // threads may access the same word; ordering is acquire and release, stronger than .weak needs.
  // Before the bytes are accessed: is it ordered? `value`: what a store is about to write.
  void note(uint32_t bytes, Use use, const void* value = nullptr) const;
  // Synchronisation through the word, at the scope of the instruction: a store hands on, a load takes.
  void release(const ptx::Instr& in) const;
  void acquire(const ptx::Instr& in) const;
  uint64_t read(uint32_t at, uint32_t bytes, const char* who) const;
  void write(uint32_t at, uint32_t bytes, uint64_t value, const char* who) const;
  // Local and shared memory that nobody has written may be copied, as nvcc -G does with the padding of
  // structs and DeepGEMM with that of scales: loaded, it leaves the register without a value, and
  // storing that one to the same space forgets the bytes.
  bool has_value(uint32_t at, uint32_t bytes, const char* who) const;
  void forget(uint32_t at, uint32_t bytes, const char* who) const;
  bool may_lack_value() const { return space == ptx::Space::local || cta; }
};

// Checks bounds and alignment for `bytes` in all. Space::generic looks at the address's window.
// Throws Fault illegal_address, misaligned_address.
Place locate(Warp& warp, uint32_t lane, ptx::Space space, uint64_t address, uint32_t bytes,
             const char* who);

// The state space that an instruction names; generic if none.
ptx::Space space_named(const ptx::Instr& in);

}  // namespace emu
