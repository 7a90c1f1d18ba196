// SPDX-License-Identifier: MIT
// See policy.h.
#include "tools/emulator/machine/policy.h"

#include "tools/emulator/machine/machine.h"

namespace emu {

namespace {
constexpr uint64_t longest_quantum = 32;
// One turn in so many is followed by a rest, of up to 2^(rest_sizes - 1) instructions of the
// others: what a warp does next to a missing barrier must be able to come late. Quanta alone keep
// the warps within a few dozen instructions of each other.
constexpr uint64_t turns_per_rest = 8, rest_sizes = 13;
}  // namespace

Policy::Policy(uint64_t seed) : random_(seed), late_(settings().late) {}

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t Policy::draw() {
  uint64_t z = random_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

uint64_t Policy::first(uint64_t warps) { return draw() % warps; }

uint64_t Policy::quantum() { return 1 + draw() % longest_quantum; }

uint64_t Policy::rest() { return draw() % turns_per_rest == 0 ? 1ull << draw() % rest_sizes : 0; }

bool Policy::is_late(const Warp& warp) const { return late_.holds(warp.cta.rank, warp.index); }

}  // namespace emu
