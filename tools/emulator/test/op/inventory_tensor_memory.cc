// SPDX-License-Identifier: MIT
// The loads from tensor memory of inventory.def, each against the manual's picture of its shape,
// and the commit that arrives in several CTAs.
#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;

namespace {

const char* const head = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out)
{
.reg .pred %p, %q;
.reg .b16 %mask;
.reg .b32 %r<8>, %d<128>, %t, %thread, %bar;
.reg .b64 %rd<4>, %out;
.shared .align 4 .b32 taddr;
.shared .align 8 .b64 done;
ld.param.u64 %out, [k_out];
mov.u32 %thread, %tid.x;
)";

std::string vector(const char* reg, uint32_t n) {
  std::string out = "{";
  for (uint32_t i = 0; i < n; ++i) out += format("%s%s%u", i ? ", " : "", reg, i);
  return out + "}";
}

// Lane l, column c of tensor memory has l << 16 | c; every thread stores what it loads.
std::string loads(const std::string& opcode, uint32_t registers) {
  std::string text = head;
  text +=
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 256;\nbar.warp.sync -1;\n"
      "ld.shared.u32 %t, [taddr]; shl.b32 %r0, %thread, 16;\n";
  for (uint32_t at = 0; at < 256; at += 128) {
    for (uint32_t i = 0; i < 128; ++i) text += format("add.u32 %%d%u, %%r0, %u;\n", i, at + i);
    text += format("tcgen05.st.sync.aligned.32x32b.x128.b32 [%%t+%u], %s;\n", at,
                   vector("%d", 128).c_str());
  }
  text += "tcgen05.wait::st.sync.aligned;\n" + opcode + " " + vector("%d", registers) +
          ", [%t];\ntcgen05.wait::ld.sync.aligned;\n" +
          format("mul.wide.u32 %%rd0, %%thread, %u; add.u64 %%out, %%out, %%rd0;\n", registers * 4);
  for (uint32_t i = 0; i < registers; ++i)
    text += format("st.global.u32 [%%out+%u], %%d%u;\n", 4 * i, i);
  return text + "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 256;\nret;\n}\n";
}

std::vector<uint32_t> run(const std::string& text, uint32_t words, uint32_t ctas) {
  GlobalMemory memory(1 << 24);
  const uint64_t out = memory.allocate(words * 4, "out");
  unit::run(text, memory, {ctas}, unit::parameters(out));
  return unit::download<uint32_t>(memory, out, words);
}

// .32x32b: register j of thread t is lane t, column j. .16x256b: four registers for eight columns,
// two neighbours of lane t / 4, two of lane t / 4 + 8 (PTX ISA 9.7.16.3.4).
uint32_t cell(bool wide, uint32_t t, uint32_t j) {
  const uint32_t lane = wide ? t / 4 + 8 * (j / 2 % 2) : t;
  const uint32_t column = wide ? j / 4 * 8 + 2 * (t % 4) + j % 2 : j;
  return lane << 16 | column;
}

void check_ptxas(const std::string& text) {
  if (ptx_test::have_ptxas()) CHECK(ptx_test::ptxas_verdict(text) == "");
}

}  // namespace

TEST_CASE("the loads from tensor memory of the inventory give each thread its cells") {
  const struct {
    const char* opcode;
    uint32_t registers;
  } forms[] = {{"tcgen05.ld.sync.aligned.32x32b.x16.b32", 16},
               {"tcgen05.ld.sync.aligned.32x32b.x64.b32", 64},
               {"tcgen05.ld.sync.aligned.32x32b.x128.b32", 128},
               {"tcgen05.ld.sync.aligned.16x256b.x4.b32", 16},
               {"tcgen05.ld.sync.aligned.16x256b.x8.b32", 32},
               {"tcgen05.ld.sync.aligned.16x256b.x16.b32", 64},
               {"tcgen05.ld.sync.aligned.16x256b.x32.b32", 128}};
  for (const auto& form : forms) {
    const bool wide = std::string(form.opcode).find(".16x256b") != std::string::npos;
    const std::vector<uint32_t> d = run(loads(form.opcode, form.registers), 32 * form.registers, 1);
    size_t wrong = 0;
    for (uint32_t t = 0; t < 32; ++t)
      for (uint32_t j = 0; j < form.registers; ++j)
        wrong += d[t * form.registers + j] != cell(wide, t, j);
    INFO(form.opcode);
    CHECK(wrong == 0);
    if (form.registers == 16) check_ptxas(loads(form.opcode, form.registers));
  }
}

TEST_CASE("a multicast commit of one CTA arrives at the barrier of every CTA of the mask") {
  const std::string text = std::string(head) + R"(
mov.u32 %bar, done;
setp.ne.u32 %q, %thread, 0;
@!%q mbarrier.init.shared::cta.b64 [%bar], 2;
@!%q fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mov.u16 %mask, 3;
@%q bra WAIT;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %mask;
WAIT:
bar.warp.sync -1;
LOOP:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
@!%p bra.uni LOOP;
mov.u32 %r0, %cluster_ctarank;
mul.wide.u32 %rd0, %r0, 4;
add.u64 %out, %out, %rd0;
@!%q st.global.u32 [%out], 7;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ret;
}
)";
  check_ptxas(text);
  for (const Order order : {Order::soonest, Order::latest, Order::random}) {
    OrderGuard guard(order, 2);
    CHECK(run(text, 2, 2) == std::vector<uint32_t>{7, 7});
    // One CTA commits for itself alone: the other waits for ever.
    CHECK(unit::says(
        unit::fault(
            FaultKind::deadlock,
            [&] { run(unit::replaced(text, "mov.u16 %mask, 3;", "mov.u16 %mask, 1;"), 2, 2); }),
        "mbarrier"));
  }
}
