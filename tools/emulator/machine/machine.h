// SPDX-License-Identifier: MIT
// The machine: a grid of clusters of CTAs of warps, and what instruction semantics may touch.
//
// A cluster runs on one host thread from start to end, so nothing inside it needs a lock; global
// memory is shared by host threads. Asynchronous work is posted to the cluster's AsyncQueue and
// takes effect in an order the seed chooses.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/emulator/base/findings.h"
#include "tools/emulator/hardware/async_queue.h"
#include "tools/emulator/hardware/cta_units.h"
#include "tools/emulator/hardware/mbarrier.h"
#include "tools/emulator/hardware/tensor_memory.h"
#include "tools/emulator/machine/call_stack.h"
#include "tools/emulator/machine/divergence.h"
#include "tools/emulator/machine/named_barrier.h"
#include "tools/emulator/machine/observer.h"
#include "tools/emulator/machine/teller.h"
#include "tools/emulator/machine/warpgroup.h"
#include "tools/emulator/memory/address.h"
#include "tools/emulator/memory/global_memory.h"
#include "tools/emulator/memory/local_memory.h"
#include "tools/emulator/memory/shared_memory.h"
#include "tools/emulator/ptx/module.h"

namespace emu {

class Cluster;
class Cta;
class Warp;
struct Place;
Place locate(Warp&, uint32_t, ptx::Space, uint64_t, uint32_t, const char*);

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// A device's memory, as a running grid has it.
class DeviceMemory {
 public:
  DeviceMemory(GlobalMemory* memory = nullptr) : memory_(memory) {}
  const GlobalMemory& get(Teller) const { return *memory_; }
  std::string describe(uint64_t address) const { return memory_->describe(address); }
  // The kernel's malloc and free, which read and write nothing there.
  uint64_t allocate(uint64_t bytes) const { return memory_->allocate_heap(bytes); }
  bool free(uint64_t address) const { return memory_->free_heap(address); }

 private:
  GlobalMemory* memory_;
};

// A hash of a seed and a place.
uint64_t mix(uint64_t seed, const Dim3& id);

// What the driver hands over.
struct Launch {
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
  Dim3 grid, block, cluster;
  Dim3 preferred = {};  // preferred cluster size, a multiple of `cluster`; some clusters get it
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> params;  // the entry's parameter block, Function::param_bytes long
  DeviceMemory memory;
  uint32_t sm_count = 1;
  int compute_capability = 100;
  uint64_t grid_id = 0;
  bool cooperative = false;     // every CTA waits for every other, so all run at once
  uint64_t grid_workspace = 0;  // what %envreg1 and %envreg2 hold
  std::vector<GridObserver*> observers = {};
  Findings* findings = nullptr;  // where checks report; nullptr: no report is read later

