// SPDX-License-Identifier: MIT
// See timeline.h.
#include "tools/emulator/trace/timeline.h"

#include <algorithm>
#include <cstring>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/unit_glue.h"

namespace emu {

namespace {

constexpr TraceKind kinds[] = {
#define EMU_TRACE_KIND(opcode, category, unit, role) {opcode, category, unit, role},
#include "tools/emulator/trace/kinds.def"
#undef EMU_TRACE_KIND
};

// A row without a category hides what the rows after it would show.
const TraceKind* find_kind(const char* opcode) {
  for (const TraceKind& kind : kinds)
    if (!strncmp(opcode, kind.opcode, strlen(kind.opcode))) return *kind.category ? &kind : nullptr;
  return nullptr;
}

bool is(const TraceKind* kind, const char* category) { return !strcmp(kind->category, category); }

// ld, st and atomics are shown where they leave the CTA.
bool only_if_counted(const TraceKind* kind) { return is(kind, "store") || is(kind, "load"); }

void add_difference(std::map<std::string, uint64_t>& counted, const Counters& from,
                    const Counters& to) {
#define EMU_COUNTER(name, text) \
  if (to.name != from.name) counted[#name] += to.name - from.name;
#include "tools/emulator/machine/counters.def"
#undef EMU_COUNTER
  counted.erase("instructions");
}

uint64_t number_in_grid(const Launch& launch, const Dim3& block) {
  return block.x + launch.grid.x * (block.y + uint64_t(launch.grid.y) * block.z);
}

}  // namespace

std::shared_ptr<Timeline> Timeline::of(const Cluster& cluster) {
  if (settings().trace.empty()) return nullptr;
  std::shared_ptr<Timeline> made(new Timeline(cluster));
  bool any = false;
  for (const auto& cta : cluster.ctas) {
    made->blocks_.push_back(cta->id);
    made->shown_.push_back(settings().trace_blocks.holds(number_in_grid(cluster.launch, cta->id)));
    any = any || made->shown_.back();
  }
  return any ? made : nullptr;
}

const TraceKind* Timeline::kind_of(const ptx::Instr& in) {
  auto [it, added] = kinds_.try_emplace(in.opcode);
  if (added) it->second = find_kind(in.opcode);
  return it->second;
}

std::map<Timeline::Barrier, uint64_t> Timeline::phases() const {
  std::map<Barrier, uint64_t> all;
  for (const auto& cta : cluster_.ctas)
    cta->mbarriers.each([&](uint32_t address, const auto& state) {
      all[{cta->rank, address}] = state.phase;
    });
  return all;
}

void Timeline::note_ended_phases(size_t span) {
  for (const auto& [barrier, phase] : phases()) {
    const auto old = phases_.find(barrier);
    if (old == phases_.end() || old->second == phase) continue;
    enders_[barrier] = {old->second, span};
    std::string& text = spans_[span].barrier;
    text += format("%s0x%x phase %llu", text.empty() ? "ends " : ", ", barrier.second,
                   (unsigned long long)old->second);
  }
}

TraceSpan Timeline::span_of(const Warp& warp, const ptx::Instr& in, uint32_t active) const {
  TraceSpan s;
  s.begin = now_;
  s.end = now_ + 1;
  s.kind = kind_;
  s.in = &in;
  s.rank = warp.cta.rank;
  s.warp = warp.index;
  s.lanes = active;
  return s;
}

void Timeline::before(const Warp& warp, const ptx::Instr& in, uint32_t, uint64_t now) {
  now_ = now;
  kind_ = shown_[warp.cta.rank] ? kind_of(in) : nullptr;
  if (!kind_) return;
  counters_ = warp.cta.counters;
  issued_from_ = spans_.size();
  if (is(kind_, "barrier")) phases_ = phases();
}

void Timeline::after(const Warp& warp, const ptx::Instr& in, uint32_t active, ptx::Step step) {
  if (!kind_ || !active) return;
  const uint32_t pc = uint32_t(&in - cluster_.launch.function->code.data());
  const Waiter waiter{&warp, pc, active};
  auto wait = waits_.find(waiter);
  if (step == ptx::Step::blocked) {
    if (wait == waits_.end()) wait = waits_.emplace(waiter, span_of(warp, in, active)).first;
    ++wait->second.tries;
    add_difference(wait->second.counted, counters_, warp.cta.counters);
    return;
  }
  TraceSpan span = span_of(warp, in, active);
  if (wait != waits_.end()) {
    span.begin = wait->second.begin;
    span.tries = wait->second.tries;
    span.counted = std::move(wait->second.counted);
    waits_.erase(wait);
  }
  add_difference(span.counted, counters_, warp.cta.counters);
  if (only_if_counted(kind_) && span.counted.empty()) return;
  for (size_t i = issued_from_; i < spans_.size(); ++i) spans_[i].counted = span.counted;
  if (is(kind_, "wait")) note_barrier(span, warp);
  spans_.push_back(std::move(span));
  if (is(kind_, "barrier")) note_ended_phases(spans_.size() - 1);
}

// For mbarrier waits: what they asked for, and who ended that phase.
void Timeline::note_barrier(TraceSpan& wait, const Warp& warp) const {
  if (strncmp(wait.in->opcode, "mbarrier.", 9)) return;
  const glue::Target t =
      glue::target(warp, *wait.in, wait.in->ops[1], uint32_t(std::countr_zero(wait.lanes)));
  const uint64_t phase = t.cta->mbarriers.state(t.address, wait.in->opcode).phase;
  wait.barrier = format("0x%x phase %llu", t.address, (unsigned long long)phase - (phase != 0));
  const auto ender = enders_.find({t.cta->rank, t.address});
  if (wait.tries && ender != enders_.end() && ender->second.phase + 1 == phase)
    wait.released_by = ender->second.span;
}

void Timeline::posted(size_t effect, const Warp& warp, const ptx::Instr& in) {
  effects_.resize(effect + 1, TraceSpan::no_span);
  if (!kind_ || !*kind_->unit) return;
  effects_[effect] = spans_.size();
  TraceSpan span = span_of(warp, in, 0);
  span.asynchronous = true;
  span.end = 0;  // open
  spans_.push_back(std::move(span));
}

void Timeline::completing(size_t) { phases_ = phases(); }

void Timeline::completed(size_t effect) {
  const size_t span = effects_[effect];
  if (span == TraceSpan::no_span) return;
  spans_[span].end = std::max(now_, spans_[span].begin + 1);
  note_ended_phases(span);
}

void Timeline::stopped(const std::string& fault) {
  fault_ = fault;
  for (auto& [waiter, span] : waits_) {
    span.end = now_ + 1;
    spans_.push_back(std::move(span));
  }
  waits_.clear();
  for (TraceSpan& span : spans_)
    if (span.end == 0) span.end = now_ + 1;
}

}  // namespace emu
