// SPDX-License-Identifier: MIT
// Operands and modifiers of single instructions: the oddities of real PTX, and what is refused.
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using namespace ptx_test;
using emu::ptx::Instr;
using emu::ptx::Mod;
using emu::ptx::Operand;
using emu::ptx::Space;
using emu::ptx::Special;
using emu::ptx::Type;
using Kind = Operand::Kind;

Instr one(const std::string& instruction) { return code(instruction).at(0); }

}  // namespace

TEST_CASE("modifiers may stand in any order and types keep theirs") {
  const char* const orders[] = {
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [r1], [d1, {r2, r3, r4}], [r5], d2;",
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_"
      "hint"
      ".cta_group::2 [r1], [d1, {r2, r3, r4}], [r5], d2;"};
  for (const char* text : orders) {
    const Instr in = one(text);
    CHECK(std::string(in.opcode) == "cp.async.bulk.tensor");
    CHECK(in.has(Mod::dim_3));
    CHECK(in.has(Mod::cta_group_2));
    CHECK(in.has(Mod::shared_cluster));
    CHECK(in.has(Mod::mbarrier_complete_tx_bytes));
    REQUIRE(in.ops.size() == 4);
    CHECK(in.ops[1].elements.size() == 3);
  }
  const Instr cvt = one("cvt.rn.f16x2.f32 r1, f2, f3;");
  REQUIRE(cvt.type_count == 2);
  CHECK(cvt.type(0) == Type::f16x2);
  CHECK(cvt.type(1) == Type::f32);
}

TEST_CASE("modifiers that are part of the name keep their place") {
  CHECK(body_verdict("mul.lo.s32 r1, r2, r3;") == "accepted");
  CHECK(body_verdict("mul.s32.lo r1, r2, r3;") ==
        "1:1: no form of mul has these modifiers and types: 'mul.s32.lo r1, r2, r3'");
  CHECK(body_verdict("cp.async.ca.global.shared [r1], [d1], 16;").substr(0, 5) == "1:1: ");
}

TEST_CASE("integer constants take the instruction's width whatever their sign") {
  CHECK(one("mov.u32 r1, -1;").ops[1].imm == 0xffffffff);
  CHECK(one("mov.b16 h1, 70000;").ops[1].imm == 70000 - 65536);
  CHECK(one("or.b64 d1, d2, 4611686293305294848;").ops[2].imm == 4611686293305294848);
  CHECK(one("or.b64 d1, d2, 0x8000000000000000;").ops[2].imm == INT64_MIN);
  CHECK(one("mov.pred p1, -1;").ops[1].imm == 1);
  CHECK(one("mov.pred p2, 0;").ops[1].imm == 0);
  CHECK(one("add.s32 r1, r2, WARP_SZ;").ops[2].imm == 32);
}

TEST_CASE("real constants have the bits of the instruction's type") {
  CHECK(one("mov.f32 f1, 0f3F800000;").ops[1].imm == 0x3f800000);
  CHECK(one("mov.b32 r1, 0f3F800000;").ops[1].imm == 0x3f800000);
  CHECK(one("mov.f32 f1, 0d3FF8000000000000;").ops[1].imm == 0x3fc00000);
  CHECK(one("add.f32 f1, f2, -1.5;").ops[2].imm == 0xbfc00000);
  CHECK(one("mov.f64 g1, 0f3F800000;").ops[1].imm == 0x3ff0000000000000);
  CHECK(body_verdict("add.f32 f1, f2, 1;") ==
        "1:17: this constant cannot have type .f32 in 'add.f32 f1, f2, 1'");
  CHECK(body_verdict("add.s32 r1, r2, 0f3F800000;") ==
        "1:17: this constant cannot have type .s32 in 'add.s32 r1, r2, 0f3F800000'");
}

TEST_CASE("an address is a register or a variable with a constant offset") {
  const Instr minus = one("ld.global.u32 r1, [d1+-8];");
  CHECK(minus.ops[1].kind == Kind::address);
  CHECK(minus.ops[1].imm == -8);
  CHECK(!minus.ops[1].base_is_symbol);
  const Instr param = one("ld.param.u64 d1, [out];");
  CHECK(param.ops[1].base_is_symbol);
  CHECK(param.ops[1].space == Space::param);
  CHECK(param.ops[1].imm == 0);
  CHECK(one("st.shared.u32 [s+4], r1;").ops[0].imm == 0x404);
  CHECK(one("ld.shared.u32 r1, [r2];").ops[1].imm == 0);
  CHECK(body_verdict("ld.global.u32 r1, [s];") ==
        "1:19: 's' is not in the instruction's state space in 'ld.global.u32 r1, [s]'");
  CHECK(body_verdict("ld.global.u32 r1, [r2];") ==
        "1:19: register 'r2' of type .b32 as a 64-bit address in 'ld.global.u32 r1, [r2]'");
  CHECK(body_verdict("ld.global.u32 r1, [1024];") ==
        "1:19: an absolute address is no operand in 'ld.global.u32 r1, [1024]'");
}

