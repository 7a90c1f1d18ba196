// SPDX-License-Identifier: MIT
// Asynchronous work: what it has seen, and who knows it to be complete. See operations.h.
#include "tools/emulator/order/operations.h"

#include "tools/emulator/machine/report.h"

namespace emu::order {

Operations::Operations(const Now& now, Parties& parties)
    : now_(now), parties_(parties), landings_(now.cluster.ctas.size()) {}

// `lane`: who issues it, every_lane for what a warp does together.
void Operations::begin(Operation which, Work work, uint32_t lane) {
  Party& p = parties_.me();
  Issued op{work, uint8_t(lane), uint16_t(parties_.number(p)), now_.pc()};
  auto member = [&](uint32_t& agent, uint32_t& count) {
    if (agent == nobody) {
      const bool tensor = work == Work::tensor_ld || work == Work::tensor_st;
      agent = tensor ? parties_.new_tensor_agent() : parties_.new_agent();
    }
    op.agent = agent;
    op.done = ++count;
  };
  Lane& l = p.lanes[lane % every_lane];
  switch (work) {
    case Work::copy:
    case Work::store_async: {
      Parties::Before before = parties_.release_before(p, 1u << lane);
      op.before = std::move(before.seen);
      op.before_strict = std::move(before.strict);
      op.before_fresh = std::move(before.fresh);
      break;
    }
    case Work::cp_async:
      member(l.copies.queue.agent, l.copies.queue.issued);
      p.queuing |= 1u << lane;
      break;
    case Work::mma:
    case Work::tensor_copy:
      if (l.pipe == nobody) {
        l.pipe = parties_.new_tensor_agent();
        parties_.new_tensor_agent();  // issue_of(l.pipe)
      }
      member(l.pipe, l.issued);
      op.pipe = op.agent;
      parties_.learn(p, 1u << lane, issue_of(op.pipe), op.done);
      break;
    case Work::tensor_ld: member(p.ld, p.lds); break;
    case Work::tensor_st: member(p.st, p.sts); break;
    case Work::wgmma: member(parties_.leader().wgmma, parties_.leader().wgmmas); break;
    case Work::commit: handed_[which] = committed(lane); break;
    case Work::copy_arrive: handed_[which] = copied(lane); break;
  }
  issued_.push_back(std::move(op));
}

void Operations::join_bulk_group(Operation op, uint32_t lanes) {
  Party& p = parties_.me();
  Issued& o = issued_[size_t(op)];
  Lane& l = p.lanes[o.lane];
  Queue &writes = l.bulk.queue, &reads = l.bulk_reads;
  if (writes.agent == nobody)
    writes.agent = parties_.new_agent(), reads.agent = parties_.new_agent();
  p.queuing |= 1u << o.lane;
  o.agent = writes.agent;
  o.read_agent = reads.agent;
  o.done = o.read_done = reads.issued = ++writes.issued;
  o.one_with = lanes;
}

void Operations::commit_group(Work work, uint32_t lane) {
  Lane& l = parties_.me().lanes[lane];
  Groups& g = work == Work::cp_async ? l.copies : l.bulk;
  g.ends.push_back(g.queue.issued);
}

void Operations::wait_group(Work work, uint32_t lane, uint32_t allowed, bool only_reads) {
  Lane& l = parties_.me().lanes[lane];
  const bool bulk = work != Work::cp_async;
  Groups& g = bulk ? l.bulk : l.copies;
  if (g.ends.size() <= allowed) return;
  const uint32_t end = g.ends[g.ends.size() - 1 - allowed];
  if (bulk) l.bulk_reads.done = std::max(l.bulk_reads.done, end);
  if (!bulk || !only_reads) g.queue.done = std::max(g.queue.done, end);
}

void Operations::wait_all(uint32_t lane) {
  Queue& copies = parties_.me().lanes[lane].copies.queue;
  copies.done = copies.issued;
}

void Operations::wait_wgmma(uint32_t end) {
  parties_.learn(parties_.me(), now_.active(), parties_.leader().wgmma, end);
}

// What a commit tells: the thread's cp and mma are complete (which implies
// fence::before_thread_sync), and so is what they had to wait for. A commit tells nothing of the
// thread's ordinary accesses since its last release.
Knowledge Operations::committed(uint32_t lane) {
  Knowledge handed;
  Party& p = parties_.me();
  const Lane& l = p.lanes[lane];
  if (l.pipe == nobody) return handed;
  const Knowledge k = parties_.known(p, 1u << lane);
  handed.seen = k.seen;
  handed.strict = k.strict;
  handed.fresh = k.fresh;
  handed.tensor = p.all.tensor;
  for (Clock* clock : {&handed.seen, &handed.strict})
    clock->raise_lane(parties_.number(p), lane, p.time - 1);
  for (Clock* clock : {&handed.seen, &handed.strict, &handed.tensor})
    clock->raise(l.pipe, l.issued);
  return handed;
}

Knowledge Operations::copied(uint32_t lane) {
  Knowledge handed;
  const Queue& copies = parties_.me().lanes[lane].copies.queue;
  if (copies.agent == nobody) return handed;
  handed.seen.raise(copies.agent, copies.issued);
  handed.strict.raise(copies.agent, copies.issued);
  return handed;
}

bool Operations::completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock,
                           bool read) const {
  const bool reads = read && op.read_agent != nobody;
  const uint32_t agent = reads ? op.read_agent : op.agent, done = reads ? op.read_done : op.done;
  if (agent == nobody) return false;
  if ((v.party.all.*clock)[agent] >= done) return true;
  if (v.own && (v.own->*clock)[agent] >= done) return true;
  return op.warp == v.warp && op.lane == v.lane && has_waited(v.party, op.lane, agent, done);
}

