// SPDX-License-Identifier: MIT
// See policy.h.
#include "tools/emulator/machine/policy.h"

#include "tools/emulator/machine/machine.h"

namespace emu {

namespace {
constexpr uint64_t longest_quantum = 32;
// One turn in so many is followed by a rest, of up to 2^(rest_sizes - 1) instructions of the
// others: where a barrier is missing, a warp must be able to come late. Quanta alone keep the warps
// within a few dozen instructions of each other.
constexpr uint64_t turns_per_rest = 8, rest_sizes = 13;
// EMU_LATE=seed: a role is late for a number of turns, up to 2^(role_sizes - 1), so some roles are
// late once and others all the time. A turn counts if the role has it because no other warp can
// run, or if another warp has it while the role is blocked: to be blocked is not to be late.
constexpr uint64_t role_sizes = 11;
}  // namespace

Policy::Policy(uint64_t seed, uint32_t ctas, uint32_t warps)
    : ctas_(ctas), warps_(warps), random_(seed), roles_(~seed), late_(settings().late) {
  next_role();
}

// A role is a warp or four neighbours, of one CTA of the cluster or of all.
bool Policy::next_role() {
  if (!late_.by_seed) return false;
  const uint32_t size = warps_ > 4 && roles_.draw() % 2 ? 4 : 1;
  const bool alone = warps_ == 1, of_all_ctas = !alone && roles_.draw() % 2;
  late_ = Late{};
  late_.by_seed = true;
  if (alone && ctas_ == 1) return false;
  late_.first = uint32_t(roles_.draw() % warps_) / size * size;
  late_.last = late_.first + size - 1;
  if (!of_all_ctas) late_.rank = uint32_t(roles_.draw() % ctas_);
  times_left_ = 1ull << roles_.draw() % role_sizes;
  return true;
}

bool Policy::is_over() { return late_.by_seed && --times_left_ == 0; }

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t Policy::Random::draw() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

uint64_t Policy::first(uint64_t warps) { return random_.draw() % warps; }

uint64_t Policy::quantum() { return 1 + random_.draw() % longest_quantum; }

uint64_t Policy::rest() {
  return random_.draw() % turns_per_rest == 0 ? 1ull << random_.draw() % rest_sizes : 0;
}

bool Policy::is_late(const Warp& warp) const { return late_.holds(warp.cta.rank, warp.index); }

}  // namespace emu