TEST_CASE("a variable's name is its address") {
  CHECK(one("mov.u32 r1, s;").ops[1].kind == Kind::symbol);
  CHECK(one("mov.u32 r1, s;").ops[1].imm == 0x400);
  CHECK(one("mov.u64 d1, s+16;").ops[1].imm == 0x410);
  CHECK(one("mov.b64 d1, out;").ops[1].space == Space::param);
  CHECK(one("mov.b64 d1, loc;").ops[1].space == Space::local);
  CHECK(one("mapa.shared::cluster.u32 r1, s, r2;").ops[1].imm == 0x400);
  CHECK(body_verdict("add.u32 r1, r2, s;") ==
        "1:17: a register expected, 's' is a variable in 'add.u32 r1, r2, s'");
}

TEST_CASE("special registers are sources of mov only") {
  const Instr in = one("mov.u32 r1, %ctaid.y;");
  CHECK(in.ops[1].kind == Kind::special);
  CHECK(in.ops[1].special == Special::ctaid_y);
  CHECK(one("mov.b32 r1, %cluster_ctarank;").ops[1].special == Special::cluster_ctarank);
  CHECK(one("mov.u64 d1, %globaltimer;").ops[1].special == Special::globaltimer);
  CHECK(body_verdict("add.u32 r1, r2, %tid.x;") ==
        "1:17: special register '%tid.x' can only be read by mov in 'add.u32 r1, r2, %tid.x'");
  CHECK(body_verdict("mov.u64 d1, %tid.x;") ==
        "1:13: special register '%tid.x' has 32 bits in 'mov.u64 d1, %tid.x'");
  CHECK(body_verdict("mov.u32 r1, %nosuch;") ==
        "1:13: unknown name '%nosuch' in 'mov.u32 r1, %nosuch'");
}

TEST_CASE("braces in operands are vectors with _ for what nobody wants") {
  const Instr unpack = one("mov.b64 {r1, _}, d1;");
  REQUIRE(unpack.ops[0].elements.size() == 2);
  CHECK(unpack.ops[0].elements[1].kind == Kind::sink);
  CHECK(one("mov.b32 r1, {b1, b2, b3, b4};").ops[1].elements.size() == 4);
  CHECK(one("mov.b32 r1, {h1, h2};").ops[1].elements.size() == 2);
  CHECK(one("st.global.v8.b32 [d1], {r1,r2,r3,r4,r5,r6,r7,r8};").ops[1].elements.size() == 8);
  CHECK(body_verdict("mov.b64 {_, _}, d1;") == "1:9: a vector of '_' only in 'mov.b64 {_, _}, d1'");
  CHECK(body_verdict("tcgen05.ld.sync.aligned.32x32b.x2.b32 {r1, _}, [r2];").find("'_' is not") !=
        std::string::npos);
  CHECK(body_verdict("tcgen05.ld.sync.aligned.16x256b.x2.b32 {r1, r2}, [r3];") ==
        "1:40: a vector of 8 expected in 'tcgen05.ld.sync.aligned.16x256b.x2.b32 {r1, r2}, [r3]'");
}

TEST_CASE("d|p is two operands and elect takes a sink") {
  const Instr shuffle = one("shfl.sync.idx.b32\tr2|p1, r9, 0, 31, -1;");
  REQUIRE(shuffle.ops.size() == 6);
  CHECK(shuffle.ops[1].declared == Type::pred);
  CHECK(one("shfl.sync.idx.b32 r2, r9, 0, 31, -1;").ops.size() == 5);
  CHECK(one("elect.sync _|p1, -1;").ops[0].kind == Kind::sink);
  CHECK(one("elect.sync r2|p1, r3;").ops[0].kind == Kind::reg);
  CHECK(body_verdict("elect.sync r2, r3;") == "1:16: '|' expected in 'elect.sync r2, r3'");
}

