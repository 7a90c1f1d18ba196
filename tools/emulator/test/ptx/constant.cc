// SPDX-License-Identifier: MIT
// Constant expressions: their values are those that ptxas 13.0 puts into machine code.
#include "tools/emulator/test/support/ptx_support.h"

namespace {

struct Row {
  const char* text;
  int64_t value;
};
const Row integers[] = {
#define VALUE(text, value) {text, int64_t(value)},
#include "tools/emulator/test/ptx/constant.def"
#undef VALUE
};

int64_t value_of(const std::string& expression) {
  return ptx_test::code("mov.u64 d0, " + expression + ";").at(0).ops.at(1).imm;
}
std::string verdict(const std::string& statement) { return ptx_test::body_verdict(statement); }

}  // namespace

TEST_CASE("constant expressions of integers have the values that ptxas gives them") {
  for (const Row& row : integers) {
    INFO(row.text);
    CHECK(value_of(row.text) == row.value);
  }
}

TEST_CASE("constant expressions of doubles and where one may stand") {
  CHECK(ptx_test::code("mov.f64 g0, 1.5+0.25*2.0;").at(0).ops.at(1).imm == 0x4000000000000000);
  CHECK(ptx_test::code("mov.f32 f0, -(1.0);").at(0).ops.at(1).imm == 0xBF800000);
  CHECK(ptx_test::code("mov.u64 d0, 1.5 > 1.0;").at(0).ops.at(1).imm == 1);
  CHECK(ptx_test::code("ld.global.u32 r0, [d0+8-4];").at(0).ops.at(1).imm == 4);
  CHECK(ptx_test::code("ld.global.u32 r0, [d0+~3];").at(0).ops.at(1).imm == -4);
  for (const char* good : {"setp.eq.u32 p0|p1, r0, 1|2;", "bar.sync 1+1;", "mov.b32 r0, {1+1, 2};",
                           "mov.pred p0, 1-1;", "mov.f32 f0, (0f3F800000);", "add.u32 r0, r1, !0;",
                           "mov.u32 r0, -WARP_SZ;"})
    CHECK(verdict(good) == "accepted");
}

TEST_CASE("constant expressions that ptxas refuses are refused") {
  for (const char* bad :
       {"mov.u32 r0, 7%4;", "mov.f32 f0, -0f3F800000;", "mov.f32 f0, 0f3F800000+0f3F800000;",
        "mov.u32 r0, 1/0;", "mov.u64 d0, (-9223372036854775807-1) / -1;", "mov.u32 r0, 1.5;",
        "mov.f32 f0, 3;", "mov.f32 f0, 1+2.0;", "mov.f64 g0, 1 ? 2.0 : 3;", "mov.u32 r0, (.f64)3;",
        "mov.u32 r0, (int)3;", "mov.u32 r0, !1.0;", "mov.u32 r0, ~1.0;", "mov.u32 r0, 1.0 && 1;",
        "ld.global.u32 r0, [d0-4];", "mov.u32 r0, (1;", "mov.u32 r0, 1+;", "mov.u32 r0, 1 ? 2;"}) {
    INFO(bad);
    CHECK(verdict(bad) != "accepted");
  }
  const std::string deep(100, '('), close(100, ')');
  CHECK(verdict("mov.u32 r0, " + deep + "1" + close + ";") != "accepted");
}

TEST_CASE("initial values are constant expressions; bounds of arrays are plain") {
  const auto of = [](const std::string& text) {
    return ptx_test::verdict(ptx_test::module_head() + text + "\n.entry k() { ret; }\n");
  };
  const auto module = ptx_test::load(
      ptx_test::module_head() + ".global .u32 x[3] = {1+1, 2*3, -(4)};\n.entry k() { ret; }\n");
  CHECK(module->variables.at(0).init ==
        std::vector<uint8_t>{2, 0, 0, 0, 6, 0, 0, 0, 0xFC, 0xFF, 0xFF, 0xFF});
  CHECK(of(".global .f32 x = 1.0 + 1.0;") == "accepted");
  CHECK(of(".global .u32 x = WARP_SZ;") == "accepted");
  for (const char* bad : {".global .u32 x[1+2];", ".global .f32 x = 3;", ".global .u32 x = 1.0;"})
    CHECK(of(bad) != "accepted");
}
