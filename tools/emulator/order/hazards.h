// SPDX-License-Identifier: MIT
// Happens-before in one cluster: what orders its memory accesses, and the pairs that nothing orders.
//
// Every warp has a Knowledge that its lanes share, and one for each lane that has learnt more since
// they met. A release (arrive, barrier, fence and store) hands them on, an acquire (wait, barrier,
// load and fence) joins them. Asynchronous work is an Operation: it happened before whoever knows its
// completion, which travels with the mbarrier, group or commit that announces it.
//
// Lanes meet at bar.warp.sync and at barriers of the CTA. At other instructions that all of them
// execute together (.sync, .aligned) they meet on hardware, but the manual gives these no memory
// order: what relies on it is formal. Where nothing stands between it is an error: loads of a warp
// were overtaken by one lane's mbarrier.arrive right behind them (docs/performance.md, H200).
// Two accesses to the same bytes, one of them a write, that are not ordered are a finding, in
// whatever order they ran here.
//
// Rules: PTX ISA, memory consistency model (8), async proxy (9.7.9.25), mbarrier (9.7.13.15),
// tcgen05 (9.7.16.6).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/emulator/base/findings.h"
#include "tools/emulator/machine/observer.h"
#include "tools/emulator/order/clock.h"
#include "tools/emulator/order/global_order.h"
#include "tools/emulator/order/shadow.h"

namespace emu {

class Hazards : public Observer {
 public:
  // `earlier`: the grids ahead that may still run.
  Hazards(const Cluster& cluster, GlobalOrder& global, const std::vector<GlobalOrder*>& earlier);

  void before(const Warp& warp, const ptx::Instr& in, uint32_t active, uint64_t) override {
    warp_ = &warp;
    in_ = &in;
    active_ = active;
    ++instance_;
  }
  void access(const LaneAccess& a) override;
  void begin(Operation op, Work work, uint32_t lane) override;
  void access(Operation op, const Reach& reach, Use use) override;
  void happened(const Event& event) override;
  // Fault when a copy into the CTA's shared memory, or from there, was never waited for. By the time
  // it lands, or reads, the SM may have given the memory to the next CTA.
  void cta_ended(const Cta& cta) override;

 private:
  static constexpr uint32_t nobody = ~0u;

  struct Issued {  // an operation
    Work work;
    uint8_t lane;
    uint16_t warp;
    uint32_t pc;
    Clock before = {}, before_strict = {}, before_fresh = {};  // copies: what its issuer had seen
    uint32_t agent = nobody, done = 0;                         // complete for whoever knows this
    uint32_t read_agent = nobody, read_done = 0;  // its reads are: bulk groups with .read
    uint32_t pipe = nobody;                       // the thread's tcgen05 pipe, in order
    std::vector<size_t> bulk_reads = {};          // its GlobalOrder::BulkRead
    uint32_t one_with = 0;                        // lanes whose stores are one on hardware
  };
  struct Queue {  // of one thread: operations that are complete in order
    uint32_t agent = nobody;
    uint32_t issued = 0, done = 0;  // done: as far as the thread has waited
  };
  struct Groups {  // the last operation of each group
    Queue queue;
    std::vector<uint32_t> ends;
  };
  struct Lane {
    Groups bulk, copies;
    Queue bulk_reads;                    // of the same groups
    uint32_t pipe = nobody, issued = 0;  // tcgen05
    template <class F>
    void queues(F f) const {
      for (const Queue* q : {&bulk.queue, &bulk_reads, &copies.queue})
        if (q->agent != nobody) f(*q);
    }
  };
  struct Fences {            // for relaxed accesses
    Knowledge fenced[3];     // per scope, at the last fence
    uint32_t times[3] = {};  // when that was; 0: never
    Knowledge loaded[3];     // by relaxed loads since, for the next fence of that scope
  };
  struct Party {                         // a warp
    Knowledge all;                       // what every lane knows
    std::unique_ptr<Knowledge> own[32];  // what a lane has learnt since the lanes met
    uint32_t time = 1;                   // its own epoch
    Clock tensor_ready;                  // behind tcgen05.fence::before_thread_sync
    Clock tensor_arrived;                // acquired, and not yet behind ::after_thread_sync
    std::unique_ptr<Fences> fences[33];  // of a lane; the last: of all lanes at once
    uint32_t ld = nobody, st = nobody, wgmma = nobody;
    uint32_t lds = 0, sts = 0, wgmmas = 0;
    uint32_t lds_used = 0, lds_waited = 0;          // of the tcgen05.ld, the first so many
    uint32_t owners = 0, queuing = 0, fencing = 0;  // lanes that have own, queues, fences
    uint32_t fresh = 0;   // lanes whose own may have grown since the lanes last met
    bool fenced = false;  // there was a fence or a relaxed load since
    Lane lanes[32];
  };
  struct Flag {                  // what releases left at one address
    std::vector<Knowledge> cta;  // by rank of who released, at .cta and wider
    Knowledge cluster;           // at .cluster and wider
  };
  struct Slot {
    uint64_t ticket = ~0ull;
    Knowledge handed;
  };
  struct Barrier {  // an mbarrier
    uint32_t agent, init_time, fence_time = 0;
    uint16_t warp;
    uint8_t lane;
    uint32_t pc;
    Slot phases[4];
  };
  enum class Reason : uint8_t;
  enum class Space : uint8_t { shared, tensor, global };
  struct Viewer;