bool Operations::has_waited(const Party& p, uint32_t lane, uint32_t agent, uint32_t done) {
  bool waited = false;
  if (lane != every_lane)
    p.lanes[lane].queues([&](const Queue& q) { waited |= q.agent == agent && q.done >= done; });
  return waited;
}

// Whether any lane of the warp knows the operation to be complete.
bool Operations::lane_completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock,
                                bool read) const {
  Viewer other = v;
  for (other.lane = 0; other.lane < every_lane; ++other.lane) {
    other.own = v.party.own[other.lane].get();
    if (completed(op, other, clock, read)) return true;
  }
  return false;
}

// cp and mma are pipelined with another thread's mma, too (9.7.16.6.4.3).
bool Operations::issued_before(const Issued& op, const Viewer& v) const {
  if (op.pipe == nobody || completed(op, v, &Knowledge::seen, false)) return false;
  const uint32_t issue = issue_of(op.pipe);
  return v.party.all.seen[issue] >= op.done || (v.own && v.own->seen[issue] >= op.done);
}

void Operations::check_exit(const Cta& cta) {
  Clock to_all_lanes;  // of some warp
  for (const Party& p : parties_.all()) to_all_lanes.join(p.all.seen);
  const auto waited = [&](const Landing& l) {
    const Issued& op = issued(l.op);
    const bool reads = l.read && op.read_agent != nobody;
    const uint32_t agent = reads ? op.read_agent : op.agent, done = reads ? op.read_done : op.done;
    if (agent != nobody && to_all_lanes[agent] >= done) return true;
    const auto knows = [&](const Party& p) {
      const Viewer v{p, nullptr, parties_.number(p), 0, 0};
      return lane_completed(op, v, &Knowledge::seen, l.read);
    };
    return knows(parties_.of(op.warp)) ||
           std::any_of(parties_.all().begin(), parties_.all().end(), knows);
  };
  for (const Landing& l : landings_[cta.rank]) {
    if (!waited(l)) report_exit(cta, l);
  }
}

// Whether the CTA has handed a store of its own to a bulk group.
bool Operations::in_a_group(const Cta& cta, const Issued& op) const {
  if (op.read_agent == nobody || op.warp / now_.warps != cta.rank) return false;
  const Groups& g = parties_.of(op.warp).lanes[op.lane].bulk;
  return !g.ends.empty() && g.ends.back() >= op.done;
}

// Epilogues of published kernels end right after the commit of their last stores. The manual wants
// a wait, but GPUs have run such kernels correctly.
void Operations::report_exit(const Cta& cta, const Landing& l) const {
  const Issued& op = issued(l.op);
  const ptx::Instr& copy = now_.cluster.launch.function->code[op.pc];
  const bool formal = l.read && in_a_group(cta, op);
  const std::string text =
      format("the CTA ends while a copy %s its shared memory at 0x%x is not known to %s: %s",
             l.read ? "from" : "into", l.address, l.read ? "have read it" : "be complete",
             l.read ? "cp.async.bulk.wait_group.read, or the wait for its mbarrier, comes first"
                    : "wait for its mbarrier first") +
      "\n  copy: " + report::place(now_.cluster, copy, formal ? Severity::formal : Severity::error);
  if (!formal) throw Fault(FaultKind::ordering, text);
  const std::string during = format("at the end of the CTA of rank %u", cta.rank);
  report::formal(report::Rule::copy_at_end, text, now_.cluster, during.c_str(), copy.pos.line,
                 cta.rank);
}

Viewer Operations::viewer(uint32_t lane) const {
  const uint32_t self = now_.self();
  const Party& p = parties_.of(self);
  return {p, lane == every_lane ? nullptr : p.own[lane].get(), self, lane, now_.active()};
}

Viewer Operations::viewer(Operation op) const {
  Viewer v = viewer(uint32_t(issued(op).lane));
  v.issued = &issued(op);
  v.operation = op;
  return v;
}

}  // namespace emu::order
