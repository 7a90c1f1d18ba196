// SPDX-License-Identifier: MIT
// See mbarrier.h. Rules: PTX ISA 9.7.13.15 (mbarrier), measured corner cases on Hopper.
#include "tools/emulator/hardware/mbarrier.h"

#include "tools/emulator/base/fault.h"

namespace emu {

MbarrierTable::State& MbarrierTable::at(uint32_t address, const char* who) {
  return const_cast<State&>(state(address, who));
}

const MbarrierTable::State& MbarrierTable::state(uint32_t address, const char* who) const {
  auto it = barriers_.find(address);
  if (it == barriers_.end())
    throw Fault(
        FaultKind::barrier_misuse,
        format("%s on shared address 0x%x, where no mbarrier was initialised", who, address),
        place_of(address));
  return it->second;
}

void MbarrierTable::init(uint32_t address, uint32_t count) {
  if (address % 8)
    throw Fault(FaultKind::misaligned_address,
                format("mbarrier.init at 0x%x: an mbarrier is 8-byte aligned", address),
                place_of(address));
  if (count == 0 || count > max_count)
    throw Fault(FaultKind::barrier_misuse,
                format("mbarrier.init at 0x%x with count %u: a count is 1 to %u", address, count,
                       max_count),
                place_of(address));
  if (live(address))
    throw Fault(FaultKind::barrier_misuse,
                format("mbarrier.init at 0x%x, where one lives already without mbarrier.inval: %s",
                       address, describe(address).c_str()),
                place_of(address));
  barriers_[address] = State{count, count, 0, 0, {}};
  ended_.erase(address);
  ++inits_;
}

void MbarrierTable::inval(uint32_t address) {
  at(address, "mbarrier.inval");
  barriers_.erase(address);
  ended_.insert(address);
}

bool MbarrierTable::idle(uint32_t address) const {
  const auto it = barriers_.find(address);
  return it != barriers_.end() && it->second.pending == it->second.count && !it->second.tx;
}

// A state is phase << 20 | pending arrivals before this one, which is all that PTX lets a program
// ask.
uint64_t MbarrierTable::arrive(uint32_t address, uint32_t arrivals) {
  State& s = at(address, "mbarrier arrive");
  const uint64_t token = s.phase << 20 | s.pending;
  take_arrivals(address, s, arrivals, "arrive");
  settle(s);
  return token;
}

uint64_t MbarrierTable::arrive_drop(uint32_t address, uint32_t arrivals) {
  State& s = at(address, "mbarrier.arrive_drop");
  const uint64_t token = s.phase << 20 | s.pending;
  take_arrivals(address, s, arrivals, "arrive_drop");
  if (arrivals >= s.count)
    throw Fault(FaultKind::barrier_misuse,
                format("mbarrier.arrive_drop of %u at 0x%x leaves no expected arrivals (count %u)",
                       arrivals, address, s.count),
                place_of(address));
  s.count -= arrivals;
  settle(s);
  return token;
}

uint64_t MbarrierTable::arrive_expect_tx(uint32_t address, uint32_t bytes) {
  State& s = at(address, "mbarrier.arrive.expect_tx");
  add_tx(address, s, bytes,
         "expect_tx");  // first the bytes, so that the arrival cannot end the phase
  return arrive(address);
}

void MbarrierTable::expect_tx(uint32_t address, uint32_t bytes) {
  State& s = at(address, "mbarrier.expect_tx");
  add_tx(address, s, bytes, "expect_tx");
  settle(s);
}

void MbarrierTable::complete_tx(uint32_t address, uint32_t bytes) {
  State& s = at(address, "mbarrier complete_tx");
  add_tx(address, s, -int64_t(bytes), "complete_tx");
  s.note(actor_);
  settle(s);
}

void MbarrierTable::add_pending(uint32_t address) {
  State& s = at(address, "cp.async.mbarrier.arrive");
  if (s.pending == max_count)
    throw Fault(FaultKind::barrier_misuse,
                format("cp.async.mbarrier.arrive at 0x%x raises the pending count past %u", address,
                       max_count),
                place_of(address));
  ++s.pending;
}

void MbarrierTable::take_arrivals(uint32_t address, State& s, uint32_t arrivals, const char* who) {
  if (arrivals == 0 || arrivals > s.pending)
    throw Fault(FaultKind::barrier_misuse,
                format("%s of %u at mbarrier 0x%x: %s", who, arrivals, address,
                       arrivals ? "more arrivals than the phase has pending"
                                : "an arrival count is at least 1") +
                    " (" + describe(address) + ")",
                place_of(address));
  s.pending -= arrivals;
  s.note(actor_);
}

void MbarrierTable::add_tx(uint32_t address, State& s, int64_t bytes, const char* who) {
  const int64_t tx = s.tx + bytes;
  if (tx > max_tx || tx < -max_tx)
    throw Fault(FaultKind::barrier_misuse,
                format("%s of %lld bytes at mbarrier 0x%x makes the tx-count %lld; its range is "
                       "+-%lld",
                       who, (long long)(bytes < 0 ? -bytes : bytes), address, (long long)tx,
                       (long long)max_tx),
                place_of(address));
  s.tx = tx;
}

void MbarrierTable::settle(State& s) {
  if (s.pending || s.tx) return;
  ++s.phase;
  s.pending = s.count;
}

bool MbarrierTable::test_parity(uint32_t address, uint32_t parity) const {
  return (state(address, "mbarrier wait").phase & 1) != (parity & 1);
}

bool MbarrierTable::test_state(uint32_t address, uint64_t token) const {
  const State& s = state(address, "mbarrier wait");
  const uint64_t phase = token >> 20;
  if (phase > s.phase || phase + 1 < s.phase)
    throw Fault(FaultKind::barrier_misuse,
                format("mbarrier wait at 0x%x with the state of phase %llu while phase %llu is "
                       "current: only the current or the immediately preceding phase can be tested",
                       address, (unsigned long long)phase, (unsigned long long)s.phase),
                place_of(address));
  return s.phase != phase;
}

std::string MbarrierTable::describe(uint32_t address) const {
  auto it = barriers_.find(address);
  if (it == barriers_.end()) return format("0x%x: no mbarrier", address);
  const State& s = it->second;
  return format("mbarrier 0x%x: phase %llu (parity %u), pending %u of %u arrivals, tx %lld bytes",
                address, (unsigned long long)s.phase, unsigned(s.phase & 1), s.pending, s.count,
                (long long)s.tx);
}

std::string MbarrierTable::describe() const {
  std::string text;
  for (const auto& [address, s] : barriers_) text += describe(address) + "\n";
  return text;
}

std::string MbarrierTable::outstanding() const {
  std::string text;
  for (const auto& [address, s] : barriers_)
    if (s.tx) text += describe(address) + "\n";
  return text;
}

}  // namespace emu
