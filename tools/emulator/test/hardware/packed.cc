// SPDX-License-Identifier: MIT
// tcgen05.st.unpack::16b and tcgen05.ld.pack::16b: a register is the low halves of two columns.
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;

namespace {

const char* const head = R"(
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_out) {
.reg .b32 %d<8>, %t, %thread;
.reg .b64 %out, %rd;
.shared .align 4 .b32 taddr;
ld.param.u64 %out, [k_out];
mov.u32 %thread, %tid.x;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 64;
ld.shared.u32 %t, [taddr];
)";
const char* const tail = R"(
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd, %thread, 16;
add.u64 %out, %out, %rd;
st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;
ret;
}
)";

// Four registers of each of 32 threads.
std::vector<uint32_t> run(const std::string& body) {
  GlobalMemory memory{1 << 20};
  const uint64_t out = memory.allocate(512, "out");
  unit::run(head + body + tail, memory, {}, unit::parameters(out));
  return unit::download<uint32_t>(memory, out, 128);
}

// Register j of thread t: 0xBB00 + ... in the high half, 0xAA00 + ... in the low one.
const char* const values = R"(
shl.b32 %d0, %thread, 3;
or.b32 %d0, %d0, 0xB000A000;
add.u32 %d1, %d0, 0x00010001;
add.u32 %d2, %d0, 0x00020002;
add.u32 %d3, %d0, 0x00030003;
)";
uint32_t low(uint32_t thread, uint32_t reg) { return (0xA000 | thread << 3) + reg; }
uint32_t high(uint32_t, uint32_t reg) { return 0xB000 + reg; }

}  // namespace

TEST_CASE("tcgen05.st.unpack::16b puts the halves of a register into two columns") {
  for (const Order order : {Order::soonest, Order::latest}) {
    OrderGuard guard(order, 1);
    // Columns 2j and 2j + 1 of lane t.
    const auto d =
        run(std::string(values) +
            "tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [%t], {%d0, %d1, %d2, %d3};\n"
            "tcgen05.wait::st.sync.aligned;\n"
            "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%d0, %d1, %d2, %d3}, [%t+2];\n");
    for (uint32_t t = 0; t < 32; ++t)
      for (uint32_t j = 0; j < 4; ++j)
        CHECK(d[t * 4 + j] == (j % 2 ? high(t, 1 + j / 2) : low(t, 1 + j / 2)));
  }
}

TEST_CASE("tcgen05.ld.pack::16b takes the low halves of two columns in every shape") {
  OrderGuard guard(Order::latest, 1);
  const std::string store = std::string(values) +
                            "tcgen05.st.sync.aligned.16x256b.x1.unpack::16b.b32 [%t], "
                            "{%d0, %d1, %d2, %d3};\ntcgen05.wait::st.sync.aligned;\n";
  const auto same =
      run(store + "tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {%d0, %d1, %d2, %d3}, [%t];\n");
  for (uint32_t t = 0; t < 32; ++t)
    for (uint32_t j = 0; j < 4; ++j) CHECK(same[t * 4 + j] == (high(t, j) << 16 | low(t, j)));
  // Packed column c of lane l: from 16x256b, register 2h + b of thread 4 (l % 8) + c / 2, b = c %
  // 2.
  const auto other = run(
      store + "tcgen05.ld.sync.aligned.16x32bx2.x4.pack::16b.b32 {%d0, %d1, %d2, %d3}, [%t], 8;\n");
  for (uint32_t t = 0; t < 32; ++t)
    for (uint32_t j = 0; j < 4; ++j) {
      const uint32_t lane = t % 16, column = j + (t < 16 ? 0 : 4);  // 8 columns on: 4 packed ones
      const uint32_t thread = 4 * (lane % 8) + column / 2, reg = 2 * (lane / 8) + column % 2;
      CHECK(other[t * 4 + j] == (high(thread, reg) << 16 | low(thread, reg)));
    }
}

TEST_CASE("a packed load needs both of its columns") {
  OrderGuard guard(Order::latest, 1);
  const std::string text =
      std::string(values) +
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [%t], {%d0};\ntcgen05.wait::st.sync.aligned;\n"
      "tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%d0}, [%t];\n";
  CHECK(unit::says(unit::fault(FaultKind::uninitialised, [&] { run(text); }), "holds no value"));
  const std::string outside =
      std::string(values) + "tcgen05.ld.sync.aligned.32x32b.x64.pack::16b.b32 {";
  std::string registers;
  for (int i = 0; i < 64; ++i) registers += i ? ", %d0" : "%d1";
  CHECK(unit::says(
      unit::fault(FaultKind::tensor_memory, [&] { run(outside + registers + "}, [%t];\n"); }),
      "column 64"));
}
