// SPDX-License-Identifier: MIT
// mma.sync against hypotheses of how Hopper adds, bit by bit: the same PTX runs on an H100 or H200
// and in the emulator of such a GPU. Exactly one hypothesis gives all bits, and it is the
// emulator's model.
#include <cstdio>

#include "tools/emulator/test/h200/device.h"
#include "tools/emulator/test/models/warp_mma.h"

namespace {

using h200::Buffer;
using h200::Module;
using support::Hypothesis;
using support::WarpMma;

struct Batch {
  std::vector<support::WarpMmaData> data;
  std::vector<uint32_t> out;  // the accumulators' fragments, one warp after the other
};

Batch run(const WarpMma& w, int warps) {
  Batch batch;
  std::mt19937_64 random(uint64_t(w.k) * 7 + uint64_t(w.a));
  std::vector<uint32_t> a, b, c;
  for (int i = 0; i < warps; ++i) {
    batch.data.push_back(support::random_data(w, random, i % support::kWarpMmaKinds));
    support::append_fragments(w, batch.data.back(), a, b, c);
  }
  const Module module(support::program(w));
  const Buffer in_a(a), in_b(b), in_c(c), out(c.size() * 4);
  CUdeviceptr at[] = {out.address(), in_a.address(), in_b.address(), in_c.address()};
  void* arguments[] = {&at[0], &at[1], &at[2], &at[3]};
  module.launch("warp_mma", uint32_t(warps), 32, 0, arguments);
  batch.out = out.download<uint32_t>();
  return batch;
}

// How many words of the results a hypothesis gives, and where it first fails.
struct Score {
  size_t equal = 0;
  std::string first;
};

Score score(const WarpMma& w, const Batch& batch, const Hypothesis& h) {
  Score s;
  size_t at = 0;
  for (size_t i = 0; i < batch.data.size(); ++i) {
    const std::vector<uint32_t> want =
        support::accumulator_fragment(w, support::warp_mma_expected(w, batch.data[i], h));
    for (size_t j = 0; j < want.size(); ++j, ++at) {
      if (batch.out[at] == want[j]) {
        ++s.equal;
      } else if (s.first.empty()) {
        char text[96];
        std::snprintf(text, sizeof text, "warp %zu, data %zu, word %zu: 0x%08x, model 0x%08x", i,
                      i % support::kWarpMmaKinds, j, batch.out[at], want[j]);
        s.first = text;
      }
    }
  }
  return s;
}

// Every way to cut K into steps of `least` and more elements, with these widths.
std::vector<Hypothesis> hypotheses(const WarpMma& w, int least, int widest) {
  std::vector<Hypothesis> all;
  const bool eight_bits = bits_of(w.a) == 8;
  for (int kept = 24; kept <= widest; ++kept) {
    if (eight_bits) all.push_back({w.k, kept, false, true});
    for (int step = w.k; step >= least; step /= 2) {
      all.push_back({step, kept});
      if (step < w.k) all.push_back({step, kept, true});
    }
  }
  if (eight_bits) all.push_back({w.k, 13});
  return all;
}

bool operator==(const Hypothesis& x, const Hypothesis& y) {
  return x.step == y.step && x.kept == y.kept && x.reversed == y.reversed && x.as_fp16 == y.as_fp16;
}

// The model gives all bits; what each other hypothesis gives is told where it is news.
size_t decide(const WarpMma& w, const Batch& batch, const std::vector<Hypothesis>& all,
              bool emulated) {
  std::string table = w.name() + ", equal words of " + std::to_string(batch.out.size()) + ":\n";
  size_t fitting = 0;
  for (const Hypothesis& h : all) {
    const Score s = score(w, batch, h);
    const bool model = h == support::model_of(w);
    table += "  " + std::to_string(s.equal) + "  " + h.name() + (model ? " (the model)\n" : "\n");
    INFO(w.name() << ", " << h.name() << ": " << s.first);
    if (model) CHECK(s.equal == batch.out.size());
    fitting += s.equal == batch.out.size();
  }
  if (!emulated) WARN(table);
  return fitting;
}

}  // namespace

TEST_CASE("mma.sync adds 16 products of fp16 in one step of 25 bits", "[sm90][mma]") {
  USE_HOPPER(device);
  const WarpMma w;
  CHECK(decide(w, run(w, device.emulated() ? 60 : 3000), hypotheses(w, 4, 27), device.emulated()) ==
        1);
}

TEST_CASE("mma.sync of the other floats adds as the model does", "[sm90][mma]") {
  USE_HOPPER(device);
  for (const WarpMma& w : support::warp_mmas()) {
    if (w.d == support::SumType::s32) continue;
    const Batch batch = run(w, device.emulated() ? 6 : 300);
    decide(w, batch, hypotheses(w, device.emulated() ? w.k : w.k / 2, 26), device.emulated());
  }
}

TEST_CASE("mma.sync of integers and single bits counts exactly", "[sm90][mma]") {
  USE_HOPPER(device);
  size_t equal = 0, words = 0;
  for (const WarpMma& w : support::warp_mmas()) {
    if (w.d != support::SumType::s32) continue;
    const Batch batch = run(w, device.emulated() ? 6 : 60);
    const Score s = score(w, batch, {});
    INFO(w.name() << ": " << s.first);
    CHECK(s.equal == batch.out.size());
    equal += s.equal, words += batch.out.size();
  }
  if (!device.emulated()) WARN("integers: " << equal << " of " << words << " words equal");
}
