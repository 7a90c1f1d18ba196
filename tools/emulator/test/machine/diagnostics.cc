// SPDX-License-Identifier: MIT
// What a report has to say: each row is a kernel that goes wrong in one way, and the parts without
// which nobody could act on it.
#include "tools/emulator/machine/report.h"
#include "tools/emulator/test/support/exec_support.h"

using emu::FaultKind;

namespace {

struct Row {
  const char* what;
  FaultKind kind;
  const char* body;
  std::vector<const char*> parts;  // beside kernel, block, warp, thread and PTX line
};

// Thread 37 of block (1,0,0) is the one that goes wrong, unless a whole warp has to.
const char* const one =
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r0, 37; @%p0 ret;"
    "setp.ne.u32 %p0, %r1, 1; @%p0 ret; mov.u32 %r2, tile; mov.u32 %r9, other;\n";
const char* const whole =
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.lt.u32 %p0, %r0, 32; @%p0 ret;"
    "setp.ne.u32 %p0, %r1, 1; @%p0 ret; mov.u32 %r2, tile; mov.u32 %r9, other;\n";
const char* const memory = ".shared .align 16 .b8 other[32]; .shared .align 16 .b8 tile[64];";

const Row in_one_thread[] = {
    {"global memory outside",
     FaultKind::illegal_address,
     "st.global.u32 [%out+256], 1;",
     {"0x0 bytes beyond the end of the buffer [0x7f1000000000, 0x7f1000000100)"}},
    {"global memory misaligned",
     FaultKind::misaligned_address,
     "ld.global.u64 %rd1, [%out+4];",
     {"0x7f1000000004", "0x4 bytes into the buffer"}},
    {"shared memory outside",
     FaultKind::illegal_address,
     "st.shared.u32 [%r2+64], 1;",
     {"shared address 0x460 of block (1,0,0)", "0x0 bytes beyond the end"}},
    {"shared memory misaligned",
     FaultKind::misaligned_address,
     "ld.shared.u32 %r3, [%r2+6];",
     {"0x426"}},
    {"shared memory unwritten",
     FaultKind::uninitialised,
     "ld.shared.u32 %r3, [%r2+8]; red.global.add.u32 [%out], %r3;",
     {"register %r3", "shared address 0x428, tile + 0x8 (.shared, 64 bytes at 0x420)"}},
    {"register unwritten",
     FaultKind::uninitialised,
     "add.u32 %r4, %r5, 1; red.global.add.u32 [%out], %r4;",
     {"register %r4", "read register %r5"}},
    {"an mbarrier stored to",
     FaultKind::barrier_misuse,
     "mbarrier.init.shared::cta.b64 [tile+16], 3; st.shared.u32 [tile+20], 1;",
     {"tile + 0x14", "mbarrier 0x430: phase 0 (parity 0), pending 3 of 3 arrivals, tx 0 bytes"}},
    {"no mbarrier",
     FaultKind::barrier_misuse,
     "mbarrier.arrive.shared::cta.b64 %rd1, [other+8];",
     {"shared address 0x408", "other + 0x8 (.shared, 32 bytes at 0x400)"}},
    {"too many arrivals",
     FaultKind::barrier_misuse,
     "mbarrier.init.shared::cta.b64 [tile], 1; mbarrier.arrive.shared::cta.b64 %rd1, [tile], 2;",
     {"more arrivals than the phase has pending", "tile + 0x0", "pending 1 of 1",
      "nobody has arrived there since mbarrier.init"}},
    {"a rule of one instruction",
     FaultKind::illegal_instruction,
     "shfl.sync.idx.b32 %r4, %r0, 0, 31, 1;",
     {"membermask 0x00000001"}},
    {"a count that is no multiple of 32",
     FaultKind::barrier_misuse,
     "mov.u32 %r3, 40; bar.sync 1, %r3;",
     {"bar.sync at barrier 1 for 40 threads"}},
    {"trap", FaultKind::assertion, "trap;", {"executed trap"}},
    {"instruction budget", FaultKind::watchdog, "L: bra L;", {"EMU_MAX_INSTRUCTIONS"}},
    {"asynchronous work",
     FaultKind::illegal_address,
     "mbarrier.init.shared::cta.b64 [tile], 1; fence.proxy.async;"
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [tile], 16; add.u64 %rd2, %out, 256;\n"
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+16], [%rd2], 16, [tile];"
     "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [tile], 0; @!%p1 bra W;",
     {"in asynchronous work", "effect of PTX line", "beyond the end of the buffer",
      "cp.async.bulk.shared::cta"}},
};

