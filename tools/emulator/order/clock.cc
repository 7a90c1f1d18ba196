// SPDX-License-Identifier: MIT
// See clock.h.
#include "tools/emulator/order/clock.h"

namespace emu {

namespace {
constexpr size_t few = 4;
}  // namespace

void Clock::raise_lane(uint32_t warp, uint32_t lane, uint32_t time) {
  const uint32_t thread = 32 * warp + lane;
  const auto at = std::lower_bound(lanes_.begin(), lanes_.end(), thread,
                                   [](const LaneTime& l, uint32_t t) { return l.thread < t; });
  if (at != lanes_.end() && at->thread == thread)
    at->time = std::max(at->time, time);
  else
    lanes_.insert(at, {thread, time});
}

// An entry for one lane is not kept if that for the whole warp covers it. Mostly nothing is new, as
// where a flag is polled. Where much is new, the result is built in a scratch vector and swapped
// with lanes_. The scratch keeps the old memory, so nothing is allocated once it is large enough.
void Clock::join_lanes(const Clock& other) {
  auto mine = lanes_.cbegin();
  const auto is_known = [&](const LaneTime& l) {
    if (l.time <= (*this)[l.thread / 32]) return true;
    while (mine != lanes_.cend() && mine->thread < l.thread) ++mine;
    return mine != lanes_.cend() && mine->thread == l.thread && mine->time >= l.time;
  };
  // A release by one lane brings one new entry. So a few new entries are inserted one by one.
  const LaneTime* news[few];
  size_t n = 0;
  for (const LaneTime& l : other.lanes_) {
    if (is_known(l)) continue;
    if (n < few) news[n] = &l;
    if (++n > few) break;
  }
  if (n == 0) return;
  const auto is_of_all = [&](const LaneTime& l) { return l.time <= (*this)[l.thread / 32]; };
  if (n <= few) {
    if (lanes_.size() + n > lanes_.capacity()) std::erase_if(lanes_, is_of_all);
    for (size_t i = 0; i < n; ++i)
      raise_lane(news[i]->thread / 32, news[i]->thread % 32, news[i]->time);
    return;
  }
  thread_local std::vector<LaneTime> both;
  both.clear();
  const auto add = [&](const LaneTime& l) {
    if (!is_of_all(l)) both.push_back(l);
  };
  auto a = lanes_.cbegin(), b = other.lanes_.cbegin();
  while (a != lanes_.cend() || b != other.lanes_.cend()) {
    if (b == other.lanes_.cend() || (a != lanes_.cend() && a->thread < b->thread))
      add(*a++);
    else if (a == lanes_.cend() || b->thread < a->thread)
      add(*b++);
    else
      add({a->thread, std::max((a++)->time, (b++)->time)});
  }
  lanes_.swap(both);
}

bool Clock::reaches_lanes(uint32_t warp, uint32_t lanes, uint32_t time) const {
  bool any = false;
  for (const LaneTime& l : lanes_) {
    if (l.thread / 32 != warp || l.time < time) continue;
    any = true;
    lanes &= ~(1u << l.thread % 32);
  }
  return any && !lanes;
}

void join_seen(Knowledge& to, const Knowledge& from) {
  to.seen.join(from.seen);
  to.fenced.join(from.fenced);
  to.fenced_global.join(from.fenced_global);
  join(to.mapped, from.mapped);
  to.relaxed.join(from.relaxed);
  to.fresh.join(from.fresh);
  to.inits.join(from.inits);
  to.flushed.join(from.flushed);
  to.loaded.join(from.loaded);
  for (const auto& [cluster, far] : from.others) {
    Far& f = to.others[cluster];
    f.seen.join(far.seen);
    f.fenced.join(far.fenced);
    f.flushed.join(far.flushed);
    f.loaded.join(far.loaded);
    f.updated.join(far.updated);
    f.updates.join(far.updates);
    join(f.mapped, far.mapped);
  }
}

void join_acquired(Knowledge& to, const Knowledge& from) {
  join_seen(to, from);
  to.strict.join(from.strict);
  for (const auto& [cluster, far] : from.others) to.others[cluster].strict.join(far.strict);
}

}  // namespace emu
