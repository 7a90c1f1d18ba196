// SPDX-License-Identifier: MIT
// Loads, stores, atomics and generic addresses, and what they refuse.
#include "tools/emulator/test/support/exec_support.h"

using emu::FaultKind;
using exec_test::Shape;
using Words = std::vector<uint32_t>;

TEST_CASE("signed loads extend to the width of the register") {
  Words out =
      run("ld.global.s8 %rd1, [%out]; st.global.u64 [%out+8], %rd1;"
          "ld.global.u8 %rd2, [%out]; st.global.u64 [%out+16], %rd2;",
          {}, {0x80, 0, 9, 9, 9, 9});
  CHECK(out == Words{0x80, 0, 0xFFFFFF80, 0xFFFFFFFF, 0x80, 0});
}

TEST_CASE("vectors and 128-bit values move whole") {
  Words in(24);
  for (uint32_t i = 0; i < 8; ++i) in[i] = i + 1;
  Words out = run(R"(
    .reg .b128 q; .reg .b32 v<8>;
    ld.global.v8.b32 {v0, v1, v2, v3, v4, v5, v6, v7}, [%out];
    st.global.v4.b32 [%out+32], {v7, v6, v5, v4};
    ld.global.b128 q, [%out+16]; st.global.b128 [%out+64], q;)",
                  {}, in);
  CHECK(Words(out.begin() + 8, out.begin() + 12) == Words{8, 7, 6, 5});
  CHECK(Words(out.begin() + 16, out.begin() + 20) == Words{5, 6, 7, 8});
}

TEST_CASE("shared and local and parameter memory are reached by generic addresses") {
  Words out = run(R"(
    .local .align 4 .b8 depot[16];
    mov.u32 %r1, s; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;
    mov.u32 %r2, 11; st.u32 [%rd1+4], %r2; ld.shared.u32 %r3, [s+4]; st.global.u32 [%out], %r3;
    mov.b64 %rd2, depot; cvta.local.u64 %rd3, %rd2;
    mov.u32 %r2, 12; st.u32 [%rd3+8], %r2; ld.local.u32 %r3, [%rd2+8]; st.global.u32 [%out+4], %r3;
    mov.b64 %rd4, k_out; cvta.param.u64 %rd5, %rd4; ld.u64 %rd6, [%rd5];
    setp.eq.s64 %p0, %rd6, %out; selp.u32 %r3, 13, 0, %p0; st.global.u32 [%out+8], %r3;
    cvta.to.shared.u64 %rd7, %rd1; st.global.u32 [%out+12], %r1;
    cvt.u32.u64 %r4, %rd7; st.global.u32 [%out+16], %r4;)",
                  {}, Words(8), ".shared .align 16 .b8 s[16];");
  CHECK(Words(out.begin(), out.begin() + 5) == Words{11, 12, 13, 0x400, 0x400});
}

TEST_CASE("atomics return the old value and serialise the lanes") {
  Words out = run(R"(
    mov.u32 %r0, %laneid; atom.global.add.u32 %r1, [%out], 1; mul.wide.u32 %rd1, %r1, 4;
    add.s64 %rd1, %rd1, %out; st.global.u32 [%rd1+4], %r0;
    red.global.max.s32 [%out+132], %r0; atom.global.cas.b32 %r2, [%out+136], 5, 6;
    atom.global.inc.u32 %r2, [%out+140], 9; atom.global.exch.b32 %r3, [%out+144], %r0;)",
                  {{}, {32}, {}}, [] {
                    Words w(40);
                    w[34] = 5;
                    return w;
                  }());
  CHECK(out[0] == 32);
  for (uint32_t i = 0; i < 32; ++i) CHECK(out[1 + i] == i);
  CHECK(out[33] == 31);
  CHECK(out[34] == 6);
  CHECK(out[35] == 2);  // 32 increments modulo 10
  CHECK(out[36] == 31);
}

