// SPDX-License-Identifier: MIT
// Forms that ordinary compilers write and hand-written PTX seldom has.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using Words = std::vector<uint32_t>;

namespace {

constexpr exec_test::Shape warp{{}, {32}, {}};
const std::string own_word =
    "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %out;";

std::string refusal(const std::string& statement) {
  return ptx_test::verdict(ptx_test::module_text(statement));
}

}  // namespace

TEST_CASE("the one value of a load or store may stand in braces") {
  CHECK(run("ld.global.b32 { %r1 }, [%out]; add.u32 %r1, %r1, 1; st.global.b32 [%out+4], { %r1 };"
            "st.global.b16 [%out+8], { 7 };",
            {}, {5, 0, 0}) == Words{5, 6, 7});
  CHECK(contains(refusal("ld.global.b32 { r1, r2 }, [d1];"), "no vector here"));
  CHECK(contains(refusal("add.u32 { r1 }, r2, r3;"), "no vector here"));
  CHECK(contains(refusal("atom.global.add.u32 { r1 }, [d1], r3;"), "no vector here"));
}

TEST_CASE("brx.idx goes lane by lane where its list says and lanes meet behind it") {
  const std::string table =
      own_word +
      "and.b32 %r1, %r0, 3; LIST: .branchtargets A, B, A, C;"
      "mov.u32 %r2, 9; GUARD brx.idx %r1, LIST; bra END;"
      "A: mov.u32 %r2, 10; bra END; B: mov.u32 %r2, 11; bra END;"
      "C: mov.u32 %r2, 12; END: bar.warp.sync -1; vote.sync.ballot.b32 %r3, 1, -1;"
      "popc.b32 %r3, %r3; mad.lo.u32 %r2, %r3, 100, %r2;"
      "st.global.u32 [%rd1], %r2;";
  const auto with = [&](const std::string& guard) {
    std::string text = table;
    return text.replace(text.find("GUARD"), 5, guard);
  };
  Words out = run(with(""), warp, Words(32));
  CHECK(Words(out.begin(), out.begin() + 4) == Words{3210, 3211, 3210, 3212});
  out = run(with("setp.lt.u32 %p1, %r0, 2; @%p1"), warp, Words(32));
  CHECK(Words(out.begin(), out.begin() + 4) == Words{3210, 3211, 3209, 3209});
  out = run(with("setp.lt.u32 %p1, %r0, 2; @!%p1"), warp, Words(32));
  CHECK(Words(out.begin(), out.begin() + 4) == Words{3209, 3209, 3210, 3212});
}

TEST_CASE("brx.idx beyond its list is a fault and one without a list is refused") {
  const std::string list = "LIST: .branchtargets A, A; mov.u32 %r1, 2; ";
  emu::FaultKind kind{};
  CHECK(contains(fault(list + "brx.idx %r1, LIST; A:", {}, &kind),
                 "brx.idx with the index 2, beyond the end of its list"));
  CHECK(kind == emu::FaultKind::illegal_instruction);
  CHECK(contains(fault("LIST: .branchtargets A, A; brx.idx %r1, LIST; A:"), "nobody has written"));
  CHECK(contains(refusal("brx.idx r1, LIST;"), "'LIST' is no list of .branchtargets above this"));
  CHECK(
      contains(refusal("LIST: .branchtargets A; brx.idx r1, LIST;"), "label 'A' is not in scope"));
  CHECK(contains(refusal("LIST: .branchtargets A; brx.idx d1, LIST; A:"), "u32"));
  CHECK(contains(refusal("LIST: .branchtargets A; LIST: .branchtargets A; A:"), "stands twice"));
}

TEST_CASE("the fourth part of a special register is 0") {
  CHECK(run(own_word + "mov.u32 %r1, %ntid.w; mov.u32 %r2, %tid.w; mov.u32 %r3, %nctaid.w;"
                       "or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; st.global.u32 [%rd1], %r1;",
            warp, Words(32, 5)) == Words(32, 0));
  CHECK(contains(refusal("mov.u32 r1, %tid.v;"), "unknown name"));
}

TEST_CASE("isspacep.param::entry and istypep") {
  CHECK(run("isspacep.param::entry %p0, %out; isspacep.global %p1, %out; istypep.texref %p2, %out;"
            "selp.u32 %r1, 1, 0, %p0; selp.u32 %r2, 2, 0, %p1; selp.u32 %r3, 4, 0, %p2;"
            "add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%out], %r1;",
            {}, {0}) == Words{2});
}

TEST_CASE("cvt.pack saturates two values and shifts the third") {
  using exec_test::eval;
  CHECK(eval("cvt.pack.sat.u16.s32 d, a, b;", {70000, 0xFFFFFFFF}) == 0xFFFF0000);
  CHECK(eval("cvt.pack.sat.s16.s32 d, a, b;", {70000, 0xFFFF0000}) == 0x7FFF8000);
  CHECK(eval("cvt.pack.sat.u8.s32.b32 d, a, b, c;", {1, 300, 0xAABBCCDD}) == 0xCCDD01FF);
  CHECK(eval("cvt.pack.sat.s8.s32.b32 d, a, b, c;", {0xFFFFFF00, 5, 0x1234}) == 0x12348005);
  CHECK(eval("cvt.pack.sat.u4.s32.b32 d, a, b, c;", {3, 99, 0x123456}) == 0x1234563F);
  CHECK(eval("cvt.pack.sat.s4.s32.b32 d, a, b, c;", {0xFFFFFFFF, 99, 1}) == 0x1F7);
  CHECK(eval("cvt.pack.sat.u2.s32.b32 d, a, b, c;", {2, 9, 1}) == 0x1B);
  CHECK(eval("cvt.pack.sat.s2.s32.b32 d, a, b, c;", {0xFFFFFFFF, 9, 0}) == 0xD);
  CHECK(refusal("cvt.pack.sat.u8.s32 r1, r2, r3;") != "accepted");
}
