// SPDX-License-Identifier: MIT
// wgmma as PTX programs meet it: every layout, and the same program with one line taken away.
#include "tools/emulator/test/models/wgmma.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using support::Wgmma;
using support::WgmmaData;
using unit::replaced;
using R = support::SumType;
using T = support::NumberType;

namespace {

struct Run : unit::OrderGuard {
  GlobalMemory memory{1 << 24};
  Counters counters;
  bool partial = false;             // sums without a value are no fault
  std::vector<uint32_t> no_values;  // 1 for each word of them

  using OrderGuard::OrderGuard;
  uint64_t put(const void* from, size_t bytes) {
    const uint64_t at = memory.allocate(bytes, "input");
    std::memcpy(memory.at(at, bytes, 1, "test"), from, bytes);
    return at;
  }
  std::vector<uint32_t> operator()(const std::string& text, const Wgmma& w, const WgmmaData& data) {
    const auto image = support::shared_image(w, data);
    const auto a = support::a_words(data), c = support::accumulator_words(w, data.c);
    const uint64_t to = memory.allocate(c.size() * 4, "out");
    counters =
        unit::run(text, memory, {1, support::kWgmmaThreads, "wgmma_probe", 90},
                  unit::parameters(to, put(image.data(), image.size()), put(a.data(), a.size() * 4),
                                   put(c.data(), c.size() * 4)));
    if (!partial) return unit::download<uint32_t>(memory, to, c.size());
    for (size_t i = 0; i < c.size(); ++i)
      no_values.push_back(!memory.blank().within(to + 4 * i, 4).empty());
    std::vector<uint32_t> out(c.size());
    std::memcpy(out.data(), memory.at(to, out.size() * 4, 1, "test"), out.size() * 4);
    return out;
  }
};

WgmmaData data_for(const Wgmma& w, uint64_t seed) {
  std::mt19937_64 random(seed);
  return support::random_data(w, random, 1);
}

void check(const Wgmma& w, Order order, uint64_t seed) {
  const WgmmaData data = data_for(w, seed);
  Run run(order, seed);
  INFO(w.name());
  CHECK(run(support::program(w), w, data) ==
        support::accumulator_words(w, support::wgmma_expected(w, data)));
  CHECK(run.counters.mmas == 1);
  CHECK(run.counters.macs == uint64_t(64 * w.n * w.depth()));
}

// What a changed program is told, whatever the order.
std::string report(const std::string& text, const Wgmma& w, FaultKind kind) {
  std::string first;
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    Run run(order, 3);
    try {
      run(text, w, data_for(w, 1));
      return "no fault";
    } catch (const Fault& f) {
      if (f.kind != kind) return "another kind: " + f.text;
      first = f.text;
    }
  }
  return first;
}

#define CHECK_REPORT(kind_, part_, ...)                                \
  do {                                                                 \
    const std::string report_ = report(__VA_ARGS__, FaultKind::kind_); \
    INFO(report_);                                                     \
    CHECK(report_.find("another kind") != 0);                          \
    CHECK(exec_test::contains(report_, part_));                        \
  } while (0)

Wgmma from_registers() {
  Wgmma w;
  w.a_in_registers = true;
  w.n = 16;
  return w;
}

const std::string wait_line = "wgmma.wait_group.sync.aligned 0;\n";
const std::string fence_line = "wgmma.fence.sync.aligned;\n";

}  // namespace

TEST_CASE("wgmma reads every K-major and MN-major layout and A from registers") {
  uint64_t seed = 1;
  for (const int swizzle : {128, 64, 32, 0})
    for (const int n : {8, 40, 256}) {
      Wgmma w;
      w.n = n;
      w.a_swizzle = swizzle;
      w.b_swizzle = swizzle;
      check(w, Order::random, seed++);
      w.a_in_registers = true;
      w.b_offset = swizzle > 32 ? 32 : 0;
      check(w, Order::latest, seed++);
      w.a_in_registers = false;
      w.b_offset = 0;
      w.a_mn_major = w.b_mn_major = true;
      check(w, Order::soonest, seed++);
      w.a_mn_major = false;
      w.a = w.b = T::bf16;
      w.negate_b = true;
      check(w, Order::random, seed++);
    }
}

TEST_CASE("wgmma of the other types with A from both places") {
  const struct {
    T a, b;
    R d;
  } types[] = {{T::f16, T::f16, R::f16},
               {T::tf32, T::tf32, R::f32},
               {T::e4m3, T::e5m2, R::f32},
               {T::e5m2, T::e5m2, R::f16},
               {T::s8, T::u8, R::s32}};
  uint64_t seed = 1;
  for (const auto& t : types)
    for (const bool registers : {false, true}) {
      Wgmma w;
      w.a = t.a, w.b = t.b, w.d = t.d;
      w.n = 24;
      w.a_in_registers = registers;
      w.accumulate = registers;
      check(w, Order::random, seed++);
    }
}

