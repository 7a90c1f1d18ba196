// SPDX-License-Identifier: MIT
// A value that is missing may be computed with, lane by lane, as long as nothing depends on it:
// with M = 64 every tcgen05.ld brings lanes that no MMA writes (PTX ISA 9.7.16.10.5, layout F), and
// compilers hoist arithmetic over the test of whether there is anything to compute with.
#include "tools/emulator/test/support/exec_support.h"

namespace {

constexpr exec_test::Shape warp{{}, {32}, {}};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// Lanes 0 to 15 have loaded 0x3c003c00, the others values that were never written; %p0 is set in
// the first half.
const std::string head =
    ".shared .align 4 .b32 at; mov.u32 %r0, %laneid; setp.lt.u32 %p0, %r0, 16;"
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; bar.warp.sync -1;"
    "ld.shared.u32 %r9, [at]; mov.u32 %r1, 0x3c003c00;"
    "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r9], {%r1}; tcgen05.wait::st.sync.aligned;"
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r9]; tcgen05.wait::ld.sync.aligned;"
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;"
    "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %out;";

const char* const computations[] = {
    "add.u32 %r2, %r1, 1;",
    "mad.lo.u32 %r2, %r1, 3, %r1;",
    "add.f32 %r2, %r1, %r1;",
    "fma.rn.f32 %r2, %r1, %r1, %r1;",
    "cvt.rn.f16x2.f32 %r2, %r1, %r1;",
    "cvt.u64.u32 %rd2, %r1; cvt.u32.u64 %r2, %rd2;",
    "lop3.b32 %r2, %r1, %r1, %r1, 0x96;",
    "prmt.b32 %r2, %r1, %r1, 0x3210;",
    "bfi.b32 %r2, %r1, %r1, 4, 8;",
    "selp.u32 %r2, %r1, %r1, %p0;",
    "rcp.approx.ftz.f32 %r2, %r1;",
    "mov.b32 {%h0, %h1}, %r1; mov.b32 %r2, {%h1, %h0};",
};

}  // namespace

TEST_CASE("tcgen05.st takes a register without a value to tensor memory and back") {
  const std::string load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r9]";
  for (const emu::Order order : {emu::Order::soonest, emu::Order::latest}) {
    exec_test::SettingsGuard guard;
    emu::settings().order = order;
    const std::string text =
        replaced(head, load,
                 "@%p0 mov.u32 %r2, 7; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r2};"
                 "tcgen05.wait::st.sync.aligned;" +
                     load);
    CHECK(run(text + "@%p0 st.global.u32 [%rd1], %r1;", warp, std::vector<uint32_t>(32))[15] == 7);
    const std::string report = fault(text + "st.global.u32 [%rd1], %r1;", warp);
    INFO(report);
    CHECK(contains(report, "register %r1 is read by lanes 0xffff0000"));
    CHECK(contains(report, "stores none there: register %r2 is read by"));
  }
}

TEST_CASE("what is computed from an undefined value is undefined in those lanes alone") {
  for (const char* computation : computations) {
    CAPTURE(computation);
    const auto out = run(head + computation + "@%p0 st.global.u32 [%rd1], %r2;", warp,
                         std::vector<uint32_t>(32));
    CHECK(out[0] != 0);
    CHECK(out[15] == out[0]);
    CHECK(out[16] == 0);
    const std::string report = fault(head + computation + "st.global.u32 [%rd1], %r2;", warp);
    INFO(report);
    CHECK(contains(report, "register %r2 is read by lanes 0xffff0000"));
    CHECK(contains(report,
                   "computed from an undefined value: a tcgen05.ld gave it tensor memory "
                   "lane 16 column 0"));
  }
}

TEST_CASE("an undefined value decides nothing and leads nowhere") {
  for (const char* use :
       {"setp.eq.u32 %p1, %r2, 0; @%p1 bra A; A:", "setp.eq.u32 %p1, %r2, 0; @!%p1 mov.u32 %r3, 1;",
        "setp.eq.u32 %p1, %r2, 0; vote.sync.any.pred %p2, %p1, -1;",
        "mov.pred %p2, %p1; @%p2 mov.u32 %r3, 1;",
        "and.b32 %r2, %r2, 0; cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;"
        "ld.global.u32 %r3, [%rd1];",
        "shfl.sync.idx.b32 %r3, %r2, 31, 31, -1; st.global.u32 [%out], %r3;",
        "st.shared.u32 [s], %r2; ld.shared.u32 %r3, [s]; st.global.u32 [%out], %r3;",
        "st.shared.u32 [s], %r2; atom.shared.add.u32 %r3, [s], 1;",
        "atom.global.add.u32 %r3, [%rd1], %r2;"}) {
    CAPTURE(use);
    CHECK(contains(
        fault(head + "add.u32 %r2, %r1, 1; " + use, warp, nullptr, ".shared .align 4 .b8 s[4];"),
        "nobody has written"));
  }
}

