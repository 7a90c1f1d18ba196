// SPDX-License-Identifier: MIT
// Runs a grid: host threads take clusters in order and run each to its end.
#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/machine/scheduler.h"
#include "tools/emulator/machine/standstill.h"

namespace emu {

namespace {

constexpr uint64_t slice = 1 << 14;  // instructions between looks at the other clusters
// A cluster that runs longer, or does nothing but poll, may be waiting for another CTA through
// global memory: from then on its host thread runs further clusters beside it, as an SM would.
constexpr uint64_t patience = 1 << 18;

class GridRun {
 public:
  explicit GridRun(const Launch& launch)
      : launch_(launch), supply_(launch), threads_(host_threads()), standstill_(threads_) {}
  Counters run();

 private:
  uint64_t host_threads() const;
  void work();
  struct Resident {
    std::unique_ptr<Scheduler> scheduler;
    uint64_t still_since = going;  // Standstill::moves()
    bool polls = false;
    static constexpr uint64_t going = ~0ull;
  };
  using Residents = std::deque<Resident>;
  void work_through(Residents& resident);
  void run_slice(Residents& resident);
  void wait_for_others(const Residents& resident);
  bool admit(Residents& resident);
  bool may_start_another(const Residents& resident) const;

  const Launch& launch_;
  Supply supply_;
  const uint64_t threads_;
  Standstill standstill_;
  size_t most_resident_ = 1;
  std::atomic<bool> stop_ = false;
  std::mutex lock_;           // of what follows
  std::exception_ptr error_;  // the first
  Counters counters_;
};

// The CTAs of a cooperative grid are there for each other from the start.
bool GridRun::may_start_another(const Residents& resident) const {
  if (resident.size() >= most_resident_) return false;
  if (launch_.cooperative) return true;
  return std::all_of(resident.begin(), resident.end(), [](const Resident& r) {
    return r.still_since != Resident::going || r.polls || r.scheduler->executed() >= patience;
  });
}

bool GridRun::admit(Residents& resident) {
  if (!may_start_another(resident)) return false;
  std::optional<Dim3> id = supply_.take();
  if (!id) return false;
  resident.push_front(
      {std::make_unique<Scheduler>(launch_, *id, mix(settings().seed, *id), &supply_)});
  Cluster& cluster = resident.front().scheduler->cluster();
  for (GridObserver* observer : launch_.observers) cluster.observers.add(observer->watch(cluster));
  return true;
}

// Runs a slice of the first cluster. Afterwards this is the last one, or is gone if it has ended.
void GridRun::run_slice(Residents& resident) {
  Resident r = std::move(resident.front());
  resident.pop_front();
  const uint64_t moves = standstill_.moves();
  Scheduler::State state;
  try {
    state = r.scheduler->run(slice);
  } catch (const Fault& fault) {
    r.scheduler->cluster().observers.each([&](Observer& o) { o.stopped(fault.text); });
    throw;
  }
  r.still_since = state == Scheduler::State::still ? moves : Resident::going;
  r.polls = state == Scheduler::State::polling;
  if (state != Scheduler::State::still) standstill_.moved();
  if (state != Scheduler::State::ended) return resident.push_back(std::move(r));
  std::lock_guard guard(lock_);
  counters_.add(r.scheduler->counters());
}

// Every cluster of this thread stands still. Throws when no other can change that.
void GridRun::wait_for_others(const Residents& resident) {
  const auto number = [](const Resident& r) {
    const Dim3 id = r.scheduler->cluster().id;
    return std::tuple(id.z, id.y, id.x);
  };
  const auto first =
      std::min_element(resident.begin(), resident.end(),
                       [&](const auto& a, const auto& b) { return number(a) < number(b); });
  if (!standstill_.wait(first->still_since)) return;
  const Cluster& cluster = first->scheduler->cluster();
  const Fault fault = report::deadlock(cluster);
  cluster.observers.each([&](Observer& o) { o.stopped(fault.text); });
  throw fault;
}

void GridRun::work_through(Residents& resident) {
  while (!stop_) {
    while (admit(resident) && launch_.cooperative) {
    }
    if (resident.empty()) return;
    const uint64_t moves = standstill_.moves();
    const bool still = std::all_of(resident.begin(), resident.end(),
                                   [=](const Resident& r) { return r.still_since == moves; });
    if (still)
      wait_for_others(resident);
    else
      run_slice(resident);
  }
}

// Every exception, a Fault or too little memory for a CTA, is thrown again on the caller's thread.
void GridRun::work() {
  try {
    Residents resident;
    work_through(resident);
    standstill_.leave();
  } catch (...) {
    std::lock_guard guard(lock_);
    if (!error_) error_ = std::current_exception();
    stop_ = true;
    standstill_.stop();
  }
}

uint64_t GridRun::host_threads() const {
  const Dim3 n = supply_.clusters();
  const uint64_t clusters = uint64_t(n.x) * n.y * n.z, wanted = settings().workers;
  return std::clamp<uint64_t>(wanted ? wanted : std::thread::hardware_concurrency(), 1,
                              std::max<uint64_t>(clusters, 1));
}

Counters GridRun::run() {
  // A program may rely on one CTA per SM running at the same time, and on all CTAs of a cooperative
  // grid.
  uint64_t per_thread =
      uint64_t(launch_.cluster.x) * launch_.cluster.y * launch_.cluster.z * threads_;
  const Dim3 g = launch_.grid;
  const uint64_t together =
      launch_.cooperative ? uint64_t(g.x) * g.y * g.z : uint64_t(launch_.sm_count);
  most_resident_ = std::max<size_t>(1, (together + per_thread - 1) / per_thread);
  std::vector<std::thread> helpers;
  helpers.reserve(threads_);
  try {
    while (helpers.size() + 1 < threads_) helpers.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The host has no more threads: those that started do the work.
    for (uint64_t i = helpers.size() + 1; i < threads_; ++i) standstill_.leave();
  }
  work();
  for (std::thread& t : helpers) t.join();
  for (GridObserver* observer : launch_.observers) observer->grid_ended(launch_);
  if (error_) std::rethrow_exception(error_);
  return counters_;
}

// What the driver has checked already, checked again where it would divide by zero or overrun.
void check(const Launch& l) {
  uint64_t threads = uint64_t(l.block.x) * l.block.y * l.block.z;
  uint64_t cluster = uint64_t(l.cluster.x) * l.cluster.y * l.cluster.z;
  auto refuse = [](std::string text) { throw Fault(FaultKind::illegal_instruction, text); };
  if (threads == 0 || threads > 1024) refuse("a block has 1 to 1024 threads");
  const uint64_t preferred = uint64_t(l.preferred.x) * l.preferred.y * l.preferred.z;
  if (cluster == 0 || cluster > 16 || preferred == 0 || preferred > 16)
    refuse("a cluster has 1 to 16 CTAs");
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
  Launch observed = launch;
  if (!observed.findings) observed.findings = &findings;
  Counters counters = GridRun(observed).run();
  counters.hazards = observed.findings->count(Severity::error);
  counters.formal_hazards = observed.findings->count(Severity::formal);
  return counters;
}

}  // namespace emu
