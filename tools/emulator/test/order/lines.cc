// SPDX-License-Identifier: MIT
// What whole warps do to whole lines of memory is kept as one record for a line. Nothing of that
// shows: the same accesses lane by lane have the same findings. In shared memory accesses by
// .shared::cluster go lane by lane; in global memory all accesses do as soon as a register without
// a value has been stored anywhere.
#include <random>

#include "tools/emulator/test/support/exec_support.h"

using namespace emu;

namespace {

const char* const head = R"(
    .reg .b32 %at, %lane, %w<4>;
    mov.u32 %r0, %tid.x; and.b32 %lane, %r0, 31; shr.u32 %r1, %r0, 5;
    setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1; setp.lt.u32 %p2, %lane, 20;
    and.pred %p3, %p0, %p2; mov.u32 %at, tile;
    mov.u32 %w0, 5; mov.u32 %w1, 5; mov.u32 %w2, %lane; mov.u32 %w3, 5;
)";
const char* const memory = ".shared .align 128 .b8 tile[1024];";

std::string pick(std::mt19937& random, std::initializer_list<const char*> of) {
  return of.begin()[random() % of.size()];
}

// In rows of 4, 8 or 16 bytes a lane; moved by a lane; chunks out of order; one word for all.
std::string address(std::mt19937& random, int bytes) {
  const std::string size = std::to_string(bytes), swapped = std::to_string(random() % 32);
  const std::string lane = pick(random, {"mov.b32 %r2, %lane;", "mov.b32 %r2, %lane;",
                                         "add.u32 %r2, %lane, 1; and.b32 %r2, %r2, 31;"});
  const std::string order = random() % 3 ? "" : "xor.b32 %r2, %r2, " + swapped + ";";
  return lane + order + " mad.lo.u32 %r2, %r2, " + (random() % 8 ? size : "0") +
         ", %at; MAKE_ADDRESS\n";
}

// One access by warp 0, warp 1, both, or a part of warp 0.
std::string access(std::mt19937& random) {
  const int words = 1 << random() % 3;
  const char* const types[] = {".u32", ".v2.u32", "", ".v4.u32"};
  const char* const values[] = {"%w0", "{%w0, %w2}", "", "{%w0, %w1, %w2, %w3}"};
  const char* const loaded[] = {"%r4", "{%r4, %r5}", "", "{%r4, %r5, %r6, %r7}"};
  const std::string guard = pick(random, {"@%p0 ", "@%p0 ", "@%p1 ", "@%p1 ", "", "@%p3 "});
  const std::string where = "[ADDRESS+" + std::to_string(128 * (random() % 3)) + "]";
  std::string text = address(random, 4 * words) + guard;
  if (random() % 2)
    text += std::string("st.SPACE") + types[words - 1] + " " + where + ", " + values[words - 1];
  else
    text += std::string("ld.SPACE") + types[words - 1] + " " + loaded[words - 1] + ", " + where;
  return text + ";\n";
}

// A third of them are ordered, except for what lanes of one instruction do to each other.
std::string program(uint32_t seed) {
  std::mt19937 random(seed);
  std::string text = head;
  for (int row = 0; row < 1024; row += 512)
    text += "mad.lo.u32 %r2, %lane, 16, %at; MAKE_ADDRESS @%p0 st.SPACE.v4.u32 [ADDRESS+" +
            std::to_string(row) + "], {%w0, %w0, %w0, %w0};\n";
  text += "bar.sync 0;\n";
  for (int i = 0; i < 12; ++i) {
    text += access(random);
    text += seed % 3
                ? pick(random, {"", "", "bar.sync 0;\n", "bar.sync 0;\n", "bar.warp.sync -1;\n"})
                : "bar.sync 0;\n";
  }
  return text;
}

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at; (at = text.find(mark)) != std::string::npos;) text.replace(at, mark.size(), by);
  return text;
}

std::string spelled(const std::string& text, const std::string& space) {
  return replaced(replaced(replaced(text, "MAKE_ADDRESS", ""), "ADDRESS", "%r2"), "SPACE", space);
}

// The last word of the buffer takes a register: with a value, or without.
std::string in_global_memory(const std::string& text, const std::string& stored) {
  const std::string make = "cvt.u64.u32 %rd2, %r2; add.u64 %rd2, %rd2, %out;";
  const std::string begin =
      "mov.u32 %at, 0; mov.u32 %r12, 1; mov.u32 %r2, %ctaid.x; or.b32 %r2, %r2, %r0;"
      "setp.eq.u32 %p4, %r2, 0; @%p4 st.global.u32 [%out+4092], " +
      stored + ";";
  const std::string all = replaced(replaced(text, "MAKE_ADDRESS", make), "ADDRESS", "%rd2");
  return replaced(replaced(all, "SPACE", "global"), "mov.u32 %at, tile;", begin);
}

struct Tally {
  uint32_t errors = 0, formal = 0, silent = 0;
  void add(const Counters& c) {
    errors += c.hazards > 0;
    formal += c.formal_hazards > 0;
    silent += !c.hazards && !c.formal_hazards;
  }
};

}  // namespace

TEST_CASE("whole lines of shared memory have the findings of their lanes") {
  exec_test::SettingsGuard guard;
  settings().hazards = settings().formal = Reaction::report;
  Tally tally;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    settings().seed = seed;
    const std::string text = program(seed);
    CAPTURE(seed, text);
    const Counters lines = exec_test::counters(spelled(text, "shared"), {{}, {64}, {}}, memory);
    const Counters lanes =
        exec_test::counters(spelled(text, "shared::cluster"), {{}, {64}, {}}, memory);
    REQUIRE(lines.instructions == lanes.instructions);
    REQUIRE(lines.hazards == lanes.hazards);
    REQUIRE(lines.formal_hazards == lanes.formal_hazards);
    tally.add(lines);
  }
  CHECK(tally.errors > 20);
  CHECK(tally.formal > 20);
  CHECK(tally.silent > 20);
}

TEST_CASE("whole lines of global memory have the findings of their lanes") {
  exec_test::SettingsGuard guard;
  settings().hazards = settings().formal = Reaction::report;
  settings().workers = 1;
  for (const exec_test::Shape shape : {exec_test::Shape{{}, {64}, {}}, {{2}, {64}, {}}}) {
    Tally tally;
    for (uint32_t seed = 0; seed < 200; ++seed) {
      settings().seed = seed;
      const std::string text = program(seed);
      CAPTURE(seed, text, shape.grid.x);
      const Counters lines =
          exec_test::counters(in_global_memory(text, "%r12"), shape, memory, 1024);
      const Counters lanes =
          exec_test::counters(in_global_memory(text, "%r13"), shape, memory, 1024);
      REQUIRE(lines.instructions == lanes.instructions);
      REQUIRE(lines.hazards == lanes.hazards);
      REQUIRE(lines.formal_hazards == lanes.formal_hazards);
      REQUIRE(lines.global_load_bytes == lanes.global_load_bytes);
      REQUIRE(lines.global_store_bytes == lanes.global_store_bytes);
      tally.add(lines);
    }
    CHECK(tally.errors + tally.formal > 40);
    CHECK((tally.silent > 10 || shape.grid.x > 1));
  }
}
