// SPDX-License-Identifier: MIT
#include "bench/tensor_rate.h"

namespace bench {
namespace {

constexpr int kSums = 128;       // m64n256: 128 fp32 a thread
constexpr int kStepsOfK = 4;     // 64 elements in a swizzled row of 128 bytes
constexpr int kRepetitions = 4;  // so that waiting for a round costs little

std::string sums(const char* separator, const char* before, const char* after) {
  std::string text;
  for (int i = 0; i < kSums; ++i)
    text += (i ? separator : "") + std::string(before) + "d" + std::to_string(i) + after;
  return text;
}

// K-major, 128-byte swizzle, 1024 bytes from eight rows to the next: PTX ISA, matrix descriptor.
constexpr const char* kHead = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry dense_wgmma(.param .u64 from, .param .u64 out, .param .u32 rounds)
.maxntid 256
{
.reg .pred p, more;
.reg .b32 t, s, group, round, end, at, v<4>, mixed;
.reg .f32 d<128>;
.reg .b64 source, target, x, a<4>, b<4>;
.shared .align 1024 .b8 tiles[49152];
mov.u32 t, %tid.x;
mov.u32 s, tiles;
ld.param.u64 source, [from];
cvta.to.global.u64 source, source;
shl.b32 at, t, 4;
cvt.u64.u32 x, at;
add.u64 source, source, x;
add.u32 end, s, 49152;
add.u32 at, at, s;
COPY:
ld.global.v4.b32 {v0, v1, v2, v3}, [source];
st.shared.v4.b32 [at], {v0, v1, v2, v3};
add.u64 source, source, 4096;
add.u32 at, at, 4096;
setp.lt.u32 more, at, end;
@more bra COPY;
shr.u32 group, t, 7;
shl.b32 group, group, 13;
add.u32 at, s, group;
shr.u32 at, at, 4;
cvt.u64.u32 a0, at;
or.b64 a0, a0, 0x4000004000010000;
add.u32 at, s, 16384;
shr.u32 at, at, 4;
cvt.u64.u32 b0, at;
or.b64 b0, b0, 0x4000004000010000;
add.u64 a1, a0, 2; add.u64 a2, a0, 4; add.u64 a3, a0, 6;
add.u64 b1, b0, 2; add.u64 b2, b0, 4; add.u64 b3, b0, 6;
setp.eq.u32 p, t, t;
ld.param.u32 round, [rounds];
)";

constexpr const char* kTail = R"(
ld.param.u64 target, [out];
cvta.to.global.u64 target, target;
mov.u32 v0, %ctaid.x;
mad.lo.u32 v0, v0, 256, t;
mul.wide.u32 x, v0, 4;
add.u64 target, target, x;
st.global.u32 [target], mixed;
ret;
}
)";

}  // namespace

std::string dense_wgmma_program() {
  std::string text = kHead + sums("", "mov.f32 ", ", 0f00000000;\n");
  text += "fence.proxy.async;\nbar.sync 0;\nROUND:\nwgmma.fence.sync.aligned;\n";
  for (int i = 0; i < kRepetitions * kStepsOfK; ++i) {
    const std::string step = std::to_string(i % kStepsOfK);
    text += "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" + sums(", ", "", "") + "}, a" +
            step + ", b" + step + ", p, 1, 1, 0, 0;\n";
  }
  text +=
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "sub.u32 round, round, 1;\nsetp.ne.u32 more, round, 0;\n@more bra ROUND;\n"
      "mov.u32 mixed, 0;\n";
  for (int i = 0; i < kSums; ++i)
    text += "mov.b32 v0, d" + std::to_string(i) + ";\nxor.b32 mixed, mixed, v0;\n";
  return text + kTail;
}

}  // namespace bench