const Row in_a_warp[] = {
    {"tensor memory not allocated",
     FaultKind::tensor_memory,
     "mov.u32 %r3, 0x00200000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];",
     {"column 0", "no tensor memory is allocated"}},
    {"tensor memory used before the wait",
     FaultKind::ordering,
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32; ld.shared.u32 %r3, "
     "[tile];"
     "add.u32 %r3, %r3, 0x00200000;"
     "mov.u32 %r5, 1; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r5};"
     "tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];"
     "add.u32 %r6, %r4, 1;",
     {"register %r4", "tcgen05.wait::ld"}},
    {"lanes missing",
     FaultKind::illegal_instruction,
     "setp.eq.u32 %p1, %r0, 40; @%p1 bra END; barrier.cluster.arrive.aligned; END: mov.u32 %r9, 0;",
     {"is .aligned"}},
};

void check(const Row& row, const char* prologue, const char* threads) {
  const exec_test::SettingsGuard guard;
  emu::settings().order = emu::Order::latest;
  emu::settings().formal = emu::Reaction::stop;
  emu::settings().max_instructions = 5000;
  FaultKind kind{};
  const std::string report =
      exec_test::fault(std::string(prologue) + row.body, {{2}, {64}, {}}, &kind, memory);
  CAPTURE(row.what, report);
  CHECK(kind == row.kind);
  for (const char* part : {" in kernel k", "block (1,0,0)", "warp 1", threads, "PTX line "})
    CHECK(contains(report, part));
  for (const char* part : row.parts) CHECK(contains(report, part));
}

}  // namespace

TEST_CASE(
    "every report names kernel and block and warp and thread and PTX line and address and object") {
  for (const Row& row : in_one_thread) check(row, one, "thread (37,0,0), lanes 0x00000020");
  for (const Row& row : in_a_warp) check(row, whole, "thread (32,0,0) to (63,0,0), lanes 0x");
}

TEST_CASE("a report of one lane of many names that lane's thread in three dimensions") {
  const std::string report = exec_test::fault(
      "mov.u32 %r0, %laneid; mul.wide.u32 %rd0, %r0, 16; add.s64 %rd0, %rd0, %out;"
      "st.global.u32 [%rd0], 1;",
      {{}, {4, 4, 2}, {}});
  CHECK(contains(report, "thread (0,0,1), lanes 0x00010000"));
}

TEST_CASE("memory that was freed is named as such") {
  emu::GlobalMemory memory_of_device(1 << 20);
  const uint64_t first = memory_of_device.allocate(64, "the first"),
                 second = memory_of_device.allocate(64, "the second");
  REQUIRE(memory_of_device.free(first));
  try {
    memory_of_device.at(first + 8, 4, 4, "load");
    FAIL("no fault");
  } catch (const emu::Fault& fault) {
    CHECK(contains(fault.text, "0x8 bytes into the first ["));
    CHECK(contains(fault.text, "which was freed"));
  }
  CHECK(memory_of_device.at(second, 64, 4, "load"));
}

TEST_CASE("a deadlock is the graph of who waits for whom and nothing else") {
  const exec_test::SettingsGuard guard;
  emu::settings().order = emu::Order::latest;
  FaultKind kind{};
  // The barrier expects one arrival. Warp 1 arrives once, which ends the first phase; the second
  // phase never ends.
  const std::string report = exec_test::fault(R"(
    mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [tile], 1; mbarrier.init.shared::cta.b64 [tile+8], 1;
    READY: bar.sync 0;
    setp.ne.u32 %p0, %r0, 32; @%p0 bra WAIT; mbarrier.arrive.shared::cta.b64 %rd1, [tile];
    WAIT: setp.ge.u32 %p0, %r0, 32; @%p0 bra END;
    FIRST: mbarrier.try_wait.parity.shared::cta.b64 %p1, [tile], 0; @!%p1 bra FIRST;
    SECOND: mbarrier.try_wait.parity.shared::cta.b64 %p1, [tile], 1; @!%p1 bra SECOND;
    END: bar.sync 1;)",
                                              {{}, {64}, {}}, &kind, memory);
  CAPTURE(report);
  CHECK(kind == FaultKind::deadlock);
  CHECK(contains(report,
                 "warp 0 lanes 0xffffffff wait for mbarrier 0x400: phase 1 (parity 1), "
                 "pending 1 of 1 arrivals, tx 0 bytes, PTX line"));
  CHECK(contains(report, "arrived so far: warp 1 by mbarrier.arrive, PTX line"));
  CHECK(contains(report, ", 1 times, missing since phase 1\n"));
  CHECK(contains(report, "warp 1 lanes 0xffffffff wait for bar.sync at barrier 1"));
  CHECK(contains(report,
                 "barrier 1 (whole CTA): warp 1 lanes 0xffffffff arrived; "
                 "warp 0 lanes 0xffffffff have not"));
  CHECK(!contains(report, "barrier.cluster"));
  CHECK(!contains(report, "0x408"));  // no thread waits for the other mbarrier
}

