// SPDX-License-Identifier: MIT
// ldmatrix and stmatrix against index arithmetic.
#include "tools/emulator/test/support/exec_support.h"

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

TEST_CASE("ldmatrix gives each lane two elements of a row or of a column") {
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

// Lane 9 has not filled its row, which is row 1 of matrix 1.
TEST_CASE("ldmatrix and stmatrix and movmatrix take elements without a value along") {
  const std::string partial = [] {
    std::string text = fill;
    const std::string store = "st.shared.v4.u32";
    return text.replace(text.find(store), store.size(), "setp.ne.u32 %p0, %r0, 9; @%p0 " + store);
  }();
  const std::string x4 = "ldmatrix.sync.aligned.m8n8.x4", of = ".shared.b16 {%r4, %r5, %r6, %r7}";
  struct Case {
    std::string text;
    uint32_t lanes;  // whose %r5 has no value
  };
  const std::string load = partial + x4 + of + ", [%r1];";
  const Case cases[] = {
      {load, 0xF0},
      {partial + x4 + ".trans" + of + ", [%r1];", 0x11111111},
      {load + "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r5;", 0x11111111},
      {load + "bar.warp.sync -1; st.shared.v4.u32 [%r1], {0, 0, 0, 0}; bar.warp.sync -1;"
              "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r4, %r5, %r6, %r7};"
              "bar.warp.sync -1; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];",
       0x200},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK_THROWS_AS(run(c.text + keep, warp, matrices(), shared), emu::Fault);
    // The other lanes' are right.
    const Words out = run(c.text + "mov.u32 %r8, " + std::to_string(c.lanes) +
                              "; shr.u32 %r8, %r8, %r0; and.b32 %r8, %r8, 1;"
                              "setp.eq.u32 %p1, %r8, 0; @%p1 st.global.u32 [%rd2+512], %r5;",
                          warp, matrices(), shared);
    for (uint32_t lane = 0; lane < 32; ++lane)
      CHECK((out[128 + lane * 4] != 0) == !(c.lanes >> lane & 1));
  }
}

TEST_CASE("matrix rows are aligned and the warp is whole") {
  CHECK(contains(fault("mov.u32 %r1, s; add.s32 %r1, %r1, 8; mov.u32 %r2, 0;"
                       "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
                       warp, nullptr, shared),
                 "multiple"));
  CHECK(contains(fault("mov.u32 %r1, s; mov.u32 %r2, 0;"
                       "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
                       {{}, {16}, {}}, nullptr, shared),
                 "all 32 lanes"));
}

namespace {

// Byte `c` of row `row`: rows are 16 bytes each, from s on.
uint32_t byte_of(uint32_t row, uint32_t c) { return (37 * row + 11 * c + 5) & 0xFF; }

Words rows_of_bytes(uint32_t bits) {
  Words words(4 * 32 + 4 * 32);
  for (uint32_t row = 0; row < 32; ++row)
    for (uint32_t c = 0; c < 16; ++c)
      for (uint32_t b = 0; b < bits; ++b)
        words[row * 4 + (c * bits + b) / 32] |= (byte_of(row, c) >> b & 1) << (c * bits + b) % 32;
  return words;
}

Words loaded(const std::string& instruction, uint32_t bits) {
  const Words out =
      run(fill + "mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;" + instruction + keep, warp,
          rows_of_bytes(bits), shared);
  return Words(out.begin() + 128, out.end());
}

// CUTLASS gives the layouts of these instructions as maps from bits of threads to bits of a tile of
// 128-bit rows. For a column-major one (SM100_U8x16_LDSM_T, SM100_U8x16_STSM_T) bit b of register
// `reg`, byte k of thread t lies at 256 (t % 4) + 8 (t / 4) + 128 (k % 2) + 64 (k / 2) + 1024 reg.
struct Spot {
  uint32_t row, column;
};
Spot transposed_spot(uint32_t lane, uint32_t reg, uint32_t k) {
  const uint32_t bit =
      256 * (lane % 4) + 8 * (lane / 4) + 128 * (k % 2) + 64 * (k / 2) + 1024 * reg;
  return {bit / 128, bit % 128 / 8};
}
// Row `row` of the tile is at the address of that lane: threads have shape (2, 2, 4, 2) and strides
// (1, 8, 2, 16) rows.
uint32_t lane_of_row(uint32_t row) {
  for (uint32_t t = 0; t < 32; ++t)
    if (t % 2 + t / 2 % 2 * 8 + t / 4 % 4 * 2 + t / 16 * 16 == row) return t;
  return 0;
}

}  // namespace

TEST_CASE("ldmatrix.m16n16 gives each lane bytes of two columns") {
  for (const char* form : {".b8", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"}) {
    const uint32_t bits = form[1] == 'b' && form[3] == '\0' ? 8 : form[8] == '6' ? 6 : 4;
    CAPTURE(form);
    const Words out = loaded(std::string("ldmatrix.sync.aligned.m16n16.x2.trans.shared") + form +
                                 " {%r4, %r5, %r6, %r7}, [%r1];",
                             bits);
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t reg = 0; reg < 4; ++reg)
        for (uint32_t k = 0; k < 4; ++k) {
          const Spot at = transposed_spot(lane, reg, k);
          CHECK((out[lane * 4 + reg] >> 8 * k & 0xFF) ==
                (byte_of(lane_of_row(at.row), at.column) & ((1u << bits) - 1)));
        }
  }
  const Words one = loaded("ldmatrix.sync.aligned.m16n16.trans.x1.shared.b8 {_, %r5}, [%r1];", 8);
  CHECK((one[7 * 4 + 1] >> 16 & 0xFF) ==
        byte_of(lane_of_row(transposed_spot(7, 1, 2).row), transposed_spot(7, 1, 2).column));
}

// SM100_SU4_DU8x16_x4_LDSM_N: thread t has bits 32 t and up of the expanded rows.
TEST_CASE("ldmatrix.m8n16 gives each lane four elements of a row as bytes") {
  for (const char* form : {"b6x16_p32", "b4x16_p64"}) {
    const uint32_t bits = form[1] == '6' ? 6 : 4;
    const Words out = loaded(std::string("ldmatrix.sync.aligned.m8n16.x4.shared::cta.b8x16.") +
                                 form + " {%r4, %r5, %r6, %r7}, [%r1];",
                             bits);
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t i = 0; i < 4; ++i)
        for (uint32_t k = 0; k < 4; ++k)
          CHECK((out[lane * 4 + i] >> 8 * k & 0xFF) ==
                (byte_of(8 * i + lane / 4, lane % 4 * 4 + k) & ((1u << bits) - 1)));
  }
}