TEST_CASE("registers of a wgmma used before wgmma.wait_group: a formal finding") {
  exec_test::SettingsGuard guard;
  settings().formal = Reaction::stop;
  const Wgmma w = from_registers();
  const std::string text = support::program(w);
  CHECK_REPORT(ordering, "register d0 is used", replaced(text, wait_line, ""), w);
  CHECK_REPORT(ordering, "register d0 is used", replaced(text, "aligned 0;", "aligned 1;"), w);
  CHECK_REPORT(ordering, "register d0 is used",
               replaced(text, "wgmma.commit_group.sync.aligned;\n", ""), w);
  CHECK_REPORT(ordering, "register a1 is used",
               replaced(text, wait_line, "mov.b32 a1, 0;\n" + wait_line), w);
  CHECK_REPORT(ordering, "register d3 is used",
               replaced(text, wait_line, "mov.b32 d3, 0;\n" + wait_line), w);
  CHECK_REPORT(ordering, "register a2 is used",
               replaced(text, wait_line, "mov.b32 r0, a2;\n" + wait_line), w);
}

TEST_CASE("registers of a wgmma used before wgmma.wait_group have the value that ptxas waits for") {
  const Wgmma w = from_registers();
  const WgmmaData data = data_for(w, 1);
  const std::string text = support::program(w);
  const auto right = support::accumulator_words(w, support::wgmma_expected(w, data));
  for (const Order order : {Order::soonest, Order::latest, Order::random})
    for (const std::string& early :
         {replaced(text, wait_line, ""),
          replaced(text, wait_line, "mov.b32 a1, 0;\nmov.b32 r0, d3;\n" + wait_line),
          replaced(text, fence_line, fence_line + "mov.b32 r0, a3;\nmov.b32 a3, r0;\n")}) {
      Run run(order, 5);
      settings().formal = Reaction::report;
      CHECK(run(early, w, data) == right);
      CHECK(run.counters.formal_hazards > 0);
      CHECK(run.counters.hazards == 0);
    }
}

TEST_CASE("a wgmma after accesses to its registers needs a wgmma.fence") {
  exec_test::SettingsGuard guard;
  settings().formal = Reaction::stop;
  const Wgmma w = from_registers();
  const std::string text = support::program(w);
  CHECK_REPORT(ordering, "without a wgmma.fence", replaced(text, fence_line, ""), w);
  CHECK_REPORT(ordering, "uses register a3",
               replaced(text, fence_line, fence_line + "mov.b32 a3, 1;\n"), w);
  CHECK_REPORT(ordering, "uses register d5",
               replaced(text, fence_line, fence_line + "mov.b32 r0, d5;\n"), w);
}

TEST_CASE("wgmmas of one shape follow each other on an accumulator and others wait") {
  const Wgmma w = from_registers();
  const std::string text = support::program(w);
  const size_t at = text.find("wgmma.mma_async");
  const std::string line = text.substr(at, text.find('\n', at) - at + 1);
  const WgmmaData data = data_for(w, 1);
  WgmmaData twice = data;
  twice.c = support::wgmma_expected(w, data);
  Run run(Order::latest, 1);
  CHECK(run(replaced(text, line, line + line), w, data) ==
        support::accumulator_words(w, support::wgmma_expected(w, twice)));
  const std::string other =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, {a0, a1, a2, a3}, db, "
      "p, 1, 1, 0;\n";
  CHECK_REPORT(ordering, "of another shape", replaced(text, line, line + other), w);
  CHECK_REPORT(ordering, "with it in A",
               replaced(text, line, line + replaced(other, "{d0, d1, d2, d3}", "{a0, a1, a2, a3}")),
               w);
  CHECK_REPORT(ordering, "as a fragment of A",
               replaced(text, line, line + replaced(other, "{a0", "{d4")), w);
}

TEST_CASE(
    "shared memory of a wgmma: fence.proxy.async before it and no store until it was waited for") {
  const Wgmma w;
  const std::string text = support::program(w), store = "st.shared.b32 [s+8192], 0;\n";
  CHECK_REPORT(ordering, "after a fence.proxy.async, which is missing",
               replaced(text, "fence.proxy.async;\n", ""), w);
  CHECK_REPORT(ordering, "overwrites shared address", replaced(text, wait_line, store + wait_line),
               w);
  Run run(Order::latest, 2);
  const WgmmaData data = data_for(w, 1);
  CHECK(run(replaced(text, wait_line, wait_line + store), w, data).size() == 128 * 4);
  CHECK_REPORT(uninitialised, "wgmma.mma_async A",
               replaced(text, "setp.lt.u32 more, r0, r1;", "setp.lt.u32 more, r1, r0;"), w);
}