TEST_CASE("a kernel is named as a person knows it however long its symbol is") {
  using emu::report::kernel_name;
  CHECK(kernel_name("matmul_kernel") == "matmul_kernel");
  CHECK(kernel_name("_ZN3lib3addIfEEvPT_") == "void lib::add<float>(float*)");
  std::string arguments;
  for (int i = 0; i < 200; ++i) arguments += "NS_5layerI" + std::to_string(i) + "E";
  const std::string path = "_ZN7cutlass13device_kernel";
  CHECK(kernel_name(path + "I" + arguments) == "cutlass::device_kernel<...> #1");
  CHECK(kernel_name(path + "If" + arguments) == "cutlass::device_kernel<...> #2");
  CHECK(kernel_name(path + "I" + arguments) == "cutlass::device_kernel<...> #1");
  CHECK(kernel_name("_ZN38_GLOBAL__N__0123456789abcdef_4_k_cu_ff3runI" + arguments) ==
        "(anonymous namespace)::run<...> #1");
  CHECK(kernel_name("_Z3runI" + arguments) == "run<...> #1");
  CHECK(kernel_name("_ZN9999abc" + arguments).substr(0, 20) == "_ZN9999abcNS_5layerI");
  CHECK(kernel_name(std::string(1585, 'k')).size() < 70);
  // Demangled, but longer than a line.
  CHECK(kernel_name("_ZN3lib3addI" + std::string(40, 'f') + "EEvv") == "lib::add<...> #1");
}

TEST_CASE("a long instruction is cut and a CTA alone names no cluster") {
  const std::string report = exec_test::fault(
      "setp.eq.u32 %p1, 0, 1; mov.u32 %r1, 1; @!%p1 ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, "
      "%r6, %r7, %r8}, [%out+0x0000000000001024]; mov.u32 %r2, 2;");
  CHECK(contains(report, ": @!%p1 ld.global.v8.b32 {%r1, %r2"));
  CHECK(contains(report, " .."));
  CHECK(!contains(report, "mov.u32"));
  CHECK(!contains(report, "cluster"));
  CHECK(contains(exec_test::fault("trap;", {{2}, {}, {2}}), ", cluster (0,0,0) rank "));
}

TEST_CASE("a race past an mbarrier whose count is wrong says the count and who has arrived") {
  const exec_test::SettingsGuard guard;
  // Both warps store and arrive, the reader waits for one of them.
  const std::string report = exec_test::fault(R"(
    mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [tile], 32;
    READY: bar.sync 0; setp.ge.u32 %p0, %r0, 64; @%p0 bra WAIT;
    setp.lt.u32 %p1, %r0, 32; mov.u32 %r5, 0; @%p1 bra STORE;
    LATER: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 20000; @%p1 bra LATER;
    STORE: shl.b32 %r1, %r0, 2; mov.u32 %r2, big; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %r0;
    mbarrier.arrive.shared::cta.b64 _, [tile]; bra END;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [tile], 0; @!%p1 bra WAIT;
    ld.shared.u32 %r3, [big]; ld.shared.u32 %r4, [big+128];
    st.global.u32 [%out], %r3; END: bar.sync 1;)",
                                              {{}, {96}, {}}, nullptr,
                                              ".shared .align 8 .b64 tile; .shared .align 16 .b32 "
                                              "big[64];");
  CAPTURE(report);
  CHECK(contains(report, "no barrier, fence or wait orders the two"));
  CHECK(contains(report, "warp 2 has waited for mbarrier 0x400, whose count is 32:"));
  CHECK(contains(report, "arrived so far: warp 0 by mbarrier.arrive"));
}
