// SPDX-License-Identifier: MIT
// mma.sync against hypotheses of how Hopper adds, bit by bit: the same PTX on an H100 or H200 and in
// the emulator as one. Exactly one hypothesis gives all bits, and it is the emulator's model.
#include <cstring>

#include "support/catch.h"
#include "support/driver.h"
#include "support/module.h"
#include "support/warp_mma.h"

namespace {

using support::DeviceBuffer;
using support::Driver;
using support::Hypothesis;
using support::WarpMma;

std::vector<uint8_t> bytes_of(const std::vector<uint32_t>& words) {
  std::vector<uint8_t> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

struct Batch {
  std::vector<support::WarpMmaData> data;
  std::vector<uint32_t> out;  // the accumulators' fragments, one warp after the other
};

Batch run(const Driver& driver, const WarpMma& w, int warps) {
  Batch batch;
  std::mt19937_64 random(uint64_t(w.k) * 7 + uint64_t(w.a));
  std::vector<uint32_t> a, b, c;
  for (int i = 0; i < warps; ++i) {
    batch.data.push_back(support::random_data(w, random, i % support::kWarpMmaKinds));
    support::append_fragments(w, batch.data.back(), a, b, c);
  }
  const support::Module module = support::Module::from_text(driver, support::program(w));
  const DeviceBuffer in_a(driver, bytes_of(a)), in_b(driver, bytes_of(b)),
      in_c(driver, bytes_of(c));
  const DeviceBuffer out(driver, c.size() * 4);
  CUdeviceptr at[] = {out.address(), in_a.address(), in_b.address(), in_c.address()};
  void* arguments[] = {&at[0], &at[1], &at[2], &at[3]};
  module.launch("warp_mma", uint32_t(warps), 32, 0, arguments);
  const std::vector<uint8_t> bytes = out.download();
  batch.out.resize(c.size());
  std::memcpy(batch.out.data(), bytes.data(), bytes.size());
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

// One step of all K with 25 bits is the model; the others have to be told apart by the data.
void decide(const WarpMma& w, const Batch& batch) {
  std::string table = w.name() + ", equal words of " + std::to_string(batch.out.size()) + ":\n";
  for (int step = w.k; step >= 4; step /= 2)
    for (const bool reversed : {false, true})
      for (int kept = 24; kept <= 27; ++kept) {
        if (step == w.k && reversed) continue;
        const Hypothesis h{step, kept, reversed};
        const Score s = score(w, batch, h);
        const bool model = step == w.k && kept == 25;
        table +=
            "  " + std::to_string(s.equal) + "  " + h.name() + (model ? " (the model)\n" : "\n");
        INFO(h.name() << ": " << s.first);
        if (model)
          CHECK(s.equal == batch.out.size());
        else
          CHECK(s.equal < batch.out.size());
      }
  WARN(table);
}

}  // namespace

TEST_CASE("mma.sync adds a row of K in one step of 25 bits", "[kernel][sm90][mma]") {
  const Driver& driver = Driver::get();
  const support::DeviceInfo device = support::devices(driver).at(0);
  if (device.compute_capability() != 90) SKIP_TEST(device.name + " is not a Hopper");
  const support::Context context(driver);
  const WarpMma w;
  decide(w, run(driver, w, device.emulated() ? 60 : 3000));
}
