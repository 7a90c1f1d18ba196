// SPDX-License-Identifier: MIT
// Runs a grid: host threads take clusters in order and run each to its end.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include "../settings.h"
#include "../trace/chrome_trace.h"
#include "report.h"
#include "scheduler.h"

namespace emu {

namespace {

constexpr uint64_t slice = 1 << 14;  // instructions between looks at the other clusters
// A cluster that runs longer may be waiting for another CTA through global memory: from then on its
// host thread runs further clusters beside it, as an SM would.
constexpr uint64_t patience = 1 << 18;

uint64_t mix(uint64_t seed, const Dim3& id) {
  uint64_t z = seed ^ (id.x + 0x9E3779B97F4A7C15 * (id.y + 0x9E3779B97F4A7C15 * (id.z + 1ull)));
  z = (z ^ z >> 33) * 0xFF51AFD7ED558CCD;
  return z ^ z >> 33;
}

class GridRun {
 public:
  explicit GridRun(const Launch& launch) : launch_(launch), supply_(launch) {}
  Counters run();

 private:
  void work();
  void work_through(std::deque<std::unique_ptr<Scheduler>>& resident);
  bool run_slice(Scheduler& s);
  void write_trace();
  bool admit(std::deque<std::unique_ptr<Scheduler>>& resident);

  const Launch& launch_;
  Supply supply_;
  size_t most_resident_ = 1;
  std::atomic<bool> stop_ = false;
  std::mutex lock_;           // of what follows
  std::exception_ptr error_;  // the first
  Counters counters_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
};

bool GridRun::admit(std::deque<std::unique_ptr<Scheduler>>& resident) {
  if (resident.size() >= most_resident_) return false;
  for (const auto& s : resident)
    if (s->executed() < patience) return false;
  std::optional<Dim3> id = supply_.take();
  if (!id) return false;
  resident.push_front(
      std::make_unique<Scheduler>(launch_, *id, mix(settings().seed, *id), &supply_));
  Cluster& cluster = resident.front()->cluster();
  if (auto timeline = Timeline::of(cluster)) {
    cluster.trace = timeline.get();
    std::lock_guard guard(lock_);
    timelines_.push_back(std::move(timeline));
  }
  return true;
}

bool GridRun::run_slice(Scheduler& s) {
  try {
    return s.run(slice);
  } catch (const Fault& fault) {
    if (Timeline* trace = s.cluster().trace) trace->close(fault.text);
    throw;
  }
}

// A launch that faulted has one too, up to the fault.
void GridRun::write_trace() {
  if (settings().trace.empty()) return;
  for (const auto& timeline : timelines_) timeline->close(timeline->fault());
  std::sort(timelines_.begin(), timelines_.end(), [](const auto& a, const auto& b) {
    const Dim3 x = a->block(0), y = b->block(0);
    return std::tie(x.z, x.y, x.x) < std::tie(y.z, y.y, y.x);
  });
  std::string error;
  if (!write_chrome_trace(settings().trace, launch_, timelines_, &error))
    fprintf(stderr, "emulator: %s\n", error.c_str());
}

void GridRun::work_through(std::deque<std::unique_ptr<Scheduler>>& resident) {
  while (!stop_) {
    admit(resident);
    if (resident.empty()) return;
    std::unique_ptr<Scheduler> s = std::move(resident.front());
    resident.pop_front();
    if (!run_slice(*s)) {
      resident.push_back(std::move(s));
      continue;
    }
    std::lock_guard guard(lock_);
    counters_.add(s->counters());
  }
}

// A Fault, or too little memory for a CTA: whatever it is, it has to leave on the caller's thread.
void GridRun::work() {
  try {
    std::deque<std::unique_ptr<Scheduler>> resident;
    work_through(resident);
  } catch (...) {
    std::lock_guard guard(lock_);
    if (!error_) error_ = std::current_exception();
    stop_ = true;
  }
}

Counters GridRun::run() {
  Dim3 n = supply_.clusters();
  uint64_t clusters = uint64_t(n.x) * n.y * n.z;
  uint64_t threads = settings().workers ? settings().workers : std::thread::hardware_concurrency();
  threads = std::clamp<uint64_t>(threads, 1, std::max<uint64_t>(clusters, 1));
  // As many CTAs as the device has SMs can rely on running together.
  uint64_t per_thread =
      uint64_t(launch_.cluster.x) * launch_.cluster.y * launch_.cluster.z * threads;
  most_resident_ = std::max<size_t>(1, (launch_.sm_count + per_thread - 1) / per_thread);
  std::vector<std::thread> helpers;
  helpers.reserve(threads);
  try {
    for (uint64_t i = 1; i < threads; ++i) helpers.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The host has no more threads: those that started do the work.
  }
  work();
  for (std::thread& t : helpers) t.join();
  write_trace();
  if (error_) std::rethrow_exception(error_);
  return counters_;
}

// What the driver has checked already, checked again where it would divide by zero or overrun.
void check(const Launch& l) {
  uint64_t threads = uint64_t(l.block.x) * l.block.y * l.block.z;
  uint64_t cluster = uint64_t(l.cluster.x) * l.cluster.y * l.cluster.z;
  auto refuse = [](std::string text) { throw Fault(FaultKind::illegal_instruction, text); };
  if (threads == 0 || threads > 1024) refuse("a block has 1 to 1024 threads");
  if (cluster == 0 || cluster > 16) refuse("a cluster has 1 to 16 CTAs");
  if (l.grid.x % l.cluster.x || l.grid.y % l.cluster.y || l.grid.z % l.cluster.z)
    refuse("the grid is not a whole number of clusters");
  if (Cluster::shared_bytes(l) > Cluster::max_shared_bytes)
    refuse(format("%u bytes of shared memory; a CTA can have %u", Cluster::shared_bytes(l),
                  Cluster::max_shared_bytes));
  if (l.params.size() < l.function->param_bytes) refuse("the parameter block is too short");
}

}  // namespace

Counters run_grid(const Launch& launch) {
  check(launch);
  Findings findings;
  GlobalOrder global_order;
  Launch observed = launch;
  if (!observed.findings) observed.findings = &findings;
  observed.global_order = &global_order;
  Counters counters = GridRun(observed).run();
  counters.hazards = observed.findings->count(Severity::error);
  counters.formal_hazards = observed.findings->count(Severity::formal);
  return counters;
}

}  // namespace emu
