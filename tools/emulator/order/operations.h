// SPDX-License-Identifier: MIT
// Asynchronous work of one cluster: the async proxy's, bulk groups, pipes of the tensor core. An
// operation happened before the thread that knows its completion, which travels with the mbarrier,
// group or commit that announces it.
#pragma once

#include <map>

#include "tools/emulator/order/parties.h"
#include "tools/emulator/order/viewer.h"

namespace emu::order {

class Operations {
 public:
  Operations(const Now& now, Parties& parties);

  void begin(Operation which, Work work, uint32_t lane);  // of the current instruction
  Issued& issued(Operation op) { return issued_[size_t(op)]; }
  const Issued& issued(Operation op) const { return issued_[size_t(op)]; }
  // A copy into the CTA's shared memory, or from there.
  void land(Operation op, uint32_t rank, uint32_t address, bool read) {
    landings_[rank].push_back({op, address, read});
  }
  // What a tcgen05.commit, a cp.async.mbarrier.arrive hands on, for the last time.
  const Knowledge& handed(Operation op) const { return handed_.at(op); }
  void forget(Operation op) { handed_.erase(op); }

  // cp.async and bulk groups, whose last member is an operation that begin() gave to that thread.
  void join_bulk_group(Operation op, uint32_t lanes);
  void commit_group(Work work, uint32_t lane);
  void wait_group(Work work, uint32_t lane, uint32_t allowed, bool only_reads);
  void wait_all(uint32_t lane);
  void wait_wgmma(uint32_t end);

  // By a lane of the current instruction, by an operation of it.
  Viewer viewer(uint32_t lane) const;
  Viewer viewer(Operation op) const;
  // Does the viewer's lane know it to be complete, or some lane of its warp?
  bool completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock, bool read) const;
  bool lane_completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock, bool read) const;
  bool issued_before(const Issued& op, const Viewer& v) const;
  static bool has_waited(const Party& p, uint32_t lane, uint32_t agent, uint32_t done);

  // At the end of a CTA: Fault when a copy into its shared memory, or from there, was never waited
  // for. By the time it lands, or reads, the SM may have given the memory to the next CTA. Formal
  // where it is a committed bulk store of the CTA.
  void check_exit(const Cta& cta);

 private:
  struct Landing {
    Operation op;
    uint32_t address;
    bool read;
  };
  bool in_a_group(const Cta& cta, const Issued& op) const;
  void report_exit(const Cta& cta, const Landing& l) const;
  Knowledge committed(uint32_t lane);
  Knowledge copied(uint32_t lane);

  const Now& now_;
  Parties& parties_;
  std::vector<Issued> issued_;
  std::map<Operation, Knowledge> handed_;       // by commits that have not arrived
  std::vector<std::vector<Landing>> landings_;  // by rank
};

}  // namespace emu::order