namespace {

// %r1 and %p1 have no value, %p0 is false, %p2 true; %rd2 is the quotient of what was not there.
const char* const dead[] = {
    "div.u32 %r2, %r1, 3;",
    "div.u32 %r2, 7, %r1;",
    "rem.s32 %r2, %r1, %r1;",
    "mul.hi.u32 %r2, %r1, 0x55555556; shr.u32 %r2, %r2, 1;",
    "add.cc.u32 %r3, %r1, 1; addc.u32 %r2, 0, 0;",
    "mad.lo.cc.u32 %r3, %r1, 3, 1; madc.hi.u32 %r2, 1, 1, 0;",
    "setp.lt.u32 %p3, %r1, 5; selp.u32 %r2, 1, 2, %p3;",
    "setp.lt.f32 %p3, %r1, %r1; selp.u32 %r2, 1, 2, %p3;",
    "setp.lt.f16x2 %p3|%p4, %r1, %r1; selp.u32 %r2, 1, 2, %p4;",
    "setp.lt.and.u32 %p3, %r1, 5, %p2; selp.u32 %r2, 1, 2, %p3;",
    "setp.lt.and.u32 %p3|%p4, 1, 5, %p1; selp.u32 %r2, 1, 2, %p3;",
    "set.lt.u32.u32 %r2, %r1, 5;",
    "set.lt.and.u32.u32 %r2, 1, 5, %p1;",
    "and.pred %p3, %p1, %p2; selp.u32 %r2, 1, 2, %p3;",
    "or.pred %p3, %p1, %p0; selp.u32 %r2, 1, 2, %p3;",
    "xor.pred %p3, %p1, %p2; selp.u32 %r2, 1, 2, %p3;",
    "not.pred %p3, %p1; selp.u32 %r2, 1, 2, %p3;",
    "mov.pred %p3, %p1; selp.u32 %r2, 1, 2, %p3;",
    "selp.u32 %r2, %r1, 2, %p2;",
    "selp.u32 %r2, 1, %r1, %p0;",
    "redux.sync.add.u32 %r2, %r1, -1;",
    "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;",
    "mov.b64 %rd2, {%r1, %r1}; rcp.approx.ftz.f64 %rd2, %rd2; cvt.u32.u64 %r2, %rd2;",
    ".reg .b128 q, t; mov.b64 %rd2, {%r1, %r1}; mov.b128 q, {%rd2, %rd2}; mov.b128 t, q;"
    "mov.b128 {%rd3, %rd4}, t; cvt.u32.u64 %r2, %rd3;",
};

// What was not there makes no difference here.
const char* const decided[] = {
    "and.pred %p3, %p1, %p0; selp.u32 %r2, 1, 2, %p3;",
    "or.pred %p3, %p2, %p1; selp.u32 %r2, 2, 1, %p3;",
    "setp.lt.and.u32 %p3, %r1, 5, %p0; selp.u32 %r2, 1, 2, %p3;",
    "setp.lt.or.u32 %p3, %r1, 5, %p2; selp.u32 %r2, 2, 1, %p3;",
    "setp.gt.and.u32 %p3, 1, 5, %p1; selp.u32 %r2, 1, 2, %p3;",
    "selp.u32 %r2, %r1, 2, %p0;",
    "selp.u32 %r2, 2, %r1, %p2;",
    "add.cc.u32 %r3, %r1, 1; add.cc.u32 %r3, 1, 1; addc.u32 %r2, 2, 0;",
};

const std::string none = "setp.ne.u32 %p0, 0, 0; setp.eq.u32 %p2, 0, 0;";

}  // namespace

TEST_CASE("arithmetic with a register that nobody wrote is a fault where its result is needed") {
  for (const char* computation : dead) {
    CAPTURE(computation);
    CHECK(run(none + computation + "st.global.u32 [%out], 7;", warp, {0})[0] == 7);
    const std::string report = fault(none + computation + "st.global.u32 [%out], %r2;", warp);
    INFO(report);
    CHECK(contains(report, "register %r2 is read by lanes 0xffffffff"));
    CHECK(contains(report, "computed from an undefined value: PTX line 1"));
    CHECK(contains(report, "1, which was never written"));
  }
  for (const char* computation : decided) {
    CAPTURE(computation);
    CHECK(run(none + computation + "st.global.u32 [%out], %r2;", warp, {0})[0] == 2);
  }
}

