// SPDX-License-Identifier: MIT
// Instructions that combine the values of a warp's lanes, or of a block's threads.
#include "tools/emulator/test/support/exec_support.h"

using Words = std::vector<uint32_t>;

namespace {

// Word i of the result is what lane i stored from %d; %v holds 3 * lane + 5, %l the lane.
Words lanes(const std::string& body, uint32_t threads = 32) {
  return run(
      ".reg .b32 %l, %v, %d; .reg .b64 %a; .reg .pred %p, %q; mov.u32 %l, %tid.x;"
      "mad.lo.u32 %v, %l, 3, 5;" +
          body + "mad.wide.u32 %a, %l, 4, %out; st.global.u32 [%a], %d;",
      {{}, {threads, 1, 1}}, Words(threads));
}

}  // namespace

TEST_CASE("redux combines the lanes of the mask") {
  CHECK(lanes("redux.sync.add.s32 %d, %v, -1;") == Words(32, 3 * 496 + 5 * 32));
  CHECK(lanes("redux.sync.max.u32 %d, %v, -1;") == Words(32, 98));
  CHECK(lanes("neg.s32 %v, %v; redux.sync.min.s32 %d, %v, -1;") == Words(32, uint32_t(-98)));
  CHECK(lanes("neg.s32 %v, %v; redux.sync.max.s32 %d, %v, -1;") == Words(32, uint32_t(-5)));
  CHECK(lanes("redux.sync.and.b32 %d, %v, -1;") == Words(32, 0));
  CHECK(lanes("redux.sync.or.b32 %d, %v, -1;") == Words(32, 127));
  const Words split = lanes(
      "mov.u32 %d, 0; setp.lt.u32 %p, %l, 4;"
      "@%p redux.sync.xor.b32 %d, %v, 15;");
  CHECK(split[0] == (5u ^ 8 ^ 11 ^ 14));
  CHECK(split[4] == 0);
}

TEST_CASE(".sync may stand after the other modifiers") {
  CHECK(lanes("redux.add.s32.sync %d, %v, -1;") == Words(32, 3 * 496 + 5 * 32));
  CHECK(lanes("setp.lt.u32 %p, %l, 3; vote.ballot.sync.b32 %d, %p, -1;") == Words(32, 7));
  CHECK(lanes("shfl.idx.sync.b32 %d, %v, 4, 31, -1;") == Words(32, 17));
}

TEST_CASE("redux of floats") {
  const char* values =
      "cvt.rn.f32.u32 %d, %v; setp.eq.u32 %p, %l, 3; @%p mov.b32 %d, 0xFFC00000;"
      "setp.eq.u32 %p, %l, 4; @%p mov.b32 %d, 0xC3000000;";
  const auto of = [&](const char* op) {
    return lanes(std::string(values) + op + " %d, %d, -1;")[7];
  };
  CHECK(of("redux.sync.min.f32") == 0xC3000000);      // -128; the NaN is passed over
  CHECK(of("redux.sync.max.f32") == 0x42C40000);      // 98
  CHECK(of("redux.sync.max.abs.f32") == 0x43000000);  // 128
  CHECK(of("redux.sync.max.NaN.f32") == 0x7FFFFFFF);
}

TEST_CASE("match finds the lanes with the same value") {
  const Words any = lanes("and.b32 %v, %l, 3; match.any.sync.b32 %d, %v, -1;");
  CHECK(any[0] == 0x11111111);
  CHECK(any[31] == 0x88888888);
  CHECK(lanes("match.all.sync.b32 %d|%p, 7, -1; selp.b32 %d, %d, 1, %p;") == Words(32, ~0u));
  CHECK(lanes("match.all.sync.b32 %d|%p, %l, -1; selp.b32 %d, 1, %d, %p;") == Words(32, 0));
  CHECK(lanes("{ .reg .b64 %w; shr.u32 %v, %l, 4; cvt.u64.u32 %w, %v; shl.b64 %w, %w, 32;"
              " match.any.sync.b64 %d, %w, -1; }")[20] == 0xFFFF0000);
}

TEST_CASE("bar.red combines the predicates of all threads") {
  const char* set = "setp.gt.u32 %p, %l, 60;";
  CHECK(lanes(std::string(set) + "bar.red.popc.u32 %d, 1, %p;", 64) == Words(64, 3));
  CHECK(lanes(std::string(set) + "barrier.red.popc.u32 %d, 1, 64, !%p;", 64) == Words(64, 61));
  CHECK(lanes(std::string(set) + "bar.red.and.pred %q, 0, %p; selp.b32 %d, 1, 2, %q;", 64) ==
        Words(64, 2));
  CHECK(lanes(std::string(set) + "bar.red.or.pred %q, 0, %p; selp.b32 %d, 1, 2, %q;", 64) ==
        Words(64, 1));
  CHECK(lanes("setp.eq.u32 %p, 1, 1; bar.red.and.pred %q, 0, %p; bar.red.and.pred %p, 0, !%q;"
              " selp.b32 %d, 1, 2, %p;",
              64) == Words(64, 2));
}

TEST_CASE("movmatrix transposes the warp's matrix") {
  // Lane l holds elements 2l and 2l + 1 of row l / 4.
  const Words d = lanes(
      "{ .reg .b32 %h; shl.b32 %v, %l, 1; shl.b32 %h, %v, 16; add.u32 %h, %h, 65536;"
      " or.b32 %v, %v, %h; movmatrix.sync.aligned.m8n8.trans.b16 %d, %v; }");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t row = lane / 4, column = lane % 4 * 2;
    CHECK(d[lane] == (column * 8 + row | (column * 8 + 8 + row) << 16));
  }
}

TEST_CASE("isspacep knows the windows of generic addresses") {
  const char* body =
      "{ .reg .b64 %g; .shared .b32 s; .local .b32 t; mov.u32 %v, 0;"
      " cvta.shared.u64 %g, s; isspacep.shared %p, %g; selp.b32 %d, 1, 0, %p;"
      " isspacep.shared::cluster %p, %g; @%p add.u32 %d, %d, 2;"
      " isspacep.global %p, %g; @%p add.u32 %d, %d, 4;"
      " cvta.local.u64 %g, t; isspacep.local %p, %g; @%p add.u32 %d, %d, 8;"
      " isspacep.shared %p, %g; @%p add.u32 %d, %d, 16;"
      " isspacep.global %p, %out; @%p add.u32 %d, %d, 32;"
      " isspacep.param %p, %out; @%p add.u32 %d, %d, 64; }";
  CHECK(lanes(body) == Words(32, 1 + 2 + 8 + 32));
}
