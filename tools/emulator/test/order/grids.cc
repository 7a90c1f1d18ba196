// SPDX-License-Identifier: MIT
// A programmatic dependent launch: what it shares with the grid ahead comes after
// griddepcontrol.wait.
#include <cstring>

#include "tools/emulator/driver/watch.h"
#include "tools/emulator/op/load.h"
#include "tools/emulator/order/global_order.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using namespace emu;

namespace {

struct Pair {
  const char* name;
  uint32_t grid, block;
  const char *ahead, *behind;
  uint64_t errors, formal;
};

// Every body finds %r0 = thread, %rd0 = its own word of the buffer, %p0 unless thread 0.
const char* const head = R"(
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4; add.u64 %rd0, %rd0, %out;
    setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, %ctaid.x;
)";
const char* const store = "griddepcontrol.launch_dependents; st.global.u32 [%rd0], 1;";
const char* const load = "griddepcontrol.launch_dependents; ld.global.u32 %r2, [%rd0];";
const char* const bulk_load = R"(
    .shared .align 16 .b8 tile[16]; .shared .align 8 .b64 bar;
    @%p0 bra END; mov.u32 %r3, bar; mov.u32 %r4, tile; mbarrier.init.shared.b64 [%r3], 1;
    fence.mbarrier_init.release.cluster; griddepcontrol.launch_dependents;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%out], 16, [%r3];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0; @!%p1 bra WAIT; END: mov.u32 %r2, 0;)";

const Pair pairs[] = {
    {"a load of what the grid ahead stores", 1, 32, store, "ld.global.u32 %r2, [%rd0];", 1, 0},
    {"after the wait", 1, 32, store, "griddepcontrol.wait; ld.global.u32 %r2, [%rd0];", 0, 0},
    {"other bytes", 1, 32, store, "ld.global.u32 %r2, [%rd0+128];", 0, 0},
    {"loads on both sides", 1, 32, load, "ld.global.u32 %r2, [%rd0];", 0, 0},
    {"the grid ahead lets nobody start", 1, 32, "st.global.u32 [%rd0], 1;",
     "ld.global.u32 %r2, [%rd0];", 0, 1},
    {"a store over what the grid ahead loads", 1, 32, load, "st.global.u32 [%rd0], 2;", 1, 0},
    {"a store over what it loads in bulk", 1, 32, bulk_load, "st.global.u32 [%rd0], 2;", 1, 0},
    {"the same after the wait", 1, 32, bulk_load, "griddepcontrol.wait; st.global.u32 [%rd0], 2;",
     0, 0},
    {"a bulk load of what it stores", 1, 32, store, bulk_load, 1, 0},
    {"one lane waits, the others load", 1, 32, store,
     "@!%p0 griddepcontrol.wait; ld.global.u32 %r2, [%rd0];", 1, 0},
    {"after bar.warp.sync", 1, 32, store,
     "@!%p0 griddepcontrol.wait; bar.warp.sync -1; ld.global.u32 %r2, [%rd0];", 0, 0},
    {"one warp waits, the other loads", 1, 64, store,
     "setp.lt.u32 %p1, %r0, 32; @%p1 griddepcontrol.wait; ld.global.u32 %r2, [%rd0];", 1, 0},
    {"after a barrier", 1, 64, store,
     "setp.lt.u32 %p1, %r0, 32; @%p1 griddepcontrol.wait; bar.sync 0; ld.global.u32 %r2, [%rd0];",
     0, 0},
    {"one block waits and tells the other", 2, 32,
     "griddepcontrol.launch_dependents; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd0], 1;", R"(
    setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHER; griddepcontrol.wait; bar.warp.sync -1;
    @!%p0 st.release.gpu.global.u32 [%out+256], 1; bra END;
    OTHER: ld.acquire.gpu.global.u32 %r2, [%out+256]; setp.eq.u32 %p2, %r2, 0; @%p2 bra OTHER;
    ld.global.u32 %r2, [%rd0]; END: mov.u32 %r2, 0;)",
     0, 0},
};

void run(const std::string& body, const Pair& pair, GlobalMemory& memory, uint64_t buffer,
         GlobalOrder& order, GlobalOrder* earlier, Findings& findings) {
  auto module = ops::load(exec_test::kernel(head + body), 100);
  Launch launch;
  launch.module = module.get();
  launch.function = module->entry("k");
  launch.grid.x = pair.grid;
  launch.block.x = pair.block;
  launch.params.resize(8);
  memcpy(launch.params.data(), &buffer, 8);
  launch.memory = &memory;
  launch.sm_count = 148;
  launch.findings = &findings;
  run_watched(launch, &order, earlier ? std::vector{earlier} : std::vector<GlobalOrder*>{});
}

}  // namespace

TEST_CASE("what a dependent grid shares with the grid ahead comes after griddepcontrol.wait") {
  exec_test::SettingsGuard guard;
  settings().hazards = Reaction::report;
  for (const Pair& pair : pairs) {
    INFO(pair.name);
    GlobalMemory memory(1ull << 20);
    const uint64_t buffer = memory.allocate(512, "a buffer");
    memset(memory.at(buffer, 512, 1, "test"), 0, 512);
    GlobalOrder ahead, behind;
    Findings none, findings;
    run(pair.ahead, pair, memory, buffer, ahead, nullptr, none);
    CHECK(none.text() == "");
    run(pair.behind, pair, memory, buffer, behind, &ahead, findings);
    INFO(findings.text());
    CHECK((findings.count(Severity::error) > 0) == (pair.errors > 0));
    CHECK((findings.count(Severity::formal) > 0) == (pair.formal > 0));
  }
}