TEST_CASE(
    "registers are containers: only their width binds and ld and st and cvt take wider ones") {
  CHECK(body_verdict("add.f32 r1, r2, r3;") == "accepted");
  CHECK(body_verdict("mov.b32 f1, u2;") == "accepted");
  CHECK(body_verdict("cvt.rn.f16x2.f32 r1, f1, r1;") == "accepted");
  CHECK(body_verdict("ld.global.u8 r1, [d1];") == "accepted");
  CHECK(body_verdict("cvt.u32.u16 r1, r2;") == "accepted");
  CHECK(body_verdict("add.s32 f1, r2, r3;") ==
        "1:9: register 'f1' of type .f32, .s32 expected in 'add.s32 f1, r2, r3'");
  CHECK(body_verdict("mov.b32 r1, h2;") ==
        "1:13: register 'h2' of type .b16, .b32 expected in 'mov.b32 r1, h2'");
  CHECK(body_verdict("ld.global.u32 h1, [d1];") ==
        "1:15: register 'h1' of type .b16, .u32 expected in 'ld.global.u32 h1, [d1]'");
}

TEST_CASE("a .b128 register is two slots") {
  const auto c = code("mov.b128 q1, {d1, d2};\nmov.b128 {d3, d4}, q2;");
  CHECK(c[0].ops[0].declared == Type::b128);
  CHECK(c[1].ops[1].reg == c[0].ops[0].reg + 2);
}

TEST_CASE("mbarrier.try_wait has a state or a parity and may have a scope and a time limit") {
  CHECK(one("mbarrier.try_wait.parity.shared::cta.b64 p1, [r1], r2;").ops.size() == 3);
  CHECK(one("mbarrier.try_wait.parity.shared::cta.b64 p1, [r1], r2, 0x989680;").ops.size() == 4);
  CHECK(one("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p1, [r1], r2, r3;")
            .has(Mod::acquire));
  CHECK(one("mbarrier.try_wait.shared.b64 p1, [r1], d1;").ops[2].declared == Type::b64);
  CHECK(body_verdict("mbarrier.try_wait.parity.acquire.shared::cta.b64 p1, [r1], r2;") ==
        "1:1: .acquire does not go with the rest of "
        "'mbarrier.try_wait.parity.acquire.shared::cta.b64 p1, [r1], r2'");
  CHECK(body_verdict("mbarrier.try_wait.parity.shared::cluster.b64 p1, [r1], r2;") ==
        "1:1: .shared::cluster does not go with the rest of "
        "'mbarrier.try_wait.parity.shared::cluster.b64 p1, [r1], r2'");
}

TEST_CASE("an operand that belongs to a modifier is there exactly with it") {
  const std::string load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
  CHECK(body_verdict(load + " [r1], [d1], 32, [r2];") == "accepted");
  CHECK(body_verdict(load + ".multicast::cluster [r1], [d1], 32, [r2], h1;") == "accepted");
  CHECK(
      body_verdict(load + ".multicast::cluster [r1], [d1], 32, [r2];").find("operand is missing") !=
      std::string::npos);
  CHECK(body_verdict(load + " [r1], [d1], 32, [r2], d2;").find("one operand too many") !=
        std::string::npos);
  CHECK(one(load + ".L2::cache_hint [r1], [d1], 32, [r2], d2;").ops.size() == 5);
}

TEST_CASE("what is wrong with an instruction is said with place and text") {
  CHECK(body_verdict("  frobnicate.b32 r1, r2;") ==
        "1:3: unknown instruction 'frobnicate.b32 r1, r2'");
  CHECK(body_verdict("add.fast.s32 r1, r2, r3;") ==
        "1:4: unknown modifier .fast in 'add.fast.s32 r1, r2, r3'");
  CHECK(body_verdict("add.sat.u32 r1, r2, r3;") ==
        "1:1: .sat does not go with the rest of 'add.sat.u32 r1, r2, r3'");
  CHECK(body_verdict("add.sat.sat.s32 r1, r2, r3;") ==
        "1:8: .sat stands twice in 'add.sat.sat.s32 r1, r2, r3'");
  CHECK(body_verdict("tcgen05.wait::ld.aligned;") ==
        "1:1: .sync is missing in 'tcgen05.wait::ld.aligned'");
  CHECK(body_verdict("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster [r1];") ==
        "1:1: no form of tcgen05.commit has these modifiers and types: "
        "'tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster [r1]'");
  CHECK(body_verdict("add.s32 r1, r2, r3") == "2:1: ';' expected, found '}'");
  CHECK(body_verdict("add.s32 r1, r2;") ==
        "1:15: an operand is missing at the end in 'add.s32 r1, r2'");
  CHECK(body_verdict("not.pred p1, !p2;") == "accepted");
  CHECK(body_verdict("not.b32 r1, !r2;") ==
        "1:13: only a predicate can be negated in 'not.b32 r1, !r2'");
  CHECK(body_verdict("@r1 ret;") == "1:5: guard 'r1' is no predicate register");
}

