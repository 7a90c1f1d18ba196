// SPDX-License-Identifier: MIT
// The mbarriers of one CTA: phases, pending arrivals and transaction bytes.
//
// The object in shared memory is opaque on hardware, so its state lives here, keyed by the
// CTA-relative shared address; SharedMemory marks the 8 bytes so that plain accesses are faults.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace emu {

// The instruction that acts on a barrier, itself or by asynchronous work that it issued.
struct Actor {
  uint32_t rank = 0, warp = 0, pc = 0;
  auto operator<=>(const Actor&) const = default;
};

class MbarrierTable {
 public:
  static constexpr uint32_t max_count = (1u << 20) - 1;  // PTX ISA, mbarrier: arrival count
  static constexpr int64_t max_tx = (1 << 20) - 1;       // and tx-count, either sign

  struct State {
    uint32_t count = 0;    // arrivals that a phase expects
    uint32_t pending = 0;  // arrivals that the current phase still lacks
    int64_t tx = 0;        // bytes expected minus bytes completed, in the current phase
    uint64_t phase = 0;    // completed phases; its low bit is the current phase's parity
    struct Arrivals {
      uint64_t times = 0, last_phase = 0;
    };
    std::map<Actor, Arrivals> arrivers = {};  // who arrived or brought bytes
    void note(const Actor* who) {
      if (who) arrivers[*who] = {arrivers[*who].times + 1, phase};
    }
  };

  // The barriers of the CTA of that rank. `actor` points to a variable that always holds the
  // current actor; nullptr: arrivals are not attributed to anyone.
  explicit MbarrierTable(uint32_t rank = 0, const Actor* actor = nullptr)
      : rank_(rank), actor_(actor) {}

  // All throw Fault barrier_misuse when the barrier's contract is broken.
  void init(uint32_t address, uint32_t count);
  void inval(uint32_t address);
  // Returns the opaque state of the phase that the arrival belongs to.
  uint64_t arrive(uint32_t address, uint32_t arrivals = 1);
  uint64_t arrive_drop(uint32_t address, uint32_t arrivals = 1);
  uint64_t arrive_expect_tx(uint32_t address, uint32_t bytes);
  void expect_tx(uint32_t address, uint32_t bytes);
  void complete_tx(uint32_t address, uint32_t bytes);
  void add_pending(uint32_t address);  // cp.async.mbarrier.arrive without .noinc

  // Has the phase of this parity completed? Only the immediately preceding phase can be asked for,
  // so this is "the current phase has the other parity": a fresh barrier answers true for parity 1.
  // Only bit 0 of `parity` is used.
  bool test_parity(uint32_t address, uint32_t parity) const;
  // The same for a state that arrive returned. A state more than one phase behind is a Fault.
  bool test_state(uint32_t address, uint64_t state) const;
  static uint32_t pending_of(uint64_t state) { return uint32_t(state & max_count); }

  bool live(uint32_t address) const { return barriers_.count(address) != 0; }
  // Between two phases: nobody has arrived in the current one, and no bytes are outstanding.
  bool idle(uint32_t address) const;
  bool was_live(uint32_t address) const { return ended_.count(address) != 0; }  // before its inval
  const State& state(uint32_t address, const char* who) const;
  uint64_t inits() const { return inits_; }  // so far: of the table, not of one barrier

  template <class F>
  void each(F f) const {  // f(address, state)
    for (const auto& [address, state] : barriers_) f(address, state);
  }

  std::string describe() const;  // every barrier: phase, pending, tx, count; for deadlock reports
  std::string describe(uint32_t address) const;
  // At CTA exit: the barriers whose bytes were announced and never came, or came unannounced. Empty
  // = none.
  std::string outstanding() const;

 private:
  int64_t place_of(uint32_t address) const { return address | int64_t(rank_) << 24; }
  State& at(uint32_t address, const char* who);
  void settle(State& s);  // completes the phase when nothing is outstanding
  void take_arrivals(uint32_t address, State& s, uint32_t arrivals, const char* who);
  void add_tx(uint32_t address, State& s, int64_t bytes, const char* who);

  const uint32_t rank_;
  const Actor* const actor_;
  std::map<uint32_t, State> barriers_;
  std::set<uint32_t> ended_;  // by mbarrier.inval, and none was initialised there since
  uint64_t inits_ = 0;
};

}  // namespace emu
