// SPDX-License-Identifier: MIT
// Runs one cluster on one host thread.
#include "tools/emulator/machine/scheduler.h"

#include <algorithm>
#include <utility>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/early_use.h"
#include "tools/emulator/machine/report.h"

namespace emu {

namespace {
// After so many instructions without an event a warp may be spinning on something that asynchronous
// work or a late warp will do. That must then happen although a warp can go on. Most warps that
// spin are known by Step::polled.
constexpr uint64_t spin_limit = 1 << 15, spin_limit_for_late = 1 << 18;
// How often blocked try_waits answer false before a standstill is called a deadlock: enough for
// code that waits a few times and then goes another way.
constexpr uint32_t expiry_rounds = 16;
constexpr uint64_t default_budget = 200'000'000;  // a spin loop reaches it in about 20 s
}  // namespace

Scheduler::Scheduler(const Launch& launch, Dim3 id, uint64_t seed, Supply* supply)
    : cluster_(std::make_unique<Cluster>(launch, id, seed)),
      code_(launch.function->code),
      policy_(seed, uint32_t(cluster_->ctas.size()), uint32_t(cluster_->ctas[0]->warps.size())),
      limit_(settings().max_instructions ? settings().max_instructions : default_budget) {
  cluster_->supply = supply;
  for (auto& cta : cluster_->ctas)
    for (auto& warp : cta->warps) live_.push_back({warp.get(), policy_.is_late(*warp)});
  if (!live_.empty()) next_ = policy_.first(live_.size());
}

Counters Scheduler::counters() const {
  Counters sum;
  for (const auto& cta : cluster_->ctas) sum.add(cta->counters);
  return sum;
}

Scheduler::State Scheduler::run(uint64_t instructions) {
  for (uint64_t until = executed_ + instructions; executed_ < until;) {
    if (live_.empty()) {
      end_cluster();
      return State::ended;
    }
    if (!turn() && nothing_runs()) return State::still;
    if (policy_.by_seed() && late_wait() && policy_.is_over()) choose_late();
    if (all_poll() && !others_go_on()) return State::polling;
    if (cluster_->progress != seen_progress_) {
      seen_progress_ = cluster_->progress;
      seen_at_ = executed_;
      expired_rounds_ = 0;
    } else if (executed_ - seen_at_ > spin_limit && !cluster_->async.empty()) {
      complete_work(true);
    } else if (executed_ - seen_at_ > spin_limit_for_late) {
      late_turn();
    }
  }
  return State::going;
}

// Lets a late warp run when the other warps cannot go on or only spin. Afterwards other warps may
// be the late ones.
bool Scheduler::late_turn() {
  if (!turn(Of::late)) return false;
  if (policy_.is_over()) choose_late();
  return true;
}

bool Scheduler::late_wait() const {
  return std::all_of(live_.begin(), live_.end(),
                     [&](const Entry& e) { return !e.late || is_still(e); });
}

// Passes over a role if all its warps have ended.
void Scheduler::choose_late() {
  constexpr int tries = 8;
  for (int i = 0; i < tries && policy_.next_role(); ++i) {
    bool any = false;
    for (Entry& entry : live_) any |= entry.late = policy_.is_late(*entry.warp);
    if (any) return;
  }
}

bool Scheduler::turn() { return (!cluster_->waits_expire && turn(Of::awake)) || turn(Of::in_time); }

bool Scheduler::turn(Of which) {
  for (size_t tried = 0; tried < live_.size(); ++tried) {
    if (next_ >= live_.size()) next_ = 0;
    Entry& entry = live_[next_];
    const bool rests = which == Of::awake && entry.rests_until > executed_;
    if (entry.late != (which == Of::late) || rests || is_still(entry)) {
      ++next_;
      continue;
    }
    const bool ran = turn_of(entry);
    if (const uint64_t rest = ran ? policy_.rest() : 0) entry.rests_until = executed_ + rest;
    entry.still_at = ran ? moves : cluster_->progress;
    if (!entry.warp->live())
      end_warp(*entry.warp);  // takes it out of live_, so next_ is the one after it
    else
      ++next_;
    if (ran) return true;
  }
  return false;
}

// While Cluster::progress stays the same, a blocked fragment can go on only by its own warp or by
// the measures against a standstill. So warps that wait are not looked at again and again.
bool Scheduler::is_still(const Entry& entry) const {
  return entry.still_at == cluster_->progress && !cluster_->waits_expire;
}

// Every path of every warp that can go on has had a turn since anything but a poll was executed.
bool Scheduler::all_poll() const {
  if (!polling_turns_) return false;
  size_t paths = 0;
  for (const Entry& entry : live_)
    if (!entry.late && !is_still(entry) && entry.rests_until <= executed_)
      paths += entry.warp->flow.fragments.size();
  return polling_turns_ >= paths;
}

// Lets go on what the polling warps may wait for: resting warps, else asynchronous work, else late
// warps. False: only another cluster can change anything.
bool Scheduler::others_go_on() {
  polling_turns_ = 0;
  if (wake_resting()) return true;
  if (!cluster_->async.empty()) return complete_work(true), true;
  return late_turn() && !polled_;
}

bool Scheduler::wake_resting() {
  bool any = false;
  for (Entry& entry : live_) {
    any |= entry.rests_until > executed_ && !is_still(entry);
    entry.rests_until = 0;
  }
  return any;
}

// The warp's fragments take turns too, so that lanes which spin let the others go on.
bool Scheduler::turn_of(Entry& entry) {
  Warp& warp = *entry.warp;
  auto& flow = warp.flow;
  for (size_t n = flow.fragments.size(), i = 0; i < n; ++i) {
    flow.current = (flow.current + 1) % flow.fragments.size();
    const uint64_t blocked = flow.here().blocked_at;
    if (blocked == Divergence::asleep) continue;
    if (blocked == cluster_->progress && !cluster_->waits_expire) continue;
    flow.here().blocked_at = Divergence::runnable;
    const uint64_t before = executed_;
    polled_ = false;
    execute(entry, policy_.quantum());
    polling_turns_ = polled_ ? polling_turns_ + 1 : 0;
    if (flow.has_parked()) flow.run_beside_parked(executed_ - before);
    return true;
  }
  return false;
}

// A late warp gives way as soon as another might be able to run, or will be when work is complete.
void Scheduler::execute(Entry& entry, uint64_t quantum) {
  const uint64_t before = cluster_->progress;
  while (quantum--) {
    if (!step(*entry.warp)) return;
    if (entry.late && (cluster_->progress != before || !cluster_->async.empty())) return;
    if (!cluster_->async.empty()) complete_work(false);
  }
}

bool Scheduler::step(Warp& warp) {
  auto& flow = warp.flow;
  if (!flow.settle()) return false;
  uint32_t pc = flow.here().pc, active = flow.here().mask;
  if (pc >= code_.size())
    throw report::located(
        Fault(FaultKind::illegal_instruction, "a warp runs past the last instruction"), warp,
        code_.back(), active);
  const ptx::Instr& in = code_[pc];
  ptx::Step step = ptx::Step::next;
  try {
    if (in.guard != ptx::no_register) active = warp.guarded(in, active);
    if (active && active != warp.live() && !warp.align(in, active)) step = ptx::Step::blocked;
    warp.executing = active;
    cluster_->actor = {warp.cta.rank, warp.index, pc};
    cluster_->now = {&warp, &in, active, uint16_t(cluster_->now.instance + 1)};
    cluster_->observers.each_follower([&](Observer& o) { o.before(warp, in, active, executed_); });
    if (active && step == ptx::Step::next && warp.has_work_in_registers())
      step = use_early(warp, in, active);
    if (active && step == ptx::Step::next) step = in.exec(warp, in, active);
    cluster_->observers.each_follower([&](Observer& o) { o.after(warp, in, active, step); });
    if (++warp.cta.counters.instructions > limit_)
      throw Fault(
          FaultKind::watchdog,
          format("the CTA has executed %llu warp instructions; EMU_MAX_INSTRUCTIONS allows more",
                 (unsigned long long)limit_));
  } catch (const Finding&) {
    throw;
  } catch (const Fault& fault) {
    if (fault.located) throw;
    throw report::located(fault, warp, in, active);
  }
  ++executed_;
  if (step == ptx::Step::next) {
    ++flow.here().pc;
  } else if (step == ptx::Step::polled) {
    ++flow.here().pc;
    polled_ = true;
    return false;
  } else if (step == ptx::Step::blocked) {
    flow.here().blocked_at = flow.here().aligned ? Divergence::asleep : cluster_->progress;
    flow.here().waiting = std::exchange(warp.waiting, nullptr);
    return false;
  } else {
    return flow.current < flow.fragments.size() && warp.live();
  }
  return true;
}

void Scheduler::complete_work(bool forced) {
  cluster_->observers.each_follower([&](Observer& o) { o.tick(executed_); });
  try {
    if (forced ? cluster_->async.complete_one() : cluster_->async.tick()) ++cluster_->progress;
  } catch (const Fault& fault) {
    if (fault.located) throw;
    throw report::located(fault, *cluster_, "in asynchronous work");
  }
}

// Every warp that is not late is blocked. Asynchronous work comes first, then the late warps; then
// lanes need not wait for siblings to reconverge; then PTX allows a suspended try_wait to return
// false when its time is up; what then still stands still waits for another cluster, or is a
// deadlock.
bool Scheduler::nothing_runs() {
  if (!cluster_->async.empty()) return complete_work(true), false;
  if (late_turn()) return false;
  bool unparked = false;
  for (Entry& entry : live_) {
    if (!entry.warp->flow.unpark(~0u)) continue;
    unparked = true;
    entry.still_at = moves;
  }
  if (unparked) return false;
  if (++expired_rounds_ > expiry_rounds) {
    expired_rounds_ = 0;
    return true;
  }
  cluster_->waits_expire = true;
  for (size_t n = live_.size(); n--;) turn(), turn(Of::late);
  cluster_->waits_expire = false;
  return false;
}

namespace {

// setmaxnreg is a warpgroup's: all its warps execute the same ones (PTX ISA 9.7.20.5).
void check_registers(const Cta& cta) {
  const auto changes = [](const Warp& warp) {
    std::vector<std::pair<bool, int64_t>> all;
    for (const ptx::Instr* in : warp.register_changes)
      all.emplace_back(in->has(ptx::Mod::inc), in->ops[0].imm);
    return all;
  };
  for (const auto& warp : cta.warps) {
    const Warp& first = *cta.warps[warp->index & ~3u];
    if (changes(*warp) == changes(first)) continue;
    const Warp& more =
        warp->register_changes.size() > first.register_changes.size() ? *warp : first;
    report::formal(report::Rule::setmaxnreg,
                   format("warps %u and %u of one warpgroup execute different setmaxnreg: all of "
                          "them execute the same",
                          first.index, warp->index),
                   more, *more.register_changes.back(), more.lanes);
  }
}

}  // namespace

void Scheduler::end_warp(Warp& warp) {
  const bool was_late = live_[next_].late;
  live_.erase(live_.begin() + ptrdiff_t(next_));
  if (was_late && std::none_of(live_.begin(), live_.end(), [](const Entry& e) { return e.late; }))
    choose_late();
  if (!warp.cta.ended()) return;
  check_registers(warp.cta);
  try {
    warp.cta.tensor_memory(Teller{}).check_exit();
    cluster_->observers.each([&](Observer& o) { o.cta_ended(warp.cta); });
  } catch (const Fault& fault) {
    throw report::located(fault, *cluster_,
                          format("at the end of the CTA of rank %u", warp.cta.rank).c_str());
  }
}

// Copies may land after the last thread's exit, as long as they fault nowhere. Bytes that were
// announced and never came do no harm any more.
void Scheduler::end_cluster() {
  while (!cluster_->async.empty()) complete_work(true);
  for (const auto& cta : cluster_->ctas) {
    std::string open = cta->mbarriers.outstanding();
    if (!open.empty())
      report::formal(report::Rule::open_bytes, open, *cluster_,
                     format("at the end of the CTA of rank %u", cta->rank).c_str(), 0, cta->rank);
  }
}

}  // namespace emu