TEST_CASE("float atomics add vectors element by element") {
  Words out = run(R"(
    mov.b32 %r1, 0f3F800000; mov.b32 %r2, 0f40000000;
    red.global.add.f32 [%out], %r1; atom.global.add.v2.f32 {%r3, %r4}, [%out+8], {%r1, %r2};
    mov.b32 %r5, 0x3C004000; red.global.add.noftz.f16x2 [%out+16], %r5;
    st.shared.u32 [s], %r1; atom.shared.add.f32 %r6, [s], %r1; ld.shared.u32 %r6, [s];
    st.global.u32 [%out+20], %r6;)",
                  {{}, {32}, {}}, Words(8), ".shared .align 4 .b8 s[4];");
  CHECK(out[0] == 0x42000000);
  CHECK(out[2] == 0x42000000);
  CHECK(out[3] == 0x42800000);
  CHECK(out[4] == 0x50005400);
}

TEST_CASE("an access outside every allocation names the nearest one and the line") {
  FaultKind kind{};
  std::string text = fault("st.global.u32 [%out+256], 1;", {}, &kind);
  CHECK(kind == FaultKind::illegal_address);
  CHECK(contains(text, "0x0 bytes beyond the end of the buffer"));
  CHECK(contains(text, "kernel k, block (0,0,0), warp 0, thread (0,0,0), lanes 0x00000001"));
  CHECK(contains(text, "PTX line"));
  CHECK(contains(text, "st.global.u32 [%out+256], 1;"));
}

TEST_CASE("misaligned and out-of-window accesses are faults") {
  FaultKind kind{};
  fault("ld.global.u32 %r1, [%out+2];", {}, &kind);
  CHECK(kind == FaultKind::misaligned_address);
  fault("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out+8];", {}, &kind);
  CHECK(kind == FaultKind::misaligned_address);
  const char* shared = ".shared .align 16 .b8 s[16];";
  CHECK(contains(fault("mov.u32 %r1, 0; st.shared.u32 [s+16], %r1;", {}, &kind, shared),
                 "[0x400, 0x410)"));
  CHECK(kind == FaultKind::illegal_address);
  fault("mov.u32 %r1, 0; st.shared.u32 [%r1], %r1;", {}, &kind, shared);
  CHECK(kind == FaultKind::illegal_address);
  fault("mov.u64 %rd1, k_out; cvta.param.u64 %rd1, %rd1; st.u32 [%rd1], 1;", {}, &kind);
  CHECK(kind == FaultKind::illegal_address);
}

TEST_CASE("reading what nobody wrote is a fault but copying it is not") {
  FaultKind kind{};
  CHECK(contains(fault("add.s32 %r1, %r2, 1; st.global.u32 [%out], %r1;", {}, &kind), "%r2"));
  CHECK(kind == FaultKind::uninitialised);
  CHECK(contains(fault("mov.b32 %r1, %r2; mov.b32 %r3, %r1; st.global.u32 [%out], %r3;", {}, &kind),
                 "%r3"));
  fault("@%p1 mov.u32 %r1, 1;", {}, &kind);
  CHECK(kind == FaultKind::uninitialised);
  fault("ld.shared.u32 %r1, [s]; st.global.u32 [%out], %r1;", {}, &kind,
        ".shared .align 4 .b8 s[4];");
  CHECK(kind == FaultKind::uninitialised);
  fault(".local .align 4 .b8 depot[4]; ld.local.u32 %r1, [depot]; st.global.u32 [%out], %r1;", {},
        &kind);
  CHECK(kind == FaultKind::uninitialised);
  run("mov.b32 %r1, %r2; add.u32 %r1, %r1, 1;", {}, Words(1));
}

TEST_CASE("a register written by some lanes has no value in the others") {
  FaultKind kind{};
  std::string text = fault(R"(
    mov.u32 %r0, %laneid; setp.lt.u32 %p0, %r0, 4; @%p0 mov.u32 %r1, 5; st.global.u32 [%out], %r1;)",
                           {{}, {32}, {}}, &kind);
  CHECK(kind == FaultKind::uninitialised);
  CHECK(contains(text, "0xfffffff0"));
}

