// SPDX-License-Identifier: MIT
// A value that tensor memory did not have may be computed with, lane by lane, and may not matter:
// with M = 64 every load brings lanes that no MMA writes (PTX ISA 9.7.16.10.5, layout F).
#include "tools/emulator/test/support/exec_support.h"

using exec_test::contains;
using exec_test::fault;
using exec_test::run;

namespace {

constexpr exec_test::Shape warp{{}, {32}, {}};

// Lanes 0 to 15 have loaded 0x3c003c00, the others what nobody wrote; %p0 is set in the first half.
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

TEST_CASE("what is computed from a value that there was not has none, in those lanes alone") {
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
                   "computed from a value that there was not: a tcgen05.ld gave it tensor memory "
                   "lane 16 column 0"));
  }
}

TEST_CASE("a value that there was not decides nothing and leads nowhere") {
  for (const char* use : {"setp.eq.u32 %p1, %r2, 0;", "mov.pred %p2, %p1; @%p2 mov.u32 %r3, 1;",
                          "and.b32 %r2, %r2, 0; cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;"
                          "ld.global.u32 %r3, [%rd1];",
                          "shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;", "st.shared.u32 [s], %r2;",
                          "atom.global.add.u32 %r3, [%rd1], %r2;"}) {
    CAPTURE(use);
    CHECK(contains(
        fault(head + "add.u32 %r2, %r1, 1; " + use, warp, nullptr, ".shared .align 4 .b8 s[4];"),
        "nobody has written it"));
  }
  // Other registers without a value: the first use is the fault.
  CHECK(contains(fault("add.u32 %r2, %r1, 1;", warp), "register %r1 is read by lanes 0xffffffff"));
}

TEST_CASE("shared memory that nobody wrote may be copied within shared memory, and used nowhere") {
  const char* const shared = ".shared .align 16 .b8 s[64];";
  const std::string copy =
      "st.shared.u32 [s], 7; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s];"
      "st.shared.v4.u32 [s+16], {%r4, %r3, %r2, %r1};";
  const auto out = run(copy + "ld.shared.u32 %r5, [s+28]; st.global.u32 [%out], %r5;", {},
                       std::vector<uint32_t>(1), shared);
  CHECK(out[0] == 7);
  for (const char* use : {"add.u32 %r5, %r2, 1;", "st.global.u32 [%out], %r2;",
                          "ld.shared.u32 %r5, [s+16]; setp.eq.u32 %p1, %r5, 0;"}) {
    const std::string report = fault(copy + use, {}, nullptr, shared);
    INFO(report);
    CHECK(contains(report, "which nobody has written"));
    CHECK(contains(report, "s + 0x"));
  }
  // What was stored over with nothing is gone.
  CHECK(contains(fault("st.shared.v4.u32 [s+16], {1, 2, 3, 4}; " + copy +
                           "ld.shared.u32 %r5, [s+16]; add.u32 %r5, %r5, 1;",
                       {}, nullptr, shared),
                 "s + 0x10"));
}