TEST_CASE("each row of absent.def says what the instruction is that there is no form of") {
  const struct {
    std::string words, meaning;
  } rows[] = {
#define ABSENT(words, meaning) {words, meaning},
#include "tools/emulator/ptx/absent.def"
#undef ABSENT
  };
  for (const auto& row : rows)
    CHECK(body_verdict(row.words + ".x1 {r1}, [r2];") == "1:1: " + row.words + ", " + row.meaning +
                                                             ", is not emulated: '" + row.words +
                                                             ".x1 {r1}, [r2]'");
}

TEST_CASE("constants out of their range are refused") {
  CHECK(body_verdict("bar.sync 16;") ==
        "1:1: barrier 16 does not exist, there are 0 to 15 in 'bar.sync 16'");
  CHECK(body_verdict("bar.sync 0, 33;") ==
        "1:1: the number of threads is no multiple of the warp size in 'bar.sync 0, 33'");
  CHECK(body_verdict("cp.async.cg.shared.global [r1], [d1], 8;") ==
        "1:1: cp.async.cg copies 16 bytes in 'cp.async.cg.shared.global [r1], [d1], 8'");
  CHECK(body_verdict("tcgen05.dealloc.cta_group::1.sync.aligned.b32 r1, 48;").find("32, 64, 128") !=
        std::string::npos);
  CHECK(body_verdict("cvt.sat.u32.u16 r1, h1;").find(".sat has no effect") != std::string::npos);
  CHECK(body_verdict("cvt.sat.u16.u32 h1, r1;") == "accepted");
}

TEST_CASE("some constants are not cut to the width of their type") {
  const std::string mma =
      "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2."
      "f32."
      "ue8m0 {f0,f1,f2,f3}, {r4,r5,r6,r7}, {r8,r9}, {f0,f1,f2,f3}, {r1}, {h1,h2}, {r2}, ";
  const auto on_120 = [](const std::string& statement) {
    return ptx_test::verdict(
        ".version 9.0\n.target sm_120a\n.address_size 64\n.entry k() {\n"
        ".reg .b32 r<10>; .reg .f32 f<4>; .reg .b16 h<3>;\n" +
            statement + "\nret; }\n",
        120);
  };
  CHECK(on_120(mma + "{0, h1};") == "accepted");
  CHECK(on_120(mma + "{4294967296, h1};").find("small numbers") != std::string::npos);
  const auto on_90a = [](const std::string& statement) {
    return ptx_test::verdict(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() {\n" + statement + "\nret; }\n",
        90);
  };
  CHECK(on_90a("wgmma.wait_group.sync.aligned 0;") == "accepted");
  CHECK(on_90a("wgmma.wait_group.sync.aligned -1;").find("not negative") != std::string::npos);
}

// ptxas 13.0 takes a constant there except for bf16.
TEST_CASE("the predicate that set of bf16 combines with is a register") {
  CHECK(body_verdict("set.eq.and.s32.bf16x2 r1, r2, r3, 1;") != "accepted");
  CHECK(body_verdict("set.eq.and.u16.bf16 h1, h2, h3, -1;") != "accepted");
  CHECK(body_verdict("set.eq.and.s32.bf16x2 r1, r2, r3, !p1;") == "accepted");
  CHECK(body_verdict("set.eq.and.s32.f16x2 r1, r2, r3, 1;") == "accepted");
}

TEST_CASE("nesting without end is refused and not followed") {
  const std::string braces(200000, '{');
  CHECK(ptx_test::body_verdict("mov.b64 %d1, " + braces) ==
        "1:15: a vector holds registers, constants and _ only");
  std::string addresses;
  for (int i = 0; i < 100000; ++i) addresses += "[%d1, {";
  CHECK(ptx_test::body_verdict("prefetch.tensormap " + addresses).find("a vector holds") !=
        std::string::npos);
  CHECK(ptx_test::verdict(".version 9.0\n.target sm_100a\n.address_size 64\n.global .b32 x[4] = " +
                          braces)
            .find("nested too deeply") != std::string::npos);
}

TEST_CASE("array bounds whose product overflows are refused") {
  const std::string head = ".version 9.0\n.target sm_100a\n.address_size 64\n.global .b8 x";
  CHECK(ptx_test::verdict(head + "[4294967296][4294967296];").find("array too large") !=
        std::string::npos);
  CHECK(ptx_test::verdict(head + "[8589934592][8589934592];").find("array too large") !=
        std::string::npos);
}