TEST_CASE("dynamic shared memory lies after the static at its alignment") {
  Words out = run(
      "mov.u32 %r3, s; mov.u32 %r1, dyn; st.global.u32 [%out], %r1; st.shared.u32 [%r1+12], %r1;"
      "mov.u32 %r2, %dynamic_smem_size; st.global.u32 [%out+4], %r2;",
      {{}, {}, {}, 16}, Words(2),
      ".shared .align 4 .b8 s[20];\n.extern .shared .align 128 .b8 dyn[];");
  CHECK(out == Words{0x480, 16});
  CHECK(contains(fault("mov.u32 %r1, dyn; st.shared.u32 [%r1+16], %r1;", {{}, {}, {}, 16}, nullptr,
                       ".extern .shared .align 128 .b8 dyn[];"),
                 "outside"));
}

TEST_CASE("a fault names the CUDA line that the compiler gave its instruction") {
  const std::string text = fault(
      ".loc 2 7 3\nmov.u32 %r1, 0;\n"
      ".loc 1 42 5, function_name $L__info_string0+3, inlined_at 2 9 1\n"
      "st.global.u32 [%out+256], %r1;\n.loc 2 8 1",
      {}, nullptr,
      ".file 1 \"/some/where/inner.cuh\"\n"
      ".file 2 \"outer.cu\", 1700000000, 12");
  CHECK(contains(text, "inner.cuh:42, from outer.cu:9, PTX line"));
}

TEST_CASE("padding may be copied through local memory and using the copy is the fault") {
  const std::string copy =
      ".local .align 4 .b8 depot[16]; .reg .b64 %depot; mov.b64 %depot, depot;"
      "cvta.local.u64 %rd1, %depot; mov.u32 %r1, 7; st.u32 [%rd1], %r1;"
      "ld.v2.u32 {%r2, %r3}, [%rd1]; st.v2.u32 [%rd1+8], {%r2, %r3}; st.u32 [%rd1], %r3;"
      "ld.u32 %r4, [%rd1+8]; ld.u32 %r5, [%rd1]; ld.u32 %r6, [%rd1+12];";
  CHECK(run(copy + "st.global.u32 [%out], %r4;", {}, {0})[0] == 7);
  for (const char* use :
       {"add.u32 %r7, %r5, 1; st.u32 [%out], %r7;", "setp.eq.u32 %p1, %r6, 1; @%p1 trap;",
        "st.u32 [%out], %r6;", "st.global.u32 [%out], %r5;"}) {
    FaultKind kind{};
    const std::string report = fault(copy + use, {}, &kind);
    CHECK(kind == FaultKind::uninitialised);
    CHECK(report.find("loaded from local memory without one") != std::string::npos);
  }
}

TEST_CASE("a parameter's address in 32 bits becomes generic and elements of arrays are apart") {
  const Words out = run(R"(
    .local .align 8 .b16 depot[4];
    mov.b32 %r1, k_out; cvt.u64.u32 %rd1, %r1; cvta.param.u64 %rd2, %rd1; ld.u64 %rd3, [%rd2];
    setp.eq.s64 %p0, %rd3, %out; selp.u32 %r2, 13, 0, %p0; st.global.u32 [%out], %r2;
    mov.u64 %rd4, depot[3]; st.local.u16 depot[2], 5; st.local.u16 [%rd4], 7;
    ld.local.u32 %r3, [depot+4]; st.global.u32 [%out+4], %r3;
    mov.u32 %r4, s[3]; st.shared.u32 s[2], 8; st.shared.u32 [%r4], 9;
    ld.shared.u32 %r5, [s+8]; ld.shared.u32 %r6, [s+12];
    st.global.u32 [%out+8], %r5; st.global.u32 [%out+12], %r6;)",
                        {}, Words(4), ".shared .align 16 .b32 s[4];");
  CHECK(out == Words{13, 7 << 16 | 5, 8, 9});
}
