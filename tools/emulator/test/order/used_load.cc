// SPDX-License-Identifier: MIT
// A tcgen05.ld without its wait: hardware waits for the registers, so code that has used all of
// them knows the load to be over. The manual knows of tcgen05.wait::ld alone.
#include "tools/emulator/test/support/exec_support.h"

namespace {

// Frees the columns after `use` of the registers %r5 and %r6 of one load, %r7 of the next.
std::string program(const std::string& use) {
  return "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; bar.warp.sync -1;"
         "ld.shared.u32 %r9, [at]; mov.u32 %r1, 7;"
         "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r9], {%r1, %r1, %r1, %r1};"
         "tcgen05.wait::st.sync.aligned;"
         "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r5, %r6}, [%r9]; add.u32 %r9, %r9, 2;"
         "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r7}, [%r9]; sub.u32 %r9, %r9, 2;" +
         use + "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;";
}

const char* const memory = ".shared .align 4 .b32 at;";

}  // namespace

TEST_CASE(
    "columns may be freed once every register of a tcgen05.ld was used: formal and no error") {
  const exec_test::SettingsGuard guard;
  emu::settings().order = GENERATE(emu::Order::soonest, emu::Order::latest, emu::Order::random);
  const exec_test::Shape warp{{}, {32}, {}};
  const emu::Counters used =
      exec_test::counters(program("add.u32 %r5, %r5, %r6; mov.u32 %r7, 0;"), warp, memory);
  CHECK(used.hazards == 0);
  CHECK(used.formal_hazards > 0);
  for (const char* use : {"", "add.u32 %r5, %r5, 1; mov.u32 %r7, 0;", "add.u32 %r5, %r5, %r6;",
                          "add.u32 %r7, %r7, 1;"}) {
    CAPTURE(use);
    CHECK(contains(exec_test::fault(program(use), warp, nullptr, memory),
                   "a tcgen05.wait::ld is missing"));
  }
  const std::string waited = program("tcgen05.wait::ld.sync.aligned; add.u32 %r5, %r5, %r6;");
  CHECK(exec_test::counters(waited, warp, memory).formal_hazards == 0);
}
