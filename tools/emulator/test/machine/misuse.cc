// SPDX-License-Identifier: MIT
// What a GPU answers with a hang, or with luck: a count that ended warps cannot bring, part of a
// warp where all of it is meant, registers that are never given back, a wait whose time is up.
#include "tools/emulator/driver/watch.h"
#include "tools/emulator/op/load.h"
#include "tools/emulator/test/support/exec_support.h"

using namespace emu;
using Words = std::vector<uint32_t>;

TEST_CASE("a barrier with a count waits for warps that have ended") {
  const std::string ends = "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32; @%p0 ret; ";
  FaultKind kind{};
  for (const char* meet : {"bar.sync 0, 64;", "bar.sync 1, 64;", "barrier.sync 0, 64;"}) {
    const std::string text = fault(ends + meet, {{}, {64}, {}}, &kind);
    CHECK(kind == FaultKind::deadlock);
    CHECK(contains(text, "warp 0, which has ended, have not"));
  }
  exec_test::run(ends + "bar.sync 0;", {{}, {64}, {}}, Words(1));
  exec_test::run(ends + "bar.sync 0, 32;", {{}, {64}, {}}, Words(1));
}

TEST_CASE("tensor memory is not allocated or freed by part of a warp") {
  const std::string word = ".shared .align 4 .b32 at;";
  const std::string part = "mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 15; @%p0 ret; ";
  const std::string alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;";
  const std::string free =
      "bar.warp.sync -1; ld.shared.u32 %r1, [at];"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;";
  const exec_test::Shape warp{{}, {32}, {}};
  FaultKind kind{};
  CHECK(contains(fault(part + alloc + free, warp, &kind, word), "lanes 0xffff0000 have ended"));
  CHECK(kind == FaultKind::illegal_instruction);
  CHECK(contains(fault(alloc + "bar.warp.sync -1;" + part + free, warp, &kind, word),
                 "tcgen05.dealloc is executed by lanes 0x0000ffff"));
  exec_test::run(alloc + free, warp, Words(1), word);
}

namespace {

// Two warpgroups of 128 threads with 128 registers each; the first runs `first`.
std::string registers(const std::string& first, const std::string& second) {
  return "mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 127; @%p0 bra SECOND;" + first +
         " bra END; SECOND: " + second + " END: bar.sync 0;";
}

struct Outcome {
  bool faulted = false;
  FaultKind kind{};
  std::string text;
};

// `bounds`: of the kernel.
Outcome run_bounded(const std::string& body, const std::string& bounds) {
  std::string text = exec_test::kernel(body);
  text.replace(text.find("\n{\n"), 1, "\n" + bounds + "\n");
  const auto module = emu::ops::load(text, 100);
  emu::GlobalMemory memory(1 << 20);
  emu::Findings findings;
  emu::Launch launch;
  launch.module = module.get();
  launch.function = module->entry("k");
  launch.block.x = 256;
  launch.params.resize(8);
  launch.memory = &memory;
  launch.sm_count = 148;
  launch.findings = &findings;
  Outcome out;
  try {
    emu::run_watched(launch);
  } catch (const emu::Fault& f) {
    out = {true, f.kind, f.text};
  }
  out.text += findings.text();
  return out;
}

}  // namespace

TEST_CASE("setmaxnreg.inc waits for registers that another warp releases") {
  const exec_test::SettingsGuard guard;
  emu::settings().formal = emu::Reaction::stop;
  const std::string inc = "setmaxnreg.inc.sync.aligned.u32 208;";
  const std::string dec = "setmaxnreg.dec.sync.aligned.u32 40;";
  const std::string bounds = GENERATE(as<std::string>{}, ".maxntid 256, 1, 1\n.minnctapersm 2",
                                      ".reqntid 256, 1, 1\n.minnctapersm 2", ".maxnreg 128");
  CAPTURE(bounds);
  CHECK_FALSE(run_bounded(registers(dec, inc), bounds).faulted);
  for (const std::string& alone :
       {registers("", inc), registers("setmaxnreg.dec.sync.aligned.u32 56;", inc)}) {
    const Outcome out = run_bounded(alone, bounds);
    CHECK(out.kind == FaultKind::deadlock);
    CHECK(contains(out.text, "another has to release them with setmaxnreg.dec"));
  }
}

TEST_CASE("ptxas ignores setmaxnreg in a kernel of unknown size and so does the emulator") {
  CHECK_FALSE(run_bounded("setmaxnreg.inc.sync.aligned.u32 240;", "").faulted);
}

TEST_CASE("all warps of a warpgroup change their registers alike") {
  const exec_test::SettingsGuard guard;
  emu::settings().formal = emu::Reaction::stop;
  const Outcome out = run_bounded(
      "mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 31; @%p0 bra END;"
      "setmaxnreg.dec.sync.aligned.u32 40; END: bar.sync 0;",
      ".maxnreg 128");
  CHECK(out.faulted);
  CHECK(contains(out.text, "warpgroup"));
}

TEST_CASE("mbarrier.try_wait without a loop times out") {
  const exec_test::SettingsGuard guard;
  const std::string body = R"(
    mov.u32 %r1, 0; mov.u32 %r0, %tid.x; setp.gt.u32 %p1, %r0, 31; setp.eq.u32 %p2, %r0, 0;
    shl.b32 %r2, %r0, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; @!%p1 st.shared.u32 [%r3], 0;
    @%p2 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0; @%p1 bra READS;
    LATE: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 50; @%p3 bra LATE;
    st.shared.u32 [%r3], %r0;
    mbarrier.arrive.shared::cta.b64 _, [bar]; bra END;
    READS: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @%p4 bra GO;
    GO: ld.shared.u32 %r4, [s]; st.global.u32 [%out], %r4;
    END: bar.sync 0;)";
  const std::string memory = ".shared .align 8 .b64 bar; .shared .align 4 .b32 s[32];";
  const auto finds = [&](Order order, uint64_t seed) {
    emu::settings().order = order;
    emu::settings().seed = seed;
    try {
      exec_test::run(body, {{}, {64}, {}}, Words(1), memory);
    } catch (const emu::Fault&) {
      return true;
    }
    return false;
  };
  CHECK(finds(Order::latest, 1));
  CHECK(finds(Order::latest, 2));
  uint32_t found = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) found += finds(Order::random, seed);
  CHECK(found > 0);
}