TEST_CASE("shared memory that nobody wrote may be copied within shared memory and used nowhere") {
  const char* const shared = ".shared .align 16 .b8 s[64];";
  const std::string copy =
      "st.shared.u32 [s], 7; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s];"
      "st.shared.v4.u32 [s+16], {%r4, %r3, %r2, %r1};";
  const auto out = run(copy + "ld.shared.u32 %r5, [s+28]; st.global.u32 [%out], %r5;", {},
                       std::vector<uint32_t>(1), shared);
  CHECK(out[0] == 7);
  for (const char* use : {"add.u32 %r5, %r2, 1; st.shared.u32 [s], %r5; ld.shared.u32 %r5, [s];"
                          "st.global.u32 [%out], %r5;",
                          "st.global.u32 [%out], %r2;",
                          "ld.shared.u32 %r5, [s+16]; setp.eq.u32 %p1, %r5, 0; @%p1 bra A; A:"}) {
    const std::string report = fault(copy + use, {}, nullptr, shared);
    INFO(report);
    CHECK(contains(report, "which nobody has written"));
    CHECK(contains(report, "s + 0x"));
  }
  // The store of a register without a value removes the value that was there.
  CHECK(contains(fault("st.shared.v4.u32 [s+16], {1, 2, 3, 4}; " + copy +
                           "ld.shared.u32 %r5, [s+16]; st.global.u32 [%out], %r5;",
                       {}, nullptr, shared),
                 "s + 0x10"));
}

// Partial tiles: all threads take part in the exchange. Those beyond the end pass on what they
// never loaded, and only those before it store what they get.
TEST_CASE("a register without a value may be stored to shared memory and be left alone there") {
  const std::string exchange =
      "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 20; mul.wide.u32 %rd1, %r0, 4;"
      "add.u64 %rd1, %rd1, %out; @%p0 ld.global.u32 %r1, [%rd1]; shl.b32 %r2, %r0, 2;"
      "mov.u32 %r3, s; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; bar.sync 0;"
      "ld.shared.u32 %r4, [%r3]; add.u32 %r4, %r4, 1;";
  const char* const shared = ".shared .align 16 .b8 s[128];";
  const auto out =
      run(exchange + "@%p0 st.global.u32 [%rd1], %r4;", warp, std::vector<uint32_t>(32, 7), shared);
  CHECK(out[19] == 8);
  CHECK(out[20] == 7);
  std::string report = fault(exchange + "st.global.u32 [%rd1], %r4;", warp, nullptr, shared);
  INFO(report);
  CHECK(contains(report, "register %r4 is read by lanes 0xfff00000"));
  CHECK(contains(report, "nobody has written a value to: PTX line"));
  report = fault(exchange + "@%p0 bra E; setp.eq.u32 %p1, %r4, 0; @%p1 bra E; E:", warp, nullptr,
                 shared);
  CHECK(contains(report, "nobody has written"));
}

// Word i of 32 is i, those from the 20th on have no value. All are stored in bulk.
TEST_CASE("bytes without a value go to global memory in bulk and not to the host") {
  const std::string bulk =
      "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 20; mul.wide.u32 %rd1, %r0, 4;"
      "add.u64 %rd1, %rd1, %out; @%p0 mov.u32 %r1, %r0; shl.b32 %r2, %r0, 2; mov.u32 %r3, s;"
      "add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; fence.proxy.async; bar.sync 0;"
      "setp.ne.u32 %p1, %r0, 0; @%p1 bra E; mov.b16 %h0, 0x0F0F;"
      "cp.async.bulk.global.shared::cta.bulk_group MASK; cp.async.bulk.commit_group;"
      "cp.async.bulk.wait_group 0; fence.proxy.async; E: bar.sync 0;";
  const char* const shared = ".shared .align 16 .b8 s[128];";
  const auto text = [&](const std::string& operands, const std::string& rest) {
    std::string body = bulk;
    return body.replace(body.find(" MASK"), 5, operands) + rest;
  };
  const std::string whole = " [%out], [s], 128", masked = ".cp_mask [%out], [s], 128, %h0";
  const std::vector<uint32_t> ones(32, 1);
  const auto out = run(text(whole, "@!%p0 st.global.u32 [%rd1], 9;"), warp, ones, shared);
  CHECK((out[19] == 19 && out[20] == 9 && out[31] == 9));
  for (const std::string& operands : {whole, masked})
    for (const char* use :
         {"", "ld.global.u32 %r4, [%out+96]; setp.eq.u32 %p2, %r4, 0; @%p2 ret;"}) {
      const std::string report = fault(text(operands, use), warp, nullptr, shared);
      INFO(report);
      CHECK(contains(report, "nobody has written a value to: PTX line"));
    }
  // The mask copies two words of four. A store of 9 then gives a value to the copies without one.
  const auto beside = run(text(masked,
                               "and.b32 %r5, %r0, 1; setp.eq.u32 %p2, %r5, 0;"
                               "setp.ge.and.u32 %p2, %r0, 20, %p2;"
                               "@%p2 st.global.u32 [%rd1], 9;"),
                          warp, ones, shared);
  CHECK((beside[18] == 18 && beside[19] == 1 && beside[20] == 9 && beside[21] == 1));
}