  struct Told;  // what happened() hears, a function each
  void shared(Cta& cta, uint32_t address, uint32_t bytes, Use use, uint32_t lane, bool same);
  void global(uint64_t address, uint32_t bytes, Use use, uint32_t lane, const void* value);
  void shared(Operation op, Cta& cta, uint32_t address, uint32_t bytes, Use use);
  void shared(Operation op, Cta& cta, const std::vector<uint32_t>& chunks, Use use);
  void global(Operation op, const Rows& rows, Use use);
  void columns(Operation op, Cta& cta, uint32_t column, uint32_t count, uint16_t groups, Use use);
  void tensor_map(uint64_t address, uint32_t lane);
  static constexpr uint16_t all_groups = 0xFF;
  void free_columns(Cta& cta, uint32_t column, uint32_t count);
  void complete_tx(Operation op, Cta& cta, uint32_t barrier, uint64_t phase);
  void join_bulk_group(Operation op, uint32_t lanes);
  void commit_group(Work work, uint32_t lane);
  void wait_group(Work work, uint32_t lane, uint32_t allowed, bool only_reads);
  void wait_all(uint32_t lane);
  void wait_tensor(Work work);
  void use_load();
  void wait_wgmma(uint32_t end);
  // What a tcgen05.commit, a cp.async.mbarrier.arrive issued now will hand on when it arrives.
  Knowledge committed(uint32_t lane);
  Knowledge copied(uint32_t lane);
  void check_exit(const Cta& cta);
  void barrier_init(Cta& cta, uint32_t address, uint32_t lane);
  void barrier_inval(Cta& cta, uint32_t address);
  void barrier_use(Cta& cta, uint32_t address, uint32_t lane);
  void barrier_use(Operation op, Cta& cta, uint32_t address);
  void arrive(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
              bool relaxed);
  void arrive(Operation op, Cta& cta, uint32_t address, uint64_t phase, bool last);
  void observe(Cta& cta, uint32_t address, uint64_t phase, uint32_t lanes, Scope scope,
               bool relaxed);
  void named_arrive(uint32_t id, uint64_t ticket);
  void named_pass(uint32_t id, uint64_t ticket);
  void cluster_arrive(uint64_t ticket, bool relaxed);
  void cluster_pass(uint64_t ticket);
  void dependents_launched();
  void cta_over(const Cta& cta);
  void grids_over();
  void release_at(bool shared, uint64_t address, uint32_t lane, Scope scope, bool relaxed);
  void acquire_at(bool shared, uint64_t address, uint32_t lane, Scope scope, bool relaxed);
  void fence(Scope scope);
  void fence_proxy(bool shared, bool global);
  void fence_tensor_map(uint64_t address, uint32_t lanes);
  void fence_init();
  void tensor_fence_before();
  void tensor_fence_after();

  Party& me();
  Party& leader();  // the first warp of the warpgroup
  uint32_t pc() const;
  uint32_t serial() const;  // of the cluster in the grid
  Flag& flag(bool shared, uint64_t address);
  uint32_t new_agent() { return agents_++; }
  // Behind a thread's pipe, whose time is completion, comes the agent whose time is issue.
  static uint32_t issue_of(uint32_t pipe) { return pipe + 1; }
  uint32_t number(const Party& p) const { return uint32_t(&p - parties_.data()); }
  bool whole(uint32_t lanes) const;  // all of the warp that are left
  static Knowledge& own(Party& p, uint32_t lane);
  static Fences& fences(Party& p, uint32_t lane);
  Knowledge known(const Party& p, uint32_t lanes) const;
  void add_accesses(const Party& p, uint32_t lanes, uint32_t time, Clock& to) const;
  static void add_queues(const Party& p, uint32_t lanes, Clock& to);
  Knowledge release(Party& p, uint32_t lanes);
  static bool has_fenced(const Party& p, uint32_t lane);
  Knowledge fenced(const Party& p, uint32_t lanes, Scope scope) const;
  Knowledge release_relaxed(const Party& p, uint32_t lanes) const;
  void add_fences(const Party& p, uint32_t lanes, Knowledge& handed) const;
  static bool has_flushed(const Party& p, uint32_t lane);
  static void add_flushed(const Party& p, uint32_t lane, Knowledge& handed);
  void finish_loads(Party& p, uint32_t lanes);
  Knowledge of_tensor(const Knowledge& k) const;
  void acquire(Party& p, uint32_t lanes, const Knowledge& handed);
  void refresh(Party& p, uint32_t lanes);
  void load_relaxed(Party& p, uint32_t lanes, Scope scope, const Knowledge& handed);
  void learn(Party& p, uint32_t lanes, uint32_t agent, uint32_t time);
  void meet(Party& p, uint32_t lanes, bool by_the_manual);
  void meet_fences(Party& p);
  template <class Here, class There>
  void carry(uint32_t lanes, Here here, There far);            // a proxy fence
  static uint32_t known_time(const Party& p, uint32_t agent);  // to any lane
  static Knowledge& slot(std::vector<Slot>& slots, uint64_t ticket);
  Barrier* find(Cta& cta, uint32_t address);
  Knowledge& phase_of(Barrier& b, uint64_t phase);

