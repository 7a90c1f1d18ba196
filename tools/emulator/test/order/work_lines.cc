// SPDX-License-Identifier: MIT
// What asynchronous work does to whole lines of shared memory is kept as one record for a line.
// Nothing of that shows: half a line further on, where no copy of up to 128 bytes covers a line,
// the same program has the same findings.
#include <random>

#include "tools/emulator/test/support/exec_support.h"

using namespace emu;

namespace {

constexpr int copies = 10;
const char* const memory = ".shared .align 128 .b8 tile[640]; .shared .align 8 .b64 bars[10];";

const char* const head = R"(
    .reg .b32 %at, %mine, %lane, %bar;
    mov.u32 %r0, %tid.x; and.b32 %lane, %r0, 31; shr.u32 %r1, %r0, 5;
    setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 32; setp.lt.u32 %p2, %r0, 8;
    setp.eq.u32 %p3, %r1, 0; setp.eq.u32 %p4, %r1, 1;
    mov.u32 %at, tile; add.u32 %at, %at, SHIFT; shl.b32 %mine, %lane, 2; add.u32 %mine, %mine, %at;
    mov.u32 %bar, bars;
)";

std::string number(size_t n) { return std::to_string(n); }

std::string waited(int copy, const std::string& who, int place) {
  const std::string label = "W" + number(size_t(place));
  return label + ": " + who + "mbarrier.try_wait.parity.shared::cta.b64 %p6, [%bar+" +
         number(8 * size_t(copy)) + "], 0; " +
         (who.empty() ? "" : "@!%p3 setp.eq.u32 %p6, %r0, %r0; ") + "@!%p6 bra " + label + ";\n";
}

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed), synced_(seed % 3 == 0) {
    for (int i = 0; i < copies; ++i)
      text_ += "@%p0 mbarrier.init.shared::cta.b64 [%bar+" + number(8 * size_t(i)) + "], 1;\n";
    text_ += "@%p0 fence.mbarrier_init.release.cluster;\n";
    for (size_t line = 0; line < 4; ++line)
      text_ += "@%p3 st.shared.u32 [%mine+" + number(128 * line) + "], 0;\n";
    text_ += "fence.proxy.async;\nbar.sync 0;\n";
    for (; copy_ < copies; ++copy_) {
      load();
      for (uint32_t i = random_() % 3; i; --i) use();
    }
    for (int i = 0; i < copies; ++i) text_ += waited(i, "", place_++);
    text_ += "cp.async.bulk.wait_group 0;\n";
  }
  std::string text() const { return text_; }

 private:
  std::string pick(std::initializer_list<const char*> of) {
    return of.begin()[random_() % of.size()];
  }
  std::string place() { return number(128 * (random_() % 4)); }

  void load() {
    const std::string who = pick({"@%p0 ", "@%p1 "}),
                      bar = "[%bar+" + number(8 * size_t(copy_)) + "]";
    const std::string bytes = pick({"128", "128", "128", "64", "32"});
    if (synced_) text_ += "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
    text_ += who + "mbarrier.arrive.expect_tx.shared::cta.b64 _, " + bar + ", " + bytes + ";\n" +
             who + "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%at+" + place() +
             "], [%out], " + bytes + ", " + bar + ";\n";
    if (synced_ || random_() % 2) text_ += waited(copy_, random_() % 4 ? "" : "@%p3 ", place_++);
    sync();
  }

  void store() {
    const std::string who = synced_ ? "@%p0 " : pick({"@%p0 ", "@%p0 ", "@%p1 ", "@%p2 "});
    if (synced_)
      text_ += "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
    else if (random_() % 2)
      text_ += "fence.proxy.async.shared::cta;\n" + pick({"", "bar.sync 0;\n"});
    text_ += who + "cp.async.bulk.global.shared::cta.bulk_group [%out+128], [%at+" + place() +
             "], 128;\n" + who + "cp.async.bulk.commit_group;\n";
    if (synced_ || random_() % 2) text_ += who + "cp.async.bulk.wait_group 0;\n";
  }

  void use() {
    const std::string who = pick({synced_ ? "@%p3 " : "", "@%p3 ", "@%p4 ", "@%p0 "});
    switch (random_() % 3) {
      case 0: store(); break;
      case 1: text_ += who + "ld.shared.u32 %r4, [%mine+" + place() + "];\n"; break;
      default: text_ += who + "st.shared.u32 [%mine+" + place() + "], 7;\n";
    }
    sync();
  }

  void sync() { text_ += synced_ || random_() % 2 ? "bar.sync 0;\n" : ""; }

  std::mt19937 random_;
  const bool synced_;
  int copy_ = 0, place_ = 0;
  std::string text_;
};

Counters run_at(const char* shift, const std::string& text) {
  std::string start = head;
  start.replace(start.find("SHIFT"), 5, shift);
  return exec_test::counters(start + text, {{}, {64}, {}}, memory);
}

}  // namespace

TEST_CASE("asynchronous work at whole lines has the findings of its chunks") {
  exec_test::SettingsGuard guard;
  settings().hazards = settings().formal = Reaction::report;
  uint32_t errors = 0, formal = 0, silent = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    settings().seed = seed;
    settings().order = Order(seed % 3);
    const std::string text = Program(seed).text();
    CAPTURE(seed, text);
    const Counters lines = run_at("0", text), chunks = run_at("64", text);
    REQUIRE(lines.instructions == chunks.instructions);
    REQUIRE(lines.hazards == chunks.hazards);
    REQUIRE(lines.formal_hazards == chunks.formal_hazards);
    errors += lines.hazards > 0;
    formal += lines.formal_hazards > 0;
    silent += !lines.hazards && !lines.formal_hazards;
  }
  CHECK(errors > 20);
  CHECK(formal > 20);
  CHECK(silent > 20);
}