// Each thread of 32 stores to its word, and those from the 20th on what they never loaded.
TEST_CASE("a register without a value may be stored to global memory and be left alone there") {
  const std::string partial =
      "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 20; mul.wide.u32 %rd1, %r0, 4;"
      "add.u64 %rd1, %rd1, %out; @%p0 mov.u32 %r1, 7; st.global.u32 [%rd1+128], %r1;\n";
  const char* const shared = ".shared .align 16 .b8 s[128]; .shared .b64 full;";
  const std::vector<uint32_t> buffer(64);
  const auto ok = [&](const std::string& body) {
    return run(partial + body + "st.global.u32 [%rd1+128], 3;", warp, buffer, shared);
  };
  CHECK(ok("ld.global.u32 %r2, [%rd1+128]; st.global.u32 [%rd1], %r2;"
           "@%p0 st.global.u32 [%rd1], 5; @!%p0 st.global.u32 [%rd1], 6;")[19] == 5);
  CHECK(ok("")[63] == 3);
  for (const char* use : {
           "",  // the host
           "ld.global.u32 %r2, [%rd1+128]; st.global.u32 [%rd1], %r2;",
           "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%out+192]; setp.eq.u32 %p1, %r2, 0;"
           "ld.global.u32 %r2, [%rd1+128]; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; E:",
           "ld.global.u32 %r2, [%rd1+128]; add.u32 %r3, %r2, 1; mov.u32 %r4, s;"
           "add.u32 %r4, %r4, %r3; ld.shared.u32 %r2, [%r4];",
           "red.global.add.u32 [%rd1+128], 1;",
           "atom.global.cas.b32 %r2, [%rd1+128], 1, 2;",
           "bar.sync 0; setp.eq.u32 %p1, %r0, 24; @!%p1 bra E;"
           "cp.async.ca.shared.global [s], [%out+224], 16; cp.async.wait_all;"
           "ld.shared.u32 %r2, [s]; st.global.u32 [%rd1], %r2; E:",
           "fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %r0, 20; @%p1 bra E;"
           "mbarrier.init.shared.b64 [full], 1; fence.proxy.async; "
           "mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%out+128], 128,"
           "[full]; W: mbarrier.try_wait.parity.shared.b64 %p2, [full], 0; @!%p2 bra W;"
           "ld.shared.u32 %r2, [s+80]; st.global.u32 [%out], %r2; E:",
       }) {
    CAPTURE(use);
    const std::string report = fault(partial + use, warp, nullptr, shared);
    INFO(report);
    CHECK(contains(report, " of kernel k stores none there: register %r1 is read by"));
  }
  // Only some of the bytes there have a value. A store of a value gives the others one.
  const std::string few =
      "st.global.v2.u32 [%out+200], {1, 2}; ld.global.u32 %r2, [%out+204];"
      "st.global.u32 [%out], %r2;";
  CHECK(ok(few)[0] == 2);
}

