// SPDX-License-Identifier: MIT
// Tokens.
#include <bit>

#include "tools/emulator/ptx/lexer.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using emu::ptx::lex;
using emu::ptx::Token;
using Kind = Token::Kind;

Token first(const std::string& text) {
  static std::string kept;  // tokens point into the text
  kept = text;
  return lex(kept).at(0);
}

std::string refusal(const std::string& text) {
  try {
    lex(text);
    return "";
  } catch (const emu::PtxError& e) {
    return std::to_string(e.pos.line) + ":" + std::to_string(e.pos.column) + ": " + e.text;
  }
}

}  // namespace

TEST_CASE("an opcode is a word and dotted words with :: inside") {
  const std::string text = "mbarrier.try_wait.shared::cta.32x128b .b64";
  const auto t = lex(text);
  REQUIRE(t.size() == 6);
  CHECK(t[0].text == "mbarrier");
  CHECK(t[1].dot("try_wait"));
  CHECK(t[2].dot("shared::cta"));
  CHECK(t[3].dot("32x128b"));
  CHECK(!t[3].spaced);
  CHECK(t[4].dot("b64"));
  CHECK(t[4].spaced);
}

TEST_CASE("names hold $ % _ and have any length") {
  for (const std::string& name :
       {std::string("$L__BB0_12"), std::string("%r1"), std::string("__$temp1"), std::string("_"),
        std::string(5000, 'q')}) {
    const Token t = first(name);
    CHECK(t.kind == Kind::word);
    CHECK(t.text == name);
  }
}

TEST_CASE("integers are decimal and hexadecimal and octal and binary up to 2^64-1") {
  CHECK(first("0").bits == 0);
  CHECK(first("4611686293305294848").bits == 4611686293305294848ull);
  CHECK(first("18446744073709551615").bits == ~0ull);
  CHECK(first("0x3fb8aa3b").bits == 0x3fb8aa3b);
  CHECK(first("0XFFFFFFFFFFFFFFFF").bits == ~0ull);
  CHECK(first("017").bits == 15);
  CHECK(first("0b101").bits == 5);
  CHECK(first("42U").bits == 42);
  CHECK(refusal("18446744073709551616") == "1:1: integer constant above 2^64-1");
  CHECK(refusal("12ab") == "1:1: a number ends in letters");
}

TEST_CASE("reals are bit patterns or decimals") {
  CHECK(first("0f3F800000").kind == Kind::real32);
  CHECK(first("0f3F800000").bits == 0x3f800000);
  CHECK(first("0D3ff0000000000000").kind == Kind::real64);
  CHECK(first("0d3FF0000000000000").bits == 0x3ff0000000000000);
  CHECK(first("1.5").bits == std::bit_cast<uint64_t>(1.5));
  CHECK(first("25e-1").bits == std::bit_cast<uint64_t>(2.5));
  CHECK(refusal("0f3F8") == "1:1: 0f takes exactly 8 hexadecimal digits");
}

TEST_CASE("comments are blanks and positions count lines and columns from 1") {
  const std::string text = "// one\n/* two\nlines */ add // end\n\tret;";
  const auto t = lex(text);
  REQUIRE(t.size() == 4);
  CHECK(t[0].text == "add");
  CHECK(t[0].pos.line == 3);
  CHECK(t[0].pos.column == 10);
  CHECK(t[1].pos.line == 4);
  CHECK(t[1].pos.column == 2);
  CHECK(refusal("add\n  /* open") == "2:3: comment without an end");
  CHECK(refusal("add #") == "1:5: character '#' (0x23) has no place in PTX");
}

TEST_CASE("what ptxas reads otherwise is refused: blank statements and lost operands and 4.b8") {
  using ptx_test::body_verdict;
  CHECK(body_verdict("add.s32 r1, r2, r3;;") != "accepted");
  CHECK(body_verdict("bar.sync 0,;") != "accepted");
  CHECK(body_verdict(".local .align 4.b8 more[4];") != "accepted");
  CHECK(body_verdict(".pragma nounroll;") != "accepted");
  CHECK(body_verdict(".reg .b32 _;") != "accepted");
  CHECK(body_verdict("_: ret;") != "accepted");
  CHECK(body_verdict("bmsk.wrap.b32 r0, r1, r2;") == "accepted");
  for (const char* other : {"x0, r1, r2;", "r0, f1, r2;", "r0, r1, x2;"})
    CHECK(body_verdict("bmsk.wrap.b32 " + std::string(other)) != "accepted");
  CHECK(body_verdict("mbarrier.arrive_drop.noComplete.b64 d0, [d1], 0;") != "accepted");
  for (const char* text : {".entry WARP_SZ() { ret; }", ".func WARP_SZ() { ret; }",
                           ".entry k() { .reg .b32 WARP_SZ<2>; ret; }", ".global .b32 WARP_SZ;"})
    CHECK(ptx_test::verdict(ptx_test::module_head() + text).find("'WARP_SZ' is no name") !=
          std::string::npos);
  CHECK(
      ptx_test::verdict(".version 9.0\n.target sm_90a\n.address_size 64\n.entry _() { ret; }\n", 90)
          .find("'_' is no name") != std::string::npos);
  const std::string cancel = "clusterlaunchcontrol.try_cancel";
  CHECK(body_verdict(cancel + ".async.mbarrier::complete_tx::bytes.b128 [d0], [d1];") ==
        "accepted");
  CHECK(body_verdict(cancel + ".mbarrier::complete_tx::bytes.async.b128 [d0], [d1];") !=
        "accepted");
  CHECK(body_verdict(".pragma \"nounroll\";") == "accepted");
}