TEST_CASE("the registers of a vector have one width and mma's layouts have their order") {
  const auto accepted = [](const char* statement) {
    const std::string why = body_verdict(statement);
    INFO(statement << "\n" << why);
    return why == "accepted";
  };
  CHECK(accepted("st.global.v2.u8 [d0], {h1, h2};"));
  CHECK(accepted("st.global.v2.b32 [d0], {r1, f1};"));
  CHECK_FALSE(accepted("st.global.v4.u8 [d0], {b1, h1, b3, b4};"));
  CHECK_FALSE(accepted("ld.global.v2.u32 {r1, d1}, [d0];"));
  const std::string registers = " {r0,r1,r2,r3}, {r4,r5}, {r6}, {r7,r8,r9,r10};";
  CHECK(accepted(("mma.sync.row.m16n8k4.col.aligned.f32.tf32.tf32.f32" + registers).c_str()));
  CHECK_FALSE(accepted(("mma.sync.col.m16n8k4.row.aligned.f32.tf32.tf32.f32" + registers).c_str()));
  CHECK(
      accepted(("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.xor.popc.s32" + registers).c_str()));
  CHECK_FALSE(
      accepted(("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.popc.xor.s32" + registers).c_str()));
}

TEST_CASE("32 bits hold the address of a parameter and of no global variable") {
  const Instr in = one("mov.b32 r1, out;");
  CHECK(in.ops[1].kind == Kind::symbol);
  CHECK(in.ops[1].space == Space::param);
  CHECK(body_verdict("mov.u32 r1, out;") == "accepted");
  const std::string text = module_text("mov.b32 r1, g;", "sm_100a");
  CHECK(verdict(text.substr(0, text.find(".visible")) + ".global .b32 g;\n" +
                text.substr(text.find(".visible")))
            .find("the address of 'g' needs 64 bits") != std::string::npos);
}

TEST_CASE("an index in brackets counts the array's scalars") {
  const auto offset = [](const std::string& instruction, size_t op) {
    return code(".local .align 16 .v4 .b32 quads[4]; .local .align 8 .b16 grid[4][3];" +
                instruction)
        .at(0)
        .ops[op]
        .imm;
  };
  const int64_t loc = one("mov.u64 d1, loc;").ops[1].imm, s = one("mov.u32 r1, s;").ops[1].imm;
  CHECK(one("mov.u64 d1, loc[0];").ops[1].imm == loc);
  CHECK(one("mov.u64 d1, loc[7];").ops[1].imm == loc + 7);
  CHECK(one("mov.u64 d1, loc[-1];").ops[1].imm == loc - 1);
  CHECK(one("mov.u32 r1, s[WARP_SZ+1];").ops[1].imm == s + 33);
  CHECK(offset("mov.u64 d1, quads[3];", 1) == offset("mov.u64 d1, quads;", 1) + 12);
  CHECK(offset("mov.u64 d1, grid[3];", 1) == offset("mov.u64 d1, grid;", 1) + 6);
  CHECK(offset("ld.local.b32 r1, quads[1];", 1) == offset("ld.local.b32 r1, [quads+4];", 1));
  CHECK(offset("st.local.b16 grid[2], h1;", 0) == offset("st.local.b16 [grid+4], h1;", 0));
  CHECK(body_verdict("cvta.shared.u64 d1, s[1];") == "accepted");
}

TEST_CASE("what is no array has no elements and few instructions take one") {
  const auto why = [](const std::string& instruction) { return body_verdict(instruction); };
  CHECK(why("mov.u64 d1, out[0];").find("'out' is no array") != std::string::npos);
  CHECK(why("mov.u32 r1, r2[0];").find("'r2' is no array") != std::string::npos);
  CHECK(why("mov.u32 r1, %tid[0];").find("'%tid' is no array") != std::string::npos);
  CHECK(why("mov.u32 r1, s[r2];").find("an index that is a register is not supported") !=
        std::string::npos);
  for (const char* refused :
       {"mov.u32 r1, s[1][2];", "mov.u32 r1, s[2]+4;", "mov.u32 r1, s+4[2];", "mov.u32 r1, s[];",
        "ld.shared.b8 r1, [s[1]];", "add.u32 r1, r2, s[1];", "mov.b64 d1, {s[0], s[1]};",
        "atom.shared.add.u32 r1, s[1], 1;", "mbarrier.init.shared.b64 s[0], 1;"})
    CHECK(why(refused) != "accepted");
}
