// SPDX-License-Identifier: MIT
// The machine: a grid of clusters of CTAs of warps, and what instruction semantics may touch.
//
// A cluster runs on one host thread from start to end, so nothing inside it needs a lock; global
// memory is shared by host threads. Asynchronous work is posted to the cluster's AsyncQueue and takes
// effect in an order the seed chooses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../mem/global_memory.h"
#include "../mem/shared_memory.h"
#include "../ptx/module.h"
#include "../unit/async_queue.h"
#include "../unit/mbarrier.h"
#include "../unit/tensor_memory.h"

namespace emu {

class Cluster;
class Cta;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// What the driver hands over.
struct Launch {
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> params;   // the entry's parameter block, Function::param_bytes long
  GlobalMemory* memory = nullptr;
  uint32_t sm_count = 1;
  uint64_t grid_id = 0;
};

// Instructions, bytes by TMA, MMAs ... of one launch; a plain sum over CTAs.
struct Counters {
#define EMU_COUNTER(name, text) uint64_t name = 0;
#include "counters.def"
#undef EMU_COUNTER
  void add(const Counters& other);
};

// Runs the grid to its end. Throws Fault with the full report (kernel, block, warp, PTX line).
Counters run_grid(const Launch& launch);

// 32 lanes with their registers. Lanes diverge and reconverge at immediate post-dominators.
class Warp {
 public:
  Warp(Cta& cta, uint32_t index, uint32_t lanes);  // lanes: mask of existing threads
  Cta& cta;
  const uint32_t index;       // in its CTA
  const uint32_t lanes;       // the threads that exist (block size not a multiple of 32)
  uint32_t exited = 0;        // of them, those that returned
  std::string waiting;        // set by an instruction that returns Step::blocked: what it waits for

  uint32_t live() const { return lanes & ~exited; }

  // Raw bits of a scalar operand (register, immediate, special register, symbol address). Reading a
  // register that nobody wrote, or that a tcgen05.ld still owns, is a Fault.
  uint64_t get(const ptx::Operand& op, uint32_t lane) const;
  bool pred(const ptx::Operand& op, uint32_t lane) const { return (get(op, lane) & 1) != op.negated; }
  void set(const ptx::Operand& op, uint32_t lane, uint64_t bits);  // a sink swallows it
  uint64_t address(const ptx::Operand& op, uint32_t lane) const;   // Kind::address: base + offset

  // For instructions that work on the whole warp or want one value.
  uint64_t uniform(const ptx::Operand& op, uint32_t active, const char* who) const;  // Fault if lanes differ
  void require_aligned(uint32_t active, const char* opcode) const;  // Fault unless active == live()

  // tcgen05.ld: the register has no value until tcgen05.wait::ld gives it one with set().
  void set_pending(const ptx::Operand& op, uint32_t lanes);

  // The thread's identity.
  uint32_t thread(uint32_t lane) const { return index * 32 + lane; }

  // tcgen05.ld / st issued and not yet waited for; run by tcgen05.wait.
  std::vector<std::function<void()>> pending_ld, pending_st;

 private:
  friend class Scheduler;
  uint64_t special(ptx::Special s, uint32_t lane) const;
  std::vector<uint64_t> values_;     // slot * 32 + lane
  std::vector<uint32_t> defined_;    // per slot: lanes that hold a value
  std::vector<uint32_t> pending_;    // per slot: lanes owned by a tcgen05.ld
  // Divergence state (fragments and joins) lives in scheduler.h.
};

class Cta {
 public:
  Cta(Cluster& cluster, uint32_t rank, Dim3 id);
  Cluster& cluster;
  const uint32_t rank;        // %cluster_ctarank
  const Dim3 id;              // %ctaid
  SharedMemory shared;
  TensorMemory tensor_memory;
  MbarrierTable mbarriers;    // keyed by CTA-relative shared address
  std::vector<std::unique_ptr<Warp>> warps;
  Counters counters;

  // A 32-bit .shared address of this CTA as PTX code sees it: rank in bits 24 and up.
  uint32_t shared_address(uint32_t offset) const {
    return offset | rank << SharedMemory::rank_shift;
  }
};

class Cluster {
 public:
  Cluster(const Launch& launch, Dim3 id, uint64_t seed);
  const Launch& launch;
  const Dim3 id;              // %clusterid
  std::vector<std::unique_ptr<Cta>> ctas;
  AsyncQueue async;
  uint64_t progress = 0;      // counts events that may unblock somebody

  // Splits a .shared::cluster address into CTA and CTA-relative address; Fault if there is no such rank.
  Cta& cta_of(uint32_t address, uint32_t* offset, const char* who);
};

}  // namespace emu