  Reason judge(const Access& old, const Viewer& v) const;
  Reason judge_operation(const Access& old, const Viewer& v) const;
  Reason judge_far(const Access& old, const Viewer& v) const;
  Reason judge_warps(const Access& old, const Viewer& v) const;
  bool stale(const Access& old, const Viewer& v) const;
  static Reason unordered(const Access& old, const Viewer& v);
  Reason not_seen(const Access& old, const Viewer& v) const;
  Reason not_strict(const Access& old, const Viewer& v) const;
  bool in_one_cta(const Access& old, const Viewer& v) const;
  bool fenced_elsewhere(const Access& old, const Viewer& v) const;
  Reason judge_strong(const Access& old, const Access& a, const Viewer& v) const;
  bool leaves_out(const Access& old, const Access& a) const;
  bool spins(uint32_t pc) const;
  bool own_core_reads(const Access& old, const Viewer& v) const;
  static bool same_value(const Access& old, const Viewer& v);
  Reason behind_proxy_fence(const Access& old, const Viewer& v) const;
  struct Order;
  bool reaches(const Knowledge& k, const Access& old, const Viewer& v, const Order& order,
               bool one = false) const;
  bool reaches(const Access& old, const Viewer& v, const Order& order) const;
  bool mapped(const Access& old, const Viewer& v, uint64_t map) const;
  bool lane_reaches(const Access& old, const Viewer& v, const Order& order, bool one) const;
  // Behind the warps comes the agent whose first time is the end of the grids ahead.
  uint32_t earlier_grids() const { return uint32_t(parties_.size()); }
  bool knows_grids_over(const Viewer& v) const;
  void meet_earlier_grids(const Rows& rows, const Viewer& viewer, Use use);
  void meet_earlier(GlobalOrder& earlier, const Rows& rows, Viewer v);
  void found_earlier(const GlobalOrder& earlier, const Access& old, const Viewer& v,
                     uint64_t number);
  void meet_bulk_reads(uint64_t address, uint64_t bytes, const Access& a, Viewer v);
  Reason judge_lane(const Access& old, const Viewer& v) const;
  bool issued_before(const Issued& op, const Viewer& v) const;
  bool completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock, bool read) const;
  static bool has_waited(const Party& p, uint32_t lane, uint32_t agent, uint32_t done);
  bool lane_completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock, bool read) const;
  bool fence_known(const Barrier& b, const Viewer& v) const;
  void check_init(Cta& cta, uint32_t address, Viewer v, bool async);
  void touch(Chunk& chunk, const Access& a, const Viewer& v, uint64_t index, bool remember = true);
  static bool alike(const Access& a, const Access& old);
  bool replaces(const Access& a, const Access& old) const;
  void found(Reason reason, const Access& old, const Viewer& v, uint64_t index);
  static Severity severity(Reason reason);
  bool has_exited(const Access& old, const Viewer& v) const;
  std::string missing(Reason reason, const Access& old) const;
  std::string wait_for(const Issued& op) const;
  std::string place(const Viewer& v, uint64_t index, uint16_t mask) const;
  const Issued& issued(Operation op) const { return issued_[size_t(op)]; }
  Viewer viewer(uint32_t lane) const;
  Viewer viewer(Operation op) const;
  Access access(uint32_t lane, Use use) const;

  const Cluster& cluster_;
  GlobalOrder& global_;
  const std::vector<GlobalOrder*> earlier_;
  const Warp* warp_ = nullptr;
  const ptx::Instr* in_ = nullptr;
  uint32_t active_ = 0;
  uint16_t instance_ = 0;
  uint32_t warps_ = 0;  // of a CTA
  uint32_t agents_ = 0;
  uint32_t launched_early_ = 0;          // CTAs whose dependents need not wait for the grids ahead
  std::vector<uint32_t> tensor_agents_;  // of tcgen05 work
  std::vector<Party> parties_;
  std::vector<Issued> issued_;
  std::map<Operation, Knowledge> handed_;  // by commits that have not arrived
  std::vector<Shadow> shared_, tensor_;    // by rank
  struct Landing {
    Operation op;
    uint32_t address;
    bool read;
  };
  std::vector<std::vector<Landing>>
      landings_;  // by rank: copies into its shared memory, and from it
  std::vector<std::map<uint32_t, Barrier>> barriers_;
  std::vector<std::vector<Slot>> named_;  // by rank * 16 + id
  std::vector<Slot> cluster_slots_;
  std::map<uint64_t, Flag> shared_flags_, global_flags_;  // by address
};

}  // namespace emu
