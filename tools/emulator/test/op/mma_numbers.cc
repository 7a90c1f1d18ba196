// SPDX-License-Identifier: MIT
// mma.sync on numbers that need the model of its sums, and as PTX programs meet it.
#include "tools/emulator/test/models/warp_mma.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using support::WarpMma;
using support::WarpMmaData;

namespace {

struct Run {
  GlobalMemory memory{1 << 20};
  Counters counters;

  uint64_t put(const std::vector<uint32_t>& words) {
    const uint64_t at = memory.allocate(words.size() * 4, "input");
    std::memcpy(memory.at(at, words.size() * 4, 1, "test"), words.data(), words.size() * 4);
    return at;
  }
  std::vector<uint32_t> operator()(const std::string& text, const WarpMma& w,
                                   const WarpMmaData& data, uint32_t threads = 32) {
    std::vector<uint32_t> a, b, c;
    support::append_fragments(w, data, a, b, c);
    const uint64_t out = memory.allocate(c.size() * 4, "out");
    counters = unit::run(text, memory, {1, threads, "warp_mma", 90},
                         unit::parameters(out, put(a), put(b), put(c)));
    return unit::download<uint32_t>(memory, out, c.size());
  }
};

WarpMmaData data_for(const WarpMma& w, int kind) {
  std::mt19937_64 random(uint64_t(kind) + 1);
  return support::random_data(w, random, kind);
}

void check(const WarpMma& w) {
  for (int kind = 0; kind < support::kWarpMmaKinds; ++kind) {
    const WarpMmaData data = data_for(w, kind);
    Run run;
    INFO(w.name() << ", data " << kind);
    const auto want = support::warp_mma_expected(w, data, support::model_of(w));
    CHECK(run(support::program(w), w, data) == support::accumulator_fragment(w, want));
    CHECK(run.counters.mmas == 1);
    CHECK(run.counters.macs == uint64_t(w.m * w.k * support::kWarpMmaColumns));
  }
}

std::string report(const WarpMma& w, const std::string& from, const std::string& to,
                   uint32_t threads = 32) {
  std::string text = support::program(w);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    Run()(text, w, data_for(w, 1), threads);
  } catch (const Fault& f) {
    return f.text;
  }
  return "no fault";
}

}  // namespace

TEST_CASE("mma.sync gives the model's bits on every kind of data") {
  for (const WarpMma& w : support::warp_mmas()) check(w);
}

TEST_CASE(
    "mma.sync is executed by 32 lanes together and its sums have values where its registers do") {
  const WarpMma w;
  CHECK(exec_test::contains(report(w, "mma.sync", "mma.sync", 16), "needs all 32 lanes"));
  CHECK(exec_test::contains(
      report(w, "mma.sync", ".reg .pred p;\nsetp.gt.u32 p, t, 9;\n@p mma.sync"), "is .aligned"));
  CHECK(exec_test::contains(report(w, "ld.global.b32 b1", "// "),
                            "read register b1, which was never written"));
  CHECK(exec_test::contains(report(w, "ld.global.b32 d2", "// "),
                            "read register d2, which was never written"));
}
