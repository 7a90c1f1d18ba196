// SPDX-License-Identifier: MIT
// ldmatrix and stmatrix against index arithmetic.
#include "exec_support.h"

using exec_test::contains;
using exec_test::fault;
using exec_test::run;
using Words = std::vector<uint32_t>;

namespace {

const exec_test::Shape warp{{}, {32}, {}};

// Element (row, column) of matrix i is 1000 i + 8 row + column; matrices follow one another in
// shared memory from s on, rows of 16 bytes.
uint16_t element(uint32_t i, uint32_t row, uint32_t column) {
  return uint16_t(1000 * i + 8 * row + column);
}

// What lane `lane` has of matrix i.
uint32_t fragment(uint32_t i, uint32_t lane, bool transposed) {
  const uint32_t a = lane / 4, b = lane % 4 * 2;
  return transposed ? element(i, b, a) | uint32_t(element(i, b + 1, a)) << 16
                    : element(i, a, b) | uint32_t(element(i, a, b + 1)) << 16;
}

Words matrices() {
  Words words(4 * 32 + 4 * 32);
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t w = 0; w < 32; ++w)
      words[i * 32 + w] = element(i, w / 4, w % 4 * 2) | uint32_t(element(i, w / 4, w % 4 * 2 + 1))
                                                             << 16;
  return words;
}

// Lane l copies 16 bytes to row l of s and then has that row's address in %r1.
const std::string fill =
    "mov.u32 %r0, %laneid; mul.wide.u32 %rd1, %r0, 16; add.s64 %rd2, %out, %rd1; mov.u32 %r1, s;"
    "shl.b32 %r2, %r0, 4; add.s32 %r1, %r1, %r2; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];"
    "st.shared.v4.u32 [%r1], {%r4, %r5, %r6, %r7}; bar.warp.sync -1;";
const std::string keep = "st.global.v4.u32 [%rd2+512], {%r4, %r5, %r6, %r7};";
const char* const shared = ".shared .align 16 .b8 s[512];";

}  // namespace

TEST_CASE("ldmatrix gives each lane two elements of a row, or of a column") {
  const bool transposed = GENERATE(false, true);
  const std::string trans = transposed ? ".trans" : "";
  Words out = run(fill + "ldmatrix.sync.aligned.m8n8.x4" + trans +
                      ".shared.b16 {%r4, %r5, %r6, %r7}, [%r1];" + keep,
                  warp, matrices(), shared);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i)
      CHECK(out[128 + lane * 4 + i] == fragment(i, lane, transposed));
  // Fewer matrices take fewer addresses: the other lanes' may be anything.
  out = run(fill +
                "setp.ge.u32 %p1, %r0, 16; @%p1 mov.u32 %r1, 3;"
                "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r1];" +
                keep,
            warp, matrices(), shared);
  CHECK(out[128 + 7 * 4 + 1] == fragment(1, 7, false));
  out = run(fill +
                "cvt.u64.u32 %rd5, %r1; cvta.shared.u64 %rd5, %rd5;"
                "ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%rd5];" +
                keep,
            warp, matrices(), shared);
  CHECK(out[128 + 31 * 4] == fragment(0, 31, false));
}

TEST_CASE("stmatrix is the inverse of ldmatrix") {
  const std::string trans = GENERATE("", ".trans");
  Words out = run(fill + "ldmatrix.sync.aligned.m8n8.x4" + trans +
                      ".shared.b16 {%r4, %r5, %r6, %r7}, [%r1]; bar.warp.sync -1;"
                      "st.shared.v4.u32 [%r1], {0, 0, 0, 0}; bar.warp.sync -1;"
                      "stmatrix.sync.aligned.m8n8.x4" +
                      trans +
                      ".shared.b16 [%r1], {%r4, %r5, %r6, %r7}; bar.warp.sync -1;"
                      "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];" +
                      keep,
                  warp, matrices(), shared);
  for (uint32_t w = 0; w < 128; ++w) CHECK(out[128 + w] == out[w]);
}

TEST_CASE("matrix rows are aligned, the warp is whole") {
  CHECK(contains(fault("mov.u32 %r1, s; add.s32 %r1, %r1, 8; mov.u32 %r2, 0;"
                       "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
                       warp, nullptr, shared),
                 "multiple"));
  CHECK(contains(fault("mov.u32 %r1, s; mov.u32 %r2, 0;"
                       "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
                       {{}, {16}, {}}, nullptr, shared),
                 "all 32 lanes"));
}
