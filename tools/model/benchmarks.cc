// SPDX-License-Identifier: MIT
#include "tools/model/benchmarks.h"

#include <algorithm>

namespace model {
namespace {

// Enough that beginning and end do not count.
constexpr int64_t kRounds = 40;

// A CTA per SM whose ring is filled again and again, and nothing done with it. `rounds`: one slot,
// of all copies.
double fill_rate(const Machine& machine, bool rounds, int sharers, int copies, int box) {
  Machine m = machine;
  m.setup = m.copy_issue = m.map_fetch = m.skew = 0;
  Kernel k;
  k.tile_weights = k.tile_tokens = k.stage_k = 1;
  k.stages = rounds ? 1 : copies;
  k.weights = {double(box) * (rounds ? copies : 1), 0, rounds ? double(copies) : 1};
  k.latency_clocks = rounds ? m.round_spread * m.clock : 0;
  const int64_t groups = int64_t(m.sms) / sharers;
  const Shape shape{sharers, groups, rounds ? kRounds : kRounds * copies};
  const double bytes = double(groups) * sharers * kRounds * copies * box;
  return bytes / simulate(m, k, shape).us / 1e6;  // TB/s
}

void add_fills(const Machine& m, std::vector<Comparison>* all) {
  const auto add = [&](bool rounds, int sharers, int copies, int box, double measured) {
    all->push_back({"TB/s, " + std::to_string(sharers) + " sharers, " + std::to_string(copies) +
                        " x " + std::to_string(box) + " B" + (rounds ? ", in rounds" : ""),
                    measured, fill_rate(m, rounds, sharers, copies, box)});
  };
#define FILL(rounds, sharers, copies, box, rate) add(rounds, sharers, copies, box, rate);
#include "tools/model/public.def"
}

void add_products(const Machine& m, std::vector<Comparison>* all) {
  const auto add = [&](int group, int rows, int n, bool tensor, double clocks, double until) {
    const Mma mma{rows, n, group, tensor};
    const std::string what = std::to_string(group) + "-CTA M" + std::to_string(rows) + " N" +
                             std::to_string(n) + (tensor ? " A in tensor memory" : "");
    all->push_back({"clocks, " + what, clocks, interval(m, mma)});
    all->push_back({"clocks until done, " + what, until, latency(mma)});
  };
#define MMA(ctas, m, n, tensor, clocks, until) add(ctas, m, n, tensor, clocks, until);
#include "tools/model/public.def"
}

}  // namespace

std::vector<Comparison> micro_benchmarks(const Machine& machine) {
  std::vector<Comparison> all;
  add_fills(machine, &all);
  add_products(machine, &all);
  all.push_back({"us, empty launch (taken as it is)", 1.78, machine.launch});
  all.push_back({"ns, cluster barrier (taken as it is)", 175, machine.cluster_barrier});
  all.push_back({"TB/s, pushes in pairs", 3.06, machine.push_rate * machine.sms / 1e3});
  return all;
}

std::vector<Comparison> public_kernels(const Machine& machine) {
  std::vector<Comparison> all;
  const std::vector<Kernel> ladder = learn_cuda_ladder(machine);
  const auto add = [&](const std::string& name, int64_t size, double tflops) {
    const auto kernel =
        std::find_if(ladder.begin(), ladder.end(), [&](const Kernel& k) { return k.name == name; });
    const double flops = 2.0 * double(size) * double(size) * double(size);
    all.push_back({"us, bf16 " + name, flops / tflops / 1e6,
                   simulate(machine, *kernel, {size, size, size}).us});
  };
#define KERNEL(name, size, tflops) add(name, size, tflops);
#include "tools/model/public.def"
  for (const Square& s : public_squares()) {
    const std::string what = "us, NVFP4 " + s.whose + " " + std::to_string(s.size) + "^3";
    all.push_back({what + ", as pairs of 256x256", s.published_us, square_us(machine, s.size)});
  }
  return all;
}

double square_us(const Machine& machine, int64_t size) {
  return simulate(machine, public_nvfp4(machine), {size, size, size}).us;
}

const std::vector<Square>& public_squares() {
  static const std::vector<Square> all = {
#define SQUARE(size, whose, us) {size, whose, us},
#include "tools/model/public.def"
  };
  return all;
}

// A launch that waits for the one before costs `launch` more than the kernel alone.
std::vector<Comparison> short_launches(const Machine& machine) {
  std::vector<Comparison> all;
  const auto add = [&](const std::string& name, const Kernel& kernel, const Shape& shape,
                       double measured) {
    const std::string size = std::to_string(shape.n) + " x " + std::to_string(shape.k);
    all.push_back({"us of a loop, " + name + ", " + size, measured,
                   simulate(machine, kernel, shape).us + machine.launch});
  };
#define LADDER(name, tokens, parts, n, k, us) \
  add(std::string("NVFP4 ") + name, public_ladder(machine, tokens, parts), {128, n, k}, us);
#define LOOP(called, size, us)                            \
  for (const Kernel& kernel : learn_cuda_ladder(machine)) \
    if (kernel.name == called) add("bf16 " + kernel.name, kernel, {size, size, size}, us);
#include "tools/model/public.def"
  return all;
}

Band band_of(const std::vector<Comparison>& comparisons) {
  Band band;
  for (const Comparison& c : comparisons) {
    band.low = std::min(band.low, c.ratio());
    band.high = std::max(band.high, c.ratio());
  }
  return band;
}

}  // namespace model