TEST_CASE("the padding after rows of 4-bit elements is not read") {
  const std::string half_filled =
      "mov.u32 %r0, %laneid; mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.s32 %r1, %r1, %r2;"
      "st.shared.v2.u32 [%r1], {%r0, %r0}; bar.warp.sync -1;";
  CHECK_NOTHROW(
      run(half_filled + "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r4}, [%r1];", warp,
          Words(256), shared));
  CHECK(contains(
      fault(half_filled + "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r4}, [%r1];"
                          "st.global.u32 [%out], %r4;",
            warp, nullptr, shared),
      "nobody has written"));
}

TEST_CASE("stmatrix.m16n8 stores bytes of two columns to eight rows a matrix") {
  // A lane's registers are 16 bytes of its own, row `lane` of the data.
  const Words in = rows_of_bytes(8);
  const Words out =
      run(fill +
              "bar.warp.sync -1; st.shared.v4.u32 [%r1], {0, 0, 0, 0}; bar.warp.sync -1;"
              "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%r1], {%r4, %r5, %r6, "
              "%r7}; bar.warp.sync -1; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];" +
              keep,
          warp, in, shared);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t reg = 0; reg < 4; ++reg)
      for (uint32_t k = 0; k < 4; ++k) {
        const Spot at = transposed_spot(lane, reg, k);
        CHECK((out[128 + at.row * 4 + at.column / 4] >> at.column % 4 * 8 & 0xFF) ==
              byte_of(lane, reg * 4 + k));
      }
}

// Lane 9 has not filled its row.
TEST_CASE("ldmatrix and stmatrix of bytes take elements without a value along") {
  const std::string store = "st.shared.v4.u32";
  std::string partial = fill;
  partial.replace(partial.find(store), store.size(), "setp.ne.u32 %p0, %r0, 9; @%p0 " + store);
  const std::string stored =
      "setp.eq.u32 %p0, %r0, 9; mov.b32 %r8, 0x01010101; @!%p0 mov.b32 %r9, %r8; bar.warp.sync -1;"
      "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%r9}; bar.warp.sync -1;"
      "ld.shared.u32 %r5, [%r1];";
  struct Case {
    std::string text;
    uint32_t lanes;  // whose %r5 has no value
  };
  const Case cases[] = {
      {partial + "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%r4, %r5}, [%r1];", 0xF0},
      {partial + "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r4, %r5}, [%r1];", 0},
      {partial + "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r5, %r4}, [%r1];", 0x44444444},
      {fill + stored, 0xC},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    if (c.lanes)
      CHECK_THROWS_AS(
          run(c.text + "st.global.u32 [%rd2+512], %r5;", warp, rows_of_bytes(8), shared),
          emu::Fault);
    CHECK_NOTHROW(run(c.text + "mov.u32 %r8, " + std::to_string(c.lanes) +
                          "; shr.u32 %r8, %r8, %r0; and.b32 %r8, %r8, 1;"
                          "setp.eq.u32 %p1, %r8, 0; @%p1 st.global.u32 [%rd2+512], %r5;",
                      warp, rows_of_bytes(8), shared));
  }
}
