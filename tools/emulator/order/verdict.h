// SPDX-License-Identifier: MIT
// Is an access ordered after one that is remembered? What is missing if not.
//
// Two accesses to the same bytes, one of them a write, that are not ordered are a finding, in
// whatever order they ran here. Rules: PTX ISA, memory consistency model (8), async proxy
// (9.7.9.25), mbarrier (9.7.13.15), tcgen05 (9.7.16.6).
#pragma once

#include "tools/emulator/order/operations.h"
#include "tools/emulator/order/reason.h"

namespace emu::order {

// One kind of order: its clock for work of this cluster, and its clock for work of another.
struct Order {
  Clock Knowledge::*here;
  Clock Far::*far;
  static constexpr Order seen() { return {&Knowledge::seen, &Far::seen}; }
  static constexpr Order relaxed() { return {&Knowledge::relaxed, &Far::seen}; }
  static constexpr Order fresh() { return {&Knowledge::fresh, &Far::seen}; }
  static constexpr Order flushed() { return {&Knowledge::flushed, &Far::flushed}; }
  static constexpr Order loaded() { return {&Knowledge::loaded, &Far::loaded}; }
  static constexpr Order updated() { return {&Knowledge::loaded, &Far::updated}; }
  static constexpr Order updates() { return {&Knowledge::updates, &Far::updates}; }
  static constexpr Order strict() { return {&Knowledge::strict, &Far::strict}; }
};

class Verdict {
 public:
  Verdict(const Now& now, const Parties& parties, const Operations& operations)
      : now_(now), parties_(parties), operations_(operations) {}

  Reason judge(const Access& old, const Viewer& v) const;
  // A quick test for ordinary accesses to shared memory by threads. True: they are ordered. False:
  // it is not decided, call judge().
  bool surely_ordered(const Access& old, const Viewer& v) const {
    if (old.async || v.issued || v.space != Space::shared || is_strong(old.use)) return false;
    if (is_strong(v.use)) return false;
    if (is_read(old.use) && is_read(v.use))
      return old.use != Use::constant_read && v.use != Use::constant_read;
    if (old.warp == v.warp && old.lanes == 1u << v.lane % 32) return v.lane != every_lane;
    const Knowledge& all = v.party.all;
    return old.warp != v.warp && all.seen[old.warp] >= old.time && all.strict[old.warp] >= old.time;
  }
  // judge() for an access to global memory by another cluster or by asynchronous work.
  Reason judge_far(const Access& old, const Viewer& v) const;
  // Judges two strong accesses.
  Reason judge_strong(const Access& old, const Access& a, const Viewer& v) const;
  bool reaches(const Access& old, const Viewer& v, const Order& order) const;
  bool mapped(const Access& old, const Viewer& v, uint64_t map) const;

 private:
  Reason judge_operation(const Access& old, const Viewer& v) const;
  Reason judge_lane(const Access& old, const Viewer& v) const;
  Reason judge_warps(const Access& old, const Viewer& v) const;
  bool reaches(const Knowledge& k, const Access& old, const Viewer& v, const Order& order,
               bool one = false) const;
  bool lane_reaches(const Access& old, const Viewer& v, const Order& order, bool one) const;
  bool stale(const Access& old, const Viewer& v) const;
  static Reason unordered(const Access& old, const Viewer& v);
  static bool same_value(const Access& old, const Viewer& v);
  Reason not_seen(const Access& old, const Viewer& v) const;
  Reason not_strict(const Access& old, const Viewer& v) const;
  Reason behind_proxy_fence(const Access& old, const Viewer& v) const;
  bool met_flag(const Access& old, const Viewer& v) const;
  bool in_one_cta(const Access& old, const Viewer& v) const;
  bool own_core_reads(const Access& old, const Viewer& v) const;
  bool fenced_elsewhere(const Access& old, const Viewer& v) const;
  bool leaves_out(const Access& old, const Access& a) const;
  bool spins(uint32_t pc) const;

  const Now& now_;
  const Parties& parties_;
  const Operations& operations_;
};

}  // namespace emu::order
