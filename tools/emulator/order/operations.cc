// SPDX-License-Identifier: MIT
// Asynchronous work: what it has seen, and who knows it to be complete. See hazards.h.
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/order/hazards.h"
#include "tools/emulator/order/viewer.h"

namespace emu {

// `lane`: who issues it, every_lane for what a warp does together.
void Hazards::begin(Operation which, Work work, uint32_t lane) {
  Party& p = me();
  Issued op{work, uint8_t(lane), uint16_t(number(p)), pc()};
  auto member = [&](uint32_t& agent, uint32_t& count) {
    if (agent == nobody) {
      agent = new_agent();
      if (work == Work::tensor_ld || work == Work::tensor_st) tensor_agents_.push_back(agent);
    }
    op.agent = agent;
    op.done = ++count;
  };
  Lane& l = p.lanes[lane % every_lane];
  switch (work) {
    case Work::copy:
    case Work::store_async: {
      Knowledge before = release(p, 1u << lane);
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
        l.pipe = new_agent();
        tensor_agents_.insert(tensor_agents_.end(), {l.pipe, new_agent()});
      }
      member(l.pipe, l.issued);
      op.pipe = op.agent;
      learn(p, 1u << lane, issue_of(op.pipe), op.done);
      break;
    case Work::tensor_ld: member(p.ld, p.lds); break;
    case Work::tensor_st: member(p.st, p.sts); break;
    case Work::wgmma: member(leader().wgmma, leader().wgmmas); break;
    case Work::commit: handed_[which] = committed(lane); break;
    case Work::copy_arrive: handed_[which] = copied(lane); break;
  }
  issued_.push_back(std::move(op));
}

void Hazards::join_bulk_group(Operation op, uint32_t lanes) {
  Party& p = me();
  Issued& o = issued_[size_t(op)];
  Lane& l = p.lanes[o.lane];
  Queue &writes = l.bulk.queue, &reads = l.bulk_reads;
  if (writes.agent == nobody) writes.agent = new_agent(), reads.agent = new_agent();
  p.queuing |= 1u << o.lane;
  o.agent = writes.agent;
  o.read_agent = reads.agent;
  o.done = o.read_done = reads.issued = ++writes.issued;
  o.one_with = lanes;
}

// Whoever waits for the bytes also learns what the issuer had learnt before it issued the copy.
void Hazards::complete_tx(Operation op, Cta& cta, uint32_t barrier, uint64_t phase) {
  Barrier* b = find(cta, barrier);
  if (!b) return;
  Issued& o = issued_[size_t(op)];
  o.agent = b->agent;
  o.done = uint32_t(phase + 1);
  for (size_t read : o.bulk_reads) global_.complete(read, o.agent, o.done);
  Knowledge& handed = phase_of(*b, phase);
  handed.seen.join(o.before);
  handed.fresh.join(o.before_fresh);
  handed.strict.join(o.before_strict);
}

void Hazards::commit_group(Work work, uint32_t lane) {
  Lane& l = me().lanes[lane];
  Groups& g = work == Work::cp_async ? l.copies : l.bulk;
  g.ends.push_back(g.queue.issued);
}

void Hazards::wait_group(Work work, uint32_t lane, uint32_t allowed, bool only_reads) {
  Lane& l = me().lanes[lane];
  const bool bulk = work != Work::cp_async;
  Groups& g = bulk ? l.bulk : l.copies;
  if (g.ends.size() <= allowed) return;
  const uint32_t end = g.ends[g.ends.size() - 1 - allowed];
  if (bulk) l.bulk_reads.done = std::max(l.bulk_reads.done, end);
  if (!bulk || !only_reads) g.queue.done = std::max(g.queue.done, end);
}

void Hazards::wait_all(uint32_t lane) {
  Queue& copies = me().lanes[lane].copies.queue;
  copies.done = copies.issued;
}

void Hazards::wait_tensor(Work work) {
  Party& p = me();
  const bool ld = work == Work::tensor_ld;
  const uint32_t agent = ld ? p.ld : p.st;
  learn(p, active_, agent, ld ? p.lds : p.sts);
  if (ld) p.lds_used = p.lds_waited = p.lds;
  if (agent != nobody) p.all.tensor.raise(agent, ld ? p.lds : p.sts);
}

// Hardware has waited for the registers, the manual knows nothing of it.
void Hazards::use_load() {
  Party& p = me();
  ++p.lds_used;
  if (whole(active_)) return p.all.seen.raise(p.ld, p.lds_used);
  for_lanes(active_, [&](uint32_t lane) { own(p, lane).seen.raise(p.ld, p.lds_used); });
}

void Hazards::wait_wgmma(uint32_t end) { learn(me(), active_, leader().wgmma, end); }

// Completion of the thread's cp and mma, which implies fence::before_thread_sync; and of what they
// had to wait for. Ordinary accesses of the thread since its last release are not in it.
Knowledge Hazards::committed(uint32_t lane) {
  Knowledge handed;
  Party& p = me();
  const Lane& l = p.lanes[lane];
  if (l.pipe == nobody) return handed;
  const Knowledge k = known(p, 1u << lane);
  handed.seen = k.seen;
  handed.strict = k.strict;
  handed.fresh = k.fresh;
  handed.tensor = p.all.tensor;
  for (Clock* clock : {&handed.seen, &handed.strict})
    clock->raise_lane(number(p), lane, p.time - 1);
  for (Clock* clock : {&handed.seen, &handed.strict, &handed.tensor})
    clock->raise(l.pipe, l.issued);
  return handed;
}

Knowledge Hazards::copied(uint32_t lane) {
  Knowledge handed;
  const Queue& copies = me().lanes[lane].copies.queue;
  if (copies.agent == nobody) return handed;
  handed.seen.raise(copies.agent, copies.issued);
  handed.strict.raise(copies.agent, copies.issued);
  return handed;
}

// ---- completion ----------------------------------------------------------------------------------

bool Hazards::completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock,
                        bool read) const {
  const bool reads = read && op.read_agent != nobody;
  const uint32_t agent = reads ? op.read_agent : op.agent, done = reads ? op.read_done : op.done;
  if (agent == nobody) return false;
  if ((v.party.all.*clock)[agent] >= done) return true;
  if (v.own && (v.own->*clock)[agent] >= done) return true;
  return op.warp == v.warp && op.lane == v.lane && has_waited(v.party, op.lane, agent, done);
}

bool Hazards::has_waited(const Party& p, uint32_t lane, uint32_t agent, uint32_t done) {
  bool waited = false;
  if (lane != every_lane)
    p.lanes[lane].queues([&](const Queue& q) { waited |= q.agent == agent && q.done >= done; });
  return waited;
}

// To any lane of the warp.
bool Hazards::lane_completed(const Issued& op, const Viewer& v, Clock Knowledge::*clock,
                             bool read) const {
  Viewer other = v;
  for (other.lane = 0; other.lane < every_lane; ++other.lane) {
    other.own = v.party.own[other.lane].get();
    if (completed(op, other, clock, read)) return true;
  }
  return false;
}

}  // namespace emu