namespace {

// PTX of an mma.sync. A and B (%r0 to %r5) and C (%r12 to %r15) are ones, D is in %r8 to %r11.
// `missing` sets %p0: in lanes where %p0 is true, the registers that `missing` names have no value.
// Register `d` goes to the host.
std::string product(const std::string& missing, uint32_t d, bool packed = false) {
  const std::string number = std::to_string(d);
  std::string ones = "mov.u32 %r6, %laneid; mul.wide.u32 %rd1, %r6, 4; add.u64 %rd1, %rd1, %out;";
  ones += missing;
  for (const uint32_t i : {0, 1, 2, 3, 4, 5, 12, 13, 14, 15}) {
    const std::string r = "%r" + std::to_string(i);
    const bool left_out = missing.find(r + ";") != std::string::npos;
    ones += std::string(left_out ? "@!%p0 " : "") + "mov.u32 " + r + ", 0x3c003c00;";
  }
  const std::string mma = packed ? "f16.f16.f16.f16 {%r8, %r9}, {%r0, %r1, %r2, %r3}, {%r4, %r5},"
                                   " {%r12, %r13};"
                                 : "f32.f16.f16.f32 {%r8, %r9, %r10, %r11}, {%r0, %r1, %r2, %r3},"
                                   " {%r4, %r5}, {%r12, %r13, %r14, %r15};";
  return ones + "mma.sync.aligned.m16n8k16.row.col." + mma + "st.global.u32 [%rd1], %r" + number +
         ";";
}

std::string without(const char* lanes, const char* registers) {
  return "setp." + std::string(lanes) + "; // " + registers + "\n";
}

}  // namespace

TEST_CASE("an MMA with an operand without a value gives none to the sums that have it") {
  struct Case {
    std::string missing;
    const char* lanes[4];  // of each register of D; "": all have values
  };
  const char* const none = "";
  const Case cases[] = {
      {without("ge.u32 %p0, %r6, 16", "%r0;"), {"0xffff0000", "0xffff0000", none, none}},
      {without("ge.u32 %p0, %r6, 31", "%r3;"), {none, none, "0xf0000000", "0xf0000000"}},
      {without("ge.u32 %p0, %r6, 28", "%r5;"), {none, "0x88888888", none, "0x88888888"}},
      {without("eq.u32 %p0, %r6, 5", "%r14;"), {none, none, "0x00000020", none}},
  };
  for (const Case& c : cases)
    for (uint32_t i = 0; i < 4; ++i) {
      CAPTURE(c.missing, i);
      const std::string body = product(c.missing, 8 + i), lanes = c.lanes[i];
      if (lanes.empty()) {
        CHECK(run(body, warp, std::vector<uint32_t>(32))[31] != 0);
        continue;
      }
      const std::string report = fault(body, warp);
      INFO(report);
      CHECK(contains(report, "register %r" + std::to_string(8 + i) + " is read by lanes " + lanes));
      CHECK(contains(report, "which was never written"));
    }
  const std::string column = without("ge.u32 %p0, %r6, 28", "%r4;");
  for (uint32_t i = 0; i < 2; ++i)
    CHECK(contains(fault(product(column, 8 + i, true), warp), "is read by lanes 0x88888888"));
  CHECK(contains(fault(product(without("eq.u32 %p0, %r6, 9", "%r12;"), 8, true), warp),
                 "is read by lanes 0x00000200"));
  // The next mma.sync has an accumulator without a value.
  const std::string row = product(cases[0].missing, 8);
  const size_t store = row.rfind("st.global");
  CHECK(contains(fault(row.substr(0, store) +
                           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                           " {%r8, %r9, %r10, %r11}, {%r1, %r1, %r1, %r1}, {%r4, %r5},"
                           " {%r8, %r9, %r10, %r11};" +
                           row.substr(store),
                       warp),
                 "register %r8 is read by lanes 0xffff0000"));
}

TEST_CASE("an MMA of doubles with an operand without a value may be left alone as well") {
  const std::string body =
      "mov.u32 %r0, %laneid; mul.wide.u32 %rd1, %r0, 8; add.u64 %rd1, %rd1, %out;"
      "setp.lt.u32 %p0, %r0, 28; mov.u64 %rd2, 0; @%p0 mov.u64 %rd3, 0;"
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd4, %rd5}, {A}, {B}, {%rd2, C};"
      "st.global.u64 [%rd1], ";
  const auto report = [&](const char* a, const char* b, const char* c, const char* d) {
    std::string text = body;
    text.replace(text.find("{A}"), 3, a).replace(text.find("{B}"), 3, b);
    return fault(text.replace(text.find("C}"), 1, c) + d, warp);
  };
  CHECK(contains(report("{%rd3}", "{%rd2}", "%rd2", "%rd4;"), "is read by lanes 0xf0000000"));
  CHECK(contains(report("{%rd2}", "{%rd3}", "%rd2", "%rd5;"), "is read by lanes 0x88888888"));
  CHECK(contains(report("{%rd2}", "{%rd2}", "%rd3", "%rd5;"), "is read by lanes 0xf0000000"));
}
