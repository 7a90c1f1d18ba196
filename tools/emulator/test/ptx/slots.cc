// SPDX-License-Identifier: MIT
// Which registers share a slot, and that none finds what another has left there.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

uint32_t slots(const std::string& body) {
  return ptx_test::load(ptx_test::module_text(body))->functions[0]->register_slots;
}
// The slot of an instruction's operand.
uint32_t slot(const std::string& body, size_t instruction, size_t operand) {
  return ptx_test::code(body).at(instruction).ops.at(operand).reg;
}

}  // namespace

TEST_CASE("values whose lives do not meet share a slot") {
  const std::string chain =
      "mov.b32 r1, 1; mov.b32 r2, r1; mov.b32 r3, r2; mov.b32 r4, r3; st.global.b32 [d1], r4;";
  CHECK(slots(chain) == 3);  // d1 is read before it is written
  CHECK(slot(chain, 0, 0) == slot(chain, 2, 0));
  CHECK(slot(chain, 1, 0) == slot(chain, 3, 0));
  CHECK(slot(chain, 0, 0) != slot(chain, 1, 0));
  const std::string half = "mov.b64 d2, 1; mov.b64 {r1, r2}, d2; mov.b32 r3, r2;";
  CHECK(ptx_test::code(half)[1].ops[0].elements[0].reg != slot(half, 2, 1));
  CHECK(slots("mov.b32 r1, 1; mov.b32 r2, 2; add.u32 r3, r1, r2; add.u32 r4, r3, r1;") == 3);
}

TEST_CASE("a register that lives beyond its block has a slot of its own") {
  const std::string body =
      "mov.b32 r1, 1; mov.b32 r2, r1; L: mov.b32 r3, 3; mov.b32 r4, r3; mov.b32 r5, r2;";
  for (const size_t other : {2u, 3u, 4u}) CHECK(slot(body, 1, 0) != slot(body, other, 0));
  CHECK(slot(body, 0, 0) == slot(body, 2, 0));
  const std::string loop = "mov.b32 r1, 1; L: add.u32 r2, r1, r1; mov.b32 r3, 3; @p1 bra L;";
  CHECK(slot(loop, 0, 0) != slot(loop, 2, 0));
}

TEST_CASE("a register that may lack a value has a slot of its own") {
  const char* const first[] = {"@p1 mov.b32 r2, 2;", "add.u32 r2, r2, 1;", "add.u32 r3, r2, 1;"};
  for (const std::string access : first) {
    const std::string body = "mov.b32 r1, 1; mov.b32 r4, r1; " + access + " mov.b32 r5, r2;";
    INFO(body);
    CHECK(slot(body, 3, 1) != slot(body, 0, 0));
    CHECK(slot(body, 3, 1) != slot(body, 1, 0));
  }
}

TEST_CASE("a register that work owns after its instruction has a slot of its own") {
  const std::string body =
      "mov.b32 r1, 1; mov.b32 r2, r1; mov.b32 r3, 3; mov.b32 r4, 4; mov.b32 r5, r4; "
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [r1], {r3}; mov.b32 r6, 6; mov.b32 r7, 7;";
  for (const size_t other : {0u, 1u, 3u, 4u, 6u, 7u})
    CHECK(slot(body, 2, 0) != slot(body, other, 0));
}

TEST_CASE("the two slots of 128 bits stay together") {
  const std::string body =
      "mov.b32 r1, 1; mov.b64 d1, 1; mov.b128 q1, {d1, d1}; mov.b64 d2, 2; mov.b128 q2, {d2, d2};"
      " mov.b128 {d3, d4}, q1; mov.b128 {d5, d6}, q2; mov.b32 r2, 1;";
  const uint32_t first = slot(body, 2, 0), second = slot(body, 4, 0);
  CHECK((first + 2 <= second || second + 2 <= first));
  for (const size_t other : {0u, 1u, 3u, 7u})
    for (const uint32_t q : {first, second}) CHECK((slot(body, other, 0) - q) > 1);
}

TEST_CASE("a report names a register that shares its slot") {
  const std::string report = fault(
      ".shared .align 4 .b32 at; mov.u32 %r0, 1; st.global.u32 [%out], %r0;"
      "ld.shared.u32 %r1, [at]; add.u32 %r2, %r1, 1; st.global.u32 [%out], %r2;",
      {});
  INFO(report);
  CHECK(contains(report, "register %r2 is read by lanes 0x00000001"));
}

// %rd1 and %rd2 share a slot. Half of the warp still holds %rd1 there while the other half computes
// %rd2.
TEST_CASE("lanes that have diverged keep the reasons of registers that share a slot") {
  for (const std::string other : {"add.u64 %rd2, %rd9, 8;", "mov.b64 %rd2, %rd9;"}) {
    const std::string report = fault(R"(
        .shared .align 8 .b64 at;
        mov.u32 %r0, %laneid;
        setp.lt.u32 %p0, %r0, 16;
        @%p0 bra Q;
        ld.shared.u64 %rd1, [at];
        bar.warp.sync -1;
        bar.warp.sync -1;
        st.global.u32 [%rd1], 0;
        bra J;
        Q: bar.warp.sync -1;
        )" + other + R"(
        bar.warp.sync -1;
        J:)",
                                     {{}, {32}, {}});
    INFO(report);
    CHECK(contains(report, "register %rd1 is read by lanes 0x00010000"));
    CHECK(contains(report, "the load of PTX line"));
    CHECK(!contains(report, "%rd9"));
  }
}

TEST_CASE("a vector's missing register is named") {
  const std::string report =
      fault("mov.b32 %r4, 7; mov.v2.b32 {%r1, %r2}, {%r3, %r4}; st.global.u32 [%out], %r1;");
  INFO(report);
  CHECK(contains(report, "register %r1 is read by lanes 0x00000001"));
  CHECK(contains(report, "read register %r3, which was never written"));
}