namespace {

// Where byte 0 of that row lies in shared memory.
size_t place_of(const Wgmma& w, bool of_a, size_t row) {
  WgmmaData data{std::vector<uint8_t>(64 * 32), std::vector<uint8_t>(size_t(w.n) * 32), {}};
  (of_a ? data.a : data.b)[row * 32] = 1;
  const std::vector<uint8_t> image = support::shared_image(w, data);
  return size_t(std::find(image.begin(), image.end(), 1) - image.begin());
}

// The word with that byte, or half of it, gets no value.
std::string no_value_at(size_t place, int bytes) {
  return "setp.eq.u32 more, t, 0;\n@more st.shared.b" + std::to_string(8 * bytes) + " [s+" +
         std::to_string(place) + (bytes == 2 ? "], none2;\n" : "], none;\n");
}

struct Lack {
  Wgmma w;
  std::string how;
  int row, column;  // of the sums that lack a value, -1 = all
};

std::vector<Lack> lacks(R d) {
  Wgmma shared, turned, registers = from_registers();
  shared.n = turned.n = 16;
  turned.a_mn_major = turned.b_mn_major = true;
  shared.d = turned.d = registers.d = d;
  const std::string a1 = "setp.eq.u32 more, t, 37;\n@more mov.b32 a1, none;\n",
                    d1 = "setp.eq.u32 more, t, 70;\n@more mov.b32 d1, none;\n";
  return {{shared, no_value_at(place_of(shared, true, 9), 4), 9, -1},
          {shared, no_value_at(place_of(shared, false, 5), 4), -1, 5},
          {turned, no_value_at(place_of(turned, true, 58), 2), 58, -1},
          {turned, no_value_at(place_of(turned, false, 15), 2), -1, 15},
          {registers, a1, 16 + 5 / 4 + 8, -1},
          {registers, d1, 32 + 6 / 4 + (d == R::f16 ? 8 : 0), 5}};
}

}  // namespace

TEST_CASE("a wgmma with an operand without a value gives none to the sums that have it") {
  for (const R d : {R::f32, R::f16})
    for (const Lack& lack : lacks(d)) {
      const Wgmma& w = lack.w;
      CAPTURE(w.name(), lack.how);
      const WgmmaData data = data_for(w, 1);
      const std::string before = "fence.proxy.async;\nbar.sync 0;\n";
      const std::string text =
          replaced(replaced(support::program(w), before, "bar.sync 0;\n" + lack.how + before),
                   ".reg .pred p", ".reg .b32 none; .reg .b16 none2;\n.reg .pred p");
      std::vector<uint32_t> sums(size_t(64 * w.n));
      for (int r = 0; r < 64; ++r)
        for (int n = 0; n < w.n; ++n)
          sums[size_t(r * w.n + n)] =
              (lack.row < 0 || r == lack.row) && (lack.column < 0 || n == lack.column);
      std::vector<uint32_t> lost = support::accumulator_words(w, sums),
                            right = support::accumulator_words(w, support::wgmma_expected(w, data));
      for (uint32_t& word : lost) word = word != 0;
      for (const Order order : {Order::soonest, Order::latest}) {
        Run run(order, 1);
        run.partial = true;
        const std::vector<uint32_t> out = run(text, w, data);
        CHECK(run.no_values == lost);
        size_t wrong = 0;
        for (size_t i = 0; i < out.size(); ++i) wrong += !lost[i] && out[i] != right[i];
        CHECK(wrong == 0);
      }
      CHECK_REPORT(uninitialised, "nobody ha", text, w);
      // The next one adds to what there is not, unless it starts anew.
      if (lack.how.find("d1") == std::string::npos) continue;
      Run run(Order::latest, 1);
      run(replaced(text, "setp.ne.u32 p, 1", "setp.ne.u32 p, 0"), w, data);
      const size_t at = text.find("wgmma.mma_async");
      const std::string line = text.substr(at, text.find('\n', at) - at + 1);
      Run twice(Order::soonest, 1);
      twice.partial = true;
      twice(replaced(text, line, line + line), w, data);
      CHECK(twice.no_values == lost);
      const std::string anew = replaced(line, ", p,", ", more,");
      Run(Order::latest, 1)(
          replaced(replaced(text, fence_line, "setp.ne.u32 more, 0, 0;\n" + fence_line), line,
                   line + anew),
          w, data);
    }
}

TEST_CASE("all four warps of a warpgroup execute the same wgmma") {
  const Wgmma w;
  const std::string text = support::program(w);
  const std::string mma = "wgmma.mma_async";
  CHECK_REPORT(illegal_instruction, "another warp of its warpgroup",
               replaced(text, fence_line,
                        "setp.gt.u32 more, t, 95;\n@more add.u64 db, db, 2;\n" + fence_line),
               w);
  CHECK_REPORT(deadlock, "which warps 0x8",
               replaced(replaced(text, mma, "setp.gt.u32 more, t, 95;\n@more bra SKIP;\n" + mma),
                        "wgmma.commit", "SKIP:\nwgmma.commit"),
               w);
  CHECK_REPORT(illegal_instruction, "is .aligned",
               replaced(text, fence_line, "setp.gt.u32 more, t, 9;\n@more " + fence_line), w);
}