  // Size of the cluster that has the block: chosen by the seed; on hardware, by free SMs.
  Dim3 cluster_of(const Dim3& block) const;
};

// Instructions, bytes by TMA, MMAs ... of one launch; a plain sum over CTAs.
struct Counters {
#define EMU_COUNTER(name, text) uint64_t name = 0;
#include "tools/emulator/machine/counters.def"
#undef EMU_COUNTER
  void add(const Counters& other);
};

// Runs the grid to its end. Throws Fault with the full report (kernel, block, warp, PTX line).
// Launch::findings has what was found either way.
Counters run_grid(const Launch& launch);

// Why a register has no value: told in the Fault of the instruction that needs it.
struct Reason {
  std::string text = {};
  bool from_shared = false;  // loaded from shared memory, where it may be stored again
};

constexpr uint64_t width_mask(ptx::Type declared) {
  const uint32_t bits = ptx::bits_of(declared);
  return bits == 0 || bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

// 32 lanes with their registers. Lanes diverge and reconverge at immediate post-dominators.
class Warp {
 public:
  Warp(Cta& cta, uint32_t index, uint32_t lanes);  // lanes: mask of existing threads
  Cta& cta;
  const uint32_t index;  // in its CTA
  const uint32_t lanes;  // the threads that exist (block size not a multiple of 32)
  uint32_t exited = 0;   // of them, those that returned
  // Set by an instruction that returns Step::blocked: what it waits for. It is called only for a
  // report, while the state is the one in which the instruction blocked.
  std::function<std::string()> waiting;
  uint32_t carry = 0, has_carry = 0;  // lanes whose CC.CF is set, and has been written
  Reason carry_why;                   // where what was written is no value
  uint32_t carry_unknown = 0;
  uint32_t executing = 0;  // lanes of the instruction that executes, or was the last to
  Divergence flow;
  LocalMemory local;
  CallStack calls;
  uint32_t cluster_arrived = 0;      // lanes between barrier.cluster.arrive and .wait
  uint64_t cluster_ticket[32] = {};  // per lane, the generation of barrier.cluster it arrived at
  bool waited_for_grids = false;     // has passed griddepcontrol.wait
  std::map<uint32_t, uint64_t> phases_seen;  // of mbarriers: how many it has waited for
  std::set<const ptx::Instr*> timed_out;     // its mbarrier.try_waits that timed out once
  // Called when an access that changes nothing has found this value in a flag. Step::polled: the
  // last such access was by the same instruction and found the same.
  ptx::Step poll(const ptx::Instr& in, uint64_t found) {
    const bool again = polled_ == &in && polled_found_ == found;
    polled_ = &in;
    polled_found_ = found;
    return again ? ptx::Step::polled : ptx::Step::next;
  }
  uint32_t registers = 0;  // per thread, as setmaxnreg left them; 0: as launched
  std::vector<const ptx::Instr*> register_changes;  // its setmaxnreg

  uint32_t live() const { return lanes & ~exited; }

  // Raw bits of a scalar operand (register, immediate, special register, symbol address). Reading a
  // register that was never written, or that a tcgen05.ld still owns, is a Fault.
  // `part` 1 is the high half of a .b128 register.
  uint64_t get(const ptx::Operand& op, uint32_t lane, uint32_t part = 0) const;
  bool pred(const ptx::Operand& op, uint32_t lane) const {
    return (get(op, lane) & 1) != op.negated;
  }
  // A sink swallows it. The bits above the register's width are dropped.
  void set(const ptx::Operand& op, uint32_t lane, uint64_t bits, uint32_t part = 0);
  uint64_t address(const ptx::Operand& op, uint32_t lane) const;  // Kind::address: base + offset

  // The same for all lanes at once: 32 values, of which only those in `active` mean something. A
  // source that is no register is spread into `scratch`. destination() marks the register as
  // defined.
  using Row = uint64_t[32];
  const uint64_t* source(const ptx::Operand& op, uint32_t active, Row& scratch,
                         uint32_t part = 0) const;
  uint64_t* destination(const ptx::Operand& op, uint32_t active, uint32_t part = 0);
  uint32_t pred_mask(const ptx::Operand& op, uint32_t active) const;  // lanes where it is true
  uint32_t guarded(const ptx::Instr& in, uint32_t mask) const;  // lanes that the guard lets pass
  // The same for instructions that only compute: a lane that lacks an operand's value gets a result
  // without one. It is a Fault where it leaves the registers, or decides or addresses something.
  struct Unknown {
    uint32_t lanes = 0;
    const ptx::Operand* of = nullptr;  // the operand, nullptr: the carry
  };
  const uint64_t* operand(const ptx::Operand& op, uint32_t active, Row& scratch, Unknown& unknown,
                          uint32_t part = 0) const;
  uint64_t* result(const ptx::Operand& op, uint32_t active, const Unknown& unknown,
                   uint32_t part = 0);
  uint32_t truth(const ptx::Operand& op, uint32_t active, Unknown& unknown) const;  // pred_mask
  // mov only: the lanes whose register has a value; no Fault. A lane without one can be passed on.
  uint32_t defined(const ptx::Operand& op, uint32_t active) const;
  void undefine(const ptx::Operand& op, uint32_t lanes_without_value, Reason why = {});
  Reason why(const ptx::Operand& op) const;                 // what undefine() was given
  std::string computed_from(const Unknown& unknown) const;  // for a result of it
  // What is wrong with reading it there, in words.
  std::string none_in(const ptx::Operand& op, uint32_t lanes_without_value) const;

  // For an address: whether all lanes have its base, and where the register's row is. nullptr: a
  // constant.
  bool has_base(const ptx::Operand& op, uint32_t active) const {
    return op.reg == ptx::no_register || !(active & ~defined_[op.reg]);
  }
  const uint64_t* base_row(const ptx::Operand& op) const {
    return op.reg == ptx::no_register ? nullptr : &values_[size_t(op.reg) * 32];
  }
  // Does each of the lanes have a value, or base address, and all of them the same?
  bool alike(const ptx::Operand& op, uint32_t active) const;

  // For instructions that work on the whole warp or want one value.
  uint64_t uniform(const ptx::Operand& op, uint32_t active,
                   const char* who) const;                          // Fault if lanes differ
  void require_aligned(uint32_t active, const char* opcode) const;  // Fault unless active == live()
  void require_whole(uint32_t active, const char* opcode) const;    // and unless all 32 are there
  void require_all(uint32_t active, const char* opcode) const;      // and unless none has ended

  // For .sync instructions with a membermask. Returns the mask's lanes once all of them have
  // arrived at this instruction. Returns 0 if the caller has to return `otherwise`: lanes of the
  // mask are still missing, or the fragment splits because its lanes name different masks.
  // `any_place`: lanes may wait at different instructions of that opcode (bar.warp.sync). Fault if
  // a lane of the mask can never arrive.
  uint32_t gather(const ptx::Instr& in, const ptx::Operand& membermask, uint32_t active,
                  ptx::Step& otherwise, bool any_place = false);
  // Before an instruction that is .aligned: false when lanes of the warp that are not here have to
  // come first. When the last has come they are one fragment, and `active` is all of them.
  bool align(const ptx::Instr& in, uint32_t& active);

  void exit(uint32_t active);  // ret, exit: these threads end

  // Registers that asynchronous work owns: use_early (early_use.h) settles what uses them too soon.
  bool has_work_in_registers() const {
    return !pending_ld.empty() || !unused_ld.empty() || wgmma_in_flight;
  }
  enum class Owner : uint8_t { none, tensor_ld, wgmma };
  Owner owner(uint32_t slot, uint32_t active) const {
    if (pending_[slot] & active) return Owner::tensor_ld;
    return !wgmma_.empty() && wgmma_[slot].any() ? Owner::wgmma : Owner::none;
  }
  const char* name_of(const ptx::Operand& op) const;

  // tcgen05.ld: the register has no value until tcgen05.wait::ld gives it one with set().
  void set_pending(const ptx::Operand& op, uint32_t lanes);

  // wgmma: a register belongs to the operations that use it until wgmma.wait_group. `shape`:
  // operations of one shape may follow each other on an accumulator.
  uint32_t wgmma_in_flight = 0;  // operations
  void wgmma_fence();
  // A register that another instruction has accessed since the last wgmma.fence.
  bool needs_wgmma_fence(const ptx::Operand& op) const;
  uint32_t begin_wgmma_fragment(const ptx::Operand& op);  // the lanes without a value
  void begin_wgmma_accumulator(const ptx::Operand& op, uint32_t shape, bool accumulate);
  // For an operation that takes effect on an accumulator: the lanes in `lost` get a sum without a
  // value. Lanes without a value before keep none if the operation accumulates.
  void lose_wgmma(const ptx::Operand& op, bool accumulate, uint32_t lost, const std::string& why);
  void end_wgmma(const ptx::Operand& op);
  const uint64_t* wgmma_values(const ptx::Operand& op, Row& scratch) const;
  uint64_t* wgmma_row(const ptx::Operand& op) { return &values_[size_t(op.reg) * 32]; }

  // The thread's identity.
  uint32_t thread(uint32_t lane) const { return index * 32 + lane; }

  // tcgen05.ld / st issued and not yet waited for; run by tcgen05.wait.
  std::vector<std::function<void()>> pending_ld, pending_st;
  // For each tcgen05.ld since the last wait, in order: the registers that have not been used since.
  std::vector<std::vector<uint32_t>> unused_ld;

 private:
  friend class CallStack;  // saves and restores registers
  // A global access with the last allocation remembered, as consecutive ones mostly hit the same.
  friend Place locate(Warp&, uint32_t, ptx::Space, uint64_t, uint32_t, const char*);
  friend class GlobalLanes;
  uint8_t* global(uint64_t address, uint32_t bytes, uint32_t align, const char* who);

  uint64_t special(ptx::Special s, uint32_t lane) const;
  uint64_t symbol(const ptx::Operand& op) const;
  uint64_t frame_base(const ptx::Operand& op, uint32_t lane) const {
    return op.reg == ptx::no_register ? 0 : values_[size_t(op.reg) * 32 + lane];
  }
  [[noreturn]] void no_value(const ptx::Operand& op, uint32_t lanes_without_value) const;
  std::string origin(const Unknown& unknown) const;
  // An ordinary access; nothing in kernels without wgmma.
  void touch(uint32_t slot) const {
    if (!touched_.empty()) touched_[slot] = wgmma_fences_;
  }
  // slot * 32 + lane. Nothing is read that was not written: a kernel has thousands of registers,
  // and to clear those of every warp took a fifth of a small launch's time.
  std::unique_ptr<uint64_t[]> values_;
  std::vector<uint32_t> defined_;  // per slot: lanes that hold a value
  std::vector<uint32_t> pending_;  // per slot: lanes owned by a tcgen05.ld
  struct WgmmaUse {
    uint16_t accumulators = 0, fragments = 0;  // operations in flight
    uint32_t shape = 0;
    uint32_t missing = 0;  // lanes that have no value when they are over
    bool any() const { return accumulators || fragments; }
  };
  std::vector<WgmmaUse> wgmma_;            // per slot, once there was a wgmma.fence
  mutable std::vector<uint32_t> touched_;  // per slot, likewise: wgmma_fences_ at the last access
  uint32_t wgmma_fences_ = 0;
  // The reasons that undefine() was given, by the number of a register's name: one slot may have
  // several registers, in lanes that have diverged.
  std::map<uint32_t, Reason> why_;
  static uint32_t named(const ptx::Operand& op) {
    return op.name != ptx::no_register ? op.name : op.reg;
  }
  Row sink_;                                    // where results for `_` go
  const ptx::Instr* polled_ = nullptr;          // the last instruction that polled,
  uint64_t polled_found_ = 0;                   // and what it found
  uint64_t cached_begin_ = 1, cached_end_ = 0;  // the allocation that global() hit last
  uint8_t* cached_data_ = nullptr;
  uint64_t cached_frees_ = 0;  // what kernels had freed by then
};

// Calls f(lane) for the lanes of a mask; all 32 in a loop that the compiler can unroll.
template <class F>
inline void for_lanes(uint32_t mask, F f) {
  if (mask == ~0u) {
#pragma GCC ivdep
    for (uint32_t lane = 0; lane < 32; ++lane) f(lane);
  } else {
    for (; mask; mask &= mask - 1) f(uint32_t(std::countr_zero(mask)));
  }
}

class Cta {
 public:
  Cta(Cluster& cluster, uint32_t rank, Dim3 id);
  Cluster& cluster;
  const uint32_t rank;  // %cluster_ctarank
  const Dim3 id;        // %ctaid
  SharedMemory& shared(Teller) { return shared_; }
  TensorMemory& tensor_memory(Teller) { return tensor_memory_; }
  MbarrierTable& mbarrier_table(Teller) { return mbarrier_table_; }
  const MbarrierTable& mbarriers = mbarrier_table_;  // keyed by CTA-relative shared address
  CtaUnits units;                                    // copy groups, the tcgen05 pipe
  NamedBarriers barriers;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Warpgroup> warpgroups;  // those that used wgmma
  Counters counters;
  std::vector<uint64_t> maps;  // tensor maps that its loads have used
  uint32_t live_warps = 0;
  uint64_t free_registers = 0;  // in its pool: released by setmaxnreg.dec and not taken by .inc
  bool told_no = false;  // has seen that a clusterlaunchcontrol request failed: may ask no more

  bool ended() const { return live_warps == 0; }

  // A 32-bit .shared address of this CTA as PTX code sees it: rank in bits 24 and up.
  uint32_t shared_address(uint32_t offset) const {
    return offset | rank << SharedMemory::rank_shift;
  }

 private:
  SharedMemory shared_;
  TensorMemory tensor_memory_;
  MbarrierTable mbarrier_table_;
};

// %smid: CTAs go round the SMs, since which one a GPU takes is not promised.
uint32_t sm_of(const Cta& cta);

// The clusters of a grid that have not started. Host threads take them in order, and so does
// clusterlaunchcontrol.try_cancel.
class Supply {
 public:
  explicit Supply(const Launch& launch);
  // The next %clusterid; nothing if there is none, or it has another size than is wanted.
  std::optional<Dim3> take(const Dim3* wanted = nullptr);
  Dim3 clusters() const { return clusters_; }

 private:
  const Launch& launch_;
  Dim3 clusters_;
  uint64_t count_;
  std::atomic<uint64_t> next_ = 0;
};

class Cluster {
 public:
  Cluster(const Launch& launch, Dim3 id, uint64_t seed);
  const Launch& launch;
  const Dim3 id;    // %clusterid, which counts clusters of the smaller size
  const Dim3 size;  // %cluster_nctaid
  std::vector<std::unique_ptr<Cta>> ctas;
  AsyncQueue async;
  Actor actor;             // whose instruction, or asynchronous work, takes effect now
  ClusterBarrier barrier;  // barrier.cluster
  Moment now;
  Observers observers;
  uint64_t progress = 0;  // counts events that may unblock somebody: code that causes one adds 1
  // Set while nothing else can happen: an mbarrier.try_wait that would block answers false instead
  // (PTX lets it time out), so that code which gives up after a while can do so.
  bool waits_expire = false;

  // Splits a .shared::cluster address into CTA and CTA-relative address; Fault if there is no such
  // rank.
  Cta& cta_of(uint32_t address, uint32_t* offset, const char* who);

  // The CTA's shared-memory size for a launch, without window_start. Throws no Fault.
  static uint32_t shared_bytes(const Launch& launch);
  Dim3 cta_in_cluster(uint32_t rank) const;              // %cluster_ctaid
  Dim3 block_of(uint32_t cluster, uint32_t rank) const;  // of the cluster with that number
  Supply* supply = nullptr;  // the clusters not yet started; nullptr: there are none
  static constexpr uint32_t max_shared_bytes = 232448;  // 227 KB: 228 KB per SM less 1 KB reserved
};

}  // namespace emu
