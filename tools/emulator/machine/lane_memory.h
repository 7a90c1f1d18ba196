// SPDX-License-Identifier: MIT
// One lane's access to memory of any state space: where an address leads, and reading and writing
// there.
#pragma once

#include "tools/emulator/machine/machine.h"

namespace emu {

class Bytes;

// The place that an address of one lane leads to.
struct Place {
  ptx::Space space = ptx::Space::global;  // shared_cta (of any CTA), local, param or global
  Cta* cta = nullptr;                     // whose shared memory
  Cluster* cluster = nullptr;             // of the warp that accesses
  uint64_t address = 0;                   // global
  uint64_t offset = 0;                    // in shared or local memory
  uint32_t lane = 0;

  // Tells the observers that `in` accesses `bytes` bytes there. If it is a store or update that is
  // relaxed or stronger, they are also told that it hands on what the lane knows. `value`: what a
  // store is about to write.
  Bytes open(const ptx::Instr& in, uint32_t bytes, Use use, const void* value = nullptr) const;
  bool may_lack_value() const { return space != ptx::Space::param; }

  // The memory itself, for Bytes.
  uint8_t* host(Teller) const { return host_; }  // global, param
  LocalMemory* local(Teller) const { return local_; }

 private:
  friend Place locate(Warp&, uint32_t, ptx::Space, uint64_t, uint32_t, const char*);
  uint8_t* host_ = nullptr;
  LocalMemory* local_ = nullptr;
};

// The bytes that Place::open() gave.
class Bytes {
 public:
  Bytes() = default;

  // `bytes` of 1, 2, 4, 8, aligned. Global accesses are single-copy atomic, as warps on other host
  // threads may access the same word; ordering is acquire and release, stronger than .weak needs.
  uint64_t read(uint32_t at, uint32_t bytes, const char* who) const;
  void write(uint32_t at, uint32_t bytes, uint64_t value, const char* who) const;
  // For what is done to a word in one step; Fault where it has no value.
  uint8_t* global(uint32_t at, uint32_t bytes, const char* who) const;
  // Local and shared memory that was never written may be copied, as nvcc -G does with the padding
  // of structs and DeepGEMM with that of scales: loaded, it leaves the register without a value. A
  // store of any such register marks the bytes as having no value, in global memory, too. Kernels
  // store such bytes for partial tiles and never use them.
  bool has_value(uint32_t at, uint32_t bytes, const char* who) const;
  void forget(uint32_t at, uint32_t bytes, const char* who, std::string why = {}) const;
  std::string why_none(uint32_t at, uint32_t bytes) const;  // of shared and global memory
  // A load, or an update, that is relaxed or stronger takes what was handed on at the word.
  void acquire(const ptx::Instr& in) const;
  const Place& place() const { return place_; }

  // Stores a word to shared memory as an access of the whole warp, not of a lane.
  static void store_word(Cta& cta, uint32_t address, uint32_t word, const char* who);

 private:
  friend struct Place;
  explicit Bytes(const Place& place) : place_(place) {}
  void release(const ptx::Instr& in) const;
  Place place_;
};

// Checks bounds and alignment for `bytes` in all. Space::generic looks at the address's window.
// Throws Fault illegal_address, misaligned_address.
Place locate(Warp& warp, uint32_t lane, ptx::Space space, uint64_t address, uint32_t bytes,
             const char* who);

// The state space that an instruction names; generic if none.
ptx::Space space_named(const ptx::Instr& in);

}  // namespace emu
